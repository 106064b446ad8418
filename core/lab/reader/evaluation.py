"""Questions with known answers through a reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from core.answer.protocol import Answer
from core.answer.reader import ExtractiveReader
from core.base.metrics import answer_accuracy, answer_em, answer_f1, fact_recall
from core.lab.reader.rows import AnswerRow
from core.lab.tasks.example import Example

BATCH = 32
"""Questions whose windows share batches."""


def gold_evidence(example: Example) -> tuple[int, ...]:
    """The chunks that decide a question."""
    return example.support


def evaluate_answers(
    reader: ExtractiveReader,
    examples: Sequence[Example],
    evidence_of: Callable[[Example], Sequence[int]],
    on_progress: Callable[[int, int], None],
    **about: Any,
) -> Iterator[AnswerRow]:
    """A row an example that has an answer, in order. `evidence_of`: chunk ids; `about`: fields of all."""
    answerable = [example for example in examples if example.answers]
    for done in range(0, len(answerable), BATCH):
        batch = answerable[done : done + BATCH]
        evidence = [sorted(evidence_of(example)) for example in batch]
        passages = [
            [example.chunks[chunk_id] for chunk_id in ids]
            for example, ids in zip(batch, evidence, strict=True)
        ]
        answers = reader.read_many([example.question for example in batch], passages)
        for example, ids, answer in zip(batch, evidence, answers, strict=True):
            yield _row(reader, example, ids, answer, about)
        on_progress(done + len(batch), len(answerable))


def _row(
    reader: ExtractiveReader, example: Example, evidence: Sequence[int], answer: Answer, about: dict[str, Any]
) -> AnswerRow:
    return AnswerRow(
        id=example.id,
        task=example.task,
        reader=reader.name,
        fingerprint=reader.fingerprint,
        n_passages=len(evidence),
        support_found=fact_recall(evidence, example.support),
        empty=not answer.text,
        confidence=round(answer.confidence, 4),
        em=answer_em(answer.text, example.answers),
        f1=answer_f1(answer.text, example.answers),
        accuracy=answer_accuracy(answer.text, example.answers),
        **about,
    )
