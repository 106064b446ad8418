"""One question and agent over documents cut in several ways.

Chunk ids of two cuts have nothing in common, so what was found is compared as text, by its characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from core.base.config import CHUNKERS, EpisodeConfig
from core.base.errors import BadRequest
from core.base.progress import finish
from core.base.types import Document, Workspace
from core.corpus.index import Corpus
from core.corpus.opening import Opened, OpenProgress, open_corpus
from core.encode.checkpoint import CheckpointSpec
from core.encode.encoder import DualEncoder
from core.methods.protocol import Retriever
from core.runs.whatif.comparison import Contestant, OnEvent, compare
from core.views.findings import Column

SIZES = (32, 64, 96, 128, 256)
"""Most tokens of a chunk, where the agent reads so many."""
MAX_TOKENS = 1_000_000
"""Of all documents together: ten cuts are ten times the embedding."""

TextSpan = tuple[int, int, int]
"""(document, first character, behind the last)."""


@dataclass(frozen=True, eq=False)
class Cut:
    """What the agent found with one way of cutting."""

    name: str
    column: Column
    opened: Opened | None
    """None where the documents could not be opened so."""


def across_cuts(
    query: str,
    documents: Sequence[Document],
    retriever: Retriever,
    encoder: DualEncoder,
    config: EpisodeConfig,
    on_progress: Callable[[str, OpenProgress], None] = lambda *_: None,
    on_event: OnEvent = lambda *_: None,
    part: str = "",
) -> Iterator[Cut]:
    """Every chunker with every size, each as soon as it is there. Both callbacks may raise `Cancelled`;
    `on_progress` hears the cut's name first. `part`: of the caches. A cut with fewer chunks than steps comes
    with the error in its column.
    """
    pairs = product(CHUNKERS, sizes_for(encoder.spec))
    ways = {f"{chunker}, {size} tokens": (chunker, size) for chunker, size in pairs}
    opened: dict[str, Opened] = {}

    def corpus_of(one: Contestant) -> Corpus:
        chunk_config = encoder.spec.chunk_config(*ways[one.name])
        opening = open_corpus(documents, encoder, [chunk_config] * len(documents), part)
        opened[one.name] = finish(opening, lambda progress: on_progress(one.name, progress))
        return opened[one.name].corpus

    contestants = (Contestant(name, retriever, encoder, config) for name in ways)
    for column in compare(query, contestants, corpus_of, on_event):
        yield Cut(column.name, column, opened.pop(column.name, None))


def sizes_for(spec: CheckpointSpec) -> list[int]:
    """The sizes that an agent reads, ascending; the first that is above what it reads counts as just that."""
    return sorted({min(size, spec.readable_tokens) for size in SIZES})


def check_size(n_tokens: int) -> None:
    """Raises BadRequest when documents are too long to be cut and embedded once for each size."""
    if n_tokens > MAX_TOKENS:
        n_cuts = len(CHUNKERS) * len(SIZES)
        raise BadRequest(
            f"the documents have {n_tokens:,} tokens, more than {MAX_TOKENS:,}: {n_cuts} cuts would be"
            " embedded; open a shorter document"
        )


def spans_of(workspace: Workspace, chunk_ids: Sequence[int]) -> list[TextSpan]:
    """Where chunks stand."""
    chunks = (workspace[chunk_id] for chunk_id in chunk_ids)
    return [(chunk.document, chunk.start, chunk.end) for chunk in chunks]


def chunks_of(workspace: Workspace, spans: Sequence[TextSpan]) -> tuple[int, ...]:
    """Ids of the chunks that hold a part of any span, ascending."""
    return tuple(sorted({chunk_id for span in spans for chunk_id in workspace.overlapping(*span)}))


def share_found(workspace: Workspace, chosen: Sequence[int], spans: Sequence[TextSpan]) -> float | None:
    """Share of `spans`' characters, blanks aside, none twice, in chosen chunks; None where there are none."""
    wanted, held = _characters(workspace, spans), _characters(workspace, spans_of(workspace, chosen))
    return len(wanted & held) / len(wanted) if wanted else None


def _characters(workspace: Workspace, spans: Sequence[TextSpan]) -> set[tuple[int, int]]:
    """(document, place) of every character of some spans that is not blank."""
    return {
        (document, i)
        for document, start, end in spans
        for i in range(start, end)
        if not workspace.documents[document].text[i].isspace()
    }
