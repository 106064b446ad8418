"""Greedy runs as tests write them down: by the scores of their looks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.base.config import EpisodeConfig
from core.base.events import RunStarted, StepScores, StepTaken, Stopped, StopReason, Trace


def trace_of(
    *rows: Sequence[float],
    method: str = "qrag",
    ends: StopReason | None = None,
    forbidden: tuple[int, ...] = (),
) -> Trace:
    """A run whose look k scored rows[k]; where the agent stopped, nothing was chosen at the last one."""
    config = EpisodeConfig(step_budget=9, forbidden=forbidden)
    trace = Trace(RunStarted("where ?", method, "", len(rows[0]), config))
    for step, row in enumerate(rows, start=1):
        scores = np.array(row, np.float32)
        left = [i for i in range(len(row)) if i not in (*trace.chosen, *forbidden)]
        best = max(left, key=lambda i: scores[i])
        q, kept = float(scores[best]), StepScores(scores, None)
        if ends == "threshold" and step == len(rows):
            return trace.with_event(Stopped("threshold", step - 1, best, q, scores=kept))
        trace = trace.with_event(StepTaken(step, best, q, 1.0, q, None, "", 0.0, scores=kept))
    return trace if ends is None else trace.with_event(Stopped(ends, len(rows)))
