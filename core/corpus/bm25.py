"""BM25 of a corpus.

The weight of every word in every chunk, and scores of all chunks for the words of a query. Lucene's variant
by bm25s over the words of `core.corpus.words`. Texts are read once, however many methods and encoders search.
Scores are inner products of the query's words and a chunk's weights, so they are exact for all chunks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from core.base.home import keep_arrays, kept_arrays
from core.corpus.words import pieces_of, words_in

WORDS_FORMAT = 3
"""Raise when the words of a text or their weights change, so that kept indexes are not found."""


class _Columns(dict[str, tuple[int, ...]]):
    """The columns of the words of pieces of text, see `core.corpus.words`."""

    def __init__(self) -> None:
        super().__init__()
        self.of_word: dict[str, int] = {}

    def __missing__(self, piece: str) -> tuple[int, ...]:
        of_word = self.of_word
        columns = tuple([of_word.setdefault(word, len(of_word)) for word in words_in(piece)])
        self[piece] = columns
        return columns


class WordIndex:
    """Words of N texts. Texts without a single word have scores of 0."""

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        self._n = len(texts)
        columns = _Columns()
        ids = [list(chain.from_iterable(map(columns.__getitem__, pieces_of(text)))) for text in texts]
        self._index = bm25s.BM25() if columns.of_word else None
        if self._index is not None:
            self._index.index((ids, columns.of_word), show_progress=False)

    @classmethod
    def kept(cls, path: Path, n: int) -> WordIndex | None:
        """Of `n` texts, as `keep` wrote it; None when there is none, or it is damaged or of other texts."""
        stored = kept_arrays(path)
        if not stored:
            return None
        import bm25s

        try:
            words = stored["words"].tobytes().decode("utf-8", "surrogatepass").split("\n")
            data, rows, ends = stored["data"], stored["indices"], stored["indptr"]
        except (KeyError, UnicodeDecodeError):
            return None
        vocabulary = {word: column for column, word in enumerate(words)}
        if (
            not (data.dtype == np.float32 and rows.dtype == np.int32 and ends.dtype == np.int64)
            or ends.shape != (len(vocabulary) + 1,)
            or not ends[0] == 0 < ends[-1]
            or not data.shape == rows.shape == (ends[-1],)
            or (np.diff(ends) < 0).any()
            or not 0 <= rows.min() <= rows.max() < n
        ):
            return None
        index = cls(())
        index._n, index._index = n, bm25s.BM25()
        index._index.scores = {"data": data, "indices": rows, "indptr": ends, "num_docs": n}
        index._index.vocab_dict, index._index.nonoccurrence_array = vocabulary, None
        return index

    def keep(self, path: Path) -> None:
        """Writes it for `kept`; nothing where no text holds a word."""
        if self._index is not None:
            arrays = {name: self._index.scores[name] for name in ("data", "indices", "indptr")}
            words = "\n".join(
                filter(None, self._index.vocab_dict)
            )  # bm25s adds an empty one without a column
            keep_arrays(
                path, {"words": np.frombuffer(words.encode("utf-8", "surrogatepass"), np.uint8), **arrays}
            )

    @property
    def is_empty(self) -> bool:
        """No text holds a word."""
        return self._index is None

    def scores(self, words: Iterable[str]) -> np.ndarray:
        """(N,) float32: BM25 of all texts for some words; a word that stands twice counts twice."""
        vocabulary = [] if self._index is None else [word for word in words if word in self._index.vocab_dict]
        if self._index is None or not vocabulary:
            return np.zeros(self._n, np.float32)
        scores: np.ndarray = self._index.get_scores(vocabulary).astype(np.float32)
        return scores

    def shares(self, words: Iterable[str]) -> np.ndarray:
        """(N,) float32 from 0 to 1: scores divided by the largest; 0 where no text holds any of the words."""
        scores = self.scores(words)
        largest = scores.max(initial=0.0)
        shares: np.ndarray = scores / largest if largest > 0 else scores
        return shares

    def frequency(self, word: str) -> int:
        """How many texts hold a word, as `words_of` gives it; 0 for a stop word."""
        column = None if self._index is None else self._index.vocab_dict.get(word)
        if self._index is None or column is None:
            return 0
        ends = self._index.scores["indptr"]
        return int(ends[column + 1] - ends[column])


_indexes: WeakKeyDictionary[object, WordIndex] = WeakKeyDictionary()
_building = threading.Lock()


def word_index(owner: object, texts: Callable[[], Sequence[str]], path: Path | None = None) -> WordIndex:
    """The index of `owner`'s texts, made when first asked for, kept with the owner and in the file `path`."""
    with _building:  # branches search side by side
        if owner not in _indexes:
            given = texts()
            index = None if path is None else WordIndex.kept(path, len(given))
            if index is None:
                index = WordIndex(given)
                if path is not None:
                    index.keep(path)
            _indexes[owner] = index
        return _indexes[owner]
