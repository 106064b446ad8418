"""One row per question that the reader answered.

Rows become lines of JSON here. A row holds scores, not texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from core.base.rows import grouped, read_lines


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class AnswerRow:
    """One question over one set of evidence."""

    id: str
    task: str
    split: str
    length: int | None
    """Tokens of the haystack; None where the task has its own contexts."""
    seed: int
    reader: str
    fingerprint: str
    """Hash over the reader's settings and weights."""
    evidence: str
    """"gold" for the support, else the method that retrieved it, with its checkpoint where it has one."""
    n_passages: int
    support_found: float
    """Share of the support that is among the evidence."""
    empty: bool
    """The reader said that the evidence holds no answer."""
    confidence: float
    em: float
    f1: float
    accuracy: float
    """The answer contains an accepted one."""


def read_answers(path: Path) -> list[AnswerRow]:
    """The rows of a file, gzipped if its name ends in .gz. Raises BadRequest, naming the wrong line."""
    return read_lines(path, AnswerRow, "answer row", "study answers --rows")


def group_answers(rows: Sequence[AnswerRow]) -> list[tuple[AnswerRow, ...]]:
    """Rows that differ in nothing but the question, in order of their first rows."""
    return grouped(
        rows, lambda row: (row.task, row.split, row.length, row.seed, row.fingerprint, row.evidence)
    )
