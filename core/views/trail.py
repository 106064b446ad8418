"""The gold trail.

Where every support chunk of a labelled question stood at each look of a run, and where retrieval lost it. A
rank changes only where Q does, not because others were taken: of a chunk that was chosen, the choices before
it count at no look; of one that wasn't, all choices so far count as better. The choice after the look at
which a chunk stood best (the last such look) is the one that lost it, and a chunk which stands best when the
run ends was not lost but not reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.base.events import Trace


@dataclass(frozen=True, slots=True)
class Standing:
    """A chunk at one look."""

    rank: int
    """1 is best, equals in document order; see the module for what counts."""
    q_value: float


@dataclass(frozen=True, slots=True)
class Loss:
    """Where retrieval lost a chunk."""

    step: int
    """1-based: its choice did it."""
    before: Standing
    after: Standing


@dataclass(frozen=True)
class Trail:
    """One support chunk through a run."""

    chunk_id: int
    standings: tuple[Standing | None, ...]
    """One a look; None where the chunk could not be chosen, or there is no Q of it."""
    found_at: int | None = None
    """1-based step that chose it."""

    @property
    def loss(self) -> Loss | None:
        """The choice that lost it; None for a chunk that was found, never stood anywhere, or stood best at
        the last look.

        >>> Trail(7, (Standing(5, 0.2), Standing(2, 0.4), Standing(9, 0.1))).loss
        Loss(step=2, before=Standing(rank=2, q_value=0.4), after=Standing(rank=9, q_value=0.1))
        """
        standings = [
            (look, standing) for look, standing in enumerate(self.standings, start=1) if standing is not None
        ]
        if self.found_at is not None or not standings:
            return None
        nearest = min(range(len(standings)), key=lambda i: (standings[i][1].rank, -i))
        if nearest == len(standings) - 1:
            return None
        (step, before), (_, after) = standings[nearest], standings[nearest + 1]
        return Loss(step, before, after)


def gold_trails(trace: Trace, gold: Sequence[int]) -> tuple[Trail, ...]:
    """Each support chunk's trail, in `gold`'s order, over a run that looked before each choice."""
    chosen = trace.chosen
    step_of = {chunk_id: step for step, chunk_id in enumerate(chosen, start=1)}
    trails = []
    for chunk_id in gold:
        found_at = step_of.get(chunk_id)
        standings: list[Standing | None] = []
        for look in range(1, trace.n_looks + 1):
            taken = chosen[: look - 1 if found_at is None else found_at - 1]
            is_gone = found_at is not None and look > found_at
            standing = None if is_gone else _standing(trace, look, taken, chunk_id)
            if standing is not None and found_at is None:
                standing = replace(standing, rank=standing.rank + len(taken))
            standings.append(standing)
        trails.append(Trail(chunk_id, tuple(standings), found_at))
    return tuple(trails)


def _standing(trace: Trace, look: int, taken: Sequence[int], chunk_id: int) -> Standing | None:
    """Among what was searched, without some chunks."""
    config, scores = trace.started.config, trace.scores_at(look)
    counted = config.searched_chunks(trace.started.n_chunks)
    counted[[*taken, *config.forbidden]] = False
    if scores is None or not counted[chunk_id] or np.isnan(scores.q_values[chunk_id]):
        return None
    q_values, own = scores.q_values, scores.q_values[chunk_id]
    better = int(np.count_nonzero(counted & (q_values > own)))
    equal = int(np.count_nonzero(counted[:chunk_id] & (q_values[:chunk_id] == own)))
    return Standing(1 + better + equal, float(own))
