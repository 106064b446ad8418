"""Answers by task and evidence.

Exact match, F1, accuracy, and whether confidence means what it says. Pure functions of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.answer.confidence import expected_calibration_error
from core.base.metrics import RIGHT_FROM
from core.base.statistics import mean
from core.lab.reader.rows import AnswerRow, group_answers
from core.lab.tasks.babilong import name_length
from core.views.charts import Report, Table, mean_with_interval

SURE = 0.7
"""Confidence from which the last column of the second table counts."""
_SCORED = ("task", "evidence", "n", "passages", "support found", "EM", "F1", "accuracy", "no answer")
_TRUSTED = (
    "task",
    "evidence",
    "answered",
    "mean confidence",
    "right",
    "ECE",
    f"right where confidence is {SURE} or more",
)


def answers(rows: Sequence[AnswerRow]) -> Report:
    """A line a task and evidence."""
    groups = group_answers(rows)
    scored = Table("Answers", _SCORED, tuple(map(_scores, groups)))
    trusted = Table("Confidence", _TRUSTED, tuple(map(_trust, groups)))
    first = rows[0]
    note = (
        f"answered by {first.reader}, {first.split} part, seed {first.seed}; accuracy: the answer contains an"
        f" accepted one; right: F1 of {RIGHT_FROM} or more."
    )
    return Report("answers", (scored, trusted), notes=(note,))


def _name(row: AnswerRow) -> str:
    return row.task if row.length is None else f"{row.task} at {name_length(row.length)}"


def _scores(group: Sequence[AnswerRow]) -> tuple[str | int | float | None, ...]:
    return (
        _name(group[0]),
        group[0].evidence,
        len(group),
        f"{mean(row.n_passages for row in group):.1f}",
        mean(row.support_found for row in group),
        mean_with_interval([row.em for row in group]),
        mean_with_interval([row.f1 for row in group]),
        mean_with_interval([row.accuracy for row in group]),
        mean(float(row.empty) for row in group),
    )


def _trust(group: Sequence[AnswerRow]) -> tuple[str | int | float | None, ...]:
    answered = [row for row in group if not row.empty]
    sure = [row for row in answered if row.confidence >= SURE]
    share = None if not sure else f"{mean(float(_is_right(row)) for row in sure):.3f} of {len(sure)}"
    right = list(map(_is_right, answered))
    ece = expected_calibration_error([row.confidence for row in answered], right)
    return (
        _name(group[0]),
        group[0].evidence,
        len(answered),
        mean(row.confidence for row in answered),
        mean(map(float, right)),
        ece,
        share,
    )


def _is_right(row: AnswerRow) -> bool:
    return row.f1 >= RIGHT_FROM
