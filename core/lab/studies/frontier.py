"""The quality-cost frontier (RES-RAG table 3, figure 4).

At equal tokens, RES-RAG is compared with a mixture of two settings of another method, whose mean tokens lie
around those of RES-RAG. A question's score is mixed from its scores under the two, with the same shares for
all questions, so that the means of the tokens are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.base.config import RESRAG
from core.base.statistics import PairedTest, mean, paired_test
from core.lab.evaluate.frontier import FrontierRow, group_frontier
from core.lab.studies.tables import check_any, filled, lines_of
from core.views.charts import Cell, Chart, Report, Table, mean_with_interval

Group = tuple[FrontierRow, ...]
Place = tuple[Group, int]
"""A method's rows, and which of its settings."""
_AGAINST = (
    *("questions", "policy", "budget", "tokens", "against", "its setting"),
    *("answer F1, RES-RAG's minus its", "p", "support recall, RES-RAG's minus its"),
)


@dataclass(frozen=True)
class Curve:
    """Means of one method over the questions of one task, a value a setting in each tuple."""

    task: str
    method: str
    policy: str
    reader: str
    n: int
    """Questions."""
    settings: tuple[float, ...]
    tokens: tuple[float, ...]
    f1: tuple[float, ...]
    recall: tuple[float, ...]


def curves(rows: Sequence[FrontierRow]) -> list[Curve]:
    """A curve a task and method, in order of their first rows."""
    return [
        Curve(
            group[0].task,
            group[0].method,
            group[0].policy,
            group[0].reader,
            len(group),
            group[0].settings,
            *(
                tuple(_mean(group, place, column) for place in range(len(group[0].settings)))
                for column in ("tokens", "f1", "recall")
            ),
        )
        for group in group_frontier(rows)
    ]


def frontier(rows: Sequence[FrontierRow]) -> Report:
    """All tables and charts. Raises BadRequest for no rows."""
    groups = group_frontier(rows)
    check_any(groups, "evaluate at least one question")
    places = [(group, place) for group in groups for place in range(len(group[0].settings))]
    columns: dict[str, Callable[[Place], Cell]] = {
        "questions": lambda at: at[0][0].task,
        "method": lambda at: _name(at[0][0]),
        "setting": lambda at: f"{at[0][0].settings[at[1]]:g}",
        "chunks": lambda at: f"{_mean(*at, column='chunks'):.1f}",
        "most chunks": lambda at: max(row.chunks[at[1]] for row in at[0]),
        "tokens": lambda at: f"{_mean(*at, column='tokens'):.0f}",
        "most tokens": lambda at: max(row.tokens[at[1]] for row in at[0]),
        "answer F1": lambda at: mean_with_interval([row.f1[at[1]] for row in at[0]]),
        "EM": lambda at: _mean(*at, column="em"),
        "support recall": lambda at: _mean(*at, column="recall"),
        "support F1": lambda at: _mean(*at, column="support_f1"),
    }
    tests = [
        line
        for group in groups
        if group[0].method == RESRAG
        for other in groups
        if other[0].task == group[0].task and other[0].method != RESRAG
        for line in _against(group, other)
    ]
    tables = (
        filled("Evidence and what it brings", columns, places),
        Table("At equal evidence tokens", _AGAINST, tuple(tests)),
    )
    return Report("frontier", tables, tuple(_charts(rows)), tuple(dict.fromkeys(map(_conditions, groups))))


def _name(of: FrontierRow | Curve) -> str:
    """A method, with its policy, agent or width."""
    return f"{'RES-RAG' if of.method == RESRAG else of.method} {of.policy}".strip()


def _conditions(group: Group) -> str:
    documents = mean(float(row.n_documents) for row in group) or 0.0
    chunks = mean(float(row.n_chunks) for row in group) or 0.0
    return (
        f"{group[0].task}: n = {len(group)} questions over {documents:.0f} documents and {chunks:,.0f} chunks"
        f" each, answered by {group[0].reader}."
    )


def _mean(group: Group, place: int, column: str) -> float:
    return mean(float(getattr(row, column)[place]) for row in group) or 0.0


def _against(group: Group, other: Group) -> list[tuple[Cell, ...]]:
    """RES-RAG at each budget against the mixture of another method's settings that spends as much."""
    theirs = {row.id: row for row in other}
    common = [row for row in group if row.id in theirs]
    lines: list[tuple[Cell, ...]] = []
    spent = 0.0
    costs = [_mean(other, place, "tokens") for place in range(len(other[0].settings))]
    for place, budget in enumerate(group[0].settings):
        tokens = _mean(group, place, "tokens")
        mix = mixture(costs, tokens)
        if mix is None or tokens <= spent:
            continue
        spent = tokens
        low, high, share = mix
        tests = []
        for column in ("f1", "recall"):
            values = [getattr(theirs[row.id], column) for row in common]
            mixed = [(1 - share) * value[low] + share * value[high] for value in values]
            tests.append(paired_test([getattr(row, column)[place] for row in common], mixed))
        answer, recall = tests
        between = " to ".join(dict.fromkeys(f"{other[0].settings[at]:g}" for at in (low, high)))
        lines.append(
            (
                group[0].task,
                group[0].policy,
                f"{budget:g}",
                f"{tokens:.0f}",
                _name(other[0]),
                between,
                _difference(answer),
                None if answer is None else f"{answer.p_value:.2g}",
                _difference(recall),
            )
        )
    return lines


def _difference(test: PairedTest | None) -> str | None:
    if test is None:
        return None
    ends = "" if test.interval is None else f" [{test.interval[0]:+.3f}, {test.interval[1]:+.3f}]"
    return f"{test.difference:+.3f}{ends}"


def mixture(costs: Sequence[float], wanted: float) -> tuple[int, int, float] | None:
    """(cheaper setting, dearer setting, share of the dearer) that cost as much as wanted; None where all cost
    more, or all less.

    >>> mixture([10.0, 20.0, 40.0], 25.0), mixture([10.0, 20.0], 21.0)
    ((1, 2, 0.25), None)
    """
    order = sorted(range(len(costs)), key=lambda at: costs[at])
    for low, high in pairwise(order):
        if costs[low] <= wanted <= costs[high] and costs[low] < costs[high]:
            return low, high, (wanted - costs[low]) / (costs[high] - costs[low])
    return None


def _charts(rows: Sequence[FrontierRow]) -> list[Chart]:
    drawn = curves(rows)
    charts = []
    for task in dict.fromkeys(curve.task for curve in drawn):
        for title, column in (("answer F1", "f1"), ("support recall", "recall")):
            points = (
                (_name(curve), x, y)
                for curve in drawn
                if curve.task == task
                for x, y in sorted(zip(curve.tokens, getattr(curve, column), strict=True))
            )
            charts.append(Chart(f"{task}: {title}", "evidence tokens", title, lines_of(points), log_x=True))
    return charts
