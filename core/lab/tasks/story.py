"""A small world in which people carry objects between places.

Each fact is one plain sentence; questions are about the end of the story: where a person is (one fact), where
an object is (two), and where it was before (three). Support is bAbI's: the fewest facts that decide the
answer, the object's last fact among them. No sentence is told twice, so that a quote names its place in the
text. People and objects come to rest one after another, so that support lies in different parts of the story.
Draws from `random.Random.random` only, whose sequence Python promises to keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from random import Random
from typing import Literal, TypeVar

FactKind = Literal["move", "take", "drop", "give"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ACTORS = _words("Ruth Oskar Leila Anton Marta Felix Nadia Hugo Clara Yusuf")
OBJECTS = _words("lantern compass violin blanket hammer basket mirror telescope necklace globe")
PLACES = _words("mill chapel lighthouse orchard stable library cellar tower barn cottage")
WORDINGS: dict[FactKind, tuple[str, ...]] = {
    "move": ("went to", "walked to", "hurried to", "travelled to", "headed to", "came to"),
    "take": ("picked up", "took", "fetched", "grabbed"),
    "drop": ("put down", "left", "dropped", "set down"),
    "give": ("gave", "handed", "passed"),
}
HANDOVER_CHANCE = 0.3
"""How often somebody with an object gives it to a person who stands beside them, if there is one."""
MAX_PROPOSALS = 100
"""Facts proposed for one place before giving it up: all that can happen has been told by then."""
MAX_ATTEMPTS = 200
"""Stories drawn before giving up; with the sizes that `narrative` asks for, one in a handful fits."""

T = TypeVar("T")


def pick(rng: Random, items: Sequence[T]) -> T:
    """One item, each as likely."""
    return items[int(rng.random() * len(items))]


def shuffled(rng: Random, items: Sequence[T]) -> list[T]:
    """The items in random order."""
    return [item for _, _, item in sorted((rng.random(), i, item) for i, item in enumerate(items))]


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence of the story."""

    kind: FactKind
    actor: str
    target: str
    """A place for a move, an object otherwise."""
    text: str
    receiver: str | None = None


@dataclass(frozen=True, slots=True)
class StoryQuestion:
    """A question about the end of the story; `support`: rows of `Story.facts` in order of reasoning."""

    question: str
    answer: str
    support: tuple[int, ...]

    @property
    def hops(self) -> int:
        return len(self.support)


@dataclass(frozen=True, slots=True)
class GeneratedStory:
    """Facts in the order they happened, and questions, hop counts taking turns."""

    facts: tuple[Fact, ...]
    questions: tuple[StoryQuestion, ...]


@dataclass
class _World:
    """What is true now, and which facts (by row) made it so."""

    facts: list[Fact] = field(default_factory=list)
    moves: dict[str, list[int]] = field(default_factory=dict)
    """Actor -> rows of all their moves."""
    holder: dict[str, str] = field(default_factory=dict)
    """Object -> who carries it."""
    last_fact: dict[str, int] = field(default_factory=dict)
    """Object -> row of the last fact that names it."""
    arrival: dict[str, int] = field(default_factory=dict)
    """Object -> row of the move that decides where it is: its carrier's latest before it was put down."""
    journey: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Object -> rows of the move that carried it and the one before; gone once a fact could mislead."""
    facts_since: dict[str, int] = field(default_factory=dict)
    """Object -> number of facts that named it since that journey."""
    sentences: set[str] = field(default_factory=set)

    def place_of(self, actor: str) -> str | None:
        return self.facts[self.moves[actor][-1]].target if self.moves.get(actor) else None

    def place_of_object(self, thing: str) -> str | None:
        """None for an object that nobody has touched: whoever takes it first finds it where they are."""
        return self.facts[self.arrival[thing]].target if thing in self.arrival else None

    def tell(self, fact: Fact) -> None:
        """Makes `fact` true. The caller has checked that it can happen."""
        row = len(self.facts)
        self.facts.append(fact)
        self.sentences.add(fact.text)
        if fact.kind == "move":
            self.moves.setdefault(fact.actor, []).append(row)
            for thing in [thing for thing, holder in self.holder.items() if holder == fact.actor]:
                self.arrival[thing] = row
                self.journey[thing] = (row, self.moves[fact.actor][-2])
                self.facts_since[thing] = 0
            return
        thing = fact.target
        self.last_fact[thing] = row
        self.facts_since[thing] = self.facts_since.get(thing, 0) + 1
        keeper = fact.receiver or fact.actor
        self.arrival[thing] = self.moves[keeper][-1]
        if fact.kind == "drop":
            del self.holder[thing]
        else:
            self.holder[thing] = keeper

    def questions(self) -> tuple[list[StoryQuestion], list[StoryQuestion], list[StoryQuestion]]:
        """Everything that can be asked now, by number of hops."""
        one_hop = [
            StoryQuestion(f"Where is {actor}?", self.facts[rows[-1]].target, (rows[-1],))
            for actor, rows in self.moves.items()
        ]
        two_hops, three_hops = [], []
        for thing, last in self.last_fact.items():
            here = self.facts[self.arrival[thing]].target
            two_hops.append(StoryQuestion(f"Where is the {thing}?", here, (last, self.arrival[thing])))
            # After a second fact at the same place (put down, then taken by another) the last one no longer
            # tells who carried it there.
            if thing in self.journey and self.facts_since[thing] <= 1:
                into, before = self.journey[thing]
                answer = self.facts[before].target
                three_hops.append(
                    StoryQuestion(f"Where was the {thing} before the {here}?", answer, (last, into, before))
                )
        return one_hop, two_hops, three_hops


def tell_story(rng: Random, n_facts: int, n_questions: int) -> GeneratedStory:
    """A story of `n_facts` facts that can be asked `n_questions` questions, hops 1, 2, 3, 1, ... Raises
    ValueError when none turns up: too few facts for the questions, or so many that somebody runs out of new
    sentences.
    """
    n_each = -(-n_questions // 3)
    for _ in range(MAX_ATTEMPTS):
        cast, things = shuffled(rng, ACTORS)[: n_each + 1], shuffled(rng, OBJECTS)[: n_each + 1]
        world = _simulate(rng, cast, things, n_facts)
        if world is None:
            continue
        by_hops = world.questions()
        if min(map(len, by_hops)) >= n_each:
            drawn = [shuffled(rng, questions)[:n_each] for questions in by_hops]
            turns = chain.from_iterable(zip(*drawn, strict=True))
            return GeneratedStory(tuple(world.facts), tuple(islice(turns, n_questions)))
    raise ValueError(
        f"n_facts={n_facts} gives no story with {n_questions} questions; ask for {9 * n_each} to"
        f" {30 * n_each} facts"
    )


def _simulate(rng: Random, cast: Sequence[str], things: Sequence[str], n_facts: int) -> _World | None:
    """The world after `n_facts` facts; None when the story got stuck."""
    world = _World()
    rest_of_actor = dict(zip(cast, _ends(len(cast)), strict=True))
    rest_of_thing = dict(zip(things, _ends(len(things)), strict=True))
    for row in range(n_facts):
        progress = row / n_facts
        awake = [actor for actor in cast if rest_of_actor[actor] > progress]
        loose = [thing for thing in things if rest_of_thing[thing] > progress]
        proposals = islice(_proposals(rng, world, awake, loose), MAX_PROPOSALS)
        fact = next((fact for fact in proposals if fact.text not in world.sentences), None)
        if fact is None:
            return None
        world.tell(fact)
    return world


def _ends(n: int) -> list[float]:
    """Fractions of the story after which n things rest: spread out, later ones denser, the last at 1."""
    return [((i + 1) / n) ** 0.6 for i in range(n)]


def _proposals(rng: Random, world: _World, awake: Sequence[str], loose: Sequence[str]) -> Iterator[Fact]:
    """Facts that may come next, without end; some may have been told before."""
    while True:
        actor = pick(rng, awake)
        here = world.place_of(actor)
        held = [thing for thing, holder in world.holder.items() if holder == actor]
        free = [thing for thing in loose if thing not in world.holder]
        near = [thing for thing in free if world.place_of_object(thing) in (None, here)]
        others = [other for other in awake if other != actor and world.place_of(other) == here]
        if here is None or rng.random() < (0.6 if held else 0.4):
            yield _move(rng, world, actor, awake)
        elif held and others and rng.random() < HANDOVER_CHANCE:
            yield _handle(rng, "give", actor, pick(rng, held), pick(rng, others))
        elif held and rng.random() < 0.5:
            yield _handle(rng, "drop", actor, pick(rng, held))
        elif near and len(held) < 2:
            yield _handle(rng, "take", actor, pick(rng, near))


def _move(rng: Random, world: _World, actor: str, awake: Sequence[str]) -> Fact:
    """To any other place; one time in three to where somebody else is, so that people meet."""
    here = world.place_of(actor)
    company = [place for other in awake if (place := world.place_of(other)) is not None and place != here]
    others = [place for place in PLACES if place != here]
    place = pick(rng, company if company and rng.random() < 1 / 3 else others)
    return Fact("move", actor, place, f"{actor} {pick(rng, WORDINGS['move'])} the {place}.")


def _handle(
    rng: Random, kind: Literal["take", "drop", "give"], actor: str, thing: str, receiver: str | None = None
) -> Fact:
    does = pick(rng, WORDINGS[kind])
    tail = pick(rng, ("", " there")) if receiver is None else f" to {receiver}"
    return Fact(kind, actor, thing, f"{actor} {does} the {thing}{tail}.", receiver)
