"""Names, scores and conditions of evaluations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.base.errors import BadRequest
from core.base.rows import EpisodeRow
from core.lab.evaluate.summary import METRICS
from core.lab.studies.tables import check_any
from core.lab.tasks.babilong import name_length
from core.methods.registry import facts_of
from core.views.charts import mean_with_interval

Group = Sequence[EpisodeRow]


def check_greedy(rows: Group) -> None:
    """Raises BadRequest for no rows, and those that give no threshold: baselines and planned paths."""
    check_any(rows)
    if any(row.beam_width > 1 or not row.best_q for row in rows):
        raise BadRequest(
            "a threshold can only be studied on rows of the plain agent; evaluate it with --method qrag and"
            " --beam-width 1"
        )


def task_name(row: EpisodeRow) -> str:
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
