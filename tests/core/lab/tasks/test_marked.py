"""Marked questions: kept per reader, asked as labelled questions, there and back as lines of a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.base.errors import BadRequest, LogError
from core.base.types import Document, workspace_of_chunks
from core.lab.tasks.documents import QuoteFinder, places_of, read_document_questions
from core.lab.tasks.marked import ask_marked, take_in_questions
from core.lab.tasks.qa_sets import read_own_questions
from core.runs.log import ExperimentLog
from core.runs.log.marks import (
    MAX_MARKS,
    MAX_QUESTIONS,
    Mark,
    MarkedQuestion,
    delete_question,
    keep_questions,
    list_questions,
    new_question,
)
from core.runs.log.records import now
from tests.core.runs.log.recording import DOCUMENT, log_run, make_record

A, B = "a" * 64, "b" * 64
TEXT = "It rained. Anna slept in the mill. It rained. Bela rang the bell at noon. Nobody came."
MILL = Document("mill.txt", TEXT, "text")


def mark_of(quote: str, belongs: bool = True, at: int = 0) -> Mark:
    start = TEXT.index(quote, at)
    return Mark(start, start + len(quote), quote, belongs)


def marked(question: str = "Where did Anna sleep?", *marks: Mark) -> MarkedQuestion:
    one = new_question(MILL.title, MILL.sha256, question)
    for mark in marks or (mark_of("Anna slept in the mill."),):
        one = one.with_mark(mark)
    return one


def test_a_mark_again_is_taken_back_and_the_other_one_replaces_it() -> None:
    yes, no = mark_of("It rained."), mark_of("It rained.", False)
    one = new_question(MILL.title, MILL.sha256, "?").with_mark(yes)
    assert one.with_mark(yes).marks == ()
    assert one.with_mark(no).marks == (no,)
    assert one.with_mark(no).support == ()
    full = replace(one, marks=tuple(Mark(i, i + 1, "x", True) for i in range(MAX_MARKS)))
    with pytest.raises(BadRequest, match=f"{MAX_MARKS} marks"):
        full.with_mark(mark_of("Nobody came."))


def test_questions_are_their_reader_s_alone(log: ExperimentLog) -> None:
    theirs, other, local = marked(), marked(), marked("Odd \ud800?")
    for question, owner in ((theirs, A), (other, B), (local, None)):
        keep_questions(log, [question], owner)
    assert list_questions(log, A) == [theirs]
    assert [one.question for one in list_questions(log, None)] == ["Odd ??"]
    delete_question(log, theirs.question_id, B)
    keep_questions(log, [replace(theirs, answer="stolen")], B)
    assert list_questions(log, A) == [theirs], "another's id takes nothing over"
    assert {one.answer for one in list_questions(log, B)} == {"", "stolen"}
    keep_questions(log, [replace(theirs, answer="in the mill")], A)
    assert [one.answer for one in list_questions(log, A)] == ["in the mill"]
    delete_question(log, theirs.question_id, A)
    assert list_questions(log, A) == []


def test_questions_of_visitors_go_after_their_time_and_too_many_are_refused(log: ExperimentLog) -> None:
    keep_questions(log, [marked()], A)
    keep_questions(log, [marked()], None)
    assert log.expire(now()) == frozenset()
    assert (len(list_questions(log, A)), len(list_questions(log, None))) == (0, 1)
    with pytest.raises(LogError, match=f"more than {MAX_QUESTIONS}"):
        keep_questions(log, [marked(f"Question {i}?") for i in range(MAX_QUESTIONS)], None)
    assert len(list_questions(log, None)) == 1


def test_a_marked_question_is_a_labelled_question(log: ExperimentLog, tmp_path: Path) -> None:
    rained = mark_of("It rained.", at=20)
    both = marked("Why?", rained, mark_of("Nobody came."), mark_of("Bela rang the bell at noon.", False))
    keep_questions(log, [both, marked("Nothing yet?", mark_of("Nobody came.", False))], None)
    keep_questions(log, [replace(marked(), answer="in the mill")], None)
    asked = ask_marked(log, None, [MILL])
    assert asked.left_out == ("'Nothing yet?' has no passage that belongs to its answer; mark one",)
    by_words = {one.question: one for one in asked.questions}
    why, where = by_words["Why?"], by_words["Where did Anna sleep?"]
    assert (why.kind, where.kind, where.answers) == ("bridge", "single", ("in the mill",))
    finder = QuoteFinder(TEXT, "mill.txt")
    places = places_of(why, finder)
    assert places[0][0] == rained.start, "a passage that stands twice is made longer until it stands once"
    (tmp_path / "mine.jsonl").write_text(asked.lines(), encoding="utf-8")
    assert read_document_questions(tmp_path / "mine.jsonl") == [*asked.questions]


def test_a_document_that_a_run_searched_is_at_hand_for_its_owner(log: ExperimentLog) -> None:
    log_run(log, make_record(owner=A))
    quote = "Sentence 3 of the handbook."
    start = DOCUMENT.text.index(quote)
    mark = Mark(start, start + len(quote), quote, True)
    question = new_question("Handbook", DOCUMENT.sha256, "Which?").with_mark(mark)
    for owner in (A, B):
        keep_questions(log, [replace(question, question_id=owner[:32])], owner)
    assert ask_marked(log, A, []).documents == {"Handbook": DOCUMENT}
    missing = ask_marked(log, B, [])
    told = "'Which?' is about Handbook, which is not here; open it"
    assert (missing.questions, missing.left_out) == ((), (told,))


def test_training_lines_are_own_questions(log: ExperimentLog, tmp_path: Path) -> None:
    chunks = ["It rained. Anna slept", "in the mill. It rained.", "Bela rang the bell."]
    text = " ".join(chunks)
    document = Document("mill.txt", text, "text")
    question = new_question("mill.txt", document.sha256, "Where?").with_mark(Mark(11, 34, text[11:34], True))
    keep_questions(log, [question], A)
    workspace = workspace_of_chunks(chunks, np.ones(3, int))
    starts = np.array([text.index(chunk) for chunk in chunks])
    table = replace(workspace.tables[0], start=starts, end=starts + [len(chunk) for chunk in chunks])
    workspace = replace(workspace, documents=(document,), tables=(table,))
    file = tmp_path / "train.jsonl"
    file.write_text(ask_marked(log, A, [document]).training_lines(lambda _: workspace), encoding="utf-8")
    [example] = read_own_questions(file)
    assert (example.question, example.chunks, example.support) == ("Where?", tuple(chunks), (0, 1))


def test_marks_come_back_as_they_were_made(log: ExperimentLog, tmp_path: Path) -> None:
    """One whose quote stands twice in the file has the words behind it, too."""
    own = marked(
        "Why?", mark_of("It rained."), mark_of("Anna slept in the mill."), mark_of("Nobody came.", False)
    )
    before = marked("Why?", mark_of("Bela rang the bell at noon.", False), mark_of("Nobody came."))
    keep_questions(log, [own], A)
    keep_questions(log, [before], B)
    (tmp_path / "mine.jsonl").write_text(ask_marked(log, A, [MILL]).lines(), encoding="utf-8")
    for _ in range(2):
        take_in_questions(log, tmp_path / "mine.jsonl", B, [MILL])
        [back] = list_questions(log, B)
        assert back.marks == (*own.marks, before.marks[0])
        assert back.question_id == before.question_id
        (tmp_path / "mine.jsonl").write_text(ask_marked(log, B, [MILL]).lines(), encoding="utf-8")
    [line] = map(json.loads, (tmp_path / "mine.jsonl").read_text().splitlines())
    moved = Document("mill.txt", f"Once. {TEXT}", "text")
    (tmp_path / "mine.jsonl").write_text(json.dumps(line))
    take_in_questions(log, tmp_path / "mine.jsonl", A, [moved])
    [found] = [one for one in list_questions(log, A) if one.sha256 == moved.sha256]
    assert [moved.text[mark.start : mark.end] for mark in found.marks] == [
        "It rained. A",
        "Anna slept in the mill",
    ]
    line["marks"][0]["start"] = -1
    (tmp_path / "mine.jsonl").write_text(json.dumps(line))
    with pytest.raises(BadRequest, match='line 1: "marks" must be'):
        read_document_questions(tmp_path / "mine.jsonl")


def test_the_second_of_two_equal_passages_is_learned_without_its_neighbour(log: ExperimentLog) -> None:
    second = mark_of("It rained.", at=20)
    keep_questions(log, [marked("When?", second)], A)
    sentences = [TEXT[start:end] for start, end in ((0, 10), (11, 34), (35, 45), (46, 73), (74, 86))]
    starts = np.array([0, 11, 35, 46, 74])
    workspace = workspace_of_chunks(sentences, np.ones(5, int))
    table = replace(workspace.tables[0], start=starts, end=starts + [len(one) for one in sentences])
    workspace = replace(workspace, documents=(MILL,), tables=(table,))
    lines = ask_marked(log, A, [MILL]).training_lines(lambda _: workspace)
    assert json.loads(lines)["support"] == [2]


def test_questions_about_two_documents_of_one_title_come_back(log: ExperimentLog, tmp_path: Path) -> None:
    other = Document(MILL.title, f"A preface. {TEXT}", "text")
    about_other = replace(marked(), sha256=other.sha256, marks=(Mark(11, 21, "It rained.", True),))
    keep_questions(log, [marked(), replace(about_other, question_id="b" * 32)], A)
    (tmp_path / "mine.jsonl").write_text(ask_marked(log, A, [MILL, other]).lines(), encoding="utf-8")
    assert take_in_questions(log, tmp_path / "mine.jsonl", B, [other, MILL]) == (2, [])
    assert {one.sha256: one.marks for one in list_questions(log, B)} == {
        one.sha256: one.marks for one in (marked(), about_other)
    }


def test_a_file_comes_back(log: ExperimentLog, tmp_path: Path) -> None:
    rang = marked("Who rang?", mark_of("Bela rang the bell at noon."))
    keep_questions(log, [replace(marked(), answer="in the mill"), rang], A)
    file = tmp_path / "mine.jsonl"
    stranger = {"id": "9", "document": "other.txt", "kind": "single", "question": "?", "support": ["letters"]}
    broken = stranger | {"id": "8", "document": "mill.txt", "support": ["no such words"]}
    file.write_text(ask_marked(log, A, [MILL]).lines() + f"{json.dumps(stranger)}\n{json.dumps(broken)}\n")
    for _ in range(2):  # again: nothing is there twice
        n, left_out = take_in_questions(log, file, B, [MILL])
        assert n == 2
        assert "'?' is about other.txt, which is not open" in left_out[0]
        assert "question 8: the quote 'no such words' does not stand in mill.txt" in left_out[1]
        back = {one.question: one for one in list_questions(log, B)}
        assert len(back) == 2
        assert back["Where did Anna sleep?"].answer == "in the mill"
        assert back["Who rang?"].support == (mark_of("Bela rang the bell at noon."),)
    file.write_text("{}\n")
    with pytest.raises(BadRequest, match="has no"):
        take_in_questions(log, file, B, [MILL])
