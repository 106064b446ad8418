"""SPARC and its baselines over pooled corpora.

Scores at equal evidence, what width and depth bring, second-round searches, wrong stops. Tables 1, 5, 6 and 7
and figures 3, 5 and 7 of the SPARC-RAG paper, as far as rows can tell; the same functions serve runs with and
without a language model. Pure functions of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.base.errors import BadRequest
from core.base.metrics import fact_recall
from core.base.statistics import mean, paired_test
from core.lab.sparc.baselines import MAX_PARAGRAPHS
from core.lab.sparc.rows import SparcRow, group_sparc
from core.methods.sparc.retriever import SPARC
from core.views.charts import Cell, Chart, Line, Report, Table, mean_with_interval, with_p

Group = tuple[SparcRow, ...]

SCORES: dict[str, Callable[[SparcRow], float | None]] = {
    "paragraph recall": lambda row: fact_recall(row.evidence, row.support),
    "EM": lambda row: row.em,
    "F1": lambda row: row.f1,
    "accuracy": lambda row: row.accuracy,
}
"""With intervals."""
CORRECT = "accuracy"
"""By what an accepted answer counts as right."""


def sparc(rows: Sequence[SparcRow]) -> Report:
    """All tables; others are tested against a task's first method. Raises BadRequest for no rows."""
    groups = group_sparc(rows)
    if not groups:
        raise BadRequest("there are no rows to study; evaluate at least one question")
    tables = [_scores(groups), *_grown(groups)]
    if stops := _acceptance(groups):
        tables.append(stops)
    return Report(
        "sparc", tuple(tables), tuple(_charts(groups)), tuple(dict.fromkeys(map(_conditions, groups)))
    )


def _name(group: Group) -> str:
    row = group[0]
    how = "+".join(row.strategies)
    if row.method == SPARC:
        return f"SPARC, {how}" + (", rewritten first round" if row.first_round == "rewrite" else "")
    return f"{row.method}, {how}"


def _conditions(group: Group) -> str:
    row = group[0]
    asked = (
        f"{row.agents}, agent {row.checkpoint}"
        if "qrag" in {name for one in group for name in one.strategies}
        else row.agents
    )
    early = sum(one.stop_reason in ("failed", "tokens", "calls") for one in group)
    if early:
        asked += (
            f"; {early} of the questions ended early, as a language model failed or a budget was used up, and"
            " are scored as they stood"
        )
    more = f" (IRCoT's {MAX_PARAGRAPHS})" if any(one.method == "ircot" for one in group) else ""
    return (
        f"{row.task}: n = {len(group)} questions of the {row.split} part over {row.n_chunks:,} paragraphs, at"
        f" most {row.k} of them as evidence{more}; {asked}."
    )


def _scores(groups: Sequence[Group]) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for group in groups:
        row, first = group[0], next(other for other in groups if other[0].task == group[0].task)
        scores = [[score(one) for one in group] for score in SCORES.values()]
        is_sparc = row.method == SPARC
        lines.append(
            (
                row.task,
                _name(group),
                row.width if is_sparc or row.method == "parallel" else None,
                row.depth if is_sparc else None,
                len(group),
                *(mean_with_interval(values) for values in scores),
                None if group is first else _difference(group, first),
                _shown(mean(float(len(one.evidence)) for one in group), 1),
                _shown(mean(float(one.evidence_tokens) for one in group), 0),
                _shown(mean(float(one.llm_tokens) for one in group), 0),
                _shown(mean(one.seconds for one in group), 2),
                _shown(mean(one.overlap for one in group), 2),
            )
        )
    columns = (
        "task",
        "method",
        "W",
        "D",
        "n",
        *SCORES,
        "recall against the first line",
        "chunks",
        "evidence tokens",
        "LLM tokens",
        "seconds",
        "Jaccard",
    )
    return Table("Methods at equal evidence", columns, tuple(lines))


def _shown(value: float | None, digits: int) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


def _difference(group: Group, first: Group) -> str | None:
    recall = SCORES["paragraph recall"]
    theirs = {row.question: recall(row) for row in first}
    common = [row for row in group if row.question in theirs]
    test = paired_test([recall(row) for row in common], [theirs[row.question] for row in common])
    return with_p(test)


def _grown(groups: Sequence[Group]) -> list[Table]:
    """What the second round brought, on questions that came so far (table 5)."""
    lines: list[tuple[Cell, ...]] = []
    for group in _deepest(groups):
        reached = [row for row in group if row.second_round is not None]
        if not reached:
            continue
        alone = [fact_recall(row.second_round or (), row.support) for row in reached]
        lines.append(
            (
                group[0].task,
                _name(group),
                group[0].width,
                len(reached),
                mean_with_interval(alone),
            )
        )
    table = Table(
        "Recall of the second round's searches alone",
        ("task", "method", "W", "questions that came so far", "recall"),
        tuple(lines),
    )
    return [table] if lines else []


def _acceptance(groups: Sequence[Group]) -> Table | None:
    """How often an accepted answer was wrong, and how deep runs went (figure 7, table 3)."""
    lines: list[tuple[Cell, ...]] = []
    for group in _deepest(groups):
        accepted = [row for row in group if row.stop_reason == "accepted"]
        wrong = [1.0 - SCORES[CORRECT](row) for row in accepted]  # type: ignore[operator]  # accuracy is always measured
        share = [float(row.stop_reason == "accepted") for row in group]
        lines.append(
            (
                group[0].task,
                _name(group),
                group[0].width,
                group[0].depth,
                mean_with_interval(share),
                mean_with_interval(wrong),
                _shown(mean(float(row.rounds) for row in group), 2),
            )
        )
    columns = (
        "task",
        "method",
        "W",
        "D",
        "accepted before the depth was used up",
        "of these wrong",
        "mean rounds",
    )
    return Table("Stops", columns, tuple(lines)) if lines else None


def _deepest(groups: Sequence[Group]) -> list[Group]:
    """SPARC's evaluations, of each kind the one with the largest depth."""
    kept: dict[tuple[object, ...], Group] = {}
    for group in (group for group in groups if group[0].method == SPARC):
        key = (group[0].task, _name(group), group[0].width, group[0].agents)
        if key not in kept or kept[key][0].depth < group[0].depth:
            kept[key] = group
    return list(kept.values())


def _charts(groups: Sequence[Group]) -> list[Chart]:
    """F1 and recall against cost: a language model's tokens, else seconds (figures 3 and 5)."""
    charts = []
    for task in dict.fromkeys(group[0].task for group in groups):
        own = [group for group in groups if group[0].task == task]
        with_model = any(row.llm_tokens for group in own for row in group)
        unit = "tokens of the language model" if with_model else "seconds a question"
        for title, score in (("F1", SCORES["F1"]), ("paragraph recall", SCORES["paragraph recall"])):
            lines: dict[str, list[tuple[float, float | None]]] = {}
            for group in own:
                cost = mean(float(row.llm_tokens) if with_model else row.seconds for row in group) or 0.0
                name = f"{_name(group)}, W = {group[0].width}" if group[0].method == SPARC else _name(group)
                lines.setdefault(name, []).append((cost, mean(score(row) for row in group)))
            series = tuple(
                Line(
                    name,
                    tuple(x for x, _ in points),
                    tuple(y for _, y in points),
                    points_only=len(points) == 1,
                )
                for name, points in lines.items()
            )
            charts.append(Chart(f"{title} against cost, {task}", unit, title, series))
    return charts
