"""What the gold trail says of a support chunk, for every way a run can go."""

from __future__ import annotations

import json

import pytest

from core.base.events import Trace
from core.views.draw.trail import gold_trail
from tests.core.views.greedy import trace_of


@pytest.mark.parametrize(
    ("trace", "gold", "words"),
    [
        (trace_of([0.9, 0.1, 0.5], [0.9, 0.8, 0.5]), 1, "found at step 2"),
        (
            trace_of([0.9, 0.6, 0.5, 0.1], [0.9, 0.1, 0.5, 0.4], ends="budget"),
            1,
            "lost by choice 1: rank 2 before it, 4 after it",
        ),
        (
            trace_of([0.9, 0.1, 0.5, 0.6], [0.9, 0.1, 0.5, 0.6], [0.9, 0.1, 0.5, 0.6], ends="budget"),
            1,
            "not reached: rank 4 before the last choice",
        ),
        (
            trace_of([0.9, 0.1, 0.05], [0.9, 0.1, 0.05], ends="threshold"),
            1,
            "not reached: rank 2, Q 0.10, where the agent stopped",
        ),
        (trace_of([0.9, 0.1, 0.5], [0.9, 0.2, 0.5]), 1, "rank 3 so far"),
        (trace_of([0.9, 0.8, 0.5], forbidden=(1,), ends="budget"), 1, "forbidden"),
    ],
)
def test_what_became_of_a_support_chunk(trace: Trace, gold: int, words: str) -> None:
    shown = json.dumps(gold_trail(trace, [gold]))
    assert f'"{words}"' in shown


def test_every_look_has_a_column_and_the_found_one_is_marked() -> None:
    trace = trace_of([0.9, 0.1, 0.5], [0.9, 0.2, 0.5], [0.9, 0.1, 0.5], ends="threshold")
    shown = json.dumps(gold_trail(trace, [0, 2, 1]))
    assert [f'"{name}"' in shown for name in ("1", "2", "end")] == [True] * 3
    assert shown.count('"found at step') == 2
    assert shown.count("qx-hit") == 2
    assert 'Rank 3 before step 1, Q 0.100"' in shown


def test_without_support_or_looks_there_is_no_trail() -> None:
    trace = trace_of([0.9, 0.1])
    assert gold_trail(trace, []) == []
    assert gold_trail(Trace(trace.started), [0]) == []
