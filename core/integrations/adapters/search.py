"""Documents opened for one method, and what it finds for a question.

What the adapters have in common. A passage is a chunk that was kept, in order of choice, under an id that
holds as long as its document and its cut do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.base.config import EpisodeConfig
from core.base.errors import BadDocument
from core.base.events import fold
from core.base.progress import finish
from core.base.types import Document
from core.corpus.index import Corpus
from core.corpus.opening import Progress, open_corpus
from core.methods.choice import Encoders
from core.methods.protocol import Retriever
from core.methods.registry import build_retriever, facts_of, vectors_of


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


@dataclass(frozen=True, eq=False)
class Search:
    """An open corpus and the method that searches it; may be asked from several threads."""

    corpus: Corpus
    retriever: Retriever
    config: EpisodeConfig

    def passages(self, query: str, k: int | None = None) -> list[Passage]:
        """What the method keeps, at most `k`, by default the configuration's number. Raises BadRequest."""
        workspace, n = self.corpus.workspace, len(self.corpus)
        config = self.config.with_(step_budget=min(self.config.step_budget if k is None else k, n))
        trace = fold(self.retriever.retrieve(query, self.corpus, config))
        picks = {*trace.picks}
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
                "method": self.retriever.name,
                "score_name": facts_of(self.retriever.name).score_name,
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
    """Cuts, embeds and indexes documents for a method.

    Agent and method are by default those that the app chooses for the first document; `config` that of the
    checkpoint, with its own stop rule. Raises BadRequest, BadCheckpoint, BadDocument.
    """
    if not documents:
        raise BadDocument("no documents were given; read at least one with core.ingest.read_document")
    encoders = Encoders(checkpoint, device)
    choice, agent = encoders.choice(documents[0])
    name = method or choice.method
    own = name == "qrag" or agent.spec.name == vectors_of(name, agent.spec.name)
    plain = agent if own else encoders.beside(name, agent)
    retriever, encoder = build_retriever(name, agent, plain)
    corpus = finish(open_corpus(documents, encoder), hear).corpus
    return Search(corpus, retriever, config or agent.spec.episode_config())
