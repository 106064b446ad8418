"""Examples made searchable.

Every distinct text is embedded once, however many questions use it: a chunk's vector does not depend on where
it stands. One matrix holds the noise that any question reads and the own texts of as many as fit in memory;
each question has its own order of rows, but for those over one pool. Vectors stay in the cache on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.base.progress import finish
from core.corpus.bm25 import WordIndex, word_index
from core.corpus.index import ChunkIndex
from core.corpus.opening import index_of, vector_store
from core.encode.cache import EmbedProgress, VectorStore, embedding
from core.encode.encoder import DualEncoder
from core.ingest.tokenizer import Tokenizer
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
        """Of one chunk."""
        return self.example.chunks[chunk_id]

    def texts(self) -> Sequence[str]:
        """By chunk id."""
        return self.example.chunks[:]

    @property
    def words(self) -> WordIndex:
        """Of the chunks."""
        return word_index(self.index, self.texts)


def index_examples(
    examples: Sequence[Example],
    encoder: DualEncoder,
    hear: Callable[[EmbedProgress], None] = lambda _: None,
    *,
    store: VectorStore | None = None,
) -> Iterator[ExampleCorpus]:
    """A corpus an example, in order. `hear` may raise `Cancelled`; `store` (default: disk) keeps vectors."""
    group: list[Example] = []
    own: set[str] = set()
    for example in examples:
        group.append(example)
        own.update(example.own_texts)
        if len(own) >= MOST_OWN_TEXTS or example is examples[-1]:
            yield from _over_one_matrix(group, encoder, hear, store or vector_store(encoder))
            group, own = [], set()


def _over_one_matrix(
    examples: Sequence[Example],
    encoder: DualEncoder,
    hear: Callable[[EmbedProgress], None],
    store: VectorStore,
) -> Iterator[ExampleCorpus]:
    read: dict[Noise, np.ndarray] = {}  # of each noise the rows that some example reads
    for example in examples:
        if isinstance(example.chunks, Woven):
            noise, rows = example.chunks.noise, example.chunks.noise_rows
            read.setdefault(noise, np.zeros(len(noise.texts), dtype=bool))[rows[rows >= 0]] = True
    texts: list[str] = []
    places: dict[Noise, np.ndarray] = {}
    for noise, is_read in read.items():
        # neighbours stay neighbours, so that runs can be scored in one go
        places[noise] = len(texts) + np.cumsum(is_read) - 1
        texts += [noise.texts[row] for row in np.flatnonzero(is_read).tolist()]
    distinct = dict.fromkeys(text for example in examples for text in example.own_texts)
    own_rows = {text: row for row, text in enumerate(distinct, start=len(texts))}
    index = index_of(encoder, finish(embedding(encoder, [*texts, *own_rows], store), hear))
    pool: object = None
    for example in examples:
        if example.chunks is not pool:
            rows = np.array([own_rows[text] for text in example.own_texts], dtype=np.int64)
            if isinstance(example.chunks, Woven):
                own, rows = rows, places[example.chunks.noise][example.chunks.noise_rows]
                rows[list(example.chunks.places)] = own
            pool, arranged = example.chunks, index.arranged(rows)
        yield ExampleCorpus(example, arranged)


def join_chunks(example: Example, tokenizer: Tokenizer, max_tokens: int) -> Example:
    """The example with neighbouring chunks joined, greedily from the first, while they have at most
    `max_tokens` tokens together. A joined chunk is support when it holds a support chunk.
    """
    texts, room = example.chunks[:], -1
    joined: list[list[str]] = []
    owners: list[int] = []
    """The joined chunk that each chunk goes into."""
    for text, n in zip(texts, tokenizer.count(texts).tolist(), strict=True):
        if n > room:
            joined.append([])
            room = max_tokens
        room -= n
        joined[-1].append(text)
        owners.append(len(joined) - 1)
    support = sorted({owners[chunk_id] for chunk_id in example.support})
    return replace(example, chunks=tuple(map(" ".join, joined)), support=tuple(support))
