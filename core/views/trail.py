"""The gold trail: where support stood at each look of a run.

The chunks chosen so far stand ahead of all others, so that a place changes only where Q does, not because
others were taken. The choice after the look at which a chunk stood best (the last such look) is the one that
lost it, and a chunk which stands best when the run ends was not lost but not reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.base.events import Trace
from core.methods.qrag.policy import place


@dataclass(frozen=True, slots=True)
class Standing:
    """A chunk at one look."""

    rank: int
    """Place in line: after the chunks chosen so far, by falling Q, equals in document order; from 1."""
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
        """The choice that lost it; None for one that was found, stood nowhere, or stood best at the end.

        >>> Trail(7, (Standing(5, 0.2), Standing(2, 0.4), Standing(9, 0.1))).loss
        Loss(step=2, before=Standing(rank=2, q_value=0.4), after=Standing(rank=9, q_value=0.1))
        """
        stood = [(step, standing) for step, standing in enumerate(self.standings, start=1) if standing]
        losses = [Loss(step, before, after) for (step, before), (_, after) in pairwise(stood)]
        if self.found_at is not None or not losses:
            return None
        nearest = min(losses, key=lambda loss: (loss.before.rank, -loss.step))
        return nearest if nearest.before.rank < stood[-1][1].rank else None


def gold_trails(trace: Trace, gold: Sequence[int]) -> tuple[Trail, ...]:
    """Each support chunk's trail, in `gold`'s order, over a run that looked before each choice."""
    step_of = {chunk_id: step for step, chunk_id in enumerate(trace.chosen, start=1)}
    looks = range(1, trace.n_looks + 1)
    return tuple(
        Trail(chunk_id, tuple(_standing(trace, look, chunk_id) for look in looks), step_of.get(chunk_id))
        for chunk_id in gold
    )


def _standing(trace: Trace, look: int, chunk_id: int) -> Standing | None:
    config, scores, taken = trace.started.config, trace.scores_at(look), trace.chosen[: look - 1]
    available = config.searched_chunks(trace.started.n_chunks)
    available[[*taken, *config.forbidden]] = False
    if scores is None or not available[chunk_id] or np.isnan(scores.q_values[chunk_id]):
        return None
    rank = len(taken) + place(scores.q_values, available, chunk_id)
    return Standing(rank, float(scores.q_values[chunk_id]))
