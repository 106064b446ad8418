"""Questions with known answers through a reader, a row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic.dataclasses import dataclass

from core.base.batches import batches
from core.base.metrics import answer_accuracy, answer_em, answer_f1, fact_recall
from core.base.rows import CHECKED, grouped, read_lines
from core.lab.tasks.example import Example

if TYPE_CHECKING:
    from core.answer.reader import ExtractiveReader


@dataclass(frozen=True, slots=True, kw_only=True, config=CHECKED)
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


BATCH = 32
"""Questions whose windows share batches."""


def evaluate_answers(
    reader: ExtractiveReader,
    examples: Sequence[Example],
    evidence_of: Mapping[str, Sequence[int]],
    on_progress: Callable[[int, int], None],
    **about: Any,
) -> Iterator[AnswerRow]:
    """A row an example with an answer, in order. `evidence_of`: chunk ids by its id; `about`: of all rows."""
    answerable, done = [example for example in examples if example.answers], 0
    for batch in batches(answerable, BATCH):
        evidence = [sorted(evidence_of[example.id]) for example in batch]
        passages = [
            [example.chunks[chunk_id] for chunk_id in ids]
            for example, ids in zip(batch, evidence, strict=True)
        ]
        answers = reader.read_many([example.question for example in batch], passages)
        for example, ids, answer in zip(batch, evidence, answers, strict=True):
            yield AnswerRow(
                id=example.id,
                task=example.task,
                reader=reader.name,
                fingerprint=reader.fingerprint,
                n_passages=len(ids),
                support_found=fact_recall(ids, example.support),
                empty=not answer.text,
                confidence=round(answer.confidence, 4),
                em=answer_em(answer.text, example.answers),
                f1=answer_f1(answer.text, example.answers),
                accuracy=answer_accuracy(answer.text, example.answers),
                **about,
            )
        done += len(batch)
        on_progress(done, len(answerable))
