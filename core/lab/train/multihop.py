"""The mixture behind *multi-hop*.

Questions over Wikipedia paragraphs, of one to four hops. The training parts are small, so each question is
asked among more than its own distractors: the paragraphs of the other questions of an update join in, for
they are embedded anyway. Sets whose distractors are easy to tell apart also borrow the lexically closest
paragraphs of all sets.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from core.lab.tasks.example import Example
from core.lab.tasks.qa_sets import DistractorPool, read_qa

SHARES: dict[str, float] = {
    "hotpotqa": 3,
    "2wiki": 1,
    "musique": 2.5,
    "hotpotqa-sentences": 0.5,
    "nq": 0.5,
    "squad": 0.5,
}
"""How often each set is drawn, as weights."""
_FILES = {"hotpotqa-sentences": ("hotpotqa", "train_sentences")}
"""Data set and part of a name that is not the set's."""
VALIDATED = ("hotpotqa", "2wiki", "musique")
VALIDATION_SHARE = 0.08
"""Records of these sets kept for validation."""
HARDENED = {"musique": 6}
"""Paragraphs that look like a question's own, for sets whose distractors were made."""
FOREIGN = 24
"""Paragraphs of other questions that join each question, at most."""


class MultiHopMixture:
    """See the module; a `Mixture`."""

    def __init__(self, data: Path | None = None, without: Collection[str] = ()) -> None:
        """`without`: sets left out. Raises BadRequest when the data sets aren't there."""
        self.name = "-without-".join(["multi-hop", *without])
        self._shares = {name: share for name, share in SHARES.items() if name not in without}
        self._train: dict[str, list[Example]] = {}
        self._validation: list[Example] = []
        for name in self._shares:
            examples = read_qa(*_FILES.get(name, (name, "train")), data)
            Random(f"split of {name}").shuffle(examples)
            n_held_out = round(VALIDATION_SHARE * len(examples)) if name in VALIDATED else 0
            self._validation += examples[:n_held_out]
            self._train[name] = examples[n_held_out:]
        self._pool = DistractorPool(example for examples in self._train.values() for example in examples)
        rng = Random("order of validation")
        own = DistractorPool(self._validation)
        self._validation = [_hardened(example, own, rng) for example in self._validation]
        rng.shuffle(self._validation)

    def draw(self, rng: Random, n: int) -> list[Example]:
        names = rng.choices(list(self._shares), list(self._shares.values()), k=n)
        return mixed_up([_hardened(rng.choice(self._train[name]), self._pool, rng) for name in names], rng)

    def validation(self, n: int) -> list[Example]:
        return self._validation[:n]

    def describe(self) -> dict[str, Any]:
        questions = {name: len(examples) for name, examples in self._train.items()}
        return {"shares": self._shares, "questions": questions, "validation": len(self._validation)}


def _hardened(example: Example, pool: DistractorPool, rng: Random) -> Example:
    return pool.extend(example, HARDENED[example.task], rng) if example.task in HARDENED else example


def mixed_up(examples: Sequence[Example], rng: Random) -> list[Example]:
    """Each example with others' paragraphs added, in random order; one it already has doesn't join."""
    out = []
    for example in examples:
        own = set(example.chunks)
        others = [text for other in examples if other is not example for text in other.chunks]
        foreign = [text for text in dict.fromkeys(others) if text not in own]
        texts = [*example.chunks, *rng.sample(foreign, min(FOREIGN, len(foreign)))]
        order = list(range(len(texts)))
        rng.shuffle(order)
        place = {row: at for at, row in enumerate(order)}
        support = tuple(sorted(place[row] for row in example.support))
        out.append(replace(example, chunks=tuple(texts[row] for row in order), support=support))
    return out
