"""Comparing a logged run with a fresh one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.base.config import EpisodeConfig
from core.base.events import RunStarted, StepScores, StepTaken, Stopped, StopReason, Trace
from core.runs.again.compare import compare_traces


def trace(
    choices: list[int], q_values: list[list[float]] | None = None, reason: StopReason | None = "budget"
) -> Trace:
    rows = q_values or [[0.1, 0.2, 0.3, 0.4]] * len(choices)
    scores = [StepScores(np.array(row, np.float32), None) for row in rows]
    steps = tuple(
        StepTaken(step, chunk_id, 0.5, 1.0, 0.5, None, "text", 1.0, scores=seen)
        for step, (chunk_id, seen) in enumerate(zip(choices, scores, strict=True), start=1)
    )
    started = RunStarted("query", "qrag", "base", 4, EpisodeConfig())
    return Trace(started, steps, Stopped(reason, len(steps)) if reason else None)


def test_equal_traces_hold_also_as_far_as_a_cancelled_one_went() -> None:
    report = compare_traces(trace([3, 1]), trace([3, 1]))
    assert report.holds
    assert (report.largest_difference, report.n_compared, report.first_difference) == (0.0, 8, None)
    assert compare_traces(trace([3, 1], reason=None), trace([3, 1, 0])).holds


def test_a_small_difference_holds_and_a_large_one_is_named() -> None:
    near = compare_traces(trace([3], [[0, 0, 0, 1]]), trace([3], [[0, 0.00009, 0, 1]]))
    assert near.holds
    assert near.largest_difference == pytest.approx(9e-5)
    far = compare_traces(trace([3], [[0, 0, 0, 1]]), trace([3], [[0, 0.5, 0, 1]]))
    assert (far.same_choices, far.holds) == (True, False)
    assert far.first_difference == "Q of chunk 1 is 0.5 instead of 0"
    two, others = [[0, 0, 0, 1], [0, 1, 0, 1]], [[0, 0, 0.3, 1], [0, 1, 2, 1]]
    earliest = compare_traces(trace([3, 1], two), trace([3, 2], others))
    assert earliest.first_difference == "Q of chunk 2 is 0.3 instead of 0"


@pytest.mark.parametrize(
    ("fresh", "words"),
    [
        (trace([3, 2]), "step 2 chose chunk 2 instead of 1"),
        (trace([3]), "the run took 1 steps instead of 2"),
        (trace([3, 1, 0]), "the run took 3 steps instead of 2"),
        (trace([3, 1], reason="exhausted"), "the run stopped by exhausted instead of budget"),
    ],
)
def test_different_choices_are_named(fresh: Trace, words: str) -> None:
    report = compare_traces(trace([3, 1]), fresh)
    assert not report.same_choices
    assert not report.holds
    assert report.first_difference == words


def test_another_review_is_another_end() -> None:
    plain = trace([3, 1])
    assert plain.stopped is not None
    fresh = replace(plain, stopped=replace(plain.stopped, review=(0.1, 0.9), taken_back=(3,)))
    report = compare_traces(plain, fresh)
    assert not report.same_choices
    assert report.first_difference == "the review took back chunk 3 instead of nothing"
    assert compare_traces(fresh, fresh).holds


def test_missing_numbers_and_other_documents_do_not_hold() -> None:
    whole = trace([3], [[0, 0, 0, 1]])
    for fresh in (trace([3], [[0, 0, float("nan"), 1]]), trace([3], [[0, 0, 1]])):
        report = compare_traces(whole, fresh)
        assert (report.largest_difference, report.holds) == (float("inf"), False)
    bare = replace(whole, steps=tuple(replace(step, scores=None) for step in whole.steps))
    report = compare_traces(bare, whole)
    assert (report.same_choices, report.largest_difference, report.holds) == (True, None, False)
