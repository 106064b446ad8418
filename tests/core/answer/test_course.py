"""Where lessons come from: training parts alone, and nothing of what validates."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from core.answer.course import SETS, SHARES, ReadingCourse
from core.answer.lesson import occurrences
from core.encode.tokens import FastTokenizer
from core.errors import BadRequest
from core.tasks.qa_sets import FOLDERS
from tests.core.answer.conftest import N_RECORDS
from tests.core.tasks.conftest import data, tokenizer  # noqa: F401


@pytest.fixture(scope="module")
def course(course_data: Path, tokenizer: FastTokenizer) -> ReadingCourse:  # noqa: F811
    return ReadingCourse(course_data, tokenizer)


def test_every_source_is_drawn_and_every_lesson_is_true(course: ReadingCourse) -> None:
    drawn = course.draw(Random(0), 600)
    sources = Counter(lesson.source for lesson in drawn)
    assert sources.keys() >= {"squad", "nq", "hotpotqa", "2wiki", "musique", "babi", "stories", "needles", "statements"}
    assert sum(not lesson.answers for lesson in drawn) > 60
    for lesson in drawn:
        assert all(0 <= place < len(lesson.passages) for place in lesson.places)
        found = [1 for answer in lesson.answers for place in lesson.places for _ in occurrences(answer, lesson.passages[place])]
        assert found or lesson.label is not None, lesson
        if not lesson.answers and lesson.source in FOLDERS:
            assert not any("The Answer" in text and text.split()[-2] in lesson.question for text in lesson.passages)


def test_validation_asks_about_other_passages(course: ReadingCourse) -> None:
    validation = course.validation(60)
    held = {lesson.question for lesson in validation if lesson.source in FOLDERS}
    assert held
    assert not held & {lesson.question for lesson in course.draw(Random(1), 800)}
    assert validation == course.validation(60)


def test_the_same_seed_draws_the_same(course: ReadingCourse) -> None:
    assert course.draw(Random(5), 40) == course.draw(Random(5), 40)


def test_what_is_said_of_it(course: ReadingCourse) -> None:
    told = course.describe()
    assert told["shares"] == SHARES
    assert sum(told["questions"].values()) + told["held_out"] == N_RECORDS * len(SETS)
    json.dumps(told)


def test_sets_whose_answers_stand_nowhere(data: Path, tokenizer: FastTokenizer) -> None:  # noqa: F811
    with pytest.raises(BadRequest, match=r"no answer of \w+ \(train\) stands in the passages that support it"):
        ReadingCourse(data, tokenizer)
