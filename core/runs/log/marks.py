"""Questions that a reader marked.

Which passages belong to the answer and which don't, one document each. Only its owner reads, changes and
deletes a question. A mark is a place in the document's text, so that it stays where it is however the
document is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from core.base.errors import BadRequest, LogError
from core.runs.log.database import Connection, storable
from core.runs.log.queries import MINE, RunReader, WritableLog
from core.runs.log.records import LoggedDocument, new_run_id, now
from core.runs.log.statements import json_text, stored_time

MAX_QUESTIONS = 500
"""Of one reader."""
MAX_MARKS = 32
"""Of one question: what `evaluate-documents` takes as quotes."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A passage of the document: `text[start:end]`."""

    start: int
    end: int
    quote: str
    belongs: bool
    """To the answer; false for one that doesn't."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkedQuestion:
    """A question about one document, with the marks in the order in which they were made."""

    question_id: str
    created_at: datetime
    document: str
    """Title."""
    sha256: str
    """Of the document; empty for a question that came in a file."""
    question: str
    answer: str = ""
    marks: tuple[Mark, ...] = ()

    @property
    def support(self) -> tuple[Mark, ...]:
        return tuple(mark for mark in self.marks if mark.belongs)

    def with_mark(self, mark: Mark) -> MarkedQuestion:
        """With one mark more; the same again takes it back. Raises BadRequest for one too many."""
        others = tuple(made for made in self.marks if (made.start, made.end) != (mark.start, mark.end))
        if mark in self.marks:
            return replace(self, marks=others)
        if len(others) == MAX_MARKS:
            raise BadRequest(
                f"this question has {MAX_MARKS} marks, the most there can be; take one back first"
            )
        return replace(self, marks=(*others, mark))


_QUESTION: TypeAdapter[MarkedQuestion] = TypeAdapter(MarkedQuestion)


def new_question(document: str, sha256: str, question: str) -> MarkedQuestion:
    """A question without marks."""
    return MarkedQuestion(
        question_id=new_run_id(), created_at=now(), document=document, sha256=sha256, question=question
    )


def list_questions(log: RunReader, owner: str | None) -> list[MarkedQuestion]:
    """The reader's questions, newest first."""
    rows = log.rows(
        f"SELECT value FROM marked_questions WHERE {MINE} ORDER BY created_at DESC, question_id",
        {"owner": owner},
    )
    return [_QUESTION.validate_json(row["value"]) for row in rows]


def keep_questions(log: WritableLog, questions: Sequence[MarkedQuestion], owner: str | None) -> None:
    """Keep questions as `owner`'s, each instead of an earlier form of it. Raises LogError for too many."""
    log.write(lambda con: _keep(con, questions, owner))


def delete_question(log: WritableLog, question_id: str, owner: str | None) -> None:
    """Forget a question; nothing happens where `owner` has none of that id."""
    log.remove(
        lambda con: con.execute(
            f"DELETE FROM marked_questions WHERE question_id = $id AND {MINE} RETURNING question_id",
            {"id": storable(question_id), "owner": owner},
        ).fetchone()
    )


def relabel_run(log: WritableLog, run_id: str, label: dict[str, Any] | None, owner: str | None) -> None:
    """Count a run of `owner`'s by another label: its question was marked after it began."""
    log.write(
        lambda con: con.execute(
            f"UPDATE runs SET label = $label WHERE run_id = $id AND {MINE}",
            {"label": None if label is None else json_text(label), "id": storable(run_id), "owner": owner},
        )
    )


def logged_document(log: RunReader, sha256: str, owner: str | None) -> LoggedDocument | None:
    """A document that a run of `owner`'s searched, with its text; None where there is none any more."""
    runs = log.rows(
        f"SELECT run_id FROM runs JOIN run_documents USING (run_id) WHERE sha256 = $sha256 AND {MINE}"
        " ORDER BY created_at DESC LIMIT 1",
        {"sha256": storable(sha256), "owner": owner},
    )
    documents = log.documents(runs[0]["run_id"], owner) if runs else ()
    return next((document for document in documents if document.sha256 == sha256 and document.text), None)


def _keep(con: Connection, questions: Sequence[MarkedQuestion], owner: str | None) -> None:
    mine = con.execute(f"SELECT question_id FROM marked_questions WHERE {MINE}", {"owner": owner}).fetchall()
    kept = {name for (name,) in mine}
    n = len(kept) + sum(question.question_id not in kept for question in questions)
    if n > MAX_QUESTIONS:
        raise LogError(f"that would make {n:,} questions, more than {MAX_QUESTIONS:,}; delete some first")
    for question in questions:
        taken = con.execute(
            f"SELECT 1 FROM marked_questions WHERE question_id = $id AND NOT ({MINE})",
            {"id": question.question_id, "owner": owner},
        ).fetchone()
        if taken:
            question = replace(question, question_id=new_run_id())
        con.execute(
            "INSERT OR REPLACE INTO marked_questions VALUES ($id, $owner, $created_at, $value)",
            {
                "id": question.question_id,
                "owner": owner,
                "created_at": stored_time(question.created_at),
                "value": json_text(_QUESTION.dump_python(question, mode="json")),
            },
        )
