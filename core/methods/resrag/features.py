"""What the light policy sees of every chunk.

Likeness to the question, words, neighbours, its document, a second look, and the budget. All of it are
numbers about ranks, gaps and likeness, so a policy serves sentences and passages, one page and a million
tokens alike; the cost is a few passes over the vectors and two sorts. The second look is with the question
together with the chunk that cosine and words rank first, since the second hop is often found by the words of
the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.corpus.index import Searchable
from core.corpus.words import words_of
from core.encode.encoder import DualEncoder
from core.methods.hybrid import WORD_WEIGHT
from core.methods.protocol import cosines_of

NAMES = (
    "cosine",
    "cosine below the best",
    "cosine below its document's best",
    "cosine, standardised",
    "rank by cosine",
    "rank by cosine in its document",
    "words",
    "words below its document's best",
    "rank by words",
    "cosine and words below the best",
    "rank by cosine and words",
    "cosine of the chunk before",
    "cosine of the chunk after",
    "words of the chunk before",
    "words of the chunk after",
    "document's best cosine below the best",
    "rank of the document by cosine",
    "document's best words",
    "second look",
    "second look below the best",
    "second look, standardised",
    "gain of the second look",
    "rank by the second look",
    "likeness to the best chunk",
    "first of its document",
    "length",
    "length beside the mean",
    "chunks of its document",
    "documents",
    "chunks",
    "best cosine",
    "budget",
)
"""Columns of `features`; ranks, lengths, counts and the budget as logarithms."""


@dataclass(frozen=True, eq=False)
class QuestionFeatures:
    """One question over one corpus."""

    features: np.ndarray
    """(N, F) float32 in the order of NAMES; the budget's column is 0 until `with_budget` sets it."""
    cosines: np.ndarray
    """(N,) float32."""

    def with_budget(self, budget: int) -> np.ndarray:
        """(N, F) float32 features of choosing at most `budget` chunks."""
        columns = self.features.copy()
        columns[:, -1] = np.log1p(budget)
        return columns


def look(query: str, corpus: Searchable, encoder: DualEncoder) -> QuestionFeatures:
    """Features of every chunk. `encoder`: the one whose vectors the corpus holds; of at least one chunk."""
    state = encoder.encode_states([encoder.state_tokens(query, [])])[0]
    cosines, shares = cosines_of(state, corpus), corpus.words.shares(words_of(query))
    best = int(np.argmax(cosines + np.float32(WORD_WEIGHT) * shares))
    again = encoder.encode_states([encoder.state_tokens(query, [corpus.text(best)])])[0]
    lengths = np.fromiter(map(len, corpus.texts()), dtype=np.float32, count=len(corpus))
    return QuestionFeatures(
        columns(cosines, shares, cosines_of(again, corpus), _likeness(best, corpus), lengths, corpus.borders),
        cosines,
    )


def columns(
    cosines: np.ndarray,
    shares: np.ndarray,
    second: np.ndarray,
    likeness: np.ndarray,
    lengths: np.ndarray,
    borders: np.ndarray,
) -> np.ndarray:
    """(N, F) float32 from five arrays (N,): cosine with the question, words (0 to 1), cosine of the second
    look, likeness to the best chunk, characters.

    borders: (M + 1,). N is at least 1.
    """
    n = len(cosines)
    sizes = np.diff(borders)
    filled = np.flatnonzero(sizes)
    document = np.repeat(np.arange(len(filled)), sizes[filled])
    firsts = borders[:-1][filled]
    best_cosine, best_words = (np.maximum.reduceat(values, firsts) for values in (cosines, shares))
    both = cosines + np.float32(WORD_WEIGHT) * shares
    is_first, is_last = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    is_first[firsts] = True
    is_last[firsts + sizes[filled] - 1] = True
    table = (
        cosines,
        cosines - cosines.max(),
        cosines - best_cosine[document],
        _standardised(cosines),
        _ranks(cosines),
        _ranks(cosines, document),
        shares,
        shares - best_words[document],
        _ranks(shares),
        both - both.max(),
        _ranks(both),
        np.where(is_first, cosines, np.roll(cosines, 1)),
        np.where(is_last, cosines, np.roll(cosines, -1)),
        np.where(is_first, 0, np.roll(shares, 1)),
        np.where(is_last, 0, np.roll(shares, -1)),
        best_cosine[document] - cosines.max(),
        _ranks(best_cosine)[document],
        best_words[document],
        second,
        second - second.max(),
        _standardised(second),
        second - cosines,
        _ranks(second),
        likeness,
        is_first,
        np.log1p(lengths),
        np.log1p(lengths) - np.log1p(lengths.mean()),
        np.log1p(sizes[filled])[document],
        np.full(n, np.log1p(len(filled))),
        np.full(n, np.log1p(n)),
        np.full(n, cosines.max()),
        np.zeros(n),
    )
    return np.stack(table, axis=1).astype(np.float32)


def _likeness(best: int, corpus: Searchable) -> np.ndarray:
    return cosines_of(corpus.index.vector(best), corpus)


def _standardised(values: np.ndarray) -> np.ndarray:
    standardised: np.ndarray = (values - values.mean()) / (values.std() + 1e-3)
    return standardised


def _ranks(values: np.ndarray, group: np.ndarray | None = None) -> np.ndarray:
    """(N,) logarithm of each place, overall or in its ascending group (N,); best 0, equals in order."""
    order = (
        np.argsort(-values, kind="stable")
        if group is None
        else np.lexsort((np.arange(len(values)), -values, group))
    )
    places = np.empty(len(values), dtype=np.float64)
    places[order] = np.arange(len(values))
    if group is not None:
        places -= np.searchsorted(group, group)
    return np.log1p(places)
