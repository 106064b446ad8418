"""Statements made from questions and sentences: borne out, contradicted, or not spoken of."""

from __future__ import annotations

from random import Random

from core.lab.reader.lesson import Lesson
from core.lab.reader.statements import as_statement, lookalikes, statement_lesson

PASSAGES = (
    "Keld Harbour: Ruth Ade built the pier in 1907. The storm of 1911 broke it.",
    "Ruth Ade: She was born in Oslo.",
)
LESSON = Lesson("x", "Who built the pier?", PASSAGES, ("Ruth Ade",), (0, 1))


def test_a_question_with_its_answer_says_something() -> None:
    for question, answer, statement in (
        ("Who built the pier?", "Ruth", "Ruth built the pier."),
        ("What is the capital?", "Oslo", "the capital is Oslo."),
        ("Where is the milk?", "garden", "the milk is in the garden."),
        ("Since when", "1907", "Since when: 1907."),
    ):
        assert as_statement(question, answer) == statement


def test_lookalikes() -> None:
    assert lookalikes("1907", PASSAGES[0], ["1907"]) == ["1911"]
    assert "Oslo" in lookalikes("Ruth Ade", " ".join(PASSAGES), ["Ruth Ade"])
    assert not {"Ruth Ade", "Ruth"} & set(lookalikes("Ruth Ade", " ".join(PASSAGES), ["Ruth Ade"]))


def test_what_is_told_is_what_the_passages_say() -> None:
    silent, rng = ["Bergen: A town in the west."], Random(0)
    made = [lesson for _ in range(300) if (lesson := statement_lesson(LESSON, silent, rng)) is not None]
    by_label = {
        label: [lesson for lesson in made if lesson.label == label] for label in ("yes", "no", "none")
    }
    assert min(map(len, by_label.values())) > 30
    assert {lesson.passages for lesson in by_label["none"]} == {tuple(silent)}
    told = {sentence + "." for text in PASSAGES for sentence in text.rstrip(".").split(". ")}
    told.add("Ruth Ade built the pier.")
    assert {lesson.question for lesson in by_label["yes"]} <= told
    assert not {lesson.question for lesson in by_label["no"]} & told
