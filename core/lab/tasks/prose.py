"""Composes noise.

A paragraph keeps to one subject and one person, whom it introduces before it says "he" or "she". People here
are roles ("the old bishop"), never names, so that noise can't change an answer. Slots multiply the words: ten
million tokens repeat a sentence now and then and a paragraph practically never. Tests keep two rules of
`lexicon.json`: every word is a single token of the all-MiniLM-L6-v2 tokenizer, and none is a person, an
object or a place of `story`. A slot in braces is one of its slots, or the paragraph's person.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from random import Random

from core.lab.tasks.story import pick

_WORDS = json.loads(files("core.lab.tasks").joinpath("lexicon.json").read_text(encoding="utf-8"))
LEXICON: dict[str, tuple[str, ...]] = {slot: tuple(words) for slot, words in _WORDS["slots"].items()}
SUBJECTS: list[dict[str, list[str]]] = _WORDS["subjects"]
"""Of paragraphs: openings that introduce the person, and middles, sentences in any order."""
TITLES: list[str] = _WORDS["titles"]
_WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")
_SLOT = re.compile(r"\{(\w+)\}")
_PRONOUNS = ({"he": "he", "his": "his", "him": "him"}, {"he": "she", "his": "her", "him": "her"})


def count_tokens(text: str) -> int:
    """Tokens of composed text: its words and its punctuation marks.

    >>> count_tokens("The river rose, and nobody spoke.")
    8
    """
    return len(_WORD_OR_MARK.findall(text))


class _Template:
    """A pattern ready to fill: its text with %s for each slot, and the slots' names."""

    def __init__(self, pattern: str) -> None:
        self.text, self.slots = _SLOT.sub("%s", pattern), _SLOT.findall(pattern)

    def fill(self, rng: Random, person: dict[str, str]) -> str:
        """The sentence, no word chosen twice running. `person` holds the slots of the paragraph's person."""
        values: list[str] = []
        for slot in self.slots:
            value = person.get(slot)
            if value is None:
                words = LEXICON[slot]
                i = int(rng.random() * len(words))
                value = words[i] if words[i] not in values else words[i - 1]
            values.append(value)
        sentence = self.text % tuple(values)
        start = sentence.startswith("“")
        return sentence[: start + 1].upper() + sentence[start + 1 :]


_OPENINGS = tuple(tuple(map(_Template, subject["openings"])) for subject in SUBJECTS)
_MIDDLES = tuple(tuple(map(_Template, subject["middles"])) for subject in SUBJECTS)
_TITLES = tuple(map(_Template, TITLES))


def compose_title(rng: Random) -> str:
    """A chapter's title, without number or full stop."""
    return pick(rng, _TITLES).fill(rng, {})


def compose_paragraph(rng: Random) -> Iterator[str]:
    """A paragraph of four to eight sentences: an opening, then others on one subject and one person."""
    subject = int(rng.random() * len(SUBJECTS))
    who = f"the {pick(rng, LEXICON['nature'])} {pick(rng, LEXICON['role'])}"
    person = {"who": who, **pick(rng, _PRONOUNS)}
    yield pick(rng, _OPENINGS[subject]).fill(rng, person)
    middles = _MIDDLES[subject]
    # an odd step walks through all eight patterns before one comes again
    first, step = int(rng.random() * len(middles)), pick(rng, (1, 3, 5, 7))
    for i in range(3 + int(rng.random() * 5)):
        yield middles[(first + i * step) % len(middles)].fill(rng, person)
