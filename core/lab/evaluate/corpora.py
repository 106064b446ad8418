"""Examples made searchable.

Every distinct text is embedded once, however many questions use it: a chunk's vector does not depend on where
it stands. One matrix holds the noise that any question reads and the own texts of as many questions as fit in
memory; each question has its own order of rows. Vectors stay in the cache on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.base.progress import finish
from core.corpus.bm25 import WordIndex, word_index
from core.corpus.index import ChunkIndex
from core.corpus.opening import index_of, vector_store
from core.encode.cache import EmbedProgress, VectorStore, embedding
from core.encode.encoder import DualEncoder
from core.lab.tasks.example import Example, Noise, Woven

MOST_OWN_TEXTS = 100_000
"""Distinct texts beside the noise from which a new matrix is begun: 150 MB of 384 dimensions."""


@dataclass(frozen=True, eq=False)
class ExampleCorpus:
    """The chunks of one example and their vectors; a `Searchable` of one document."""

    example: Example
    index: ChunkIndex

    @property
    def borders(self) -> np.ndarray:
        """(2,) int64: the whole is one document."""
        return np.array([0, len(self)], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.index)

    def text(self, chunk_id: int) -> str:
        """The text of one chunk."""
        return self.example.chunks[chunk_id]

    def texts(self) -> Sequence[str]:
        """The text of every chunk, by chunk id."""
        return self.example.chunks[:]

    @property
    def words(self) -> WordIndex:
        """The words of the chunks."""
        return word_index(self.example, self.texts)


def index_examples(
    examples: Sequence[Example],
    encoder: DualEncoder,
    hear: Callable[[EmbedProgress], None] = lambda _: None,
    *,
    store: VectorStore | None = None,
) -> Iterator[ExampleCorpus]:
    """A corpus for each example, in order. `hear` may raise `Cancelled`; what is embedded by then is
    kept in `store` (default: the cache on disk).
    """
    store = store or vector_store(encoder)
    noise = _NoiseRows(examples)
    shared = finish(embedding(encoder, noise.texts, store), hear)
    for group, own_rows in _groups(examples):
        own = finish(embedding(encoder, list(own_rows), store), hear)
        index = index_of(encoder, np.concatenate([shared, own]))
        for example in group:
            yield ExampleCorpus(example, index.arranged(noise.rows(example, own_rows)))


class _NoiseRows:
    """Where the noise texts that some example reads stand in the matrix: from row 0 on, in their order."""

    def __init__(self, examples: Sequence[Example]) -> None:
        used: dict[Noise, np.ndarray] = {}
        for example in examples:
            if isinstance(example.chunks, Woven):
                noise, rows = example.chunks.noise, example.chunks.noise_rows
                used.setdefault(noise, np.zeros(len(noise.texts), dtype=bool))[rows[rows >= 0]] = True
        self.texts: list[str] = []
        self._places: dict[Noise, np.ndarray] = {}
        for noise, rows in used.items():
            # neighbours stay neighbours, so that runs can be scored in one go
            self._places[noise] = len(self.texts) + np.cumsum(rows) - 1
            self.texts += [noise.texts[row] for row in np.flatnonzero(rows).tolist()]

    def rows(self, example: Example, own_rows: dict[str, int]) -> np.ndarray:
        """(N,) int64 row of each chunk; own texts stand behind the noise."""
        own = np.array([own_rows[text] + len(self.texts) for text in example.own_texts], dtype=np.int64)
        if not isinstance(example.chunks, Woven):
            return own
        noise_rows = example.chunks.noise_rows
        out: np.ndarray = self._places[example.chunks.noise][noise_rows]
        out[list(example.chunks.places)] = own
        return out


def _groups(examples: Sequence[Example]) -> Iterator[tuple[list[Example], dict[str, int]]]:
    """Neighbouring examples, and the row of each distinct text of their own."""
    group: list[Example] = []
    rows: dict[str, int] = {}
    for example in examples:
        group.append(example)
        for text in example.own_texts:
            rows.setdefault(text, len(rows))
        if len(rows) >= MOST_OWN_TEXTS:
            yield group, rows
            group, rows = [], {}
    if group:
        yield group, rows
