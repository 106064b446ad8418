"""Where a threshold would have stopped, and what to call it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.lab.evaluate.outcomes import (
    GAMMA,
    completed_at,
    discounted_gains,
    failure_class,
    oracle_steps,
    own_evidence,
    stop_class,
)
from tests.core.lab.evaluate.rows import make_row


@pytest.mark.parametrize(
    ("chosen", "best_q", "earliest", "stop"),
    [
        ((4, 9, 2), (0.9, 0.8, 0.1), 2, "perfect"),
        ((4, 9, 2), (0.9, 0.8, 0.6), 2, "late"),
        ((4, 9, 2), (0.9, 0.4, 0.1), 2, "early"),
        ((4, 2, 3), (0.9, 0.8, 0.7), None, "never"),
    ],
)
def test_the_four_stops_and_the_oracle(
    chosen: tuple[int, ...], best_q: tuple[float, ...], earliest: int | None, stop: str
) -> None:
    row = make_row(chosen, best_q, (4, 9), stop_threshold=0.5)
    assert (completed_at(row), oracle_steps(row)) == (earliest, earliest or 3)
    assert stop_class(row, row.stop_threshold) == stop


@pytest.mark.parametrize(
    ("chosen", "best_q", "threshold", "expected"),
    [
        ((4, 9, 2), (0.9, 0.8, 0.1), 0.5, "perfect"),
        ((4, 9, 2), (0.9, 0.8, 0.6), 0.5, "complete and stopped late"),
        ((4, 2, 9), (0.9, 0.8, 0.6), 0.5, "wrong twin"),
        ((4, 9, 2), (0.9, 0.4, 0.1), 0.5, "stopped early"),
        ((4, 2, 9), (0.9, 0.4, 0.1), 0.5, "right chunk too late"),
        ((4, 2, 3), (0.9, 0.8, 0.7), None, "right chunk too late"),
        ((4,), (0.9, 0.4), 0.5, "right chunk too late"),
    ],
)
def test_failures_by_name(
    chosen: tuple[int, ...], best_q: tuple[float, ...], threshold: float | None, expected: str
) -> None:
    assert failure_class(make_row(chosen, best_q, (4, 9), stop_threshold=threshold)) == expected


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ((4, 9), "perfect"),
        ((4, 2, 9), "wrong twin"),
        ((4, 2), "taken back"),
        ((), "taken back"),
    ],
)
def test_a_failure_is_judged_by_what_the_review_left(kept: tuple[int, ...], expected: str) -> None:
    row = replace(make_row((4, 2, 9), (0.9, 0.8, 0.6, 0.1), (4, 9), stop_threshold=0.5), kept=kept)
    assert own_evidence(row) == kept
    assert failure_class(row) == expected


def test_gains_by_hand() -> None:
    """Complete at step 3 of 4 with two support chunks: reward 0.5 + 0.5 * 2 / 3 there."""
    row = make_row((4, 2, 9, 1), (0.9, 0.9, 0.9, 0.9, 0.1), (4, 9))
    reward = 0.5 + 1 / 3
    assert discounted_gains(row) == pytest.approx([GAMMA**2 * reward, GAMMA * reward, reward, 0.0])
    assert discounted_gains(make_row((1, 2), (0.9, 0.9, 0.1), (4,))) == [0.0, 0.0]
