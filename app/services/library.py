"""The documents that visitors have open, and their runs, in memory.

Everything here is bounded and can be rebuilt from disk. Documents and runs are found by unguessable tokens
that only their visitor's session holds, and belong to whoever opened the documents.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from app.services.agents import Agents
from app.services.in_view import Labelled, OpenDocuments, RunInView
from app.services.kept_open import keep_documents
from app.services.recent import Recent
from app.services.visitors import DOCUMENTS_OPEN, Allowance
from core.base.config import ChunkConfig, EpisodeConfig
from core.base.types import Document, Workspace
from core.corpus.opening import Embedded, OnPart, Opened, Progress, index_workspace, open_corpus
from core.methods.qrag.agent import Agent

MAX_CORPORA_BYTES = 4 * 2**30
"""Memory for open documents; the least recently used one goes first and is opened again from the caches."""
MAX_RUNS_BYTES = 2**30
"""Memory for the Q-values of runs in view; older runs are read from the log again."""


class Library:
    """Opens documents under agents."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self.corpora: Recent[OpenDocuments] = Recent(MAX_CORPORA_BYTES, lambda documents: documents.n_bytes)
        self.runs: Recent[RunInView] = Recent(MAX_RUNS_BYTES, lambda run: run.n_bytes)
        self.allowance = Allowance()
        self._ours: dict[str, str] = {}

    def ours(self, document: Document, origin: str) -> Document:
        """The document as one that the project made, `origin`: it reads and fills the common caches."""
        self._ours[document.sha256] = origin
        return document

    def name_of(self, documents: OpenDocuments) -> str:
        """What a page's address calls documents: their name, behind the origin where the project made them.
        The name is gone with the page, the origin is not.
        """
        hashes = [document.sha256 for document in documents.workspace.documents]
        origin = self._ours.get(hashes[0]) if len(hashes) == 1 else None
        return f"{origin}.{documents.name}" if origin else documents.name

    def keep(self, documents: OpenDocuments) -> None:
        """Lets their address find documents later; the project's own are made again instead."""
        if not {document.sha256 for document in documents.workspace.documents} <= self._ours.keys():
            keep_documents(documents)

    def cache_part(self, hashes: Iterable[str], owner: str | None) -> str:
        """The part of the caches for a visitor's documents, by their hashes: one of their own, or the common
        one where all are the project's.

        From a common one a visitor would see whether somebody else has opened a text before.
        """
        return "" if owner is None or set(hashes) <= self._ours.keys() else owner

    def open(
        self,
        documents: Sequence[Document],
        agent: Agent,
        configs: Sequence[ChunkConfig] | None,
        on_progress: Progress | None = None,
        label: Callable[[Workspace], tuple[Labelled, ...]] = lambda _: (),
        owner: str | None = None,
        spent: Mapping[str, float] = MappingProxyType({}),
        on_part: Callable[[OpenDocuments], None] | None = None,
    ) -> OpenDocuments:
        """Chunks, embeds and registers a visitor's documents; `label` finds the chunks that support known
        questions.

        `spent`: milliseconds of the stages before. `on_part`: told of what can be asked meanwhile, each time
        that it is a tenth more; it lies under the token of the whole. Raises BadRequest when the visitor has
        read too much today.
        """
        token = secrets.token_hex(16)
        report = self.allowance.metered(owner, sum(len(document.text) for document in documents), on_progress)
        opened = open_corpus(
            documents,
            agent.encoder,
            configs,
            report,
            self.cache_part((document.sha256 for document in documents), owner),
            self._partly(token, agent, label, owner, on_part),
        )
        opened = replace(opened, milliseconds={**spent, **opened.milliseconds})
        return self._register(opened, agent, label(opened.corpus.workspace), owner, token)

    def reopen(
        self,
        workspace: Workspace,
        agent: Agent,
        on_progress: Progress | None = None,
        questions: tuple[Labelled, ...] = (),
        owner: str | None = None,
        on_part: Callable[[OpenDocuments], None] | None = None,
        token: str = "",
    ) -> OpenDocuments:
        """The same chunks under another agent, out of the log or as they were open before, then under their
        `token`. Raises BadRequest as `open`.
        """
        token = token or secrets.token_hex(16)
        # out of a file they may be any part of the text
        n_characters = sum(int((table.end - table.start).sum()) for table in workspace.tables)
        report = self.allowance.metered(owner, n_characters, on_progress)
        opened = index_workspace(
            workspace,
            agent.encoder,
            report,
            self.cache_part((document.sha256 for document in workspace.documents), owner),
            self._partly(token, agent, lambda _: questions, owner, on_part),
        )
        return self._register(opened, agent, questions, owner, token)

    def under(
        self, documents: OpenDocuments, agent: Agent, on_progress: Progress | None = None
    ) -> OpenDocuments:
        """The same chunks under an agent's vectors, opened once a visitor. Raises BadRequest as `open`."""
        for candidate in (documents, *self.corpora.all()):
            if (
                not candidate.searched
                and candidate.workspace is documents.workspace
                and candidate.agent is agent
                and candidate.owner == documents.owner
            ):
                return candidate
        return self.reopen(documents.workspace, agent, on_progress, documents.questions, documents.owner)

    def with_likeliest(self, documents: OpenDocuments, query: str) -> OpenDocuments:
        """Documents that are embedded in part, for one question: also the chunks that share most words with
        it. What the documents are to other questions stays as it is, and their visitor has paid for all of
        them.
        """
        workspace, vectors = documents.workspace, documents.corpus.index.vectors
        config = EpisodeConfig(searched=documents.searched)
        there = config.searched_chunks(len(workspace))
        hashes = (document.sha256 for document in workspace.documents)
        part = self.cache_part(hashes, documents.owner)
        before = Embedded(workspace, documents.agent.encoder, vectors.cpu().numpy(), there)
        embedded = before.with_likeliest(query, part=part)
        return replace(documents, corpus=embedded.corpus(), searched=embedded.ranges)

    def _partly(
        self,
        token: str,
        agent: Agent,
        label: Callable[[Workspace], tuple[Labelled, ...]],
        owner: str | None,
        on_part: Callable[[OpenDocuments], None] | None,
    ) -> OnPart | None:
        """Registers what is embedded each time it is a tenth more, since the vectors are copied."""
        if on_part is None:
            return None
        last_share = 0.0

        def register(part: Embedded) -> None:
            nonlocal last_share
            if last_share and part.share < last_share + 0.1:
                return
            last_share, questions = part.share, label(part.workspace)
            opened = Opened(part.corpus())
            on_part(self._register(opened, agent, questions, owner, token, part.ranges))

        return register

    def _register(
        self,
        opened: Opened,
        agent: Agent,
        questions: tuple[Labelled, ...],
        owner: str | None,
        token: str,
        searched: tuple[tuple[int, int], ...] = (),
    ) -> OpenDocuments:
        documents = OpenDocuments(
            token=token,
            corpus=opened.corpus,
            agent=agent,
            milliseconds=opened.milliseconds,
            n_embedded=opened.n_embedded,
            notices=opened.notices,
            foreign=opened.foreign,
            trained=self._agents.trained_for(opened.corpus.workspace.documents, agent.spec),
            questions=questions,
            owner=owner,
            searched=searched,
        )
        if owner is not None:
            theirs = [other for other in self.corpora.all() if other.owner == owner and other.token != token]
            for other in theirs[: max(0, len(theirs) - DOCUMENTS_OPEN + 1)]:
                self.close(other)
        self.corpora.put(documents.token, documents)
        return documents

    def close(self, documents: OpenDocuments) -> None:
        """Forgets documents and the finished runs over them, which hold their vectors; the log has both."""
        self.corpora.drop(documents.token)
        for run in self.runs.all():
            if run.documents.token == documents.token and run.ended:
                self.runs.drop(run.token)
