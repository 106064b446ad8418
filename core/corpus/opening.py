"""Opening documents.

Document[] -> chunk tables -> vectors -> Corpus, with all caches. Each long stage is a generator of
`OpenProgress`; closed early, it keeps what was embedded by then. `part` names a part of the caches that is
read and filled alone, so that the time of an opening says nothing of who else opened the text.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from core.base.batches import batches
from core.base.config import ChunkConfig
from core.base.errors import BadDocument
from core.base.home import cache_folder, keep_arrays, kept_arrays
from core.base.progress import mapped, reported
from core.base.types import ChunkTable, Document, Workspace
from core.corpus.bm25 import WORDS_FORMAT, word_index
from core.corpus.context import texts_in_context
from core.corpus.index import ChunkIndex, Corpus
from core.corpus.language import is_not_english
from core.corpus.tiles import best_chunks
from core.corpus.words import words_of
from core.encode.cache import EmbedProgress, VectorStore, embed_chunks, embedding
from core.encode.encoder import DualEncoder
from core.encode.spread import ranges_of
from core.encode.turns import urgent
from core.ingest import chunk_document, default_chunker

Stage = Literal["reading", "chunking", "embedding", "indexing"]

_COLUMNS = ("start", "end", "n_tokens", "type_code", "heading_code")
_TABLE_FORMAT = 2
"""Raise when chunkers change what they produce, so that old tables are not found."""


@dataclass(frozen=True)
class OpenProgress:
    """How far a stage of opening is. Units: files read, characters chunked, chunks embedded."""

    stage: Stage
    done: int
    total: int
    n_cached: int = 0
    seconds_left: float | None = None
    so_far: Embedded | None = None
    """What can be asked while the rest is embedded."""


@dataclass(frozen=True, eq=False)
class Opened:
    """A corpus and what it cost. `milliseconds` has an entry per stage."""

    corpus: Corpus
    milliseconds: dict[str, float] = field(default_factory=dict)
    n_embedded: int = 0
    """Distinct chunks that had to be embedded; the others came from the cache."""
    notices: tuple[str, ...] = ()
    """Sentences about documents unlike the agent's training, and about the vector cache."""
    foreign: bool = False
    """Whether any of the documents is unlike the agent's training."""


LIKELIEST_CHUNKS = 200
"""By the words of a question. Of what `general` finds in a million tokens, 0.92 is among so many."""
LIKELIEST_SECONDS = 2.0
_AT_ONCE = 50
"""Chunks between two looks at the clock; 0.86 of it is among so many."""


@dataclass(frozen=True, eq=False)
class Embedded:
    """The chunks of a workspace that are embedded so far: they can be asked while the rest is on its way."""

    workspace: Workspace
    encoder: DualEncoder
    vectors: np.ndarray
    """(N, D), the rows of the others not yet theirs."""
    mask: np.ndarray
    """(N,) bool."""

    @property
    def share(self) -> float:
        """Of the chunks, how many there are."""
        return float(self.mask.mean())

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """What a run over `corpus` must be bound to, as `EpisodeConfig.searched`: empty for all."""
        return () if self.mask.all() else ranges_of(self.mask, _MOST_RANGES)

    def corpus(self) -> Corpus:
        """All chunks, with the vectors as they are now."""
        return Corpus(self.workspace, index_of(self.encoder, self.vectors))

    def with_likeliest(self, query: str, seconds: float = LIKELIEST_SECONDS, part: str = "") -> Embedded:
        """Also the chunks that share most words with a question, embedded ahead of their turn until `seconds`
        are over: some in any case, LIKELIEST_CHUNKS at most.

        What an agent chooses is mostly among them. Their rows are written into `vectors`: whoever searches
        the part sees none of them, and they are what they will be.
        """
        began, workspace = time.monotonic(), self.workspace
        words = word_index(workspace, lambda: texts_in_context(workspace), words_file(workspace, part))
        shared = words.scores(words_of(query))
        ranked = best_chunks(shared, 0, LIKELIEST_CHUNKS)
        likely = ranked[(shared[ranked] > 0) & ~self.mask[ranked]]
        mask, store = self.mask.copy(), vector_store(self.encoder, part)
        with urgent():
            for ids in batches(likely, _AT_ONCE):
                texts = [workspace[chunk_id].text for chunk_id in ids.tolist()]
                self.vectors[ids] = embed_chunks(self.encoder, texts, store)
                mask[ids] = True
                if time.monotonic() - began > seconds:
                    break
        return replace(self, mask=mask)


_MOST_RANGES = 2_000
"""That a run names: more only where half of a text lay scattered in the cache, the longest then."""

R = TypeVar("R")
Opening = Generator[OpenProgress, None, R]
"""Its events; what it comes to is its value, see `core.base.progress.finish`."""
Progress = Callable[[OpenProgress], None]


def open_corpus(
    documents: Sequence[Document],
    encoder: DualEncoder,
    chunk_configs: Sequence[ChunkConfig] | None = None,
    part: str = "",
) -> Opening[Opened]:
    """Chunks, embeds and indexes documents, in their order. Raises BadDocument when they hold no text."""
    started = time.perf_counter()
    workspace = yield from chunk_documents(documents, encoder, chunk_configs, part)
    chunking = 1000 * (time.perf_counter() - started)
    opened = yield from index_workspace(workspace, encoder, part)
    return replace(opened, milliseconds={"chunking": chunking, **opened.milliseconds})


def chunk_documents(
    documents: Sequence[Document],
    encoder: DualEncoder,
    chunk_configs: Sequence[ChunkConfig] | None = None,
    part: str = "",
) -> Opening[Workspace]:
    """The workspace of documents, cut by `chunk_configs`, one each; by default as the checkpoint reads."""
    configs = chunk_configs or [
        encoder.spec.chunk_config(default_chunker(document.kind)) for document in documents
    ]
    tables = []
    for document, config in zip(documents, configs, strict=True):
        tables.append((yield from chunk_table(document, config, encoder, part)))
    workspace = Workspace(tuple(documents), tuple(tables), tuple(configs))
    if not len(workspace):
        raise BadDocument("there is no text to search in what was opened; open a document with text")
    return workspace


def index_workspace(workspace: Workspace, encoder: DualEncoder, part: str = "") -> Opening[Opened]:
    """Embeds and indexes chunks."""
    n_missing = 0

    def progress(now: EmbedProgress) -> OpenProgress:
        nonlocal n_missing
        n_missing = now.total - now.n_cached
        so_far = None if now.mask is None else Embedded(workspace, encoder, now.vectors, now.mask)
        return OpenProgress("embedding", now.done, now.total, now.n_cached, now.seconds_left, so_far)

    started = time.perf_counter()
    store = vector_store(encoder, part)
    vectors = yield from mapped(embedding(encoder, workspace.texts(), store), progress)
    embedded = time.perf_counter()
    yield OpenProgress("indexing", 0, len(workspace))
    corpus = Corpus(workspace, index_of(encoder, vectors), words_file(workspace, part))
    milliseconds = {
        "embedding": 1000 * (embedded - started),
        "indexing": 1000 * (time.perf_counter() - embedded),
    }
    foreign = tuple(_foreign(workspace, encoder))
    return Opened(corpus, milliseconds, n_missing, (*foreign, *_notices(store)), bool(foreign))


def _foreign(workspace: Workspace, encoder: DualEncoder) -> Iterator[str]:
    """A sentence about each document unlike the agent's training or, where that is not known, not English."""
    familiarity, texts = encoder.familiarity, workspace.texts()
    ranges = pairwise(workspace.borders.tolist())
    for document, (first, last) in zip(workspace.documents, ranges, strict=True):
        own = texts[first:last]
        bits = None if familiarity is None else familiarity.surprise(own, encoder.tokenizer)
        is_foreign = familiarity is not None and bits is not None and familiarity.is_foreign(bits)
        if (is_foreign or familiarity is None) and is_not_english(own):
            yield (
                f"{document.title} is not in English, on which the agents that ship were trained: look twice"
                " at what they find, and compare with hybrid"
            )
        elif is_foreign:
            yield (
                f"{document.title} reads unlike what {encoder.spec.name} was trained on: its Q may mislead,"
                " so compare with another agent or with top-k"
            )


def _notices(store: VectorStore) -> Iterator[str]:
    """Sentences about the vector cache."""
    if store.failure:
        yield store.failure
    if store.n_damaged_blocks:
        yield (
            f"{store.n_damaged_blocks} damaged parts of the vector cache were passed over; what they held was"
            " embedded again"
        )


def index_of(encoder: DualEncoder, vectors: np.ndarray) -> ChunkIndex:
    """The index that a checkpoint's spec asks for, on the encoder's device."""
    spec = encoder.spec
    return ChunkIndex(
        vectors,
        halves=spec.halves,
        theta=spec.rope_theta,
        resolution=spec.position_resolution,
        device=encoder.device,
    )


def vector_store(encoder: DualEncoder, part: str = "") -> VectorStore:
    """The encoder's vectors on this machine."""
    path = cache_folder("vectors", part) / f"{encoder.vector_fingerprint}.bin"
    return VectorStore(path, encoder.dim, np.dtype(encoder.spec.vectors))


def chunk_table(
    document: Document, config: ChunkConfig, encoder: DualEncoder, part: str = ""
) -> Opening[ChunkTable]:
    """The document's chunks, from the cache when they were cut before."""
    key = (
        f"{_TABLE_FORMAT} {document.sha256} {config.chunker} {config.max_tokens} {config.one_sentence}"
        f" {encoder.tokenizer.sha256}"
    )
    path = cache_folder("chunks", part) / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
    table = _load_table(path)
    if table is None:

        def chunk(report: Progress) -> ChunkTable:
            def chunked(done: int, total: int) -> None:
                report(OpenProgress("chunking", done, total))

            return chunk_document(document, config, encoder.tokenizer, chunked)

        table = yield from reported(chunk)
        headings = np.frombuffer(json.dumps(table.heading_paths).encode(), dtype=np.uint8)
        keep_arrays(path, {"headings": headings} | {name: getattr(table, name) for name in _COLUMNS})
    return table


def _load_table(path: Path) -> ChunkTable | None:
    """None when there is none, or when it is damaged."""
    stored = kept_arrays(path)
    try:
        return ChunkTable(
            **{name: stored[name] for name in _COLUMNS},
            heading_paths=tuple(map(tuple, json.loads(stored["headings"].tobytes()))),
        )
    except (KeyError, ValueError, TypeError):
        return None


def words_file(workspace: Workspace, part: str = "") -> Path:
    """Where the words of all chunks are kept, see `Corpus.kept_words`."""
    titles = [document.title for document in workspace.documents]
    headings = [table.heading_paths for table in workspace.tables]
    known = f"{WORDS_FORMAT} {workspace.sha256} {json.dumps([titles, headings])}"
    key = hashlib.sha256(known.encode())
    for table in workspace.tables:
        key.update(np.stack([table.start, table.end, table.heading_code]).astype(np.int64).tobytes())
    return cache_folder("words", part) / f"{key.hexdigest()[:32]}.npz"
