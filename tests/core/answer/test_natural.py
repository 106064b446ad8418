"""Which words of a quote are learned as the answer that a person gave in other words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.answer.natural import found_lessons, holding_chunks, shared_spans
from core.errors import BadRequest
from core.evaluate.documents import DocumentRow
from core.tasks.documents import DocumentFolder, DocumentQuestion
from core.types import ChunkTable


@pytest.mark.parametrize(
    ("text", "answer", "words"),
    [
        ("uh probably a two hundred foot range .", "two hundred feet", ["two hundred"]),
        ("will raise a `WebSocketDisconnect` exception", "WebSocketDisconnect", ["WebSocketDisconnect"]),
        ("Guy Fawkes, sort of; an infantine Guy Fawkes.", "Guy Fawkes", ["Guy Fawkes", "Guy Fawkes"]),
        ("in the old mill, beside the mill race", "the mill race", ["mill race"]),
        ("nothing of the kind", "Paris", []),
        ("", "Paris", []),
    ],
)
def test_the_words_that_share_most(text: str, answer: str, words: list[str]) -> None:
    assert [text[start:end] for _, start, end in shared_spans(text, answer)] == words


def test_f1_is_that_of_the_words() -> None:
    assert shared_spans("the Sulu pirates", "the Sulu pirates") == [(1.0, 4, 16)]
    [(f1, _, _)] = shared_spans("half of a bottle", "half a bottle of genever")
    assert f1 == pytest.approx(2 * 3 / (3 + 4))


def test_the_fewest_chunks_hold_the_quotes() -> None:
    start, end = np.array([0, 10, 20, 30]), np.array([10, 20, 30, 40])
    zeros = np.zeros(4, dtype=np.int32)
    table = ChunkTable(
        start=start,
        end=end,
        n_tokens=zeros,
        type_code=zeros,
        heading_code=zeros,
        heading_paths=((),),
        n_duplicates=0,
    )
    assert holding_chunks(table, [(31, 39), (2, 9)]) == (0, 3)
    assert holding_chunks(table, [(5, 15)]) == (0, 1)
    assert holding_chunks(table, [(8, 20)]) == (1,), "it holds enough of it"
    assert holding_chunks(table, []) == ()


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
    return DocumentRow(
        id="a",
        kind="single",
        document="barn.txt",
        method="bm25",
        ran="bm25",
        checkpoint="",
        k=2,
        stops=True,
        covered=(),
        n_chunks=3,
        chunk_ids=tuple(range(len(evidence))),
        scores=(1.0,) * len(evidence),
        evidence=evidence,
        stopped=False,
        answer=None,
        answer_confidence=0.5,
        answer_reliable=False,
        answers=("the mill",),
        milliseconds=1.0,
    )
