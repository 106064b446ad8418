"""Scores of chunks that lie in shards, with the protocol of `ChunkIndex`.

Positions come in as they do there, one a chunk; what goes to a shard is the state and a number for each run
of chunks that share a grid position. `best` gets back only what it returns, whatever the number of chunks;
`q_values` gets all scores. Each shard answers each question once, in its place, so nothing is left out and
nothing counted twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from core.encode.checkpoint import CheckpointSpec
from core.encode.rope import on_grid, turn
from core.integrations.cluster.parts import CorpusParts
from core.integrations.cluster.shard import Shard, ShardSetting, ShardView


class Shards(Protocol):
    """Where shards are asked."""

    def ask_all(self, name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a method of `Shard` says for each shard's arguments, in order."""
        ...

    def ask(self, shard: int, name: str, *arguments: Any) -> Any:
        """What one of them says."""
        ...

    def keep(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """What to give as an argument in place of each array, so that it is sent once."""
        ...


class LocalShards:
    """Shards in this process."""

    def __init__(self, settings: Sequence[ShardSetting]) -> None:
        self._shards = [Shard(setting) for setting in settings]

    def ask_all(self, name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        asked = zip(self._shards, arguments, strict=True)
        return [getattr(shard, name)(*argument) for shard, argument in asked]

    def ask(self, shard: int, name: str, *arguments: Any) -> Any:
        return getattr(self._shards[shard], name)(*arguments)

    def keep(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        return list(arrays)


def shard_settings(parts: CorpusParts, spec: CheckpointSpec, n_shards: int) -> list[ShardSetting]:
    """Of at most n shards over a corpus, each with neighbouring parts of it."""
    folder, dim = parts.folder.resolve(), parts.plan.dim
    return [ShardSetting(folder, first, last, dim, spec) for first, last in parts.ranges(n_shards)]


@dataclass(frozen=True, eq=False)
class LookView:
    """One look at all shards: what each of them is asked under."""

    views: list[ShardView]
    words: list[Any]
    """Each shard's share of what the words add, as `Shards.keep` gave it, or None."""


class ShardedIndex:
    """The vectors of N chunks in shards. See `ChunkIndex` for what its methods give."""

    def __init__(self, parts: CorpusParts, settings: Sequence[ShardSetting], shards: Shards) -> None:
        self._shards, self._spec, self.dim = shards, settings[0].spec, settings[0].dim
        self._borders = np.array([parts.starts[one.first] for one in settings] + [len(parts)], np.int64)

    def __len__(self) -> int:
        return int(self._borders[-1])

    @cached_property
    def norms(self) -> np.ndarray:
        return np.concatenate(self._shards.ask_all("norms", [()] * (len(self._borders) - 1)))

    def q_values(self, state_vector: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """All of them, sent from the shards."""
        look = self.look(state_vector, positions)
        return np.concatenate(self._shards.ask_all("q_values", [(view,) for view in look.views]))

    def q_value(self, state_vector: np.ndarray, chunk_id: int, position: float = 0.0) -> float:
        grid = on_grid(np.array([position]), self._spec.position_resolution)
        turned = turn(state_vector[None], -grid, halves=self._spec.halves, theta=self._spec.rope_theta)[0]
        return float(self.vector(chunk_id) @ turned.astype(np.float32))

    def vector(self, chunk_id: int) -> np.ndarray:
        shard = bisect_right(self._borders, chunk_id) - 1
        row: np.ndarray = self._shards.ask(shard, "vector", chunk_id - int(self._borders[shard]))
        return row

    def prepare_top_k(self) -> None:
        """Nothing to build: the shards compute all products."""

    def top_k(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """See `ChunkIndex`; equals in document order."""
        ids, products = self.best(self.look(vector, np.zeros(len(self))), k)
        return ids[:k], products[:k]

    def keep(self, values: np.ndarray) -> list[Any]:
        """Each shard's part of (N,) numbers, sent once for as many looks as name it as `words`."""
        return self._shards.keep(np.split(values, self._borders[1:-1]))

    def look(
        self,
        state_vector: np.ndarray,
        positions: np.ndarray,
        *,
        words: list[Any] | None = None,
        added: tuple[np.ndarray, np.ndarray] | None = None,
        left_out: Sequence[int] = (),
    ) -> LookView:
        """What `best` looks at: products, plus `words` from `keep`, plus (ids, numbers) that are `added`,
        without chunks that are `left_out`. state (D,), positions (N,) before rounding.
        """
        grid = on_grid(positions, self._spec.position_resolution)
        starts = np.flatnonzero(np.concatenate([[True], grid[1:] != grid[:-1]]))
        runs = np.union1d(starts, self._borders[:-1])  # a run that crosses a border is one in each shard
        ids, numbers = added or (np.zeros(0, np.int64), np.zeros(0, np.float32))
        gone = np.array(sorted(left_out), np.int64)
        views = []
        for lo, hi in zip(self._borders.tolist(), self._borders[1:].tolist(), strict=False):
            own = runs[(runs >= lo) & (runs < hi)]
            mine = (ids >= lo) & (ids < hi)
            out = gone[(gone >= lo) & (gone < hi)]
            state = state_vector.astype(np.float32)
            views.append(ShardView(state, own - lo, grid[own], ids[mine] - lo, numbers[mine], out - lo))
        return LookView(views, words or [None] * len(views))

    def best(self, look: LookView, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(ids, Q) of the k best available chunks, best first, equals in document order; then others that tie
        with the best of their shard.
        """
        asked = [(view, words, k) for view, words in zip(look.views, look.words, strict=True)]
        answers = self._shards.ask_all("best", asked)
        ids = np.concatenate([own + lo for (own, _), lo in zip(answers, self._borders[:-1], strict=True)])
        values = np.concatenate([values for _, values in answers])
        order = np.lexsort((ids, -values))
        return ids[order], values[order]
