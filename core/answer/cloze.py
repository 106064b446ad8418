"""Questions made from passages alone: a sentence with one of its names or numbers hidden, asked of what is left of its passages.

The hidden words stand in the passages once more, so they can be pointed at. Labelled questions are few; these teach to look for what a sentence
lacks, of the right kind. Decides how such a question is asked, clumsily. Knows nothing of where passages come from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from core.answer.lesson import Lesson, occurrences
from core.answer.statements import things
from core.ingest.sentences import split_sentences
from core.metrics import plain_answer

SOURCE = "cloze"
_LEAST, _MOST = 6, 40
"""Words of a sentence that is asked about."""
_TRIES = 6
"""Sentences looked at before a lesson is given up."""
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_ASKED = ("what", "what", "who", "which")


def cloze_lesson(passages: Sequence[str], rng: Random) -> Lesson | None:
    """A question over passages "title: text", one sentence of which becomes the question and is taken out; None where no sentence will do.

    What a title names is never hidden: it would nearly always be the answer.
    """
    titles = plain_answer(" ".join(title for title, colon, _ in (text.partition(": ") for text in passages) if colon))
    for _ in range(_TRIES):
        row = rng.randrange(len(passages))
        text = passages[row]
        start, end = rng.choice(split_sentences(text) or [(0, 0)])
        sentence = text[start:end]
        if start == 0 or not _LEAST <= len(sentence.split()) <= _MOST:
            continue
        rest = tuple(f"{text[:start]}{text[end:]}" if place == row else passage for place, passage in enumerate(passages))
        hidden = [
            thing
            for thing in dict.fromkeys(things(sentence))
            if plain_answer(thing) and plain_answer(thing) not in titles and any(True for passage in rest for _ in occurrences(thing, passage))
        ]
        if hidden:
            thing = rng.choice(hidden)
            question = sentence.replace(thing, _asking(thing, rng)).rstrip(".")
            return Lesson(SOURCE, f"{question}?", rest, (thing,), tuple(range(len(rest))))
    return None


def _asking(thing: str, rng: Random) -> str:
    if _YEAR.fullmatch(thing):
        return "what year"
    return "how many" if thing[0].isdigit() else rng.choice(_ASKED)
