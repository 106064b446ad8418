"""What the light policy sees of every chunk.

Ranks, gaps and likeness, so that a policy serves sentences and passages, one page and a million tokens alike,
at the cost of a few passes over the vectors. The second look is with the question together with the chunk
that cosine and words rank first, since the second hop is often found by the words of the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.corpus.index import Searchable
from core.corpus.words import words_of
from core.encode.encoder import DualEncoder
from core.methods.hybrid import WORD_WEIGHT
from core.methods.protocol import cosines_of


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
    second, likeness = cosines_of(again, corpus), cosines_of(corpus.index.vector(best), corpus)
    lengths = np.fromiter(map(len, corpus.texts()), dtype=np.float32, count=len(corpus))
    return QuestionFeatures(columns(cosines, shares, second, likeness, lengths, corpus.borders), cosines)


def columns(*measured: np.ndarray) -> np.ndarray:
    """(N, F) float32 in the order of NAMES. measured: as of `_named_columns`."""
    return np.stack([*_named_columns(*measured).values()], axis=1).astype(np.float32)


def _named_columns(
    cosines: np.ndarray,
    shares: np.ndarray,
    second: np.ndarray,
    likeness: np.ndarray,
    lengths: np.ndarray,
    borders: np.ndarray,
) -> dict[str, np.ndarray]:
    """Columns (N,) from five arrays (N,): cosine with the question, words (0 to 1), cosine of the second
    look, likeness to the best chunk, characters. Ranks, lengths, counts and the budget are logarithms.

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
    return {
        "cosine": cosines,
        "cosine below the best": cosines - cosines.max(),
        "cosine below its document's best": cosines - best_cosine[document],
        "cosine, standardised": _standardised(cosines),
        "rank by cosine": _ranks(cosines),
        "rank by cosine in its document": _ranks(cosines, document),
        "words": shares,
        "words below its document's best": shares - best_words[document],
        "rank by words": _ranks(shares),
        "cosine and words below the best": both - both.max(),
        "rank by cosine and words": _ranks(both),
        "cosine of the chunk before": np.where(is_first, cosines, np.roll(cosines, 1)),
        "cosine of the chunk after": np.where(is_last, cosines, np.roll(cosines, -1)),
        "words of the chunk before": np.where(is_first, 0, np.roll(shares, 1)),
        "words of the chunk after": np.where(is_last, 0, np.roll(shares, -1)),
        "document's best cosine below the best": best_cosine[document] - cosines.max(),
        "rank of the document by cosine": _ranks(best_cosine)[document],
        "document's best words": best_words[document],
        "second look": second,
        "second look below the best": second - second.max(),
        "second look, standardised": _standardised(second),
        "gain of the second look": second - cosines,
        "rank by the second look": _ranks(second),
        "likeness to the best chunk": likeness,
        "first of its document": is_first,
        "length": np.log1p(lengths),
        "length beside the mean": np.log1p(lengths) - np.log1p(lengths.mean()),
        "chunks of its document": np.log1p(sizes[filled])[document],
        "documents": np.full(n, np.log1p(len(filled))),
        "chunks": np.full(n, np.log1p(n)),
        "best cosine": np.full(n, cosines.max()),
        "budget": np.zeros(n),  # last, where `with_budget` sets it
    }


def _standardised(values: np.ndarray) -> np.ndarray:
    standardised: np.ndarray = (values - values.mean()) / (values.std() + 1e-3)
    return standardised


def _ranks(values: np.ndarray, group: np.ndarray | None = None) -> np.ndarray:
    """(N,) logarithm of each place, overall or in its ascending group (N,); best 0, equals in order."""
    order = np.argsort(-values, kind="stable") if group is None else np.lexsort((-values, group))
    places = np.empty(len(values), dtype=np.float64)
    places[order] = np.arange(len(values))
    if group is not None:
        places -= np.searchsorted(group, group)
    return np.log1p(places)


_ONE = np.zeros(1)
NAMES = tuple(_named_columns(_ONE, _ONE, _ONE, _ONE, _ONE, np.array([0, 1])))
"""Columns of `features`."""
