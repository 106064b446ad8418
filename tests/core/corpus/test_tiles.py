"""Tiles against the plain loop over every chunk of every column."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus.tiles import MODES, best_chunks, run_map, salience, tile

NUMBERS = st.one_of(st.floats(-10, 10, width=32), st.sampled_from([math.nan, -math.inf, 0.0, 0.5]))


@st.composite
def requests(draw: st.DrawFn) -> tuple[np.ndarray, float, float, int]:
    """Values (N,), a range within [0, N] and a width; whole and broken ends, narrow and wide."""
    values = np.array(draw(st.lists(NUMBERS, min_size=1, max_size=60)), dtype=np.float32)
    ends = st.one_of(st.integers(0, len(values)), st.floats(0, len(values)))
    lo, hi = draw(st.tuples(ends, ends).map(sorted).filter(lambda pair: pair[0] < pair[1]))
    return values, lo, hi, draw(st.integers(1, 80))


def columns(first: int, last: int, n: int) -> list[range]:
    """The chunk ids of every column, as the docstring of Tile has it."""
    edges = [first + k * (last - first) // n for k in range(n + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


def slow_tile(
    values: np.ndarray, lo: float, hi: float, width: int, telling: np.ndarray
) -> list[tuple[float, float, int]]:
    """(min, max, best) per column, one chunk at a time; of equals the first."""
    first, last = math.floor(lo), math.ceil(hi)
    out = []
    for column in columns(first, last, min(width, last - first)):
        known = [i for i in column if not math.isnan(values[i])]
        shown = [values[i] for i in known]
        best = max(known, key=lambda i: telling[i], default=-1)
        out.append((min(shown), max(shown), best) if known else (math.nan, math.nan, -1))
    return out


@given(requests(), st.sampled_from(MODES))
def test_tile_is_the_plain_loop(request_: tuple[np.ndarray, float, float, int], mode: str) -> None:
    values, lo, hi, width = request_
    telling = salience(values, mode)
    t = tile(values, lo, hi, width, salience=telling)
    rows = zip(t.minima.tolist(), t.maxima.tolist(), t.best.tolist(), strict=True)
    np.testing.assert_equal([*rows], slow_tile(values, lo, hi, width, telling))
    inside = [i for column in columns(t.first, t.last, len(t.best)) for i in column]
    assert inside == list(range(math.floor(lo), math.ceil(hi)))


@given(st.lists(st.lists(NUMBERS, min_size=13, max_size=13), min_size=1, max_size=5), st.integers(1, 20))
def test_run_map_is_the_maxima_of_whole_tiles(rows: list[list[float]], width: int) -> None:
    arrays = [np.array(row, dtype=np.float32) for row in rows]
    np.testing.assert_array_equal(run_map(arrays, width), [tile(row, 0, 13, width).maxima for row in arrays])


@pytest.mark.parametrize(
    ("mode", "expected"), [("q", [3, 1, 0, 2, 4]), ("dq", [2, 3, 1, 0, 4]), ("rank", [2, 0, 1, 3, 4])]
)
def test_best_chunks_of_a_mode(mode: str, expected: list[int]) -> None:
    values = np.array([0.0, 0.0 + 0.5, -2.0, 1.0, math.nan])
    if mode == "rank":
        values = np.array([2.0, 3.0, 1.0, 4.0, math.nan])
    assert best_chunks(salience(values, mode), 0, 9).tolist() == expected
    assert best_chunks(salience(values, mode), 1, 2).tolist() == expected[1:3]


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.integers(0, 40), st.integers(1, 20))
def test_best_chunks_are_a_page_of_the_full_order(numbers: list[float], offset: int, count: int) -> None:
    order = sorted(
        range(len(numbers)),
        key=lambda i: (math.isnan(numbers[i]), -numbers[i] if not math.isnan(numbers[i]) else 0, i),
    )
    assert best_chunks(np.array(numbers), offset, count).tolist() == order[offset : offset + count]
