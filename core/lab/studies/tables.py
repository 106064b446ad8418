"""What studies share: tables, names, scores, conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from core.base.errors import BadRequest
from core.base.rows import EpisodeRow, group_rows
from core.base.statistics import PairedTest, mean, paired_test
from core.lab.evaluate.summary import METRICS
from core.lab.reader.evaluation import AnswerRow
from core.lab.tasks.babilong import name_length
from core.methods.registry import facts_of
from core.views.charts import Cell, Line, Table, mean_with_interval

T = TypeVar("T")


def filled(title: str, columns: Mapping[str, Callable[[T], Cell]], items: Iterable[T]) -> Table:
    """A line an item. `columns`: what stands in the item's line, by title."""
    rows = tuple(tuple(cell(item) for cell in columns.values()) for item in items)
    return Table(title, tuple(columns), rows)


def lines_of(points: Iterable[tuple[str, float, float | None]]) -> tuple[Line, ...]:
    """A line a name, through its points (name, x, y) in their order."""
    by_name: dict[str, list[tuple[float, float | None]]] = {}
    for name, x, y in points:
        by_name.setdefault(name, []).append((x, y))
    return tuple(
        Line(name, tuple(x for x, _ in own), tuple(y for _, y in own)) for name, own in by_name.items()
    )


def check_groups(groups: Iterable[Sequence[Any]], remedy: str = "evaluate at least one example") -> None:
    """Raises BadRequest where there is nothing to study, or a question stands twice in one evaluation: it
    would count twice, and intervals would be too narrow.
    """
    counts = [Counter(row.id for row in group) for group in groups]
    if not counts:
        raise BadRequest(f"there are no rows to study; {remedy}")
    for counted in counts:
        [(name, n)] = counted.most_common(1)
        if n > 1:
            raise BadRequest(
                f"question {name[:80]!r} stands {n} times in one evaluation; name a file that has every row"
                " once"
            )


def paired(
    first: Sequence[T],
    second: Sequence[T],
    key: Callable[[T], Hashable],
    score: Callable[[T], float | None],
) -> PairedTest | None:
    """First minus second on the questions that both have."""
    theirs = {key(row): row for row in second}
    common = [row for row in first if key(row) in theirs]
    return paired_test([score(row) for row in common], [score(theirs[key(row)]) for row in common])


def shown_mean(values: Iterable[float | None], digits: int) -> str | None:
    """A mean with so many decimals; None where nothing was measured."""
    value = mean(values)
    return None if value is None else f"{value:.{digits}f}"


Group = Sequence[EpisodeRow]


def evaluations(rows: Group) -> list[tuple[EpisodeRow, ...]]:
    """See `group_rows`. Raises BadRequest as `check_groups`."""
    groups = group_rows(rows)
    check_groups(groups)
    return groups


def check_greedy(rows: Group) -> None:
    """Raises BadRequest as `evaluations`, and for rows without a threshold: baselines and planned paths."""
    evaluations(rows)
    if any(row.beam_width > 1 or not row.best_q for row in rows):
        raise BadRequest(
            "a threshold can only be studied on rows of the plain agent; evaluate it with --method qrag and"
            " --beam-width 1"
        )


def task_name(row: EpisodeRow | AnswerRow) -> str:
    """The task with its length."""
    return row.task if row.length is None else f"{row.task} at {name_length(row.length)}"


def agent_name(row: EpisodeRow) -> str:
    """The method, or the agent by its checkpoint."""
    return row.checkpoint if facts_of(row.method).trained else row.method


def subject_name(group: Group) -> str:
    """Task, length and agent of one evaluation."""
    return f"{task_name(group[0])}, {agent_name(group[0])}"


def conditions(group: Group) -> str:
    """n, T, training set and part of the data, as a sentence."""
    row = group[0]
    trained = "untrained" if row.trained_on is None else f"trained on {row.trained_on}"
    return (
        f"n = {len(group)}, T = {max(row.step_budget for row in group)}, {trained}, {row.split} part, seed"
        f" {row.seed}."
    )


def notes(groups: Sequence[Group]) -> tuple[str, ...]:
    """The conditions of each evaluation under its name."""
    return tuple(f"{subject_name(group)}: {conditions(group)}" for group in groups)


def measured(group: Group, metric: str) -> list[float | None]:
    """A metric of every row."""
    return [METRICS[metric](row) for row in group]


def score(group: Group, metric: str) -> str | None:
    """A metric's mean with its confidence interval."""
    return mean_with_interval(measured(group, metric))


def median_chunks(group: Group) -> int:
    """Chunks of an example, median."""
    return int(np.median([row.n_chunks for row in group]))
