"""An agent's defaults from validation rows.

Stop and review threshold, step budget, range of Q, and the temperature at which probabilities are shown. The
rows must come from examples that the agent was neither trained nor is tested on. Every task counts once,
however many examples it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from core.base.errors import BadRequest
from core.base.metrics import fact_em, fact_f1
from core.base.rows import EpisodeRow, group_rows
from core.encode.checkpoint import CheckpointSpec, as_served, with_defaults
from core.lab.evaluate.outcomes import completed_at, own_evidence, steps_taken
from core.lab.evaluate.review import Thresholds

PLATEAU = 0.002
"""Fact F1 this near the best is equal: the threshold is the middle of them, safer than the peak."""
REVIEW_THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
STOP_THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
"""Those that are tried with each review threshold."""
MOST_EM_LOST = 0.01
"""Fact EM that a review may cost: lost support may cost the answer, a chunk too many only tokens."""
_RANGE_STEP = 0.05
"""Ends of the range of Q are rounded outwards to multiples of this."""
_TAIL = 1.0
"""Percent of Q left outside the range at each end."""


def with_record(
    spec: CheckpointSpec, defaults: Mapping[str, object], name: str, record: Mapping[str, Any]
) -> CheckpointSpec:
    """The spec with other defaults, and under that name of its scores with what they rest on."""
    return with_defaults(spec, {**defaults, "scores": {**(spec.scores or {}), name: dict(record)}})


@dataclass(frozen=True)
class Calibration:
    """Defaults, and what they rest on."""

    stop_threshold: float
    plateau: tuple[float, float]
    """Thresholds over which Fact F1 stays within 0.002 of its best."""
    step_budget: int
    """The smallest within 0.002 of the largest budget's share of completed episodes."""
    q_range: tuple[float, float]
    """1st and 99th percentile of the best available Q over all looks, rounded outwards to multiples of 0.05.
    """
    shown_temperature: float
    """A twentieth of the range: 0.05, the paper's alpha, where Q goes from 0 to 1."""
    fact_f1: float
    """At the threshold and the rows' budget, mean of the tasks; then by task."""
    tasks: dict[str, float]
    n: int

    def applied_to(self, spec: CheckpointSpec, how: dict[str, Any]) -> CheckpointSpec:
        """The spec with these defaults; `scores.calibration` says what they rest on, `how` included."""
        record = asdict(self) | {"plateau": list(self.plateau), "q_range": list(self.q_range)} | how
        names = ("stop_threshold", "step_budget", "q_range", "shown_temperature")
        return with_record(spec, {name: getattr(self, name) for name in names}, "calibration", record)


def calibrate(rows: Sequence[EpisodeRow]) -> Calibration:
    """Defaults for the one agent of these rows. Raises BadRequest for several, baselines or planned paths."""
    groups = group_rows(rows)
    if not groups:
        raise BadRequest("there are no rows to calibrate from; evaluate at least one example")
    if len({group[0].fingerprint for group in groups}) > 1:
        raise BadRequest("the rows come from several agents; calibrate one at a time")
    if any(row.beam_width > 1 or not row.best_q for row in rows):
        raise BadRequest(
            "a threshold is read off the rows of the plain agent; evaluate it with --method qrag and"
            " --beam-width 1"
        )
    threshold, plateau = best_threshold(groups)
    pooled = np.array([q for row in rows for q in row.best_q])
    lo, hi = np.percentile(pooled, [_TAIL, 100 - _TAIL]) / _RANGE_STEP
    q_range = (round(float(np.floor(lo)) * _RANGE_STEP, 2), round(float(np.ceil(hi)) * _RANGE_STEP, 2))
    by_group = {}
    for group in groups:
        task, length = group[0].task, group[0].length
        name = task if length is None else f"{task} at {length} tokens"
        f1 = np.mean([_f1_after(row, steps_taken(row, threshold)) for row in group])
        by_group[name] = round(float(f1), 6)
    return Calibration(
        stop_threshold=threshold,
        plateau=plateau,
        step_budget=_budget(groups),
        q_range=q_range,
        shown_temperature=round(max(q_range[1] - q_range[0], _RANGE_STEP) / 20, 4),
        fact_f1=round(float(np.mean(list(by_group.values()))), 6),
        tasks=by_group,
        n=len(rows),
    )


@dataclass(frozen=True)
class ReviewCalibration:
    """A review threshold with the stop threshold that suits it, and what they rest on."""

    stop_threshold: float | None
    review_threshold: float | None
    """None of both where a review brings nothing: the stop threshold stays as it was."""
    fact_f1: dict[str, float]
    """By review threshold, under that stop threshold, "none" being no review; mean of the tasks."""
    fact_em: dict[str, float]
    by_stop: dict[str, float]
    """Fact F1 by stop threshold, under the best review threshold that costs little Fact EM."""
    n: int

    def applied_to(self, spec: CheckpointSpec, how: dict[str, Any]) -> CheckpointSpec:
        """The spec with these defaults; `scores.review` says what they rest on."""
        stop = as_served(spec).stop_threshold if self.stop_threshold is None else self.stop_threshold
        defaults = {"stop_threshold": stop, "review_threshold": self.review_threshold}
        return with_record(spec, defaults, "review", asdict(self) | {"stop_threshold": stop} | how)


def calibrate_review(by_pair: Iterable[tuple[Thresholds, Sequence[EpisodeRow]]]) -> ReviewCalibration:
    """From the same rows by (stop threshold, review threshold), None being no review, by mean Fact F1 of what
    is left, where that costs little Fact EM.

    The middle stop threshold of where it stays within 0.002 of its best, and under that the middle review
    threshold, both being farthest from where F1 falls; no review where it does so without one.
    """
    f1: dict[Thresholds, float] = {}
    em: dict[Thresholds, float] = {}
    n = 0
    for pair, rows in by_pair:
        f1[pair], em[pair], n = _mean(rows, fact_f1), _mean(rows, fact_em), len(rows)
    cheap = {pair: value for pair, value in f1.items() if em[pair] >= em[pair[0], None] - MOST_EM_LOST}
    good = {pair for pair, value in cheap.items() if value >= max(cheap.values()) - PLATEAU}
    stop = _middle({stop for stop, _ in good})
    best: dict[float, float] = {}
    for (tried, _), value in cheap.items():
        best[tried] = max(value, best.get(tried, value))
    chosen: tuple[float | None, float | None] = (None, None)
    if all(review is not None for _, review in good):
        chosen = stop, _middle({review for tried, review in good if tried == stop and review is not None})
    return ReviewCalibration(
        stop_threshold=chosen[0],
        review_threshold=chosen[1],
        fact_f1=_by_name({review: value for (tried, review), value in f1.items() if tried == stop}),
        fact_em=_by_name({review: value for (tried, review), value in em.items() if tried == stop}),
        by_stop=_by_name(best),
        n=n,
    )


def _middle(thresholds: set[float]) -> float:
    return sorted(thresholds)[(len(thresholds) - 1) // 2]


def _mean(rows: Sequence[EpisodeRow], measure: Callable[[Sequence[int], Sequence[int]], float]) -> float:
    """Of what the agents hand on, each task counting once."""
    groups = group_rows(rows)
    means = [np.mean([measure(own_evidence(row), row.support) for row in group]) for group in groups]
    return float(np.mean(means))


def _by_name(means: Mapping[float, float] | Mapping[float | None, float]) -> dict[str, float]:
    return {
        "none" if threshold is None else f"{threshold:g}": round(value, 6)
        for threshold, value in means.items()
    }


def best_threshold(groups: Sequence[Sequence[EpisodeRow]]) -> tuple[float, tuple[float, float]]:
    """(threshold, plateau) by mean Fact F1, each group counting once. An episode takes its t-th chunk if the
    threshold is at most the smallest best Q of its first t looks, so mean F1 changes at these minima only,
    and is followed exactly, from the largest down.
    """
    minima, gains = [], []
    for group in groups:
        for row in group:
            f1 = [_f1_after(row, n) for n in range(len(row.chosen) + 1)]
            minima += np.minimum.accumulate(row.best_q[: len(row.chosen)]).tolist()
            gains += (np.diff(f1) / len(group) / len(groups)).tolist()
    ends, at = np.unique(np.array(minima), return_inverse=True)
    ends, by_end = ends[::-1], np.bincount(at, weights=gains)[::-1]
    means = np.cumsum(by_end)  # means[i]: mean F1 for thresholds in (ends[i + 1], ends[i]]
    good = means >= means.max() - PLATEAU
    bad, best = np.flatnonzero(~good), int(means.argmax())
    first = max(bad[bad < best], default=-1) + 1
    after = min(bad[bad > best], default=len(good))
    lo, hi = float(ends[min(after, len(ends) - 1)]), float(ends[first])
    return round((lo + hi) / 2, 4), (round(lo, 4), round(hi, 4))


def _budget(groups: Sequence[Sequence[EpisodeRow]]) -> int:
    most = max(row.step_budget for group in groups for row in group)
    shares = [
        np.mean([np.mean([(completed_at(row) or most + 1) <= budget for row in group]) for group in groups])
        for budget in range(1, most + 1)
    ]
    return next(budget for budget, share in enumerate(shares, start=1) if share >= shares[-1] - PLATEAU)


def _f1_after(row: EpisodeRow, n: int) -> float:
    return fact_f1(row.chosen[:n], row.support)
