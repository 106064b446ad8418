"""Rows of an evaluation with the reader's answers.

The reader gets what the method would hand on, after stop and review. A question without a known answer is not
scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from core.answer.evidence import answer_evidence
from core.answer.protocol import Reader
from core.base.config import SETS
from core.base.metrics import answer_em, answer_f1
from core.base.rows import EpisodeRow
from core.lab.evaluate.outcomes import own_evidence
from core.lab.tasks.example import Example

BATCH = 32
"""Questions whose windows share batches."""


def with_answers(
    rows: Iterable[EpisodeRow], examples: Iterable[Example], reader: Reader
) -> Iterator[EpisodeRow]:
    """The rows in order, with answer EM and F1 where the answer is known. `examples`: each row's own."""
    pairs = zip(rows, examples, strict=True)
    while batch := list(islice(pairs, BATCH)):
        answerable = [(row, example) for row, example in batch if example.answers]
        evidence = [
            {chunk_id: example.chunks[chunk_id] for chunk_id in own_evidence(row)}
            for row, example in answerable
        ]
        found = [() if row.method in SETS else own_evidence(row) for row, _ in answerable]
        questions = [example.question for _, example in answerable]
        answers = iter(answer_evidence(reader, questions, evidence, found))
        for row, example in batch:
            if not example.answers:
                yield row
                continue
            text = next(answers).text
            yield replace(
                row, answer_em=answer_em(text, example.answers), answer_f1=answer_f1(text, example.answers)
            )
