"""Stories like those of bAbI qa1 to qa5, without end.

Answers and support are derived as bAbI does. `World` is told one fact after another and says what could be
asked now and which facts decide it; the teller asks through it. The rules were read off the training files:

    qa1  the person's last move
    qa2  the last fact about the object, and the last move of whoever carries it or put it down; asked only
         once a carrier has moved
    qa3  the last fact about the object, the move that brought it to the place, and its move before; asked
         only while one person's carrying explains all three: both moves after taking it, or put down after
         both
    qa4  the one of the two facts that names both places
    qa5  the last giving that fits the question

What bAbI asks when, how often each kind of fact comes, vocabulary and sentence forms are bAbI's, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from core.lab.tasks.babilong import FactQuestion, read_babi
from core.lab.tasks.data import plain

Task = Literal["qa1", "qa2", "qa3", "qa4", "qa5"]
FactKind = Literal["move", "take", "drop", "give"]
TASKS: tuple[Task, ...] = ("qa1", "qa2", "qa3", "qa4", "qa5")

ACTORS = ("Mary", "John", "Sandra", "Daniel")
GIVERS = ("Mary", "Bill", "Fred", "Jeff")
"""The cast of qa5."""
OBJECTS = ("football", "milk", "apple")
PLACES = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
WORDINGS: dict[FactKind, tuple[str, ...]] = {
    "move": ("moved to", "journeyed to", "travelled to", "went to", "went back to"),
    "take": ("picked up", "got", "grabbed", "took"),
    "drop": ("left", "discarded", "dropped", "put down"),
    "give": ("passed", "gave", "handed"),
}

QUESTIONS_PER_STORY = 5
BEAT = 2
"""Facts told between two chances to ask."""
THERE_CHANCE = 0.2
"""How often "there" ends a taking or a putting down; in qa2 and qa5 a taking always has it."""
HANDLING_WEIGHT = (0.0, 0.3, 0.42, 0.49)
"""Weight of taking (putting down), by how many objects a person could; all moves together weigh 1."""
GIVING_WEIGHT = 1.2
"""Weight of all givings together, when one can happen."""
RECENT = 5
"""Facts back from the end: asked is about whom or what last moved or was named among these."""
LONGEST_STORY = 400
"""Facts after which a story that wasn't asked its questions is begun anew; real ones stay below."""


class WorldFact(NamedTuple):
    """What a sentence of qa1, qa2, qa3 or qa5 tells."""

    kind: FactKind
    actor: str
    target: str
    """A place for a move, an object otherwise."""
    receiver: str = ""


class WorldQuestion(NamedTuple):
    """A question that a story decides; `support` in the order of the reasoning."""

    question: str
    answer: str
    support: tuple[int, ...]


@dataclass
class World:
    """What a story has told so far. Rows count its facts."""

    facts: list[WorldFact] = field(default_factory=list)
    moves: dict[str, list[int]] = field(default_factory=dict)
    """Person -> rows of their moves."""
    holder: dict[str, str] = field(default_factory=dict)
    """Object -> who carries it."""
    touched: dict[str, list[int]] = field(default_factory=dict)
    """Object -> rows of the facts that name it."""
    journey: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Object -> places it was at, each with the move that brought it, or its first taker, there."""
    gifts: list[int] = field(default_factory=list)
    """Rows of givings."""

    def tell(self, fact: WorldFact) -> None:
        """Makes a fact true."""
        row = len(self.facts)
        self.facts.append(fact)
        if fact.kind == "move":
            self.moves.setdefault(fact.actor, []).append(row)
            for thing, holder in self.holder.items():
                if holder == fact.actor:
                    self.journey.setdefault(thing, []).append((fact.target, row))
            return
        thing = fact.target
        self.touched.setdefault(thing, []).append(row)
        if fact.kind == "drop":
            self.holder.pop(thing, None)
            return
        self.holder[thing] = fact.receiver or fact.actor
        if fact.kind == "give":
            self.gifts.append(row)
        elif fact.actor in self.moves:
            arrival = self.moves[fact.actor][-1]
            place, journey = self.facts[arrival].target, self.journey.setdefault(thing, [])
            if not journey or journey[-1][0] != place:
                journey.append((place, arrival))

    def where_is(self, thing: str) -> WorldQuestion | None:
        """qa2's question about an object; None where bAbI wouldn't ask it."""
        if thing not in self.touched:
            return None
        last = self.touched[thing][-1]
        carrier = self.holder.get(thing)
        moves = self.moves.get(carrier or self.facts[last].actor, ())
        arrival = next((move for move in reversed(moves) if carrier or move < last), None)
        if arrival is None or (carrier and arrival < last):
            return None
        return WorldQuestion(f"Where is the {thing}?", self.facts[arrival].target, (last, arrival))

    def where_was(self, thing: str, back: int) -> WorldQuestion | None:
        """qa3's question for the place `back` before an object's last; None where bAbI wouldn't ask."""
        journey = self.journey.get(thing, [])
        at = len(journey) - 1 - back
        if at < 1 or journey[at][0] in (place for place, _ in journey[at + 1 :]):
            return None
        (before, departure), (place, arrival) = journey[at - 1 : at + 1]
        touched = self.touched[thing]
        since = sum(row > departure for row in touched)
        if since != (0 if thing in self.holder else 1):
            return None
        return WorldQuestion(
            f"Where was the {thing} before the {place}?", before, (touched[-1], arrival, departure)
        )

    def all_where_was(self, thing: str) -> list[WorldQuestion]:
        """qa3's questions about every place of an object that bAbI would ask about."""
        asked = [self.where_was(thing, back) for back in range(len(self.journey.get(thing, ())))]
        return [question for question in asked if question]

    def where_person(self, actor: str) -> WorldQuestion:
        """qa1's question about somebody who has moved."""
        last = self.moves[actor][-1]
        return WorldQuestion(f"Where is {actor}?", self.facts[last].target, (last,))

    def who_gave(self, row: int) -> list[WorldQuestion]:
        """qa5's five questions about a giving, but those that a later one decides."""
        gift = self.facts[row]
        giver, thing, receiver = gift.actor, gift.target, gift.receiver
        forms = (
            (f"What did {giver} give to {receiver}?", thing, {"actor": giver, "receiver": receiver}),
            (f"Who gave the {thing}?", giver, {"target": thing}),
            (f"Who gave the {thing} to {receiver}?", giver, {"target": thing, "receiver": receiver}),
            (f"Who received the {thing}?", receiver, {"target": thing}),
            (f"Who did {giver} give the {thing} to?", receiver, {"actor": giver, "target": thing}),
        )
        return [
            WorldQuestion(question, answer, (row,))
            for question, answer, told in forms
            if self._gifts(**told)[-1] == row
        ]

    def _gifts(self, **wanted: str) -> list[int]:
        """Rows of the givings that fit."""
        return [
            row
            for row in self.gifts
            if all(getattr(self.facts[row], name) == value for name, value in wanted.items())
        ]


def tell_babi(task: Task, rng: Random) -> FactQuestion:
    """A story with a question, as one of the five of a bAbI story."""
    while True:
        story = _tell_relation(rng) if task == "qa4" else _Teller(task, rng).tell()
        if story is not None:
            return story


def _tell_relation(rng: Random) -> FactQuestion:
    """Three places in a row along one axis, two facts about the neighbours, a question about one of them."""
    ahead, line = rng.choice(("north", "east")), rng.sample(PLACES, 3)
    pairs = [(line[0], line[1]), (line[1], line[2])]
    rng.shuffle(pairs)
    relations = [(a, ahead, b) if rng.random() < 0.5 else (b, OPPOSITE[ahead], a) for a, b in pairs]
    row = rng.randrange(2)
    place, direction, other = relations[row]
    question = f"What is the {other} {OPPOSITE[direction]} of?"
    if rng.random() < 0.5:
        question = f"What is {direction} of the {other}?"
    facts = tuple(f"The {a} is {towards} of the {b}." for a, towards, b in relations)
    return FactQuestion(question, facts, (row,), place)


class _Teller:
    """One story under way: people and objects are somewhere from the start, though nobody has said where."""

    def __init__(self, task: Task, rng: Random) -> None:
        self.task, self.rng, self.world = task, rng, World()
        self.cast = GIVERS if task == "qa5" else ACTORS
        self.things = () if task == "qa1" else OBJECTS
        self.place = {name: rng.choice(PLACES) for name in (*self.cast, *self.things)}
        self.texts: list[str] = []

    def tell(self) -> FactQuestion | None:
        """None when nothing could be asked in time."""
        left = self.rng.randrange(QUESTIONS_PER_STORY)
        while len(self.texts) < LONGEST_STORY:
            for _ in range(BEAT):
                self._add(self._next())
            if asked := self._ask():
                if left == 0:
                    support = tuple(sorted(asked.support))
                    return FactQuestion(asked.question, tuple(self.texts), support, asked.answer)
                left -= 1
        return None

    def _next(self) -> WorldFact:
        """What happens now, by the weights of everything that can."""
        rng, place, holder = self.rng, self.place, self.world.holder
        options: list[tuple[FactKind, str]] = [("move", actor) for actor in self.cast]
        weights = [1 / len(self.cast)] * len(self.cast)
        carried: dict[str, list[str]] = {}
        for thing, actor in holder.items():
            carried.setdefault(actor, []).append(thing)
        loose = [thing for thing in self.things if thing not in holder]
        for actor in self.cast if loose else ():
            n = sum(place[thing] == place[actor] for thing in loose)
            if n:
                options.append(("take", actor))
                weights.append(HANDLING_WEIGHT[n])
        for actor, things in carried.items():
            options.append(("drop", actor))
            weights.append(HANDLING_WEIGHT[len(things)])
        givers = carried if self.task == "qa5" else ()
        meetings = [(a, b) for a in givers for b in self.cast if a != b and place[a] == place[b]]
        if meetings:
            options.append(("give", ""))
            weights.append(GIVING_WEIGHT)
        kind, actor = rng.choices(options, weights)[0]
        if kind == "give":
            giver, receiver = rng.choice(meetings)
            return WorldFact("give", giver, rng.choice(carried[giver]), receiver)
        match kind:
            case "move":
                targets = [name for name in PLACES if name != place[actor]]
            case "take":
                targets = [thing for thing in loose if place[thing] == place[actor]]
            case _:
                targets = carried[actor]
        return WorldFact(kind, actor, rng.choice(targets))

    def _add(self, fact: WorldFact) -> None:
        self.world.tell(fact)
        if fact.kind == "move":
            self.place[fact.actor] = fact.target
        for thing, holder in self.world.holder.items():
            self.place[thing] = self.place[holder]
        there = fact.kind in ("take", "drop") and (
            self.rng.random() < THERE_CHANCE or (fact.kind == "take" and self.task != "qa3")
        )
        tail = " there" if there else f" to {fact.receiver}" if fact.receiver else ""
        self.texts.append(f"{fact.actor} {self.rng.choice(WORDINGS[fact.kind])} the {fact.target}{tail}.")

    def _ask(self) -> WorldQuestion | None:
        """What is asked now, if anything: about one of those to whom something happened lately."""
        rng, world = self.rng, self.world
        match self.task:
            case "qa1":
                return world.where_person(rng.choice(self._recent(world.moves)))
            case "qa2":
                there = map(world.where_is, self._recent(world.touched))
                subjects = [[question] for question in there if question]
            case "qa3":
                subjects = [*map(world.all_where_was, self._recent(world.touched))]
            case _:
                gifts = {world.facts[row].target: [row] for row in world.gifts}
                subjects = [world.who_gave(gifts[thing][0]) for thing in self._recent(gifts)]
        subjects = [questions for questions in subjects if questions]
        if not subjects:
            return None
        questions = rng.choice(subjects)
        weights = [2 if question.question.startswith("What") else 1 for question in questions]
        return rng.choices(questions, weights)[0]

    def _recent(self, rows: dict[str, list[int]]) -> list[str]:
        """The names whose last row is recent."""
        return [name for name, places in rows.items() if places[-1] >= len(self.texts) - RECENT]


def story_key(facts: Iterable[str], question: str) -> str:
    """Hash of a story and its question, the same whatever the case and blanks."""
    text = "\n".join(map(plain, (*facts, question)))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class UntestedStories:
    """Stories that bAbI's test files don't have."""

    def __init__(self, folder: Path) -> None:
        """`folder`: bAbI's. Raises BadRequest."""
        self._tested = {
            story_key(known.facts, known.question)
            for task in TASKS
            for known in read_babi(folder, task, "test")
        }

    def __len__(self) -> int:
        """How many are left out."""
        return len(self._tested)

    def tell(self, task: Task, rng: Random) -> FactQuestion:
        """One of them."""
        while True:
            story = tell_babi(task, rng)
            if story_key(story.facts, story.question) not in self._tested:
                return story
