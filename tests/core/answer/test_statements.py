"""Statements made from questions and sentences: borne out, contradicted, or not spoken of."""

from __future__ import annotations

from random import Random

import pytest

from core.lab.reader.lesson import Lesson
from core.lab.reader.statements import as_statement, lookalikes, statement_lesson

PASSAGES = (
    "Keld Harbour: Ruth Ade built the pier in 1907. The storm of 1911 broke it.",
    "Ruth Ade: She was born in Oslo.",
)
LESSON = Lesson("x", "Who built the pier?", PASSAGES, ("Ruth Ade",), (0, 1))


@pytest.mark.parametrize(
    ("question", "answer", "statement"),
    [
        ("Who built the pier?", "Ruth", "Ruth built the pier."),
        ("What is the capital?", "Oslo", "the capital is Oslo."),
        ("Where is the milk?", "garden", "the milk is in the garden."),
        ("Since when", "1907", "Since when: 1907."),
    ],
)
def test_a_question_with_its_answer_says_something(question: str, answer: str, statement: str) -> None:
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
    for lesson in by_label["none"]:
        assert lesson.passages == tuple(silent)
    told = {
        "Ruth Ade built the pier.",
        *(sentence + "." for text in PASSAGES for sentence in text.rstrip(".").split(". ")),
    }
    assert {lesson.question for lesson in by_label["yes"]} <= told
    assert not {lesson.question for lesson in by_label["no"]} & told
