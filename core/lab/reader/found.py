"""What methods found for questions about documents, as lessons of a reader."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from core.base.errors import BadRequest
from core.lab.evaluate.documents import DocumentRow
from core.lab.reader.lesson import Lesson
from core.lab.tasks.documents import DocumentFolder, DocumentQuestion


def found_lessons(
    rows: Iterable[DocumentRow], questions: Iterable[DocumentQuestion], documents: DocumentFolder
) -> list[Lesson]:
    """What methods found, as they hand it to a reader; rows without evidence are left out.

    Raises BadRequest for a row that is not of these questions and documents; BadDocument.
    """
    asked = {question.id: question.question for question in questions}
    lessons = []
    for name, own in groupby(sorted(rows, key=lambda row: row.document), lambda row: row.document):
        text = documents.read(name).text
        for row in own:
            if row.id not in asked:
                raise BadRequest(
                    f"question {row.id!r} of the rows is not among the questions; give those of the rows"
                )
            places = sorted(row.evidence)
            if any(not 0 <= start < end <= len(text) for start, end in places):
                raise BadRequest(
                    f"row {row.id!r} has evidence beyond the {len(text):,} characters of {name!r}; give the"
                    " documents of the rows"
                )
            if places:
                passages = tuple(text[start:end] for start, end in places)
                ranks = tuple(map(row.evidence.index, places))
                lessons.append(Lesson(row.method, asked[row.id], passages, row.answers, ranks=ranks))
    return lessons
