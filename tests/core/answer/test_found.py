"""What methods found, as a reader learns how sure it may be of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.base.errors import BadRequest
from core.lab.evaluate.documents import DocumentRow
from core.lab.reader.found import found_lessons
from core.lab.tasks.documents import DocumentFolder, DocumentQuestion
from tests.core.lab.evaluate.rows import document_row


def test_what_was_found_is_read_in_the_order_of_the_document(tmp_path: Path) -> None:
    (tmp_path / "barn.txt").write_text("The barn is red. The mill is old. Nobody came.")
    question = DocumentQuestion("a", "barn.txt", "single", "What is old?", ("the mill",), ())
    rows = [found_row((17, 33), (0, 16)), found_row()]
    documents = DocumentFolder(tmp_path, tmp_path / "questions.jsonl")
    [lesson] = found_lessons(rows, [question], documents)
    assert lesson.passages == ("The barn is red.", "The mill is old.")
    assert (lesson.ranks, lesson.question, lesson.answers) == ((1, 0), "What is old?", ("the mill",))
    with pytest.raises(BadRequest, match="question 'a' of the rows is not among the questions"):
        found_lessons(rows, [], documents)
    with pytest.raises(BadRequest, match="beyond the 46 characters of 'barn"):
        found_lessons([found_row((30, 47))], [question], documents)


def found_row(*evidence: tuple[int, int]) -> DocumentRow:
    """What BM25 found for question a about barn.txt."""
    ids, scores = tuple(range(len(evidence))), (1.0,) * len(evidence)
    about = {"document": "barn.txt", "method": "bm25", "ran": "bm25", "checkpoint": "", "covered": ()}
    return document_row(chunk_ids=ids, scores=scores, evidence=evidence, answers=("the mill",), **about)
