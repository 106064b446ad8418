"""The story against a second, slower reading of its own sentences."""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lab.tasks.story import GeneratedStory, tell_story
from tests.core.lab.tasks.conftest import FACT, VERBS


class Told(NamedTuple):
    """What a reader takes from one sentence."""

    kind: str
    actor: str
    target: str
    receiver: str | None


def read_fact(sentence: str) -> Told:
    match = FACT.fullmatch(sentence)
    assert match, sentence
    return Told(VERBS[match[2]], match[1], match[3], match[4])


def place_of(actor: str, told: list[Told]) -> str | None:
    return next((fact.target for fact in reversed(told) if fact.kind == "move" and fact.actor == actor), None)


def place_of_object(thing: str, told: list[Told]) -> str | None:
    """From the last fact that names it: where the keeper is now, or where the person stood who
    put it down.
    """
    for row in range(len(told) - 1, -1, -1):
        fact = told[row]
        if fact.kind != "move" and fact.target == thing:
            if fact.kind == "drop":
                return place_of(fact.actor, told[:row])
            return place_of(fact.receiver or fact.actor, told)
    return None


def answer_slowly(question: str, told: list[Told]) -> str | None:
    """The answer from the sentences alone; places before the last are found by reading every prefix of the
    story anew.
    """
    if match := re.fullmatch(r"Where is the (\w+)\?", question):
        return place_of_object(match[1], told)
    if match := re.fullmatch(r"Where is (\w+)\?", question):
        return place_of(match[1], told)
    match = re.fullmatch(r"Where was the (\w+) before the (\w+)\?", question)
    assert match, question
    places = [place_of_object(match[1], told[:end]) for end in range(len(told) + 1)]
    assert places[-1] == match[2]
    return next(place for place in reversed(places) if place not in (match[2], None))


stories = st.builds(
    lambda seed, n_questions, slack: tell_story(Random(seed), 9 * -(-n_questions // 3) + slack, n_questions),
    seed=st.integers(0, 10_000),
    n_questions=st.integers(1, 27),
    slack=st.integers(0, 60),
)


@given(stories)
def test_a_slow_reader_gives_the_same_answers(story: GeneratedStory):
    told = [read_fact(fact.text) for fact in story.facts]
    assert [answer_slowly(question.question, told) for question in story.questions] == [
        question.answer for question in story.questions
    ]


@given(stories)
def test_every_fact_can_happen_when_it_is_told(story: GeneratedStory):
    told: list[Told] = []
    holder: dict[str, str] = {}
    for fact in (read_fact(fact.text) for fact in story.facts):
        if fact.kind == "move":
            assert place_of(fact.actor, told) != fact.target
        elif fact.kind == "take":
            assert fact.target not in holder
            assert place_of_object(fact.target, told) in (None, place_of(fact.actor, told))
            holder[fact.target] = fact.actor
        else:
            assert holder.pop(fact.target) == fact.actor
            if fact.receiver:
                assert place_of(fact.actor, told) == place_of(fact.receiver, told)
                holder[fact.target] = fact.receiver
        told.append(fact)


@given(stories)
def test_support_is_the_deciding_facts(story: GeneratedStory):
    told = [read_fact(fact.text) for fact in story.facts]
    for question in story.questions:
        facts = [told[row] for row in question.support]
        assert len(set(question.support)) == question.hops
        assert facts[-1].target == question.answer
        if question.hops == 1:
            continue
        thing = re.search(r"the (\w+)", question.question)[1]
        assert [row for row, fact in enumerate(told) if fact.kind != "move" and fact.target == thing][
            -1
        ] == question.support[0]
        assert {fact.kind for fact in facts[1:]} == {"move"}
        assert facts[1].actor in (facts[0].actor, facts[0].receiver)
        if question.hops == 3:
            # Consecutive moves of one person, who carried the object from one place to the other.
            assert facts[2].actor == facts[1].actor
            carrier, into, before = facts[1].actor, question.support[1], question.support[2]
            assert [
                row
                for row in range(before, into + 1)
                if told[row].kind == "move" and told[row].actor == carrier
            ] == [before, into]
            assert question.question.endswith(f"before the {facts[1].target}?")


@given(stories)
def test_no_sentence_is_told_twice_and_no_question_asked_twice(story: GeneratedStory):
    assert len({fact.text for fact in story.facts}) == len(story.facts)
    assert len({question.question for question in story.questions}) == len(story.questions)
    assert [question.hops for question in story.questions] == [i % 3 + 1 for i in range(len(story.questions))]


@pytest.mark.parametrize("n_facts", [2, 150])
def test_no_story_with_too_few_or_too_many_facts(n_facts: int):
    with pytest.raises(
        ValueError, match=f"n_facts={n_facts} gives no story with 3 questions; ask for 9 to 30 facts"
    ):
        tell_story(Random(0), n_facts, 3)
