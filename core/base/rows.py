"""One row per evaluated example, and its lines of JSON.

A row is what a method did WITHOUT a stop threshold, up to its step budget. Stopping earlier can't change the
choices before it, so what any threshold or smaller budget would have done is read off the row. The exception
is planning: a beam looks ahead with its threshold, so its row is the planned path with that threshold.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from core.base.errors import BadRequest, first_problem

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


CHECKED = ConfigDict(extra="forbid", allow_inf_nan=False)
"""Of rows of every kind: they are read from files."""


@dataclass(frozen=True, slots=True, kw_only=True, config=CHECKED)
class EpisodeRow:
    """One example through one method."""

    id: str
    task: str
    split: str
    length: int | None
    """Tokens of the haystack; None where the task has its own contexts."""
    chunk_tokens: int | None = None
    """Neighbouring chunks were joined up to this many tokens; None: as the task cuts them."""
    seed: int
    """Of the choice of examples and of sampling."""
    n_chunks: int
    support: tuple[int, ...]
    """Chunk ids, ascending, at least one."""
    method: str
    checkpoint: str
    """Name, empty for a method without one."""
    fingerprint: str
    """Hash over the checkpoint's settings and weights, empty without one."""
    trained_on: str | None
    """Name of the training set; None for what was not trained."""
    step_budget: int
    """T."""
    stop_threshold: float | None
    """The agent's own; the choices below go on beyond it."""
    temperature: float = 0.0
    beam_width: int = 1
    top_k_actions: int | None = None
    chosen: tuple[int, ...]
    """Chunk ids in order of choice, at most T."""
    q_values: tuple[float, ...]
    """Q of each choice when it was made; a baseline's scores."""
    best_q: tuple[float, ...]
    """Largest Q before each choice, and after the last where chunks were left. Empty for one look."""
    tokens: tuple[int, ...]
    """Of each chosen chunk, special tokens not counted."""
    kept: tuple[int, ...] | None = None
    """Choices that the review left under the agent's own threshold; None where nothing is reviewed."""
    answer_em: float | None = None
    """Exact match of the reader's answer; None where nobody read it, or no answer is known."""
    answer_f1: float | None = None
    """The same in words shared."""
    milliseconds: float
    """Wall clock up to the agent's own stop, without embedding chunks or a full budget's last look."""

    @property
    def key(self) -> tuple[str, str, int | None, int | None, int, str]:
        """What rows of two agents must share to be compared: the same question over the same chunks."""
        return self.task, self.split, self.length, self.chunk_tokens, self.seed, self.id


T = TypeVar("T")


def row_line(row: DataclassInstance) -> str:
    """One line of JSON for a row of any kind, newline included."""
    return json.dumps(asdict(row), ensure_ascii=False, allow_nan=False) + "\n"


def read_rows(path: Path) -> list[EpisodeRow]:
    """The rows of a file, gzipped if its name ends in .gz. Raises BadRequest, naming the wrong line."""
    return read_lines(path, EpisodeRow, "evaluation row", "evaluate --rows")


def read_lines(path: Path, kind: type[T], what: str, made_by: str) -> list[T]:
    """Objects of a file of JSON lines, gzipped or not, each a `what` by `made_by`. Raises BadRequest."""
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
        ) as file:
            return list(_parse(file, path, TypeAdapter(kind), what, made_by))
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise BadRequest(
            f"rows can't be read from {path} ({error}); name a file that {made_by} wrote"
        ) from error


def _parse(lines: Iterable[str], path: Path, kind: TypeAdapter[T], what: str, made_by: str) -> Iterator[T]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield kind.validate_json(line)
        except ValidationError as error:
            raise BadRequest(
                f"line {number} of {path.name} is no {what} ({first_problem(error)}); name a file that"
                f" {made_by} wrote"
            ) from error


def grouped(rows: Iterable[T], key: Callable[[T], Hashable]) -> list[tuple[T, ...]]:
    """Rows of one key together, in order of their first rows."""
    groups: dict[Hashable, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [tuple(members) for members in groups.values()]


def group_rows(rows: Sequence[EpisodeRow]) -> list[tuple[EpisodeRow, ...]]:
    """Evaluations: rows that differ in nothing but the example, in order of their first rows.

    T may be smaller where an example has fewer chunks, so it is no part of what they share.
    """

    def shared(row: EpisodeRow) -> Hashable:
        agent = (row.method, row.fingerprint, row.stop_threshold)
        return (*row.key[:-1], *agent, row.temperature, row.beam_width, row.top_k_actions)

    return grouped(rows, shared)
