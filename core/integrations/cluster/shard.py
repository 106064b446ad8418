"""The chunks that one worker scores.

Some neighbouring parts of a corpus. Their vectors stay on disk, mapped into memory, and are scored block by
block with `ChunkIndex`, so Q is what one process computes: float32 products with the stored vectors. The
scores of the last view are kept, since a reranker asks for its best chunks twice.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from core.corpus.index import ChunkIndex
from core.corpus.tiles import best_chunks
from core.encode.checkpoint import CheckpointSpec
from core.integrations.cluster.parts import CorpusPart
from core.methods.qrag.policy import TIE

BLOCK = 16_384
"""Chunks turned into float32 at once: 25 MB of 384 dimensions, whatever a shard holds."""


@dataclass(frozen=True)
class ShardSetting:
    """Which chunks a shard has, and how states are turned for them."""

    folder: Path
    first: int
    last: int
    """Parts [first, last)."""
    dim: int
    spec: CheckpointSpec


@dataclass(frozen=True, eq=False)
class ShardView:
    """One look at a shard. Chunks count from its first."""

    state: np.ndarray
    """(D,) float32."""
    starts: np.ndarray
    """(R,) int64, where each run of equal positions begins."""
    positions: np.ndarray
    """(R,) float64, on the grid."""
    added_ids: np.ndarray
    """(A,) int64 chunks to whose Q something is added."""
    added: np.ndarray
    """(A,) float32, what is added."""
    left_out: np.ndarray
    """(L,) int64 chunks that are not available."""

    @property
    def key(self) -> bytes:
        """Names the products, which neither additions nor what is left out change."""
        whole = b"".join(array.tobytes() for array in (self.state, self.starts, self.positions))
        return hashlib.sha256(whole).digest()


class Shard:
    """Scores the chunks of some parts. Opens them at the first question."""

    def __init__(self, setting: ShardSetting) -> None:
        self._setting = setting
        self._scored = (b"", np.zeros(0, np.float32))
        """Key of the last view, and its scores."""

    def process(self) -> int:
        """Id of the process that it is in."""
        return os.getpid()

    def q_values(self, view: ShardView) -> np.ndarray:
        """(n,) float32: products with all chunks."""
        n_chunks = self._starts[-1]
        key, q_values = self._scored
        if key != view.key:
            q_values = np.empty(n_chunks, np.float32)
            positions = np.repeat(view.positions, np.diff(view.starts, append=n_chunks))
            for first, block in self._blocks():
                last = first + len(block)
                q_values[first:last] = block.q_values(view.state, positions[first:last])
            self._scored = view.key, q_values
        return q_values

    def best(self, view: ShardView, words: np.ndarray | None, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(ids, Q) of the k best available chunks, best first, equals in document order; then those as good
        as the best but for rounding, so that a tie can be counted.
        """
        values = self.q_values(view).copy()
        if words is not None:
            values += words
        values[view.added_ids] += view.added
        values[view.left_out] = -np.inf
        ids = best_chunks(values, 0, k)
        tied = np.flatnonzero(values >= values[ids[0]] - TIE)
        ids = np.concatenate([ids, np.setdiff1d(tied, ids)])
        ids = ids[np.isfinite(values[ids])]
        return ids, values[ids]

    def vector(self, row: int) -> np.ndarray:
        """(D,) float32 of one chunk."""
        number = bisect_right(self._starts, row) - 1
        stored: np.ndarray = self._parts[number].vectors[row - self._starts[number]]
        return stored.astype(np.float32)

    def norms(self) -> np.ndarray:
        """(n,) float32 lengths of the vectors."""
        return np.concatenate([block.norms for _, block in self._blocks()])

    def _blocks(self) -> Iterator[tuple[int, ChunkIndex]]:
        spec = self._setting.spec
        for part, start in zip(self._parts, self._starts, strict=False):
            for first in range(0, part.n_chunks, BLOCK):
                block = ChunkIndex(
                    part.vectors[first : first + BLOCK],
                    halves=spec.halves,
                    theta=spec.rope_theta,
                    resolution=spec.position_resolution,
                )
                yield start + first, block

    @cached_property
    def _parts(self) -> list[CorpusPart]:
        setting, numbers = self._setting, range(self._setting.first, self._setting.last)
        return [CorpusPart(setting.folder, number, setting.dim) for number in numbers]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *np.cumsum([part.n_chunks for part in self._parts]).tolist()]
