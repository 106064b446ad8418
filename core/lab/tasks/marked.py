"""Questions that a reader marked, out of the log and into it.

They become labelled questions with quotes, lines of a file, and training examples. Their documents are those
that are open, or that a run of the reader's searched. A marked passage becomes a quote that stands once in
its document; it is made longer where it does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.base.errors import BadRequest
from core.base.types import Document, Workspace
from core.lab.tasks.documents import (
    DocumentQuestion,
    QuestionKind,
    QuoteFinder,
    places_of,
    read_document_questions,
    standing_once,
)
from core.runs.log.marks import (
    Mark,
    MarkedQuestion,
    keep_questions,
    list_questions,
    logged_document,
    new_question,
)
from core.runs.log.queries import RunReader
from core.runs.log.store import ExperimentLog


@dataclass(frozen=True, eq=False)
class SupportedQuestions:
    """Questions that have support, and the documents that they are about."""

    questions: tuple[DocumentQuestion, ...]
    documents: Mapping[str, Document]
    """By the names in the questions."""
    left_out: tuple[str, ...]
    """Why others are left out, a sentence each."""

    def read(self, name: str) -> Document:
        """See `core.lab.tasks.documents.Documents`."""
        return self.documents[name]

    def lines(self) -> str:
        """A line of JSON a question, as `evaluate-documents` reads them."""
        return "".join(
            json.dumps(
                {
                    "id": question.id,
                    "document": question.document,
                    "kind": question.kind,
                    "question": question.question,
                    "answer": list(question.answers),
                    "support": list(question.quotes),
                },
                ensure_ascii=False,
            )
            + "\n"
            for question in self.questions
        )

    def training_lines(self, cut: Callable[[Document], Workspace]) -> str:
        """A line of JSON a question, as `train --questions` reads them. `cut`: a document's chunks."""
        cuts = {name: cut(document) for name, document in self.documents.items()}
        finders = {name: QuoteFinder(document.text, name) for name, document in self.documents.items()}
        lines = []
        for question in self.questions:
            workspace = cuts[question.document]
            places = places_of(question, finders[question.document])
            support = sorted({i for start, end in places for i in workspace.overlapping(0, start, end)})
            record = {
                "id": question.id,
                "question": question.question,
                "chunks": workspace.texts(),
                "support": support,
                "answer": list(question.answers),
            }
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        return "".join(lines)


def ask_marked(log: RunReader, owner: str | None, opened: Sequence[Document]) -> SupportedQuestions:
    """The questions of a reader that have support and whose document is at hand, the oldest first."""
    at_hand = {document.sha256: document for document in opened}
    names: dict[str, str] = {}
    finders: dict[str, QuoteFinder] = {}
    questions, left_out = [], []
    for marked in reversed(list_questions(log, owner)):
        if not marked.support:
            left_out.append(f"{marked.question!r} has no passage that belongs to its answer; mark one")
            continue
        if marked.sha256 not in at_hand:
            logged = logged_document(log, marked.sha256, owner)
            if logged is None:
                left_out.append(f"{marked.question!r} is about {marked.document}, which is not here; open it")
                continue
            at_hand[marked.sha256] = logged.document()
        document = at_hand[marked.sha256]
        if marked.sha256 not in finders:
            taken = marked.document in names.values()
            names[marked.sha256] = f"{marked.document} {marked.sha256[:8]}" if taken else marked.document
            finders[marked.sha256] = QuoteFinder(document.text, marked.document)
        quotes = tuple(
            standing_once(document.text, mark.start, mark.end, finders[marked.sha256])
            for mark in marked.support
        )
        answers = (marked.answer,) if marked.answer else ()
        kind: QuestionKind = "single" if len(quotes) == 1 else "bridge"
        name = names[marked.sha256]
        questions.append(DocumentQuestion(marked.question_id, name, kind, marked.question, answers, quotes))
    documents = {name: at_hand[sha256] for sha256, name in names.items()}
    return SupportedQuestions(tuple(questions), documents, tuple(left_out))


def take_in_questions(
    log: ExperimentLog, path: Path, owner: str | None, opened: Sequence[Document]
) -> tuple[int, list[str]]:
    """Keep the questions of a file about documents that are open, named by their titles: how many, and why
    others are left out. Those of the same document and words are replaced. Raises BadRequest.
    """
    by_name = {document.title: document for document in opened}
    by_words = {(marked.sha256, marked.question): marked for marked in list_questions(log, owner)}
    finders: dict[str, QuoteFinder] = {}
    kept, left_out = [], []
    for read in read_document_questions(path):
        document = by_name.get(read.document)
        if document is None:
            left_out.append(f"{read.question!r} is about {read.document}, which is not open; open it first")
            continue
        finder = finders.setdefault(read.document, QuoteFinder(document.text, read.document))
        try:
            places = places_of(read, finder)
        except BadRequest as fault:
            left_out.append(str(fault))
            continue
        fresh = by_words.get((document.sha256, read.question)) or new_question(
            document.title, document.sha256, read.question
        )
        marks = tuple(Mark(start, end, document.text[start:end], True) for start, end in places)
        kept.append(
            MarkedQuestion(
                question_id=fresh.question_id,
                created_at=fresh.created_at,
                document=document.title,
                sha256=document.sha256,
                question=read.question,
                answer=read.answers[0] if read.answers else "",
                marks=marks,
            )
        )
    keep_questions(log, kept, owner)
    return len(kept), left_out
