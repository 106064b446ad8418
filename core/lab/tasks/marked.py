"""Questions that a reader marked, out of the log and into it.

Their documents are those that are open, or that a run of the reader's searched. A marked passage becomes a
quote that stands once in its document; it is made longer where it does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from core.base.errors import BadRequest
from core.base.types import Document, Workspace
from core.lab.tasks.documents import (
    DocumentQuestion,
    MarkedPassage,
    QuestionKind,
    QuoteFinder,
    TextPlace,
    places_of,
    read_document_questions,
    standing_once,
)
from core.runs.log.marks import (
    MAX_MARKS,
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
    left_out: tuple[str, ...]

    def read(self, name: str) -> Document:
        """See `core.lab.tasks.documents.Documents`."""
        return self.documents[name]

    def lines(self) -> str:
        """A line of JSON a question, as `evaluate-documents` reads them."""
        records = (
            {
                "id": question.id,
                "document": question.document,
                "kind": question.kind,
                "question": question.question,
                "answer": list(question.answers),
                "support": list(question.quotes),
                "marks": [asdict(mark) for mark in question.marks],
            }
            for question in self.questions
        )
        return _lines(records)

    def training_lines(self, cut: Callable[[Document], Workspace]) -> str:
        """A line of JSON a question, as `train --questions` reads them. `cut`: a document's chunks."""
        cuts = {name: cut(document) for name, document in self.documents.items()}
        finders = {name: QuoteFinder(document.text, name) for name, document in self.documents.items()}
        records = []
        for question in self.questions:
            workspace = cuts[question.document]
            places = places_of(question, finders[question.document])
            record = {
                "id": question.id,
                "question": question.question,
                "chunks": workspace.texts(),
                "support": sorted({i for place in places for i in workspace.overlapping(0, *place)}),
                "answer": list(question.answers),
            }
            records.append(record)
        return _lines(records)


def _lines(records: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def ask_marked(log: RunReader, owner: str | None, opened: Sequence[Document]) -> SupportedQuestions:
    """The questions of a reader that have support and whose document is at hand, the oldest first."""
    at_hand = {document.sha256: document for document in opened}
    names: dict[str, str] = {}
    finders: dict[str, QuoteFinder] = {}
    questions, left_out = [], []
    for marked in reversed(list_questions(log, owner)):
        key = marked.sha256
        if not marked.support:
            left_out.append(f"{marked.question!r} has no passage that belongs to its answer; mark one")
            continue
        if key not in at_hand and (logged := logged_document(log, key, owner)):
            at_hand[key] = logged.document()
        if key not in at_hand:
            left_out.append(f"{marked.question!r} is about {marked.document}, which is not here; open it")
            continue
        document, text = at_hand[key], at_hand[key].text
        if key not in finders:
            others = [*names.values(), *(one.title for one in opened if one.sha256 != key)]
            names[key] = _name_beside(document) if document.title in others else document.title
            finders[key] = QuoteFinder(text, marked.document)
        quotes = tuple(standing_once(text, mark.start, mark.end, finders[key]) for mark in marked.support)
        answers = (marked.answer,) if marked.answer else ()
        kind: QuestionKind = "single" if len(quotes) == 1 else "bridge"
        marks = tuple(MarkedPassage(**asdict(mark)) for mark in marked.marks)
        asked = (marked.question_id, names[key], kind, marked.question, answers, quotes, marks)
        questions.append(DocumentQuestion(*asked))
    documents = {name: at_hand[key] for key, name in names.items()}
    return SupportedQuestions(tuple(questions), documents, tuple(left_out))


def _name_beside(document: Document) -> str:
    """What a document is called beside others of its title."""
    return f"{document.title} {document.sha256[:8]}"


def take_in_questions(
    log: ExperimentLog, path: Path, owner: str | None, opened: Sequence[Document]
) -> tuple[int, list[str]]:
    """Keep the questions of a file about documents that are open, named as `ask_marked` names them: how many,
    and why others are left out. Those of the same document and words are replaced, but for passages that were
    marked as not belonging. Raises BadRequest.
    """
    by_words = {(marked.sha256, marked.question): marked for marked in list_questions(log, owner)}
    finders: dict[str, QuoteFinder] = {}
    kept, left_out = [], []
    for read in read_document_questions(path):
        named = [one for one in opened if read.document in (one.title, _name_beside(one))]
        if not named:
            left_out.append(f"{read.question!r} is about {read.document}, which is not open; open it first")
            continue
        faults = []
        for document in named:
            if document.sha256 not in finders:
                finders[document.sha256] = QuoteFinder(document.text, read.document)
            try:
                places = places_of(read, finders[document.sha256])
            except BadRequest as fault:
                faults.append(str(fault))
                continue
            before = by_words.get((document.sha256, read.question))
            kept.append(_taken_in(read, document, places, before))
            break
        else:
            left_out.append(faults[0])
    keep_questions(log, kept, owner)
    return len(kept), left_out


def _taken_in(
    read: DocumentQuestion, document: Document, places: Sequence[TextPlace], before: MarkedQuestion | None
) -> MarkedQuestion:
    """A question of a file, with its marks. `before`: what the reader had marked for it."""
    own = [(mark.start, mark.end, mark.belongs) for mark in read.marks_in(document.text)]
    marks = {
        (start, end): Mark(start, end, document.text[start:end], belongs)
        for start, end, belongs in own or [(*place, True) for place in places]
    }
    for mark in before.marks if before else ():
        if not mark.belongs:
            marks.setdefault((mark.start, mark.end), mark)
    return replace(
        before or new_question(document.title, document.sha256, read.question),
        document=document.title,
        answer=read.answers[0] if read.answers else "",
        marks=tuple(marks.values())[:MAX_MARKS],
    )
