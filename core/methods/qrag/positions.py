"""The relative position mapping rho (Q-RAG eq. 6) and its kin.

Over all documents or within each; positions come out before rounding to the checkpoint's grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.encode.checkpoint import CheckpointSpec


@dataclass(frozen=True, slots=True)
class Interval:
    """Chunks [lo, hi) between two chosen ones, and where rho runs on them."""

    lo: int
    hi: int
    rho_lo: float
    rho_hi: float
    """At the last chunk of the interval."""


def chunk_positions(
    spec: CheckpointSpec, borders: np.ndarray, chosen: Sequence[int], *, use_positions: bool = True
) -> np.ndarray:
    """(N,) float64 positions of all chunks with `chosen` (ids, any order) selected; zeros without turning."""
    n = int(borders[-1])
    if spec.position_kind == "none" or not use_positions:
        return np.zeros(n)
    if spec.position_kind == "absolute":
        return np.arange(n, dtype=np.float64)
    positions = np.empty(n)
    for lo, hi, rank in _bounds(spec, borders, chosen):
        positions[lo:hi] = rank * spec.position_step + _within(spec, hi - lo)
    return positions


def intervals(
    spec: CheckpointSpec, borders: np.ndarray, chosen: Sequence[int], *, use_positions: bool = True
) -> list[Interval]:
    """The ruler: every non-empty interval and its range of rho; empty without relative positions."""
    if spec.position_kind != "relative" or not use_positions:
        return []
    out = []
    for lo, hi, rank in _bounds(spec, borders, chosen):
        start, within = rank * spec.position_step, _within(spec, hi - lo)
        out.append(Interval(lo, hi, start + float(within[0]), start + float(within[-1])))
    return out


def _bounds(spec: CheckpointSpec, borders: np.ndarray, chosen: Sequence[int]) -> list[tuple[int, int, int]]:
    """(lo, hi, j) of each non-empty interval: j chosen chunks lie before; it begins with the j-th (j > 0)."""
    edges = (
        [0, int(borders[-1])] if spec.position_scope == "workspace" else [int(border) for border in borders]
    )
    out = []
    for first, last in pairwise(edges):
        inside = sorted(chunk_id for chunk_id in chosen if first <= chunk_id < last)
        cuts = [first, *inside, last]
        out += [(lo, hi, j) for j, (lo, hi) in enumerate(pairwise(cuts)) if hi > lo]
    return out


def _within(spec: CheckpointSpec, length: int) -> np.ndarray:
    """(length,) positions inside one interval, from 0."""
    if spec.position_formula == "linspace":
        return np.linspace(0.0, spec.position_span, length)
    return spec.position_span * np.arange(length, dtype=np.float64) / length
