"""Where lessons come from: training parts alone, and nothing of what validates."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from core.base.errors import BadRequest
from core.encode.tokens import FastTokenizer
from core.lab.reader.course import NATURAL, SETS, SHARES, ReadingCourse
from core.lab.reader.lesson import occurrences
from core.lab.tasks.qa_sets import FOLDERS
from tests.core.answer.conftest import DOCUMENTS, N_RECORDS
from tests.core.lab.tasks.conftest import data, tokenizer  # noqa: F401


@pytest.fixture(scope="module")
def course(course_data: Path, tokenizer: FastTokenizer) -> ReadingCourse:  # noqa: F811
    return ReadingCourse(course_data, tokenizer)


def test_every_source_is_drawn_and_every_lesson_is_true(course: ReadingCourse) -> None:
    drawn = course.draw(Random(0), 600)
    sources = Counter(lesson.source for lesson in drawn)
    generated = {"babi", "stories", "needles", NATURAL}
    assert sources.keys() >= {"squad", "nq", "hotpotqa", "2wiki", "musique", "hybridqa"} | generated
    assert sum(not lesson.answers for lesson in drawn) > 60
    for lesson in (one for one in drawn if one.source != NATURAL):
        assert all(0 <= place < len(lesson.passages) for place in lesson.places)
        pairs = [(answer, lesson.passages[place]) for answer in lesson.answers for place in lesson.places]
        assert lesson.label is not None or any(any(occurrences(*pair)) for pair in pairs), lesson
        if not lesson.answers and lesson.source in FOLDERS:
            told = [text for text in lesson.passages if "The Answer" in text]
            assert not any(text.split()[-2] in lesson.question for text in told)


def held_documents(course: ReadingCourse) -> set[str]:
    """Documents that a long validation asks about."""
    asked = {lesson.question for lesson in course.validation(2_000) if lesson.source == NATURAL}
    return {name for name in DOCUMENTS if any(re.search(rf"\b{name}\b", question) for question in asked)}


def test_questions_about_documents_are_asked_by_the_words_of_their_quotes(course: ReadingCourse) -> None:
    drawn = [lesson for lesson in course.draw(Random(2), 900) if lesson.source == NATURAL]
    assert not any("think" in lesson.question for lesson in drawn), "its quote says nothing of the answer"
    kinds = Counter((lesson.question.split()[0], lesson.label) for lesson in drawn)
    assert kinds.keys() == {("How", None), ("How", "none"), ("Was", "yes"), ("Was", "none"), ("Who", "none")}
    for lesson in drawn:
        words = [lesson.passages[passage][start:end] for passage, start, end in lesson.spans]
        assert words == (["two hundred steps"] if lesson.label is None else [])
        if lesson.question.startswith("How"):
            assert bool(lesson.answers) == ("two hundred steps" in " ".join(lesson.passages))


def test_documents_that_validate_are_not_trained_on(course: ReadingCourse) -> None:
    held = held_documents(course)
    assert 0 < len(held) < len(DOCUMENTS) / 2
    lessons = [lesson for lesson in course.draw(Random(3), 900) if lesson.source == NATURAL]
    drawn = " ".join(text for lesson in lessons for text in (lesson.question, *lesson.passages))
    assert not any(re.search(rf"\b{name}\b", drawn) for name in held)


def test_stories_are_told_by_what_retrieval_would_find_too(course: ReadingCourse) -> None:
    """So some of their passages name who is asked about, and still do not decide the question."""
    drawn = course.draw(Random(4), 1_200)
    silent = [lesson for lesson in drawn if lesson.source == "babi" and not lesson.answers]
    asked = [(lesson.question.rstrip("?").split()[-1], lesson.passages) for lesson in silent]
    n_naming = sum(any(name in text for text in passages) for name, passages in asked)
    assert n_naming > len(silent) / 4 > 2


def test_validation_asks_about_other_passages(course: ReadingCourse) -> None:
    validation = course.validation(60)
    held = {lesson.question for lesson in validation if lesson.source in FOLDERS}
    assert held
    assert not held & {lesson.question for lesson in course.draw(Random(1), 800)}
    assert validation == course.validation(60)
    assert course.draw(Random(5), 40) == course.draw(Random(5), 40), "the same seed draws the same"


def test_what_is_said_of_it(course: ReadingCourse) -> None:
    told = course.describe()
    assert told["shares"] == SHARES
    n_hopeless = len(DOCUMENTS) - len(held_documents(course))
    n_asked = sum(told["questions"].values()) + told["held_out"] + n_hopeless
    assert n_asked == N_RECORDS * len(SETS) + 4 * len(DOCUMENTS)
    json.dumps(told)


def test_what_can_not_be_a_course_is_refused(data: Path, tokenizer: FastTokenizer) -> None:  # noqa: F811
    with pytest.raises(
        BadRequest, match=r"no answer of \w+ \(train\) stands in the passages that support it"
    ):
        ReadingCourse(data, tokenizer)
