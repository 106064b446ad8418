"""BM25 of a corpus.

Lucene's variant over the words of `core.corpus.words`. Texts are read once, however many methods and encoders
search. Scores are inner products of a query's words and a chunk's weights, exact for all chunks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from core.base.home import keep_arrays, kept_arrays
from core.corpus.words import pieces_of, words_in

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

WORDS_FORMAT = 4
"""Raise when the words of a text or their weights change, so that kept indexes are not found."""


_K1, _B = 1.5, 0.75
"""How soon more of a word stops counting, and how much a text's length does: bm25s' defaults."""


class _Numbers(dict[str, int]):
    """Numbers of strings, in the order in which they were first asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


class WordIndex:
    """Words of N texts. Texts without a single word have scores of 0."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._n = len(texts)
        self._columns = words = _Numbers()
        self._weights, self._rows = np.zeros(0, np.float32), np.zeros(0, np.int32)
        self._ends = np.zeros(1, np.int64)
        pieces = _Numbers()
        in_texts = _counts(map(pieces_of, texts), pieces)
        in_pieces = _counts(map(words_in, pieces), words)
        if words:
            counts = (in_texts @ in_pieces).tocsc()
            self._rows, self._ends = counts.indices.astype(np.int32), counts.indptr.astype(np.int64)
            self._weights = _weights(counts)

    @classmethod
    def kept(cls, path: Path, n: int) -> WordIndex | None:
        """Of `n` texts, as `keep` wrote it; None when there is none, or it is damaged or of other texts."""
        stored = kept_arrays(path)
        if not stored:
            return None
        try:
            words = stored["words"].tobytes().decode("utf-8", "surrogatepass").split("\n")
            weights, rows, ends = stored["data"], stored["indices"], stored["indptr"]
        except (KeyError, UnicodeDecodeError):
            return None
        columns = _Numbers(zip(words, range(len(words)), strict=True))
        if (
            not (weights.dtype == np.float32 and rows.dtype == np.int32 and ends.dtype == np.int64)
            or ends.shape != (len(columns) + 1,)
            or not ends[0] == 0 < ends[-1]
            or not weights.shape == rows.shape == (ends[-1],)
            or (np.diff(ends) < 0).any()
            or not 0 <= rows.min() <= rows.max() < n
        ):
            return None
        index = cls(())
        index._n, index._columns = n, columns
        index._weights, index._rows, index._ends = weights, rows, ends
        return index

    def keep(self, path: Path) -> None:
        """Writes it for `kept`; nothing where no text holds a word."""
        if not self.is_empty:
            text = "\n".join(self._columns).encode("utf-8", "surrogatepass")
            words: np.ndarray = np.frombuffer(text, np.uint8)
            arrays = {"words": words, "data": self._weights, "indices": self._rows, "indptr": self._ends}
            keep_arrays(path, arrays)

    @property
    def is_empty(self) -> bool:
        """No text holds a word."""
        return not self._columns

    def scores(self, words: Iterable[str]) -> np.ndarray:
        """(N,) float32: BM25 of all texts for some words; a word that stands twice counts twice."""
        scores = np.zeros(self._n, np.float32)
        for held in map(self._held, words):
            scores[self._rows[held]] += self._weights[held]
        return scores

    def shares(self, words: Iterable[str]) -> np.ndarray:
        """(N,) float32 from 0 to 1: scores divided by the largest; 0 where no text holds any of the words."""
        scores = self.scores(words)
        largest = scores.max(initial=0.0)
        shares: np.ndarray = scores / largest if largest > 0 else scores
        return shares

    def frequency(self, word: str) -> int:
        """How many texts hold a word, as `words_of` gives it; 0 for a stop word."""
        held = self._held(word)
        return int(held.stop - held.start)

    def _held(self, word: str) -> slice:
        """Where the rows and weights of a word are."""
        column = self._columns.get(word)
        return slice(0, 0) if column is None else slice(int(self._ends[column]), int(self._ends[column + 1]))


def _counts(lists: Iterable[Sequence[str]], numbers: _Numbers) -> csr_array:
    """How often each string stands in each list: a row a list, its columns by `numbers`."""
    from scipy.sparse import csr_array

    lengths = [0]

    def counted() -> Iterator[Sequence[str]]:
        for strings in lists:
            lengths.append(len(strings))
            yield strings

    columns = np.fromiter(map(numbers.__getitem__, chain.from_iterable(counted())), np.int32)
    ones = np.ones(len(columns), np.int32)
    return csr_array((ones, columns, np.cumsum(lengths)), (len(lengths) - 1, len(numbers)))


def _weights(counts: csc_array) -> np.ndarray:
    """Of each entry of (texts, words)."""
    n_texts, lengths, holding = counts.shape[0], counts.sum(axis=1), np.diff(counts.indptr)
    rarity = np.log(1 + (n_texts - holding + 0.5) / (holding + 0.5)).astype(np.float32)
    times = counts.data.astype(np.float32)
    saturation = _K1 * ((1 - _B) + _B * lengths / lengths.mean())
    weights: np.ndarray = np.repeat(rarity, holding) * (times / (saturation[counts.indices] + times))
    return weights.astype(np.float32)


_indexes: WeakKeyDictionary[object, WordIndex] = WeakKeyDictionary()
_making: WeakValueDictionary[object, threading.Lock] = WeakValueDictionary()
"""By file, or by owner where there is none: nobody waits for the words of another document."""
_looking = threading.Lock()


def word_index(owner: object, texts: Callable[[], Sequence[str]], path: Path | None = None) -> WordIndex:
    """The index of `owner`'s texts, made when first asked for, kept with the owner and in the file `path`."""
    with _looking:
        if owner in _indexes:
            return _indexes[owner]
        making = _making.setdefault(path or owner, threading.Lock())
    with making:  # branches search side by side
        if owner not in _indexes:
            given = texts()
            index = None if path is None else WordIndex.kept(path, len(given))
            if index is None:
                index = WordIndex(given)
                if path is not None:
                    index.keep(path)
            _indexes[owner] = index
        return _indexes[owner]
