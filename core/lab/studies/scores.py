"""Evaluations side by side, a line each.

The scores under every stop rule, and paired tests between methods on the same questions. Pure functions of
rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.base.errors import BadRequest
from core.base.rows import EpisodeRow, group_rows
from core.lab.evaluate.summary import compare, summarise
from core.lab.studies.subjects import agent_name, conditions, subject_name, task_name
from core.methods.registry import facts_of
from core.views.charts import Cell, Report, Table, mean_with_interval, with_interval, with_p

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
"""Titles of metrics, with intervals; "complete": all support was found within T."""


def scores(rows: Sequence[EpisodeRow]) -> Report:
    """A line an evaluation; under no threshold of its own no values. Raises BadRequest for no rows."""
    groups = group_rows(rows)
    if not groups:
        raise BadRequest("there are no rows to study; evaluate at least one example")
    lines: list[tuple[Cell, ...]] = []
    for group in groups:
        row, summary = group[0], summarise(group)
        complete = [float(set(one.support) <= set(one.chosen)) for one in group]
        shown = {
            title: None
            if row.stop_threshold is None and not title.endswith("stop")
            else with_interval(summary.metrics[name], summary.intervals[name])
            for title, name in COLUMNS.items()
        }
        lines.append(
            (
                task_name(row),
                agent_name(row),
                len(group),
                mean_with_interval(complete),
                *shown.values(),
                _against(group, groups),
            )
        )
    columns = (
        "task",
        "method",
        "n",
        "complete within T",
        *COLUMNS,
        "F1 without stop, agent's minus this one's",
    )
    kept = [i for i in range(len(columns)) if any(line[i] is not None for line in lines)]
    table = Table(
        "Scores", tuple(columns[i] for i in kept), tuple(tuple(line[i] for i in kept) for line in lines)
    )
    return Report(
        "scores", (table,), notes=tuple(f"{subject_name(group)}: {conditions(group)}" for group in groups)
    )


def _against(group: Sequence[EpisodeRow], groups: Sequence[Sequence[EpisodeRow]]) -> str | None:
    """A baseline, or a later agent of the rows, against their first agent on the same questions."""
    agents = [
        other
        for other in groups
        if facts_of(other[0].method).trained and other[0].key[:-1] == group[0].key[:-1]
    ]
    if not agents or agents[0] is group:
        return None
    test = compare(agents[0], group).tests["fact_f1_no_stop"]
    return with_p(test)
