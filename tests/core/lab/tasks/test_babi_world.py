"""The rules that decide answers and support, on stories small enough to check in the head."""

from __future__ import annotations

import re
from random import Random

import pytest

from core.lab.tasks.babi_world import World, WorldFact, story_key, tell_babi

FACT = re.compile(r"(\w+) (went to|got|left|gave) the (\w+)(?: to (\w+))?\.")
KINDS = {"went to": "move", "got": "take", "left": "drop", "gave": "give"}


def told(story: str) -> World:
    world = World()
    for actor, verb, target, receiver in FACT.findall(story):
        world.tell(WorldFact(KINDS[verb], actor, target, receiver))
    return world


CARRIED = "Mary got the milk. Mary went to the garden. Mary went to the office. Mary left the milk."


def test_where_somebody_is() -> None:
    world = told("Mary went to the office. Mary went to the garden. John went to the hallway.")
    assert world.where_person("Mary") == ("Where is Mary?", "garden", (1,))


@pytest.mark.parametrize(
    ("story", "answer"),
    [
        ("Mary went to the office. Mary got the milk. Mary went to the garden.", ("garden", (1, 2))),
        (f"{CARRIED} Mary went to the garden.", ("office", (3, 2))),
        ("Mary went to the office.", None),
        ("Mary went to the office. Mary got the milk.", None),
    ],
)
def test_where_an_object_is(story: str, answer: tuple[str, tuple[int, ...]] | None) -> None:
    question = told(story).where_is("milk")
    assert question == (answer and ("Where is the milk?", *answer))


@pytest.mark.parametrize(
    ("story", "answers"),
    [
        (f"{CARRIED} Mary went to the garden.", [("office", "garden", (3, 2, 1))]),
        (
            "Mary got the milk. Mary went to the kitchen. Mary went to the garden. John went to the office.",
            [("garden", "kitchen", (0, 2, 1))],
        ),
        ("Mary went to the office. Mary got the milk.", []),
        (
            f"{CARRIED} John got the milk. John left the milk.",
            [],
        ),  # who brought it, the last fact doesn't tell
    ],
)
def test_where_an_object_was(story: str, answers: list[tuple[str, str, tuple[int, ...]]]) -> None:
    assert told(story).all_where_was("milk") == [
        (f"Where was the milk before the {place}?", before, support) for place, before, support in answers
    ]


def test_who_gave_what_to_whom_unless_a_later_giving_decides_it() -> None:
    world = told("Bill gave the milk to Jeff. Jeff gave the milk to Fred. Fred gave the apple to Mary.")
    assert {question.question: question.answer for question in world.who_gave(1)} == {
        "What did Jeff give to Fred?": "milk",
        "Who gave the milk?": "Jeff",
        "Who gave the milk to Fred?": "Jeff",
        "Who received the milk?": "Fred",
        "Who did Jeff give the milk to?": "Fred",
    }
    assert [question.answer for question in world.who_gave(0)] == ["milk", "Bill", "Jeff"]


def test_a_relation_names_both_places() -> None:
    for seed in range(40):
        story = tell_babi("qa4", Random(seed))
        (row,) = story.support
        assert story.answer in story.facts[row]
        assert re.findall(r"the (\w+)", story.question)[0] in story.facts[row]


def test_keys_forget_case_and_blanks_but_not_words():
    key = story_key(["Mary  went to the office. "], "Where is Mary?")
    assert key == story_key(["mary went to the office."], "where is mary? ")
    assert key != story_key(["Mary went to the garden."], "Where is Mary?")
