"""Evaluations side by side; each sweep groups its rows by what they say, and its numbers are those of the rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.base.errors import BadRequest
from core.lab.studies.sweeps import budget, chunk_size, length, planning, scores, timing
from tests.core.lab.evaluate.rows import make_row

GOOD = make_row((4, 9, 2), (0.9, 0.8, 0.1, 0.0), id="good")
SLOW = make_row((4, 2, 9), (0.9, 0.8, 0.7, 0.0), id="slow", milliseconds=9.5)


MISSED = [
    replace(row, method="topk", checkpoint="base", best_q=(), stop_threshold=None, chosen=(4, 2, 7))
    for row in (GOOD, SLOW)
]


def test_methods_beside_each_other_by_hand() -> None:
    (table,) = scores([GOOD, SLOW, *MISSED]).tables
    agent, topk = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert (agent["method"], topk["method"]) == ("agent", "topk")
    assert (agent["complete within T"][:5], topk["complete within T"][:5]) == ("1.000", "0.000")
    assert (agent["Fact F1, no stop"][:5], topk["Fact F1, no stop"][:5]) == ("0.800", "0.400")
    assert (agent["Fact F1, own threshold"][:5], topk["Fact F1, own threshold"]) == ("0.900", None)
    assert agent["F1 without stop, agent's minus this one's"] is None
    assert topk["F1 without stop, agent's minus this one's"].startswith("+0.400 (p = ")


@pytest.mark.parametrize("study", [scores, budget, planning, length, timing, chunk_size])
def test_nothing_to_study(study: object) -> None:
    with pytest.raises(BadRequest, match="no rows"):
        study([])


@pytest.mark.parametrize("study", [scores, budget, planning, length, timing, chunk_size])
def test_a_row_that_stands_twice_would_count_twice(study: object) -> None:
    with pytest.raises(BadRequest, match="question 'good' stands 2 times in one evaluation"):
        study([GOOD, SLOW, GOOD])
