"""BM25 of a corpus.

The weight of every word in every chunk, and scores of all chunks for the words of a query. Lucene's variant
by bm25s, English stop words dropped. Texts are read once, however many methods and encoders search them.
Scores are inner products of the query's words and a chunk's weights, so they are exact for all chunks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from weakref import WeakKeyDictionary

import numpy as np


def words_of(text: str) -> list[str]:
    """The words that count, lower case, in order, repeats included.

    >>> words_of("Where was the letter of Anna, the letter?")
    ['where', 'letter', 'anna', 'letter']
    """
    import bm25s  # brings scipy: when words are first asked for

    words: list[str] = bm25s.tokenize(text, stopwords="en", return_ids=False, show_progress=False)[0]
    return words


class WordIndex:
    """Words of N texts. Texts without a single word have scores of 0."""

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        self._n = len(texts)
        tokens = bm25s.tokenize(texts, stopwords="en", show_progress=False)
        self._index = bm25s.BM25() if tokens.vocab else None
        if self._index is not None:
            self._index.index(tokens, show_progress=False)

    @property
    def is_empty(self) -> bool:
        """No text holds a word."""
        return self._index is None

    def scores(self, words: Iterable[str]) -> np.ndarray:
        """(N,) float32: BM25 of all texts for some words; a word that stands twice counts twice."""
        known = [] if self._index is None else [word for word in words if word in self._index.vocab_dict]
        if self._index is None or not known:
            return np.zeros(self._n, np.float32)
        scores: np.ndarray = self._index.get_scores(known).astype(np.float32)
        return scores

    def shares(self, words: Iterable[str]) -> np.ndarray:
        """(N,) float32 between 0 and 1: the scores, divided by the largest of them; 0 where no text holds any
        of the words.
        """
        scores = self.scores(words)
        largest = scores.max(initial=0.0)
        shares: np.ndarray = scores / largest if largest > 0 else scores
        return shares

    def frequency(self, word: str) -> int:
        """How many texts hold a lower-case word; 0 for a stop word."""
        column = None if self._index is None else self._index.vocab_dict.get(word)
        if self._index is None or column is None:
            return 0
        ends = self._index.scores["indptr"]
        return int(ends[column + 1] - ends[column])


_indexes: WeakKeyDictionary[object, WordIndex] = WeakKeyDictionary()
_building = threading.Lock()


def word_index(owner: object, texts: Callable[[], Sequence[str]]) -> WordIndex:
    """The index of the texts that belong to `owner`, built when it is first asked for and kept as long as the
    owner.
    """
    with _building:  # branches search side by side
        if owner not in _indexes:
            _indexes[owner] = WordIndex(texts())
        return _indexes[owner]
