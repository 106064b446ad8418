"""Questions about whole documents: rows, and metrics over rows.

A quote counts as found when the evidence holds 60 % of it (`core.base.metrics.COVERED`), however the document
is cut. Passage recall and completeness are over questions that have quotes; what was not measured is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic.dataclasses import dataclass

from core.answer.protocol import State
from core.base.metrics import RIGHT_FROM, answer_em, answer_f1
from core.base.rows import CHECKED, grouped, read_lines
from core.base.statistics import interval, mean

ALL = "all"
GOLD = "gold"
"""The best any method can do: the fewest chunks that hold the quotes."""


@dataclass(frozen=True, slots=True, kw_only=True, config=CHECKED)
class DocumentRow:
    """One question through one method."""

    id: str
    kind: str
    document: str
    method: str
    """As it was asked for: "auto" stays "auto"."""
    ran: str
    """The method itself."""
    checkpoint: str
    """Whose vectors were searched, empty for a method without any."""
    k: int
    """Most chunks, as few as the document has."""
    stops: bool
    """Agents were free to stop by themselves."""
    covered: tuple[bool, ...]
    """One a quote; none for a question without."""
    n_chunks: int
    chunk_ids: tuple[int, ...]
    """The evidence in order of choice, without what was taken back."""
    scores: tuple[float, ...]
    """Of each when it was chosen."""
    evidence: tuple[tuple[int, int], ...]
    """Where each begins and ends in the document's text."""
    stopped: bool
    """The method found the rest worth too little."""
    answer: str | None
    """The best wording, shown or not; None where no answer is likelier."""
    answer_confidence: float
    """That the answer is right, or that there is none."""
    answer_reliable: bool
    """It is shown as an answer, more than a guess."""
    answers: tuple[str, ...]
    milliseconds: float
    """Of retrieval, vectors and indexes being there."""
    found_at: tuple[int | None, ...] = ()
    """Chunks in order of choice until each quote is covered, None where it is not; empty in older rows."""
    answer_state: State | None = None
    """What a reader is told; None in older rows."""
    first_lead: float | None = None
    """See `completeness.lead`, at the first look; None in older rows."""
    completeness: float | None = None
    """How likely the evidence was said to hold all that the question needs."""

    def to_json(self) -> dict[str, Any]:
        """The line of `evaluate-documents --json`."""
        asked = ("id", "kind", "document", "method", "checkpoint")
        found = ("covered", "n_chunks", "evidence", "stopped")
        answer = ("answer", "answer_state", "answer_confidence", "answer_reliable")
        values = asdict(self)
        return {name: values[name] for name in (*asked, *found, *answer, "completeness")}


def read_document_rows(path: Path) -> list[DocumentRow]:
    """The rows of a file, gzipped if its name ends in .gz. Raises BadRequest, naming the wrong line."""
    return read_lines(path, DocumentRow, "row of a question about a document", "evaluate-documents --rows")


DOCUMENT_METRICS: dict[str, Callable[[DocumentRow], float | None]] = {
    "passage_recall": lambda row: sum(row.covered) / len(row.covered) if row.covered else None,
    "complete": lambda row: float(all(row.covered)) if row.covered else None,
    "no_evidence": lambda row: float(not row.evidence),
    "no_answer": lambda row: float(row.answer is None or row.answer_state == "absent"),
    "answer_em": lambda row: answer_em(row.answer or "", row.answers) if row.answers else None,
    "answer_f1": lambda row: answer_f1(row.answer or "", row.answers) if row.answers else None,
    "reliable": lambda row: float(row.answer is not None and row.answer_reliable),
    "reliable_right": lambda row: (
        float(answer_f1(row.answer, row.answers) >= RIGHT_FROM)
        if row.answers and row.answer and row.answer_reliable
        else None
    ),
    "chunks": lambda row: float(len(row.evidence)),
    "stopped": lambda row: float(row.stopped),
    "completeness": lambda row: row.completeness,
    "milliseconds": lambda row: row.milliseconds,
}
"""Of one row; None where it can't be measured. no_answer: ended without evidence, or with evidence that the
reader finds no answer in: right for an unanswerable question, the cost of that for the others. reliable: an
answer is shown as one; reliable_right: of those of questions with a known answer, the share that shares half
of its words with it. completeness: as it was said, to be compared with complete.
"""
WITH_INTERVALS = ("passage_recall", "complete", "no_answer")


def summarise_documents(rows: Sequence[DocumentRow]) -> dict[str, dict[str, dict[str, Any]]]:
    """By method and kind, "all" last: n, n_with_quotes, the mean of every metric, some 95 % intervals."""
    summary = {}
    for own in grouped(rows, lambda row: row.method):
        kinds = {group[0].kind: _means(group) for group in grouped(own, lambda row: row.kind)}
        summary[own[0].method] = kinds | {ALL: _means(own)}
    return summary


def _means(rows: Sequence[DocumentRow]) -> dict[str, Any]:
    values = {name: [metric(row) for row in rows] for name, metric in DOCUMENT_METRICS.items()}
    means = {name: mean(column) for name, column in values.items()}
    ends = {name: interval(values[name]) for name in WITH_INTERVALS}
    return {
        "n": len(rows),
        "n_with_quotes": sum(bool(row.covered) for row in rows),
        **{name: None if value is None else round(value, 6) for name, value in means.items()},
        "intervals": {
            name: None if pair is None else [round(end, 6) for end in pair] for name, pair in ends.items()
        },
    }
