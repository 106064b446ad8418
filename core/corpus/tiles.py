"""What a strip of pixels must know about N numbers.

Least, greatest and most telling chunk of every column, exact at any zoom, at most `width` entries however
long the document is. A range is widened to whole chunks; every chunk lies in one column. NaN means "no value"
and is skipped; -inf is a value, the lowest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypedDict

import numpy as np

Mode = Literal["q", "dq", "rank", "p"]
MODES: tuple[Mode, ...] = ("q", "dq", "rank", "p")
"""Q; change of Q since the look before; place when sorted by Q, 1 is best; probability under the policy."""


class ChunkFacts(TypedDict):
    """What there is to say of a chunk at one look. None: unknown or undefined, as the rank of one chosen."""

    text: str
    title: str
    """Of its document."""
    heading: str
    q: float | None
    rank: int | None
    p: float | None
    rho: float | None
    """Position before rounding to the grid."""
    chosen_at: int | None
    """Step, 1-based."""


class StripSource(Protocol):
    """A run's numbers. A look is a pass over all chunks: before every step, and the last, which stopped."""

    @property
    def n_chunks(self) -> int: ...

    @property
    def n_looks(self) -> int: ...

    def values(self, look: int, mode: Mode) -> np.ndarray:
        """(N,) numbers of 1-based `look`; NaN where there is none, as of change at look 1. Worth keeping."""

    def describe(self, chunk_id: int, look: int) -> ChunkFacts: ...


@dataclass(frozen=True, eq=False)
class Tile:
    """Chunks [first, last) in n entries: k covers ids from first + k * (last - first) // n up to k + 1's."""

    first: int
    last: int
    minima: np.ndarray
    """(n,) float32, NaN where no chunk of the column has a value."""
    maxima: np.ndarray
    """(n,) float32."""
    best: np.ndarray
    """(n,) int32, id of the chunk worth pointing at, the first of equals; -1 where none has a value."""


def tile(values: np.ndarray, lo: float, hi: float, width: int, *, salience: np.ndarray | None = None) -> Tile:
    """Folds the chunks of [lo, hi), 0 <= lo < hi <= N, into at most `width` columns; chunk i: [i, i + 1).

    values: (N,); salience: (N,), what `best` is the largest of, `values` when not given.

    >>> t = tile(np.array([0.1, 0.9, 0.2, 0.3]), 0, 4, 2)
    >>> t.maxima.tolist() == np.float32([0.9, 0.3]).tolist(), t.best.tolist()
    (True, [1, 3])
    """
    first, last = math.floor(lo), math.ceil(hi)
    starts = column_starts(last - first, width)
    return fold_columns(values[first:last], starts, first, None if salience is None else salience[first:last])


def fold_columns(
    values: np.ndarray, starts: np.ndarray, first: int, salience: np.ndarray | None = None
) -> Tile:
    """Folds values (n,) of chunks from `first` on into columns at `starts`, counted from `first`, 0 first."""
    part = np.asarray(values, dtype=np.float32)
    telling = part if salience is None else np.asarray(salience, dtype=np.float32)
    minima, maxima = np.fmin.reduceat(part, starts), np.fmax.reduceat(part, starts)
    return Tile(first, first + len(part), minima, maxima, _first_largest(telling, starts, first))


def run_map(rows: Sequence[np.ndarray], width: int) -> np.ndarray:
    """(R, W) float32: greatest value a column of each row (N,); W = min(width, N) columns as in `tile`."""
    starts = column_starts(len(rows[0]), width)
    return np.stack([np.fmax.reduceat(np.asarray(row, dtype=np.float32), starts) for row in rows])


def salience(values: np.ndarray, mode: Mode) -> np.ndarray:
    """(N,) what makes a chunk worth pointing at: much Q or probability, a small rank, a large change."""
    if mode == "rank":
        return -values
    return np.abs(values) if mode == "dq" else values


def best_chunks(telling: np.ndarray, offset: int, count: int) -> np.ndarray:
    """(<= count,) ids by falling salience (N,) from `offset` on; equals in order, those without last."""
    cost, end = -telling, offset + count
    ids = np.arange(len(cost))
    if end < len(cost):
        dearest = np.partition(cost, end - 1)[end - 1]
        # sorting only these spares most of the time
        ids = ids if np.isnan(dearest) else np.flatnonzero(cost <= dearest)
    return ids[np.argsort(cost[ids], kind="stable")][offset:end]


def column_starts(n_chunks: int, width: int) -> np.ndarray:
    """(n,) first chunk of n = min(width, n_chunks) columns; whole numbers, so that none is empty."""
    n_columns = min(width, n_chunks)
    return np.arange(n_columns, dtype=np.int64) * n_chunks // n_columns


def _first_largest(values: np.ndarray, starts: np.ndarray, first: int) -> np.ndarray:
    """(n,) int32 id of the first largest value of every column, -1 where all are NaN."""
    sizes = np.diff(starts, append=len(values))
    largest = np.repeat(np.fmax.reduceat(values, starts), sizes)
    ids = np.flatnonzero(values == largest)[::-1]  # backwards: the first of equal ones is written last
    best = np.full(len(starts), -1, dtype=np.int32)
    best[np.searchsorted(starts, ids, side="right") - 1] = ids + first
    return best
