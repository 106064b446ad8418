"""Evaluations side by side, and with one quantity varied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from core.base.errors import BadRequest
from core.base.metrics import fact_em, fact_f1, fact_recall
from core.base.rows import EpisodeRow
from core.base.statistics import mean
from core.lab.evaluate.summary import METRICS
from core.lab.studies.tables import (
    Group,
    agent_name,
    conditions,
    evaluations,
    filled,
    lines_of,
    measured,
    median_chunks,
    notes,
    paired,
    score,
    subject_name,
    task_name,
)
from core.lab.tasks.babilong import name_length
from core.methods.registry import facts_of
from core.views.charts import Cell, Chart, Report, Table, mean_with_interval, with_p

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
    groups = evaluations(rows)
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
    by_column = zip(table.columns, zip(*table.rows, strict=True), strict=True)
    kept = {title: cells for title, cells in by_column if any(cell is not None for cell in cells)}
    lines = tuple(zip(*kept.values(), strict=True))
    return Report("scores", (Table("Scores", tuple(kept), lines),), notes=notes(groups))


def _score(group: Group, *, needs_threshold: bool, metric: str) -> str | None:
    return None if needs_threshold and group[0].stop_threshold is None else score(group, metric)


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


Lengths = tuple[str, Group, Group]
"""Task and agent, their rows of one length, and those of the shortest."""
SCORES: dict[str, Callable[[Group], Cell]] = {
    "Fact F1 (own threshold)": partial(score, metric="fact_f1"),
    "Fact F1 (oracle stop)": partial(score, metric="fact_f1_oracle_stop"),
    "Fact EM": partial(score, metric="fact_em"),
}
_HAYSTACK: dict[str, Callable[[Lengths], Cell]] = {
    "tokens": lambda of: name_length(of[1][0].length or 0),
    "chunks": lambda of: median_chunks(of[1]),
    "n": lambda of: len(of[1]),
    "T": lambda of: of[1][0].step_budget,
}


def budget(rows: Sequence[EpisodeRow]) -> Report:
    """Facts found with 1 ... T retrievals and no stop (Q-RAG table 6), read off rows of the largest T."""
    groups = evaluations(rows)
    tables, charts = zip(*map(_budget, groups), strict=True)
    said = tuple(f"{subject_name(group)}: {conditions(group)} No stop." for group in groups)
    return Report("budget", tables, charts, said)


def _budget(group: Group) -> tuple[Table, Chart]:
    def scores(n: int, measure: Callable[[Sequence[int], Sequence[int]], float]) -> list[float]:
        return [measure(row.chosen[:n], row.support) for row in group]

    title = f"Retrieval budget, {subject_name(group)}"
    numbers = range(1, max(row.step_budget for row in group) + 1)
    columns: dict[str, Callable[[int], Cell]] = {
        "retrievals": int,
        "Fact EM": lambda n: mean_with_interval(scores(n, fact_em)),
        "Fact F1": lambda n: mean_with_interval(scores(n, fact_f1)),
        "recall": lambda n: mean_with_interval(scores(n, fact_recall)),
        "tokens": lambda n: round(mean(float(sum(row.tokens[:n])) for row in group) or 0),
    }
    drawn = {"Fact EM": fact_em, "Fact F1": fact_f1}
    points = [(name, float(n), mean(scores(n, drawn[name]))) for name in drawn for n in numbers]
    return filled(title, columns, numbers), Chart(title, "retrievals", "score", lines_of(points))


def planning(rows: Sequence[EpisodeRow]) -> Report:
    """Plan Q-RAG against the greedy agent (appendix D): paired tests of each beam against a beam of one."""
    groups = evaluations(rows)

    def against_greedy(group: Group) -> str | None:
        row = group[0]
        for other in groups:
            same = other[0].key[:-1] == row.key[:-1] and other[0].fingerprint == row.fingerprint
            if same and other[0].beam_width == 1 < row.beam_width:
                return with_p(paired(group, other, lambda row: row.key, METRICS["fact_f1"]))
        return None

    columns: dict[str, Callable[[Group], Cell]] = {
        "task": subject_name,
        "beam": lambda group: group[0].beam_width,
        "n": len,
        "Fact F1": partial(score, metric="fact_f1"),
        "Fact EM": partial(score, metric="fact_em"),
        "F1 against greedy": against_greedy,
        "ms a question": lambda group: round(mean(row.milliseconds for row in group) or 0),
    }
    return Report("planning", (filled("Planning", columns, groups),), notes=notes(groups))


def length(rows: Sequence[EpisodeRow]) -> Report:
    """The same task over ever longer haystacks: scores, and what is lost since the shortest."""

    def f1(group: Group) -> float:
        return mean(measured(group, "fact_f1")) or 0.0

    lengths = _by_length(rows)
    columns: dict[str, Callable[[Lengths], Cell]] = {
        "task": lambda of: of[0],
        **_HAYSTACK,
        **{title: partial(_of_length, cell) for title, cell in SCORES.items()},
        "points lost": lambda of: f"{100 * (f1(of[2]) - f1(of[1])):+.1f}",
    }
    points = ((name, float(group[0].length or 0), f1(group)) for name, group, _ in lengths)
    y = "Fact F1 (own threshold)"
    chart = Chart("Fact F1 by length", "tokens of the haystack", y, lines_of(points), log_x=True)
    table = filled("Length of the haystack", columns, lengths)
    return Report("length", (table,), (chart,), notes(evaluations(rows)))


def _of_length(cell: Callable[[Group], Cell], of: Lengths) -> Cell:
    return cell(of[1])


def timing(rows: Sequence[EpisodeRow]) -> Report:
    """Milliseconds of a whole retrieval by length and method (figure 3 c), one question at a time."""

    def quantile(group: Group, share: float) -> float:
        return float(np.quantile([row.milliseconds for row in group], share))

    lengths = _by_length(rows)
    columns: dict[str, Callable[[Lengths], Cell]] = {
        "task and method": lambda of: of[0],
        **_HAYSTACK,
        "median ms": lambda of: round(quantile(of[1], 0.5), 1),
        "90th percentile ms": lambda of: round(quantile(of[1], 0.9), 1),
    }
    points = ((name, float(group[0].length or 0), quantile(group, 0.5)) for name, group, _ in lengths)
    axes = ("tokens of the haystack", "median ms a question")
    chart = Chart("Retrieval time by length", *axes, lines_of(points), log_x=True, log_y=True)
    note = (
        "One question at a time on the machine that made the rows; embedding the chunks is paid once a"
        " document and not counted, nor is building an index."
    )
    return Report("time", (filled("Retrieval time", columns, lengths),), (chart,), (note,))


def chunk_size(rows: Sequence[EpisodeRow]) -> Report:
    """Neighbouring chunks joined up to a number of tokens: scores, and how much text the evidence is."""
    groups = sorted(evaluations(rows), key=lambda group: (subject_name(group), group[0].chunk_tokens or 0))
    columns: dict[str, Callable[[Group], Cell]] = {
        "task": subject_name,
        "tokens a chunk": lambda group: group[0].chunk_tokens or "as they are",
        "chunks": median_chunks,
        "n": len,
        **SCORES,
        "evidence tokens": lambda group: round(mean(measured(group, "evidence_tokens")) or 0),
    }
    points = (
        (subject_name(group), float(size), mean(measured(group, "fact_f1_oracle_stop")))
        for group in groups
        if (size := group[0].chunk_tokens)
    )
    chart = Chart("Fact F1 by chunk size", "tokens a chunk", "Fact F1 (oracle stop)", lines_of(points))
    return Report("chunk-size", (filled("Chunk size", columns, groups),), (chart,), notes(groups))


def _by_length(rows: Sequence[EpisodeRow]) -> list[Lengths]:
    """By name and length. Raises BadRequest."""
    groups = evaluations(rows)
    if any(group[0].length is None for group in groups):
        raise BadRequest(
            f"{groups[0][0].task} has contexts of its own, so its length can't be studied; choose a task that"
            " --length goes with"
        )
    ordered = sorted(groups, key=lambda group: (group[0].task, agent_name(group[0]), group[0].length or 0))
    names = [f"{group[0].task}, {agent_name(group[0])}" for group in ordered]
    return [(name, group, ordered[names.index(name)]) for name, group in zip(names, ordered, strict=True)]
