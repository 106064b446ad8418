"""One quantity varied, everything else equal.

Step budget, beam, length of the haystack, chunk size. Each takes the rows of all variations and groups them
by what they say of themselves. Pure functions of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.base.errors import BadRequest
from core.base.metrics import fact_em, fact_f1, fact_recall
from core.base.rows import EpisodeRow, group_rows
from core.base.statistics import mean
from core.lab.evaluate.summary import Summary, compare, summarise
from core.lab.studies.subjects import agent_name, conditions, subject_name
from core.lab.tasks.babilong import name_length
from core.views.charts import (
    Cell,
    Chart,
    Line,
    Report,
    Table,
    mean_with_interval,
    with_interval,
    with_p,
)

Group = tuple[EpisodeRow, ...]
SCORES = {
    "fact_f1": "Fact F1 (own threshold)",
    "fact_f1_oracle_stop": "Fact F1 (oracle stop)",
    "fact_em": "Fact EM",
}
"""Metrics and their columns."""


def budget(rows: Sequence[EpisodeRow]) -> Report:
    """Facts found with 1 ... T retrievals and no stop (Q-RAG table 6), read off rows of the largest T."""
    tables, charts, notes = [], [], []
    for group in _groups(rows):
        most, name = max(row.step_budget for row in group), subject_name(group)
        lines: list[tuple[Cell, ...]] = []
        curves: dict[str, list[float | None]] = {"Fact EM": [], "Fact F1": []}
        for n in range(1, most + 1):
            scores = {
                "Fact EM": [fact_em(row.chosen[:n], row.support) for row in group],
                "Fact F1": [fact_f1(row.chosen[:n], row.support) for row in group],
                "recall": [fact_recall(row.chosen[:n], row.support) for row in group],
            }
            tokens = mean(float(sum(row.tokens[:n])) for row in group)
            lines.append(
                (
                    n,
                    *(mean_with_interval(values) for values in scores.values()),
                    None if tokens is None else round(tokens),
                )
            )
            for column, curve in curves.items():
                curve.append(mean(scores[column]))
        x = tuple(float(n) for n in range(1, most + 1))
        tables.append(
            Table(
                f"Retrieval budget, {name}",
                ("retrievals", "Fact EM", "Fact F1", "recall", "tokens"),
                tuple(lines),
            )
        )
        charts.append(
            Chart(
                f"Retrieval budget, {name}",
                "retrievals",
                "score",
                tuple(Line(column, x, tuple(curve)) for column, curve in curves.items()),
            )
        )
        notes.append(f"{name}: {conditions(group)} No stop.")
    return Report("budget", tuple(tables), tuple(charts), tuple(notes))


def planning(rows: Sequence[EpisodeRow]) -> Report:
    """Plan Q-RAG against the greedy agent (appendix D): paired tests of each beam against a beam of one."""
    lines: list[tuple[Cell, ...]] = []
    groups = _groups(rows)
    for group in groups:
        row, summary = group[0], summarise(group)
        greedy = [
            other
            for other in groups
            if other[0].beam_width == 1
            and other[0].key[:-1] == row.key[:-1]
            and other[0].fingerprint == row.fingerprint
        ]
        test = compare(group, greedy[0]).tests["fact_f1"] if row.beam_width > 1 and greedy else None
        lines.append(
            (
                subject_name(group),
                row.beam_width,
                len(group),
                *_scores(summary, "fact_f1", "fact_em"),
                with_p(test),
                round(summary.metrics["milliseconds"] or 0),
            )
        )
    columns = ("task", "beam", "n", "Fact F1", "Fact EM", "F1 against greedy", "ms a question")
    return Report(
        "planning",
        (Table("Planning", columns, tuple(lines)),),
        notes=tuple(f"{subject_name(group)}: {conditions(group)}" for group in groups),
    )


def length(rows: Sequence[EpisodeRow]) -> Report:
    """The same task over ever longer haystacks: scores, and what is lost since the shortest."""
    lines: list[tuple[Cell, ...]] = []
    curves: dict[str, list[tuple[float, float | None]]] = {}
    for name, group, shortest in _by_length(rows):
        now, before = summarise(group), summarise(shortest)
        loss = (before.metrics["fact_f1"] or 0.0) - (now.metrics["fact_f1"] or 0.0)
        lines.append((*_haystack(name, group), *_scores(now, *SCORES), f"{100 * loss:+.1f}"))
        curves.setdefault(name, []).append((float(group[0].length or 0), now.metrics["fact_f1"]))
    columns = ("task", "tokens", "chunks", "n", "T", *SCORES.values(), "points lost")
    return Report(
        "length",
        (Table("Length of the haystack", columns, tuple(lines)),),
        (
            Chart(
                "Fact F1 by length",
                "tokens of the haystack",
                "Fact F1 (own threshold)",
                _lines(curves),
                log_x=True,
            ),
        ),
        tuple(f"{subject_name(group)}: {conditions(group)}" for group in _groups(rows)),
    )


def timing(rows: Sequence[EpisodeRow]) -> Report:
    """Milliseconds of a whole retrieval by length and method (figure 3 c), one question at a time."""
    lines: list[tuple[Cell, ...]] = []
    curves: dict[str, list[tuple[float, float | None]]] = {}
    for name, group, _ in _by_length(rows):
        middle, late = (
            float(np.quantile([row.milliseconds for row in group], share)) for share in (0.5, 0.9)
        )
        lines.append((*_haystack(name, group), round(middle, 1), round(late, 1)))
        curves.setdefault(name, []).append((float(group[0].length or 0), middle))
    columns = ("task and method", "tokens", "chunks", "n", "T", "median ms", "90th percentile ms")
    chart = Chart(
        "Retrieval time by length",
        "tokens of the haystack",
        "median ms a question",
        _lines(curves),
        log_x=True,
        log_y=True,
    )
    note = (
        "One question at a time on the machine that made the rows; embedding the chunks is paid once a"
        " document and not counted, nor is building an index."
    )
    return Report("time", (Table("Retrieval time", columns, tuple(lines)),), (chart,), (note,))


def chunk_size(rows: Sequence[EpisodeRow]) -> Report:
    """Neighbouring chunks joined up to a number of tokens: scores, and how much text the evidence is."""
    lines: list[tuple[Cell, ...]] = []
    curves: dict[str, list[tuple[float, float | None]]] = {}
    groups = sorted(_groups(rows), key=lambda group: (subject_name(group), group[0].chunk_tokens or 0))
    for group in groups:
        row, summary = group[0], summarise(group)
        size, tokens = row.chunk_tokens or "as they are", round(summary.metrics["evidence_tokens"] or 0)
        scores = _scores(summary, *SCORES)
        lines.append((subject_name(group), size, _n_chunks(group), len(group), *scores, tokens))
        if row.chunk_tokens:
            curves.setdefault(subject_name(group), []).append(
                (float(row.chunk_tokens), summary.metrics["fact_f1_oracle_stop"])
            )
    columns = ("task", "tokens a chunk", "chunks", "n", *SCORES.values(), "evidence tokens")
    return Report(
        "chunk-size",
        (Table("Chunk size", columns, tuple(lines)),),
        (Chart("Fact F1 by chunk size", "tokens a chunk", "Fact F1 (oracle stop)", _lines(curves)),),
        tuple(f"{subject_name(group)}: {conditions(group)}" for group in groups),
    )


def _scores(summary: Summary, *names: str) -> list[str | None]:
    """Metrics with their confidence intervals."""
    return [with_interval(summary.metrics[name], summary.intervals[name]) for name in names]


def _n_chunks(group: Group) -> int:
    """Median."""
    return int(np.median([row.n_chunks for row in group]))


def _haystack(name: str, group: Group) -> tuple[Cell, ...]:
    """A line's first cells: the subject, its length in tokens and chunks, questions and budget."""
    row = group[0]
    return name, name_length(row.length or 0), _n_chunks(group), len(group), row.step_budget


def _groups(rows: Sequence[EpisodeRow]) -> list[Group]:
    if not rows:
        raise BadRequest("there are no rows to study; evaluate at least one example")
    return group_rows(rows)


def _by_length(rows: Sequence[EpisodeRow]) -> list[tuple[str, Group, Group]]:
    """(task and agent, rows of one length, rows of its shortest), by name and length. Raises BadRequest."""
    groups = _groups(rows)
    if any(group[0].length is None for group in groups):
        raise BadRequest(
            f"{groups[0][0].task} has contexts of its own, so its length can't be studied; choose a task that"
            " --length goes with"
        )
    ordered = sorted(groups, key=lambda group: (group[0].task, agent_name(group[0]), group[0].length or 0))
    shortest: dict[str, Group] = {}
    out = []
    for group in ordered:
        name = f"{group[0].task}, {agent_name(group[0])}"
        out.append((name, group, shortest.setdefault(name, group)))
    return out


def _lines(curves: dict[str, list[tuple[float, float | None]]]) -> tuple[Line, ...]:
    return tuple(
        Line(name, tuple(x for x, _ in points), tuple(y for _, y in points))
        for name, points in curves.items()
    )
