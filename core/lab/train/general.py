"""The mixture behind *general*: questions over whole real documents.

A question's support are the chunks that hold its quotes. Its distractors are the chunks of the same document
that the untrained encoder and BM25 in one sum rank highest, a few of them drawn anew each time; the chunks of
the other questions of an update join in, for they are embedded anyway. Documents that validate are never
trained on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from core.base.errors import BadRequest
from core.corpus.bm25 import WordIndex
from core.corpus.opening import vector_store
from core.corpus.words import words_of
from core.encode.cache import embed_chunks
from core.encode.encoder import DualEncoder, load_encoder
from core.encode.tokens import FastTokenizer
from core.lab.tasks.data import data_folder
from core.lab.tasks.documents import DocumentFolder, DocumentQuestion, each_document, read_document_questions
from core.lab.tasks.example import Example
from core.lab.tasks.natural import training_questions

TASK = "natural"
DISTRACTORS = 2
"""Of a question at each draw."""
WORD_WEIGHT = 0.3
"""Of BM25 beside the cosine, where distractors are ranked: what an untrained encoder finds most with."""
HARDEST = 24
"""Chunks of its document that distractors are drawn from, and all of those in validation."""


@dataclass(frozen=True, eq=False, slots=True)
class _QuestionTexts:
    """A question with texts of its document."""

    question: DocumentQuestion
    support: tuple[str, ...]
    distractors: tuple[str, ...]
    """The likeliest to be mistaken first."""
    word_shares: dict[str, float]
    """Of these texts: BM25 of the question, divided by its largest over the document."""


class GeneralMixture:
    """See the module; a `Mixture`."""

    name = "general"

    def __init__(self, data: Path | None, tokenizer: FastTokenizer) -> None:
        """Raises BadRequest when the data sets aren't there."""
        questions, documents = training_questions(data)
        validating = read_document_questions(data_folder(data) / "natural" / "validation.jsonl.gz")
        if shared := {question.document for question in validating} & {q.document for q in questions}:
            raise BadRequest(
                f"{min(shared)} is among the documents to train on and those that validate; take it out of"
                " one of the two"
            )
        plain = load_encoder("base")
        self._train = list(_questions_with_texts(questions, documents, tokenizer, plain))
        self._held = list(_questions_with_texts(validating, documents, tokenizer, plain))
        Random("order of validation").shuffle(self._held)

    def draw(self, rng: Random, n: int) -> list[Example]:
        if n > len(self._train):
            raise BadRequest(
                f"{n} questions are drawn for an update, and {self.name} has {len(self._train)} to train on;"
                " choose fewer for an update, or give it more"
            )
        drawn = rng.sample(self._train, n)
        own = [
            [*asked.support, *rng.sample(asked.distractors, min(DISTRACTORS, len(asked.distractors)))]
            for asked in drawn
        ]
        everything = dict.fromkeys(text for texts in own for text in texts)
        return [
            _example(asked, [*texts, *(text for text in everything if text not in asked.support)], rng)
            for asked, texts in zip(drawn, own, strict=True)
        ]

    def validation(self, n: int) -> list[Example]:
        rng = Random("places of validation")
        return [_example(asked, [*asked.support, *asked.distractors], rng) for asked in self._held[:n]]

    def describe(self) -> dict[str, Any]:
        documents = {asked.question.document for asked in self._train}
        counts = {"questions": len(self._train), "documents": len(documents), "validation": len(self._held)}
        return counts | {"distractors": DISTRACTORS}


def _example(asked: _QuestionTexts, texts: Iterable[str], rng: Random) -> Example:
    """The question over some texts, each once, in random order: what is trained reads no positions."""
    chunks = list(dict.fromkeys(texts))
    rng.shuffle(chunks)
    support = tuple(sorted(chunks.index(text) for text in dict.fromkeys(asked.support)))
    question = asked.question
    shares = tuple(asked.word_shares.get(text, 0.0) for text in chunks)
    return Example(
        question.id, TASK, question.question, tuple(chunks), support, question.answers, question.kind, shares
    )


def _questions_with_texts(
    questions: Iterable[DocumentQuestion],
    documents: DocumentFolder,
    tokenizer: FastTokenizer,
    plain: DualEncoder,
) -> Iterator[_QuestionTexts]:
    """Every question that has an answer; one whose quotes are not found is left out. Documents are
    read one after the other, and embedded unless they were before.
    """
    answerable = [question for question in questions if question.quotes]
    for workspace, placed in each_document(answerable, documents, tokenizer):
        table, texts = workspace.tables[0], workspace.texts()
        words = WordIndex(texts)
        vectors = embed_chunks(plain, texts, vector_store(plain)).astype(np.float32)
        for question, places in placed:
            support = [
                int((np.minimum(table.end, end) - np.maximum(table.start, start)).argmax())
                for start, end in places
            ]
            near = {chunk_id for row in support for chunk_id in (row - 1, row, row + 1)}
            shares = words.shares(words_of(question.question))
            state = plain.encode_states([plain.state_tokens(question.question, [])])[0]
            likeness = vectors @ state + WORD_WEIGHT * shares
            ranked = np.argsort(-likeness, kind="stable")[: HARDEST + len(near)].tolist()
            distractors = [chunk_id for chunk_id in ranked if chunk_id not in near][:HARDEST]
            yield _QuestionTexts(
                question,
                tuple(texts[row] for row in support),
                tuple(texts[row] for row in distractors),
                {texts[row]: float(shares[row]) for row in (*support, *distractors)},
            )
