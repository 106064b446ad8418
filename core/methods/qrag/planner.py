"""Plan Q-RAG: beam search over Q (Q-RAG appendix D).

The paper does not say what a path is worth. Q is a return to go, and the one reward comes when all support is
in, so each Q on a path estimates the same return: a path is worth their mean. Their sum, which counts that
return once a step, made longer paths worth more. Of six rankings none was better than the greedy agent on
validation questions beyond chance (docs/log/2026-11-23-beam-search.md). A path that has stopped keeps its
worth and competes with those that go on. Where the state text is in document order, paths that hold the same
set of chunks are one state, and the better one is kept. The loop is the agent's: its own episode is a beam of
one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean as mean

import numpy as np

from core.base.events import StepTaken, Stopped
from core.methods.qrag.episode import Look
from core.methods.qrag.policy import ChosenAction, candidates, greedy


@dataclass(frozen=True)
class BeamPath:
    """What an episode has chosen on one way through it."""

    chosen: tuple[int, ...]
    steps: tuple[StepTaken, ...] = ()
    """Those of them that nobody was told yet."""
    stopped: Stopped | None = None

    @property
    def worth(self) -> float:
        """Mean Q of its steps; 0 before the first."""
        return mean(step.q_value for step in self.steps) if self.steps else 0.0

    def after(self, step: StepTaken) -> BeamPath:
        """The path one step on."""
        return replace(self, chosen=(*self.chosen, step.chunk_id), steps=(*self.steps, step))


def best_actions(look: Look, width: int, threshold: float | None) -> list[ChosenAction]:
    """The best `width` chunks that can be chosen, those below the threshold left out."""
    q_values = look.scores.q_values
    best, n_tied = greedy(q_values, look.available)
    ids = candidates(q_values, look.available, width)
    # equals by rounding: the first in document order leads, as for the agent
    ids = np.concatenate([[best], ids[ids != best]])[:width]
    return [
        ChosenAction(i, float(q_values[i]), 1.0, float(q_values[best]), n_tied if i == best else 1)
        for i in ids.tolist()
        if threshold is None or q_values[i] >= threshold
    ]


def best_paths(paths: list[BeamPath], width: int, *, same_set_is_same_state: bool) -> list[BeamPath]:
    """The best `width` paths, one a state."""
    kept: dict[object, BeamPath] = {}
    for path in sorted(paths, key=lambda path: -path.worth):
        state = frozenset(path.chosen) if same_set_is_same_state else path.chosen
        kept.setdefault(state, path)
    return list(kept.values())[:width]
