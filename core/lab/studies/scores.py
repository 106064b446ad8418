"""Evaluations side by side, a line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from core.base.rows import EpisodeRow, group_rows
from core.lab.evaluate.summary import METRICS
from core.lab.studies.subjects import Group, agent_name, notes, score, task_name
from core.lab.studies.tables import check_any, filled, paired
from core.methods.registry import facts_of
from core.views.charts import Cell, Report, Table, mean_with_interval, with_p

COLUMNS = {
    "Fact F1, no stop": "fact_f1_no_stop",
    "Fact EM, no stop": "fact_em_no_stop",
    "Fact F1, oracle stop": "fact_f1_oracle_stop",
    "Fact F1, own threshold": "fact_f1",
    "Fact EM, own threshold": "fact_em",
    "perfect stops": "stopped_perfectly",
    "Fact F1, reviewed": "fact_f1_reviewed",
    "Fact EM, reviewed": "fact_em_reviewed",
    "exactly the support": "exact",
    "exactly the support, reviewed": "exact_reviewed",
}
"""Titles of metrics, with intervals; those that end in "stop" need no threshold."""


def scores(rows: Sequence[EpisodeRow]) -> Report:
    """A line an evaluation; under no threshold of its own no values. Raises BadRequest for no rows."""
    groups = group_rows(rows)
    check_any(groups)
    columns: dict[str, Callable[[Group], Cell]] = {
        "task": lambda group: task_name(group[0]),
        "method": lambda group: agent_name(group[0]),
        "n": len,
        "complete within T": lambda group: mean_with_interval(
            [float(set(row.support) <= set(row.chosen)) for row in group]
        ),
    }
    for title, metric in COLUMNS.items():
        columns[title] = partial(_score, needs_threshold=not title.endswith("stop"), metric=metric)
    columns["F1 without stop, agent's minus this one's"] = partial(_against_agent, groups=groups)
    table = filled("Scores", columns, groups)
    kept = [
        i for i, cells in enumerate(zip(*table.rows, strict=True)) if any(cell is not None for cell in cells)
    ]
    lines = tuple(tuple(line[i] for i in kept) for line in table.rows)
    return Report(
        "scores", (Table("Scores", tuple(table.columns[i] for i in kept), lines),), notes=notes(groups)
    )


def _score(group: Group, *, needs_threshold: bool, metric: str) -> str | None:
    if needs_threshold and group[0].stop_threshold is None:
        return None
    return score(group, metric)


def _against_agent(group: Group, groups: Sequence[Group]) -> str | None:
    """A baseline, or a later agent of the rows, against their first agent on the same questions."""
    agents = [
        other
        for other in groups
        if facts_of(other[0].method).trained and other[0].key[:-1] == group[0].key[:-1]
    ]
    if not agents or agents[0] is group:
        return None
    return with_p(paired(agents[0], group, lambda row: row.key, METRICS["fact_f1_no_stop"]))
