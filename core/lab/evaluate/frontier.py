"""What evidence of every size costs and brings.

A row holds one question and method with a score for each size, and no texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from core.base.rows import grouped, read_lines


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class FrontierRow:
    """One question through one method at every setting; tuples after `settings` have a value for each."""

    task: str
    id: str
    method: str
    policy: str
    """Name of the RES-RAG policy or Q-RAG agent, width of SPARC; empty for other methods."""
    reader: str
    """Or the language model that answered."""
    n_documents: int
    n_chunks: int
    settings: tuple[float, ...]
    """Largest number of chunks; least cosine or Q of a threshold; depth of SPARC."""
    tokens: tuple[int, ...]
    """Of the evidence, counted by the encoder's tokenizer."""
    chunks: tuple[int, ...]
    f1: tuple[float, ...]
    """Of the answer read from it; an empty one has 0."""
    em: tuple[float, ...]
    recall: tuple[float, ...]
    """Share of the support among the evidence."""
    support_f1: tuple[float, ...]


def read_frontier(path: Path) -> list[FrontierRow]:
    """The rows of a file, gzipped if its name ends in .gz. Raises BadRequest, naming the wrong line."""
    return read_lines(path, FrontierRow, "row of a frontier", "study frontier --rows")


def group_frontier(rows: Sequence[FrontierRow]) -> list[tuple[FrontierRow, ...]]:
    """Rows of one task, method and policy, in order of their first rows."""
    return grouped(rows, lambda row: (row.task, row.method, row.policy, row.reader))
