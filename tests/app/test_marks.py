"""Marks beside chunks, the list of questions, and how they are asked: real agent, real log, no browser."""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr
import pytest

from app.pages.explore.mark_view import BELONGS, DOES_NOT, mark_buttons
from app.pages.explore.marks import OwnQuestions, check_enough
from app.services.document_evaluations import DocumentOrder, evaluate_marked
from app.services.explorer import Explorer
from app.services.in_view import RunInView
from app.services.opener import Opener
from app.services.session import Session
from app.services.shared import Services
from core.base.errors import BadRequest
from core.base.progress import finish
from core.lab.tasks.qa_sets import read_own_questions
from core.runs.log.marks import list_questions
from core.runs.log.records import known_answer_of, support_of
from tests.app.markup import words
from tests.app.opened import ask, pasted

QUESTION = "Where did mary go on day 5 ?"


@pytest.fixture
def session(services: Services) -> Session:
    text = "\n\n".join(
        f"{name} travelled to the garden on day {i} ." for i, name in enumerate(["john", "mary"] * 4)
    )
    return pasted(services, text)


@pytest.fixture
def own(services: Services) -> OwnQuestions:
    with gr.Blocks():
        return OwnQuestions(services)


def pressed(session: Session, chunk_id: int) -> dict[str, str]:
    return {node[1]["data-act"]: node[1]["aria-pressed"] for node in mark_buttons(chunk_id, session)}  # type: ignore[index]


def test_a_chunk_is_marked_and_the_mark_taken_back(
    own: OwnQuestions, services: Services, session: Session
) -> None:
    session = own.mark(session, QUESTION, 5, True)
    session = own.mark(session, QUESTION, 2, False)
    assert pressed(session, 5) == {BELONGS: "true", DOES_NOT: "false"}
    assert pressed(session, 2) == {BELONGS: "false", DOES_NOT: "true"}
    assert pressed(session, 3) == {BELONGS: "false", DOES_NOT: "false"}
    [kept] = list_questions(services.own_log, None)
    assert [(mark.quote, mark.belongs) for mark in kept.marks] == [
        ("mary travelled to the garden on day 5 .", True),
        ("john travelled to the garden on day 2 .", False),
    ]
    listed = words(own.listed(session)[own.list])
    assert QUESTION in listed
    assert "1 passage · 1 that don't belong · no answer given" in listed
    assert own.at(session, "another question").marks == ()
    assert dict(own.at(session, QUESTION).marks) == {5: True, 2: False}
    session = own.mark(own.mark(session, QUESTION, 5, True), QUESTION, 2, False)
    assert session.marks == ()
    assert list_questions(services.own_log, None) == []
    with pytest.raises(BadRequest):
        own.mark(session, "  ", 5, True)


def test_marks_are_asked_through_the_methods_and_become_examples(
    own: OwnQuestions, services: Services, session: Session, tmp_path: Path
) -> None:
    order = DocumentOrder((), methods=("bm25",), k=2)
    documents = services.library.corpora.get(session.corpus).workspace.documents  # type: ignore[union-attr]
    with pytest.raises(BadRequest, match="mark one in Explore"):
        evaluate_marked(services, order, None, documents, lambda _: None)
    own.mark(session, QUESTION, 5, True)
    measured = evaluate_marked(services, order, None, documents, lambda _: None)
    assert measured.ended
    [row] = measured.rows
    assert (row.method, row.covered) == ("bm25", (True,))
    [example] = read_own_questions(own.training_file(session, tmp_path))
    assert example.question == QUESTION
    assert any("day 5 ." in example.chunks[i] for i in example.support)
    with pytest.raises(BadRequest, match="1 question with a passage can't train an agent; mark 8"):
        check_enough(own.training_file(session, tmp_path))


def test_questions_leave_and_come_back(
    own: OwnQuestions, session: Session, services: Services, tmp_path: Path
) -> None:
    own.mark(session, QUESTION, 5, True)
    [question] = list_questions(services.own_log, None)
    own._on_save(session, question.question_id, " the garden ")
    exported = own._on_export(session)[own.notice]
    [record] = map(json.loads, exported[0][2][0][1]["data-arg"].splitlines())
    assert record["answer"] == ["the garden"]
    assert record["support"] == ["mary travelled to the garden on day 5 ."]
    (tmp_path / "mine.jsonl").write_text(json.dumps({**record, "answer": "a garden"}) + "\n")
    shown = own._on_upload(session, str(tmp_path / "mine.jsonl"))
    assert "1 question taken in." in words(shown[own.notice])
    [back] = list_questions(services.own_log, None)
    assert (back.answer, back.question_id) == ("a garden", question.question_id)


def ran(services: Services, session: Session) -> tuple[Session, RunInView]:
    explorer = Explorer(services)
    config = explorer.usual_config(explorer.documents(session)).with_(step_budget=2, stop_threshold=None)
    return ask(explorer, session, QUESTION, config)


def test_marks_are_the_known_support_of_a_run_here_and_in_the_log(
    own: OwnQuestions, services: Services, session: Session
) -> None:
    before, first = ran(services, session)
    assert (first.gold, first.known_answer) == ((), "")
    own.mark(before, QUESTION, 5, True)
    own.mark(before, QUESTION, 2, False)
    [question] = list_questions(services.own_log, None)
    own._on_save(before, question.question_id, "the garden")
    marked = services.relabel(first)
    assert (marked.gold, marked.known_answer) == ((5,), "the garden")
    assert services.relabel(marked) is marked
    services.log.flush()
    kept = services.own_log.get(first.run_id, None)
    assert (support_of(kept), known_answer_of(kept)) == ((5,), "the garden")

    after, second = ran(services, Explorer(services).reset(before))
    assert second.gold == (5,)
    lacking = services.diagnose(second).diagnosis
    assert (lacking is None) == (5 in second.trace.picks)
    services.library.runs.drop(second.token)
    own.mark(after, QUESTION, 5, True)  # taken back
    opened = finish(services.attach(second.run_id))
    assert opened.gold == ()


def test_what_came_with_a_document_is_its_label_whatever_is_marked(
    own: OwnQuestions, services: Services
) -> None:
    session = finish(
        Opener(Explorer(services), Session(), services.agents.default_checkpoint).generated(10_000)
    )
    documents = Explorer(services).documents(session)
    known = documents.questions[0]
    other = next(i for i in range(len(documents.workspace)) if i not in known.support)
    session = own.mark(session, known.question, other, True)
    assert session.marks == ((other, True),)
    assert services.label_of(documents, known.question) == known
