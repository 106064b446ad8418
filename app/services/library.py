"""The documents that visitors have open, and their runs, in memory.

Everything here is bounded and can be rebuilt from disk. Documents and runs are found by unguessable tokens
that only their visitor's session holds, and belong to whoever opened the documents.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from app.services.agents import Agents
from app.services.in_view import Labelled, OpenDocuments, RunInView
from app.services.kept_open import keep_documents
from app.services.recent import Recent
from app.services.visitors import DOCUMENTS_OPEN, Allowance
from core.base.config import ChunkConfig, EpisodeConfig
from core.base.progress import mapped
from core.base.types import Document, Workspace
from core.corpus.opening import Embedded, Opened, Opening, index_workspace, open_corpus
from core.methods.qrag.agent import Agent

MAX_CORPORA_BYTES = 4 * 2**30
"""Memory for open documents; the least recently used one goes first and is opened again from the caches."""
MAX_RUNS_BYTES = 2**30
"""Memory for the Q-values of runs in view; older runs are read from the log again."""


@dataclass(frozen=True, eq=False)
class OpenOrder:
    """How documents are opened: under which agent, for whom, with which known questions."""

    agent: Agent
    owner: str | None = None
    label: Callable[[Workspace], tuple[Labelled, ...]] = lambda _: ()
    """Finds the chunks that support known questions."""
    token: str = field(default_factory=partial(secrets.token_hex, 16))
    """Of the documents, once all of them are there and while they are embedded."""


class Library:
    """Opens documents under agents."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self.corpora: Recent[OpenDocuments] = Recent(
            MAX_CORPORA_BYTES, lambda documents: documents.n_bytes, self.close
        )
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
        """The part of the caches for documents by their hashes: the visitor's own, or the common one where
        all are the project's. There a visitor would see whether others have opened a text before.
        """
        return "" if owner is None or set(hashes) <= self._ours.keys() else owner

    def part_of(self, documents: OpenDocuments) -> str:
        """The part of the caches for open documents."""
        hashes = (document.sha256 for document in documents.workspace.documents)
        return self.cache_part(hashes, documents.owner)

    def open(
        self,
        order: OpenOrder,
        documents: Sequence[Document],
        configs: Sequence[ChunkConfig] | None = None,
        spent: Mapping[str, float] = MappingProxyType({}),
    ) -> Opening[OpenDocuments]:
        """Chunks, embeds and registers documents. `spent`: milliseconds of the stages before. Raises
        BadRequest when their visitor has read too much today.
        """
        part = self.cache_part((document.sha256 for document in documents), order.owner)
        opening = open_corpus(documents, order.agent.encoder, configs, part)
        meter = self.allowance.meter(order.owner, sum(len(document.text) for document in documents))
        opened = yield from mapped(opening, meter)
        return self._register(order, replace(opened, milliseconds={**spent, **opened.milliseconds}))

    def reopen(self, order: OpenOrder, workspace: Workspace) -> Opening[OpenDocuments]:
        """The same chunks under another agent, or as they were open before. Raises BadRequest as `open`."""
        part = self.cache_part((document.sha256 for document in workspace.documents), order.owner)
        opening = index_workspace(workspace, order.agent.encoder, part)
        # out of a file they may be any part of the text
        n_characters = sum(int((table.end - table.start).sum()) for table in workspace.tables)
        meter = self.allowance.meter(order.owner, n_characters)
        return self._register(order, (yield from mapped(opening, meter)))

    def take_part(self, order: OpenOrder, part: Embedded) -> OpenDocuments:
        """What is embedded so far; made anew once it is a tenth more, since its vectors are copied."""
        known = self.corpora.get(order.token)
        if known is not None and part.share < known.share + 0.1:
            return known
        return self._register(order, Opened(part.corpus()), part.ranges)

    def under(self, documents: OpenDocuments, agent: Agent) -> Opening[OpenDocuments]:
        """The same chunks under an agent's vectors, opened once a visitor. Raises BadRequest as `open`."""
        for other in (documents, *self.corpora.all()):
            is_same = other.workspace is documents.workspace and other.owner == documents.owner
            if is_same and other.agent is agent and not other.searched:
                return other
        order = OpenOrder(agent, documents.owner, lambda _: documents.questions)
        return (yield from self.reopen(order, documents.workspace))

    def with_likeliest(self, documents: OpenDocuments, query: str) -> OpenDocuments:
        """Documents that are embedded in part, with the chunks that share most words with a question, too:
        for that question alone. Their visitor has paid for all of them.
        """
        workspace, vectors = documents.workspace, documents.corpus.index.vectors
        there = EpisodeConfig(searched=documents.searched).searched_chunks(len(workspace))
        before = Embedded(workspace, documents.agent.encoder, vectors.cpu().numpy(), there)
        embedded = before.with_likeliest(query, part=self.part_of(documents))
        return replace(documents, corpus=embedded.corpus(), searched=embedded.ranges)

    def _register(
        self, order: OpenOrder, opened: Opened, searched: tuple[tuple[int, int], ...] = ()
    ) -> OpenDocuments:
        workspace, owner = opened.corpus.workspace, order.owner
        documents = OpenDocuments(
            token=order.token,
            corpus=opened.corpus,
            agent=order.agent,
            milliseconds=opened.milliseconds,
            n_embedded=opened.n_embedded,
            notices=opened.notices,
            foreign=opened.foreign,
            trained=self._agents.trained_for(workspace.documents, order.agent.spec),
            questions=order.label(workspace),
            owner=owner,
            searched=searched,
        )
        if owner is not None:
            theirs = [other for other in self.corpora.all() if other.owner == owner]
            others = [other for other in theirs if other.token != order.token]
            for other in others[: max(0, len(others) - DOCUMENTS_OPEN + 1)]:
                self.close(other)
        self.corpora.put(documents.token, documents)
        return documents

    def close(self, documents: OpenDocuments) -> None:
        """Forgets documents and the finished runs over them, which hold their vectors; the log has both."""
        self.corpora.drop(documents.token)
        for run in self.runs.all():
            if run.documents.token == documents.token and run.ended:
                self.runs.drop(run.token)
