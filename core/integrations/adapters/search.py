"""Documents opened for one method, and what it finds for a question.

What the adapters have in common. A passage's id holds as long as its document and its cut do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.base.config import EpisodeConfig
from core.base.errors import BadDocument
from core.base.events import Trace, fold
from core.base.progress import finish
from core.base.types import Document, Workspace
from core.corpus.index import Corpus
from core.corpus.opening import Progress, open_corpus
from core.methods.choice import Encoders
from core.methods.protocol import Retriever
from core.methods.registry import build_retriever, facts_of
from core.views.draw.words import counted


@dataclass(frozen=True, slots=True)
class Passage:
    """One chunk that was found."""

    id: str
    """Hash of the document, first and last character."""
    text: str
    score: float
    """Q, or what the method's scores are."""
    metadata: dict[str, Any]
    """title, headings, start, end, chunk_id, step, method, score_name."""


@dataclass(frozen=True, eq=False, repr=False)
class Search:
    """An open corpus and the method that searches it; may be asked from several threads."""

    corpus: Corpus
    retriever: Retriever
    config: EpisodeConfig

    def __repr__(self) -> str:
        """Short: a notebook prints retrievers."""
        titles = ", ".join(document.title for document in self.corpus.workspace.documents[:3])
        return f"<Search: {titles}; {counted(len(self.corpus), 'chunk')}; {self.retriever.name}>"

    def passages(self, query: str, k: int | None = None) -> list[Passage]:
        """What the method keeps, at most `k`, by default the configuration's number. Raises BadRequest."""
        budget = min(self.config.step_budget if k is None else k, len(self.corpus))
        config = self.config.with_(step_budget=budget)
        trace = fold(self.retriever.retrieve(query, self.corpus, config))
        return passages_of(trace, self.corpus.workspace)


def passages_of(trace: Trace, workspace: Workspace) -> list[Passage]:
    """What a run keeps, in order of choice."""
    picks, score_name = {*trace.picks}, facts_of(trace.started.method).score_name
    made = []
    for step in trace.steps:
        if step.chunk_id not in picks:
            continue
        chunk = workspace[step.chunk_id]
        document = workspace.documents[chunk.document]
        metadata = {
            "title": document.title,
            "headings": list(chunk.heading_path),
            "start": chunk.start,
            "end": chunk.end,
            "chunk_id": chunk.chunk_id,
            "step": step.step,
            "method": trace.started.method,
            "score_name": score_name,
        }
        name = f"{document.sha256[:16]}-{chunk.start}-{chunk.end}"
        made.append(Passage(name, chunk.text, step.q_value, metadata))
    return made


def open_search(
    documents: Sequence[Document],
    method: str | None = None,
    checkpoint: str | None = None,
    config: EpisodeConfig | None = None,
    *,
    device: str | None = None,
    hear: Progress = lambda _: None,
) -> Search:
    """Opens documents for a method; method and checkpoint are by default those that the app would choose, and
    `config` that of the checkpoint. Raises BadRequest, BadCheckpoint, BadDocument.
    """
    if not documents:
        raise BadDocument("no documents were given; read at least one with core.ingest.read_document")
    if not all(isinstance(one, Document) for one in documents):
        raise BadDocument("what was given are no documents; read each file with core.ingest.read_document")
    encoders = Encoders(checkpoint, device)
    choice, agent = encoders.choice(documents[0])
    name = method or choice.method
    retriever, encoder = build_retriever(name, agent, encoders.beside(name, agent))
    corpus = finish(open_corpus(documents, encoder), hear).corpus
    return Search(corpus, retriever, config or agent.spec.episode_config())
