"""Rows into means with intervals, and two agents' rows into paired tests.

Fact F1 comes four times: under the agent's own threshold (Q-RAG tables 4 and 5), after its review, cut by an
oracle when all support is in (table 3), and without any stop (table 2, where T is fixed).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.base.errors import BadRequest
from core.base.metrics import fact_em, fact_f1, fact_precision, fact_recall, false_positive_rate
from core.base.rows import EpisodeRow
from core.base.statistics import PairedTest, interval, mean, paired_test
from core.lab.evaluate.outcomes import completed_at, oracle_steps, own_steps, stop_class


def _own(row: EpisodeRow) -> tuple[int, ...]:
    return row.chosen[: own_steps(row)]


def _tokens(row: EpisodeRow, evidence: tuple[int, ...]) -> float:
    pairs = zip(row.chosen, row.tokens, strict=True)
    return float(sum(tokens for chunk_id, tokens in pairs if chunk_id in evidence))


METRICS: dict[str, Callable[[EpisodeRow], float | None]] = {
    "fact_em": lambda row: fact_em(_own(row), row.support),
    "fact_f1": lambda row: fact_f1(_own(row), row.support),
    "exact": lambda row: float(set(_own(row)) == set(row.support)),
    "fact_em_reviewed": lambda row: None if row.kept is None else fact_em(row.kept, row.support),
    "fact_f1_reviewed": lambda row: None if row.kept is None else fact_f1(row.kept, row.support),
    "exact_reviewed": lambda row: None if row.kept is None else float(set(row.kept) == set(row.support)),
    "fact_f1_oracle_stop": lambda row: fact_f1(row.chosen[: oracle_steps(row)], row.support),
    "fact_recall": lambda row: fact_recall(_own(row), row.support),
    "fact_precision": lambda row: fact_precision(_own(row), row.support),
    "false_positive_rate": lambda row: false_positive_rate(_own(row), row.support, row.n_chunks),
    "fact_em_no_stop": lambda row: fact_em(row.chosen, row.support),
    "fact_f1_no_stop": lambda row: fact_f1(row.chosen, row.support),
    "answer_em": lambda row: row.answer_em,
    "answer_f1": lambda row: row.answer_f1,
    "steps": lambda row: float(own_steps(row)),
    "steps_to_completion": lambda row: None if (earliest := completed_at(row)) is None else float(earliest),
    "evidence_tokens": lambda row: _tokens(row, _own(row)),
    "evidence_tokens_reviewed": lambda row: None if row.kept is None else _tokens(row, row.kept),
    "stopped_perfectly": lambda row: float(stop_class(row, row.stop_threshold) == "perfect"),
    "stopped_early": lambda row: float(stop_class(row, row.stop_threshold) == "early"),
    "stopped_late": lambda row: float(stop_class(row, row.stop_threshold) == "late"),
    "never_complete": lambda row: float(stop_class(row, row.stop_threshold) == "never"),
    "milliseconds": lambda row: row.milliseconds,
}
"""Of one row; None where it can't be measured. Shares of stops are over all episodes.

Answers are the reader's, from the evidence under the agent's own stop and review.
"""

COMPARED = (
    "fact_em",
    "fact_f1",
    "fact_em_reviewed",
    "fact_f1_reviewed",
    "fact_f1_oracle_stop",
    "fact_recall",
    "fact_em_no_stop",
    "fact_f1_no_stop",
    "steps",
    "stopped_perfectly",
)


@dataclass(frozen=True)
class Summary:
    """An evaluation in numbers. None: not measured."""

    n: int
    metrics: dict[str, float | None]
    intervals: dict[str, tuple[float, float] | None]
    """95 % confidence intervals of the means, see `core.base.statistics.interval`."""


def summarise(rows: Sequence[EpisodeRow]) -> Summary:
    """Means over rows, each row counting once."""
    values = {name: [metric(row) for row in rows] for name, metric in METRICS.items()}
    return Summary(
        len(rows),
        {name: mean(column) for name, column in values.items()},
        {name: interval(column) for name, column in values.items()},
    )


@dataclass(frozen=True)
class Comparison:
    """First minus second, on the questions that both answered."""

    n: int
    n_left_out: int
    tests: dict[str, PairedTest | None]


def compare(first: Sequence[EpisodeRow], second: Sequence[EpisodeRow]) -> Comparison:
    """Paired tests over the same questions. Raises BadRequest for none, or one twice on a side."""
    ours, theirs = _by_key(first), _by_key(second)
    common = [key for key in ours if key in theirs]
    if not common:
        raise BadRequest(
            "the two evaluations have no question in common; use the same task, split, length and seed for"
            " both"
        )
    tests = {}
    for name in COMPARED:
        measured = ([METRICS[name](rows[key]) for key in common] for rows in (ours, theirs))
        tests[name] = paired_test(*measured)
    return Comparison(len(common), len(ours) + len(theirs) - 2 * len(common), tests)


def _by_key(rows: Sequence[EpisodeRow]) -> dict[tuple[object, ...], EpisodeRow]:
    by_key: dict[tuple[object, ...], EpisodeRow] = {row.key: row for row in rows}
    if len(by_key) < len(rows):
        raise BadRequest(
            f"{len(rows) - len(by_key)} questions stand more than once on one side of the comparison; give"
            " the rows of one evaluation"
        )
    return by_key
