"""The reader that ships answers what the generators tell, and says when nothing was told."""

from __future__ import annotations

from random import Random

import pytest

from core.answer.checkpoint import LARGE, SMALL
from core.answer.checkpoint import shipped as shipped_folder
from core.answer.reader import ExtractiveReader, reader_named
from core.base.errors import BadRequest
from core.encode.packaged import READER_VARIABLE
from core.lab.tasks.babi_world import TASKS, tell_babi
from core.lab.tasks.story import tell_story

STORIES_RIGHT, NO_ANSWER_RIGHT = 0.9, 0.8
"""Least share of right answers, and of questions about somebody whom nobody spoke of; what was measured
stands in docs/answers.md.
"""


def test_facts_of_stories(shipped: ExtractiveReader) -> None:
    rng = Random("fixed")
    told = [tell_babi(task, rng) for task in TASKS for _ in range(8)]
    asked = [(story.question, [story.facts[row] for row in story.support], story.answer) for story in told]
    story = tell_story(rng, 30, 9)
    asked += [
        (one.question, [story.facts[row].text for row in sorted(one.support)], one.answer)
        for one in story.questions
    ]
    questions, passages, wanted = zip(*asked, strict=True)
    answers = shipped.read_many(questions, passages)
    right = [answer.text == known for answer, known in zip(answers, wanted, strict=True)]
    assert sum(right) >= STORIES_RIGHT * len(right)


def test_nobody_spoke_of_it(shipped: ExtractiveReader) -> None:
    facts = ["Mary went to the office.", "John moved to the garden.", "Sandra took the milk there."]
    questions = [
        "Where is Daniel?",
        "Where is the football?",
        "Who gave the apple to Bill?",
        "Who wrote the novel?",
    ]
    questions.append("Where was the lantern before the mill?")
    answers = shipped.read_many(questions, [facts] * len(questions))
    assert sum(answer.text == "" for answer in answers) >= NO_ANSWER_RIGHT * len(questions)


def test_a_plain_question_over_a_paragraph(shipped: ExtractiveReader) -> None:
    passages = [
        "The lighthouse of Keld was built in 1907 by the engineer Ruth Ade.",
        "Keld is a village of fishermen on the northern coast.",
    ]
    assert "1907" in shipped.read("When was the lighthouse of Keld built?", passages).text
    answer = shipped.read("Who built the lighthouse of Keld?", passages)
    assert ("Ruth Ade" in answer.text, answer.span.passage) == (True, 0)


def test_the_large_one_answers_where_its_encoder_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted, folder in (("", LARGE), ("small", SMALL), ("large", LARGE)):
        monkeypatch.setenv(READER_VARIABLE, wanted)
        assert shipped_folder() == folder
        assert {"reader.json", "heads.safetensors", "README.md"} <= {path.name for path in folder.iterdir()}
    monkeypatch.setenv(READER_VARIABLE, "small")
    assert [reader_named(name).name for name in ("reader", "of somebody else")] == ["reader"] * 2
    monkeypatch.setenv(READER_VARIABLE, "huge")
    with pytest.raises(BadRequest, match="'huge' is no reader; choose small or large"):
        shipped_folder()
