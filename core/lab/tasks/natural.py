"""Questions over whole real documents as the reader learns them.

Each comes with the chunks that hold its quotes and others that look like those. Answers are free-form: people
write "two hundred feet" where the document says "a two hundred foot range". What is learned are the words of
a quote that share most with an accepted answer (F1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.base.home import ASSETS
from core.base.metrics import is_covered, plain_answer
from core.base.types import ChunkTable
from core.corpus.bm25 import WordIndex
from core.corpus.words import words_of
from core.ingest import Tokenizer
from core.lab.tasks.data import data_folder
from core.lab.tasks.documents import (
    DocumentFolder,
    DocumentQuestion,
    TextPlace,
    each_document,
    read_document_questions,
)

OWN_QUESTIONS = ASSETS / "questions"
"""Questions written for this project, over documents that the data set trains on."""
NEAREST = 24
"""Chunks of its document that are kept for a question, by BM25."""
WORTH_LEARNING = 0.5
"""F1 of the best words of the quotes, from which on a question is learned."""
LONGEST_SPAN = 40
"""Words of what is learned as an answer, at most."""
_WORD = re.compile(r"\w(?:\S*\w)?")


@dataclass(frozen=True, eq=False, slots=True)
class QuestionInChunks:
    """A question with chunks of its document."""

    question: DocumentQuestion
    texts: Mapping[int, str]
    """By chunk id: the support and the nearest."""
    support: tuple[int, ...]
    """The fewest chunks that hold the quotes, ascending; none for an unanswerable question."""
    nearest: tuple[int, ...]
    """Chunk ids by BM25, the likeliest first; the support may be among them."""
    spans: tuple[tuple[int, int, int], ...]
    """Best words of the quotes, as (chunk id, start, end); none where they are not worth learning."""
    f1: float
    quotes: tuple[tuple[int, int, int], ...]
    """What of the quotes stands in a chunk of the support, as (chunk id, start, end)."""


def questions_in_chunks(
    questions: Iterable[DocumentQuestion], documents: DocumentFolder, tokenizer: Tokenizer
) -> Iterator[QuestionInChunks]:
    """A document's questions whose quotes stand there exactly once. Raises BadRequest, BadDocument."""
    for workspace, placed in each_document(questions, documents, tokenizer):
        table, texts = workspace.tables[0], workspace.texts()
        words = WordIndex(texts)
        for question, places in placed:
            support = holding_chunks(table, places)
            order = np.argsort(-words.scores(words_of(question.question)), kind="stable")
            nearest = tuple(order[:NEAREST].tolist())
            quotes = tuple(sorted(_within(table, support, places)))
            f1, spans = _best_spans(question.answers, {row: texts[row] for row in support}, quotes)
            passages = {row: texts[row] for row in sorted({*support, *nearest})}
            yield QuestionInChunks(
                question, passages, support, nearest, spans if f1 >= WORTH_LEARNING else (), f1, quotes
            )


def holding_chunks(table: ChunkTable, places: Sequence[TextPlace]) -> tuple[int, ...]:
    """The fewest chunks that hold enough of each place, ascending."""
    needed: set[int] = set()
    for first, end in places:
        shared = np.minimum(table.end, end) - np.maximum(table.start, first)
        taken: list[int] = []
        for chunk_id in np.argsort(-shared, kind="stable").tolist():
            if shared[chunk_id] <= 0 or is_covered(
                (first, end), [(int(table.start[i]), int(table.end[i])) for i in taken]
            ):
                break
            taken.append(chunk_id)
        needed.update(taken)
    return tuple(sorted(needed))


def _within(
    table: ChunkTable, support: Sequence[int], places: Sequence[TextPlace]
) -> Iterator[tuple[int, int, int]]:
    for first, end in places:
        for row in support:
            start, stop = int(table.start[row]), int(table.end[row])
            if max(first, start) < min(end, stop):
                yield row, max(first, start) - start, min(end, stop) - start


def _best_spans(
    answers: Sequence[str], texts: Mapping[int, str], quotes: Sequence[tuple[int, int, int]]
) -> tuple[float, tuple[tuple[int, int, int], ...]]:
    """F1 and every place of the words of quotes that share most with an answer."""
    best = 0.0
    spans: set[tuple[int, int, int]] = set()
    for row, first, end in quotes:
        for answer in answers:
            for f1, start, stop in shared_spans(texts[row][first:end], answer):
                if f1 > best + 1e-9:
                    best, spans = f1, set()
                if f1 > best - 1e-9:
                    spans.add((row, first + start, first + stop))
    return best, tuple(sorted(spans))


def shared_spans(text: str, answer: str) -> list[tuple[float, int, int]]:
    """(F1, start, end) of the words that share most with an answer, all such places; none where none is
    shared.

    >>> shared_spans("probably a two hundred foot range .", "two hundred feet")
    [(0.8, 11, 22)]
    """
    answer_counts = Counter(plain_answer(answer).split())
    words = [(plain_answer(match[0]).split(), *match.span()) for match in _WORD.finditer(text)]
    best: list[tuple[float, int, int]] = []
    for first, (word, start, _) in enumerate(words):
        if not answer_counts.keys() & set(word):
            continue
        left, n_said, n_shared = answer_counts.copy(), 0, 0
        for parts, _, end in words[first : first + LONGEST_SPAN]:
            n_said += len(parts)
            hit = [part for part in parts if left[part] > 0]
            left.subtract(hit)
            n_shared += len(hit)
            f1 = 2 * n_shared / (n_said + answer_counts.total())
            if hit and (not best or f1 >= best[0][0]):
                best = [(f1, start, end)] if not best or f1 > best[0][0] else [*best, (f1, start, end)]
    return best


def training_questions(data: Path | None) -> tuple[list[DocumentQuestion], DocumentFolder]:
    """Questions of `natural` to train on, the project's own, and where all those lie. Raises BadRequest."""
    folder = data_folder(data)
    path = folder / "natural" / "train.jsonl.gz"
    questions = read_document_questions(path)
    names = {question.document for question in questions}
    for file in sorted(OWN_QUESTIONS.glob("*.jsonl.gz")):
        questions += [own for own in read_document_questions(file) if own.document in names]
    return questions, DocumentFolder(folder, path)
