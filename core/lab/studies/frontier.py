"""The quality-cost frontier.

What answers and support come to at every size of evidence, and methods against RES-RAG at equal tokens. Table
3 and figure 4 of the RES-RAG paper, as far as rows can tell. At equal tokens: a question's score of another
method is the mixture of its two settings whose mean tokens lie around those of RES-RAG, mixed so that the
means are equal; the same mixture for all questions. Pure functions of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.base.config import RESRAG
from core.base.errors import BadRequest
from core.base.statistics import mean, paired_test
from core.lab.evaluate.frontier import FrontierRow, group_frontier
from core.views.charts import Cell, Chart, Line, Report, Table, mean_with_interval

Group = tuple[FrontierRow, ...]
_SIZED = (
    "questions",
    "method",
    "setting",
    "chunks",
    "most chunks",
    "tokens",
    "most tokens",
    "answer F1",
    "EM",
    "support recall",
    "support F1",
)
_AGAINST = (
    "questions",
    "policy",
    "budget",
    "tokens",
    "against",
    "its setting",
    "answer F1, RES-RAG's minus its",
    "p",
    "support recall, RES-RAG's minus its",
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
                tuple(_mean(group, what, place) for place in range(len(group[0].settings)))
                for what in ("tokens", "f1", "recall")
            ),
        )
        for group in group_frontier(rows)
    ]


def frontier(rows: Sequence[FrontierRow]) -> Report:
    """All tables and charts. Raises BadRequest for no rows."""
    groups = group_frontier(rows)
    if not groups:
        raise BadRequest("there are no rows to study; evaluate at least one question")
    sized = [_sized(group, place) for group in groups for place in range(len(group[0].settings))]
    tests = [
        line
        for group in groups
        if group[0].method == RESRAG
        for other in _others(group, groups)
        for line in _against(group, other)
    ]
    tables = (
        Table("Evidence and what it brings", _SIZED, tuple(sized)),
        Table("At equal evidence tokens", _AGAINST, tuple(tests)),
    )
    return Report("frontier", tables, tuple(_charts(rows)), tuple(dict.fromkeys(map(_conditions, groups))))


def _name(one: FrontierRow | Curve) -> str:
    """A method, with its policy, agent or width."""
    return f"{'RES-RAG' if one.method == RESRAG else one.method} {one.policy}".strip()


def _conditions(group: Group) -> str:
    documents = mean(float(row.n_documents) for row in group) or 0.0
    chunks = mean(float(row.n_chunks) for row in group) or 0.0
    return (
        f"{group[0].task}: n = {len(group)} questions over {documents:.0f} documents and {chunks:,.0f} chunks"
        f" each, answered by {group[0].reader}."
    )


def _mean(group: Group, what: str, place: int) -> float:
    return mean(float(getattr(row, what)[place]) for row in group) or 0.0


def _sized(group: Group, place: int) -> tuple[Cell, ...]:
    scores = [[getattr(row, what)[place] for row in group] for what in ("f1", "em", "recall", "support_f1")]
    return (
        group[0].task,
        _name(group[0]),
        _setting(group[0].settings[place]),
        f"{_mean(group, 'chunks', place):.1f}",
        max(row.chunks[place] for row in group),
        f"{_mean(group, 'tokens', place):.0f}",
        max(row.tokens[place] for row in group),
        mean_with_interval(scores[0]),
        *(mean(values) for values in scores[1:]),
    )


def _setting(value: float) -> str:
    return f"{value:g}"


def _others(group: Group, groups: Sequence[Group]) -> list[Group]:
    return [other for other in groups if other[0].task == group[0].task and other[0].method != RESRAG]


def _against(group: Group, other: Group) -> list[tuple[Cell, ...]]:
    """RES-RAG at each budget against the mixture of another method's settings that spends as much."""
    theirs = {row.id: row for row in other}
    common = [row for row in group if row.id in theirs]
    lines: list[tuple[Cell, ...]] = []
    spent = 0.0
    for place, budget in enumerate(group[0].settings):
        tokens = _mean(group, "tokens", place)
        mix = mixture([_mean(other, "tokens", at) for at in range(len(other[0].settings))], tokens)
        if mix is None or tokens <= spent:
            continue
        spent = tokens
        low, high, share = mix
        tests = []
        for what in ("f1", "recall"):
            mixed = [
                (1 - share) * getattr(theirs[row.id], what)[low] + share * getattr(theirs[row.id], what)[high]
                for row in common
            ]
            tests.append(paired_test([getattr(row, what)[place] for row in common], mixed))
        answer, recall = (
            None if test is None else f"{test.difference:+.3f}{_ends(test.interval)}" for test in tests
        )
        between = " to ".join(dict.fromkeys(_setting(other[0].settings[at]) for at in (low, high)))
        p = None if tests[0] is None else f"{tests[0].p_value:.2g}"
        lines.append(
            (
                group[0].task,
                group[0].policy,
                _setting(budget),
                f"{tokens:.0f}",
                _name(other[0]),
                between,
                answer,
                p,
                recall,
            )
        )
    return lines


def _ends(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f" [{ends[0]:+.3f}, {ends[1]:+.3f}]"


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
        for title, what in (("answer F1", "f1"), ("support recall", "recall")):
            lines = []
            for curve in drawn:
                if curve.task == task:
                    points = sorted(zip(curve.tokens, getattr(curve, what), strict=True))
                    lines.append(Line(_name(curve), tuple(x for x, _ in points), tuple(y for _, y in points)))
            charts.append(Chart(f"{task}: {title}", "evidence tokens", title, tuple(lines), log_x=True))
    return charts
