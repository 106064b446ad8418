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


def test_a_further_agent_is_tested_against_the_first() -> None:
    other = [replace(row, fingerprint="other", chosen=(4, 2, 7)) for row in (GOOD, SLOW)]
    (table,) = scores([GOOD, SLOW, *other, *MISSED]).tables
    first, second, topk = (
        row[table.columns.index("F1 without stop, agent's minus this one's")] for row in table.rows
    )
    assert first is None
    assert second == topk
    assert second.startswith("+0.400 (p = ")


def test_budget_by_hand() -> None:
    (table,) = budget([GOOD, SLOW]).tables
    assert [row[0] for row in table.rows] == [1, 2, 3]
    assert [row[1][:5] for row in table.rows] == ["0.000", "0.500", "1.000"]
    assert [row[2][:5] for row in table.rows] == ["0.667", "0.750", "0.800"]
    assert [row[4] for row in table.rows] == [10, 20, 30]
    (chart,) = budget([GOOD, SLOW]).charts
    assert chart.lines[0].y == (0, 0.5, 1)


def test_planning_is_tested_against_the_greedy_agent() -> None:
    planned = [
        replace(row, beam_width=4, chosen=(4, 9, 2), best_q=(0.9, 0.8, 0.1, 0.0)) for row in (GOOD, SLOW)
    ]
    (table,) = planning([GOOD, SLOW, *planned]).tables
    greedy, beam = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert (greedy["beam"], beam["beam"], greedy["F1 against greedy"]) == (1, 4, None)
    assert beam["F1 against greedy"] == "+0.100 (p = 1)"
    assert beam["Fact F1"].startswith("1.000")


def test_length_says_what_is_lost_since_the_shortest() -> None:
    rows = [
        replace(SLOW, length=1_000_000),
        replace(GOOD, length=1_000),
        replace(GOOD, length=1_000, id="other"),
    ]
    report = length(rows)
    (table,) = report.tables
    assert [(row[1], row[3], row[-1]) for row in table.rows] == [("1K", 2, "+0.0"), ("1M", 1, "+20.0")]
    assert report.charts[0].lines[0].x == (1_000, 1_000_000)
    assert report.charts[0].lines[0].y == (1, pytest.approx(0.8))
    with pytest.raises(BadRequest, match="contexts of its own"):
        length([replace(GOOD, length=None)])


def test_time_by_method_and_length() -> None:
    topk = replace(GOOD, method="topk", checkpoint="base", best_q=(), milliseconds=0.5)
    (table,) = timing([GOOD, SLOW, topk]).tables
    assert [(row[0], row[5]) for row in table.rows] == [("qa2, agent", 5.5), ("qa2, topk", 0.5)]


def test_chunk_sizes_in_order() -> None:
    rows = [replace(GOOD, chunk_tokens=96), GOOD, replace(GOOD, chunk_tokens=32)]
    report = chunk_size(rows)
    assert [row[1] for row in report.tables[0].rows] == ["as they are", 32, 96]
    assert report.charts[0].lines[0].x == (32, 96)


@pytest.mark.parametrize("study", [scores, budget, planning, length, timing, chunk_size])
def test_nothing_to_study(study: object) -> None:
    with pytest.raises(BadRequest, match="no rows"):
        study([])
