"""The story of a run, in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.answer.evidence import EvidenceAnswer
from core.base.config import EpisodeConfig
from core.base.events import RunStarted, StepScores, StepTaken, Stopped, Trace
from core.views.quotes import ChunkInPlace, Excerpt, alone
from core.views.story import reading_words, story_of, verdict_on

TEXTS = (
    "It rained.",
    "Anna put the key into the drawer.",
    "The drawer stands in the attic.",
    "The attic is locked.",
)
Q = ([0.1, 0.9, 0.2, 0.3], [0.2, 0.0, 0.8, 0.4], [0.1, 0.0, 0.0, 0.2])


def shown(chunk_id: int) -> ChunkInPlace:
    return alone(TEXTS[chunk_id])


def looked(row: list[float]) -> StepScores:
    return StepScores(np.array(row, np.float32), None)


def traced(*, reason: str = "threshold", steps: int = 2) -> Trace:
    taken = tuple(
        StepTaken(
            step, i, Q[step - 1][i], 1.0, Q[step - 1][i], None, TEXTS[i], 0.0, scores=looked(Q[step - 1])
        )
        for step, i in ((1, 1), (2, 2))
    )
    started = RunStarted("Where is the key?", "qrag", "", 4, EpisodeConfig(step_budget=2, stop_threshold=0.5))
    stopped = Stopped(reason, 2, 3, 0.2, scores=looked(Q[2]) if reason == "threshold" else None)
    return Trace(started, taken[:steps], stopped if steps == 2 else None)


def test_a_found_answer_is_told_with_the_way_to_it() -> None:
    told = EvidenceAnswer("the attic", 0.913, "reader", (2,), (21, 30))
    story = story_of(traced(), shown, [1, 2], told, "attic")
    assert [part.excerpt.mark for part in story.steps] == ["key", ""]
    assert [part.ranks for part in story.steps] == [(1,), (3, 2)]
    assert story.missed == ()
    assert (
        story.sentence()
        == "Asked: Where is the key? First choice, chunk 1: Anna put the key into the drawer, first of 4; "
        "Second choice, chunk 2: The drawer stands in the attic, from rank 3 to 2; "
        "answer: the attic, 91 % sure, right. Nothing left is worth 0.50: best Q is 0.20."
    )


def test_what_was_missed_and_not_answered_is_told() -> None:
    told = EvidenceAnswer("", 0.2, "reader", state="absent", passage=1, nearest=(13, 16))
    story = story_of(traced(reason="budget"), shown, [3], told, "the attic")
    assert [(part.chunk_id, part.ranks) for part in story.missed] == [(3, (2, 3))]
    assert (story.answer.text, story.answer.verdict, story.answer.chunk_id) == ("", "no answer", 1)
    assert story.sentence().endswith(
        "missed, chunk 3: The attic is locked; answer: Not in this document, as far as I see, known answer the"
        " attic. The budget of 2 steps is used up."
    )
    assert story.answer.quote == Excerpt("Anna put the ", "key", " into the drawer.")
    guess = replace(told, text="the key", state="guess", citations=(1,), place=(9, 16), confidence=0.42)
    story = story_of(traced(), shown, [], guess, "the attic")
    assert "answer: Best guess (42 %), please check: the key, wrong, known answer" in story.sentence()
    asks = replace(told, state="passages", asks="yes or no")
    assert "answer: Asks for yes or no" in story_of(traced(), shown, [], asks, "").sentence()


def test_what_was_read_is_said_alike_everywhere() -> None:
    read = EvidenceAnswer("the attic", 0.913, "reader", (2,), (21, 30))
    assert reading_words(read) == "the attic, 91 % sure"
    assert reading_words(replace(read, state="guess")) == "Best guess (91 %), please check: the attic"
    assert reading_words(replace(read, state="absent")) == "Not in this document, as far as I see"
    asks = replace(read, state="passages", asks="yes or no")
    assert reading_words(asks).startswith("Asks for yes or no, which no words of a text are")


def test_each_sentence_ends_in_one_stop() -> None:
    told = EvidenceAnswer("U.S.", 0.9, "reader", state="guess")
    story = replace(story_of(traced(steps=1), shown, [], told, ""), query="Where from", end="")
    assert story.sentence().startswith("Asked: Where from. First choice")
    assert story.sentence().endswith("please check: U.S.")
    assert replace(story, query="Who said “no?”").sentence().startswith("Asked: Who said “no?” First")


def test_a_run_under_way_has_no_answer() -> None:
    story = story_of(traced(steps=1), shown, [3], None, "the attic")
    assert (story.missed, story.answer, story.end) == ((), None, "")


def test_an_answer_is_compared_with_the_known_one() -> None:
    verdicts = [verdict_on(text, "attic") for text in ("The Attic.", "the cellar", "")]
    assert verdicts == ["right", "wrong", "no answer"]
    assert verdict_on("The Attic.", "") is None
