"""SPARC and its baselines over pooled corpora.

Scores at equal evidence, what width and depth bring, second-round searches, wrong stops: tables 1, 5, 6 and 7
and figures 3, 5 and 7 of the SPARC-RAG paper, as far as rows can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from core.base.metrics import fact_recall
from core.base.rows import grouped
from core.base.statistics import mean
from core.lab.sparc.baselines import MAX_PARAGRAPHS
from core.lab.sparc.evaluation import SparcRow, group_sparc
from core.lab.studies.tables import check_groups, filled, lines_of, paired, shown_mean
from core.methods.sparc.retriever import SPARC
from core.views.charts import Cell, Chart, Report, Table, mean_with_interval, with_p

Group = tuple[SparcRow, ...]

SCORES: dict[str, Callable[[SparcRow], float | None]] = {
    "paragraph recall": lambda row: fact_recall(row.evidence, row.support),
    "EM": lambda row: row.em,
    "F1": lambda row: row.f1,
    "accuracy": lambda row: row.accuracy,
}


def sparc(rows: Sequence[SparcRow]) -> Report:
    """All tables; others are tested against a task's first method. Raises BadRequest for no rows."""
    groups = group_sparc(rows)
    check_groups(groups, "evaluate at least one question")
    name = partial(_name, several=len({group[0].agents for group in groups}) > 1)
    deepest, named = _deepest(groups), {"method": name}
    second_round = filter(_second_round, deepest)
    asking = [group for group in groups if any(row.calls for row in group)]
    tables = [
        _scores(groups, name),
        filled("Recall of the second round's searches alone", _SECOND_ROUND | named, second_round),
        filled("Stops", _STOPS | named, deepest),
        filled("The language model's replies", _REPLIES | named, asking),
    ]
    notes = dict.fromkeys(map(_conditions, groups))
    return Report(
        "sparc", tuple(table for table in tables if table.rows), tuple(_charts(groups, name)), tuple(notes)
    )


def _name(group: Group, *, several: bool = False) -> str:
    """`several`: the study compares who decided and answered, too."""
    row = group[0]
    how = "+".join(row.strategies)
    name = row.method if row.method == "direct" else f"{row.method}, {how}"
    if row.method == SPARC:
        name = f"SPARC, {how}" + (", rewritten first round" if row.first_round == "rewrite" else "")
    return f"{name}, by {row.agents}" if several else name


def _conditions(group: Group) -> str:
    row = group[0]
    asked = (
        f"{row.agents}, agent {row.checkpoint}"
        if "qrag" in {name for row in group for name in row.strategies}
        else row.agents
    )
    early = sum(row.stop_reason in ("failed", "tokens", "calls") for row in group)
    if early:
        asked += (
            f"; {early} of the questions ended early, as a language model failed or a budget was used up, and"
            " are scored as they stood"
        )
    more = f" (IRCoT's {MAX_PARAGRAPHS})" if any(row.method == "ircot" for row in group) else ""
    return (
        f"{row.task}: n = {len(group)} questions of the {row.split} part over {row.n_chunks:,} paragraphs, at"
        f" most {row.k} of them as evidence{more}; {asked}."
    )


def _scores(groups: Sequence[Group], name: Callable[[Group], str]) -> Table:
    def against_first(score: str, group: Group) -> str | None:
        first = next(other for other in groups if other[0].task == group[0].task)
        if group is first:
            return None
        return with_p(paired(group, first, lambda row: row.question, SCORES[score]))

    columns: dict[str, Callable[[Group], Cell]] = {
        "task": lambda group: group[0].task,
        "method": name,
        "W": lambda group: group[0].width if group[0].method in (SPARC, "parallel") else None,
        "D": lambda group: group[0].depth if group[0].method == SPARC else None,
        "n": len,
    }
    for title, score in SCORES.items():
        columns[title] = partial(_mean_score, score)
    columns |= {
        "recall against the first line": partial(against_first, "paragraph recall"),
        "F1 against the first line": partial(against_first, "F1"),
        "chunks": lambda group: shown_mean((float(len(row.evidence)) for row in group), 1),
        "evidence tokens": lambda group: shown_mean((float(row.evidence_tokens) for row in group), 0),
        "LLM tokens": lambda group: shown_mean((float(row.llm_tokens) for row in group), 0),
        "seconds": lambda group: shown_mean((row.seconds for row in group), 2),
        "Jaccard": lambda group: shown_mean((row.overlap for row in group), 2),
    }
    return filled("Methods at equal evidence", columns, groups)


def _mean_score(score: Callable[[SparcRow], float | None], group: Group) -> str | None:
    return mean_with_interval([score(row) for row in group])


def _second_round(group: Group) -> list[float]:
    """Recall of what the second round's searches found, on questions that came so far (table 5)."""
    return [fact_recall(row.second_round, row.support) for row in group if row.second_round is not None]


_KIND: dict[str, Callable[[Group], Cell]] = {
    "task": lambda group: group[0].task,
    "method": _name,
    "W": lambda group: group[0].width if group[0].method == SPARC else None,
}
_SECOND_ROUND = _KIND | {
    "questions that came so far": lambda group: len(_second_round(group)),
    "recall": lambda group: mean_with_interval(_second_round(group)),
}
_STOPS = _KIND | {
    "D": lambda group: group[0].depth,
    "accepted before the depth was used up": lambda group: mean_with_interval(
        [float(row.stop_reason == "accepted") for row in group]
    ),
    "of these wrong": lambda group: mean_with_interval(
        [1.0 - row.accuracy for row in group if row.stop_reason == "accepted"]
    ),
    "mean rounds": lambda group: shown_mean((float(row.rounds) for row in group), 2),
}
"""How often an accepted answer was wrong, and how deep runs went (figure 7, table 3)."""


def _a_question(count: Callable[[SparcRow], int]) -> Callable[[Group], Cell]:
    return lambda group: shown_mean((float(count(row)) for row in group), 2)


_REPLIES = _KIND | {
    "D": lambda group: group[0].depth if group[0].method == SPARC else None,
    "calls a question": _a_question(lambda row: row.calls),
    "made again": _a_question(lambda row: row.retries),
    "never fitting": _a_question(lambda row: row.unfit),
    "no reply": _a_question(lambda row: row.silent),
    "no answer in the end": lambda group: mean_with_interval([float(row.empty) for row in group]),
}


def _deepest(groups: Sequence[Group]) -> list[Group]:
    """SPARC's evaluations, of each kind the one with the largest depth."""
    kinds = grouped(
        (group for group in groups if group[0].method == SPARC),
        lambda group: (group[0].task, _name(group), group[0].width, group[0].agents),
    )
    return [max(kind, key=lambda group: group[0].depth) for kind in kinds]


def _charts(groups: Sequence[Group], name: Callable[[Group], str]) -> list[Chart]:
    """F1 and recall against cost: a language model's tokens, else seconds (figures 3 and 5)."""
    charts = []
    for own in grouped(groups, lambda group: group[0].task):
        with_model = any(row.llm_tokens for group in own for row in group)
        unit = "tokens of the language model" if with_model else "seconds a question"
        for title, score in (("F1", SCORES["F1"]), ("paragraph recall", SCORES["paragraph recall"])):
            points = []
            for group in own:
                cost = mean(float(row.llm_tokens) if with_model else row.seconds for row in group) or 0.0
                width = f", W = {group[0].width}" if group[0].method == SPARC else ""
                points.append((name(group) + width, cost, mean(score(row) for row in group)))
            lines = tuple(replace(line, points_only=len(line.x) == 1) for line in lines_of(points))
            charts.append(Chart(f"{title} against cost, {own[0][0].task}", unit, title, lines))
    return charts
