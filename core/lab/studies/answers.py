"""The reader's answers and confidence, by task and evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.answer.confidence import expected_calibration_error
from core.base.metrics import RIGHT_FROM
from core.base.statistics import mean
from core.lab.reader.evaluation import AnswerRow, group_answers
from core.lab.studies.tables import check_groups, filled, shown_mean, task_name
from core.views.charts import Cell, Report, mean_with_interval

SURE = 0.7
"""Confidence from which the last column of the second table counts."""
Group = Sequence[AnswerRow]


def answers(rows: Sequence[AnswerRow]) -> Report:
    """A line a task and evidence."""
    groups, first = group_answers(rows), rows[0]
    check_groups(groups)
    note = (
        f"answered by {first.reader}, {first.split} part, seed {first.seed}; accuracy: the answer contains an"
        f" accepted one; right: F1 of {RIGHT_FROM} or more."
    )
    return Report(
        "answers", (filled("Answers", _SCORED, groups), filled("Confidence", _TRUSTED, groups)), notes=(note,)
    )


def _answered(group: Group) -> list[AnswerRow]:
    return [row for row in group if not row.empty]


def _are_right(rows: Group) -> list[bool]:
    return [row.f1 >= RIGHT_FROM for row in rows]


def _right_where_sure(group: Group) -> str | None:
    sure = [row for row in _answered(group) if row.confidence >= SURE]
    return f"{mean(_are_right(sure)):.3f} of {len(sure)}" if sure else None


Columns = dict[str, Callable[[Group], Cell]]
_NAMED: Columns = {
    "task": lambda group: task_name(group[0]),
    "evidence": lambda group: group[0].evidence,
}
_SCORED: Columns = _NAMED | {
    "n": lambda group: len(group),
    "passages": lambda group: shown_mean((row.n_passages for row in group), 1),
    "support found": lambda group: mean(row.support_found for row in group),
    "EM": lambda group: mean_with_interval([row.em for row in group]),
    "F1": lambda group: mean_with_interval([row.f1 for row in group]),
    "accuracy": lambda group: mean_with_interval([row.accuracy for row in group]),
    "no answer": lambda group: mean(row.empty for row in group),
}
_TRUSTED: Columns = _NAMED | {
    "answered": lambda group: len(_answered(group)),
    "mean confidence": lambda group: mean(row.confidence for row in _answered(group)),
    "right": lambda group: mean(_are_right(_answered(group))),
    "ECE": lambda group: expected_calibration_error(
        [row.confidence for row in _answered(group)], _are_right(_answered(group))
    ),
    f"right where confidence is {SURE} or more": _right_where_sure,
}
