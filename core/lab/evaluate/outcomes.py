"""What one row says about stopping and failing.

The stop rule is the agent's: before acting, stop when the best available Q is below the threshold (Q-RAG
appendix B). Early, late and perfect stops are the paper's, with one class more for episodes that never hold
all support.
"""

from __future__ import annotations

from typing import Literal, get_args

from core.base.rows import EpisodeRow

Stop = Literal["early", "late", "perfect", "never"]
STOPS: tuple[Stop, ...] = get_args(Stop)

Failure = Literal[
    "perfect",
    "complete and stopped late",
    "wrong twin",
    "stopped early",
    "right chunk too late",
    "taken back",
]
FAILURES: tuple[Failure, ...] = get_args(Failure)


def steps_taken(row: EpisodeRow, threshold: float | None) -> int:
    """Choices made under a stop threshold; None never stops."""
    most = len(row.chosen)
    if threshold is None:
        return most
    return next((n for n, best in enumerate(row.best_q[:most]) if best < threshold), most)


def own_steps(row: EpisodeRow) -> int:
    """Choices made under the agent's own threshold."""
    return steps_taken(row, row.stop_threshold)


def own_evidence(row: EpisodeRow) -> tuple[int, ...]:
    """What the agent hands on: its choices under its own threshold, but those its review took back."""
    return row.chosen[: own_steps(row)] if row.kept is None else row.kept


def completed_at(row: EpisodeRow) -> int | None:
    """First step with all support in (t_earliest of appendix B); None when the budget never brings it."""
    missing = set(row.support)
    for step, chunk_id in enumerate(row.chosen, start=1):
        missing.discard(chunk_id)
        if not missing:
            return step
    return None


def oracle_steps(row: EpisodeRow) -> int:
    """Choices under the oracle stop: cut when all support is in, else at the end of the budget."""
    return completed_at(row) or len(row.chosen)


def stop_class(row: EpisodeRow, threshold: float | None) -> Stop:
    """How stopping went. "never": support stays out even without a threshold; the paper discards these."""
    earliest = completed_at(row)
    if earliest is None:
        return "never"
    n_steps = steps_taken(row, threshold)
    return "early" if n_steps < earliest else "late" if n_steps > earliest else "perfect"


def failure_class(row: EpisodeRow) -> Failure:
    """What to call this episode in a list of failures, under the agent's own threshold.

    With all support and more: "wrong twin" when another chunk was taken while some was still missing, else
    "complete and stopped late". With support missing: "taken back" when only the review let go of it,
    "stopped early" when the threshold refused a chunk that was support, else "right chunk too late": behind
    other chunks after the stop, or beyond the budget.
    """
    n_steps = own_steps(row)
    earliest = completed_at(row)
    support = set(row.support)
    evidence = set(own_evidence(row))
    if evidence == support:
        return "perfect"
    if earliest is not None and earliest <= n_steps:
        if not support <= evidence:
            return "taken back"
        if not set(row.chosen[:earliest]) <= support:
            return "wrong twin"
        return "complete and stopped late" if n_steps > earliest else "perfect"
    refused = row.chosen[n_steps : n_steps + 1]
    return "stopped early" if refused and refused[0] in support else "right chunk too late"


GAMMA = 0.99
"""Discount of the returns (Q-RAG appendix G)."""


def discounted_gains(row: EpisodeRow) -> list[float]:
    """For each choice, what was really still gained from its state on: gamma^(t* - t) times the reward at the
    completing step t*, 0.5 + 0.5 * |support| / |chosen| as in training; 0 after it.
    """
    earliest = completed_at(row)
    if earliest is None:
        return [0.0] * len(row.chosen)
    reward = 0.5 + 0.5 * len(row.support) / earliest
    return [
        GAMMA ** (earliest - step) * reward if step <= earliest else 0.0
        for step in range(1, len(row.chosen) + 1)
    ]
