"""Statements that a passage supports, contradicts or doesn't speak of.

They ask the reader whether something is so: "yes", "no", or "none" where the passages don't say. Data sets
have few such questions, so they are made from questions with answers, clumsily, and from sentences of
passages. A wrong statement names another thing of the same look in place of the right one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from core.base.metrics import plain_answer
from core.ingest.sentences import split_sentences
from core.lab.reader.lesson import Lesson

SOURCE = "statements"
RIGHT, WRONG = 0.4, 0.3
"""Shares of statements that are borne out and that are contradicted; of the rest the passages don't speak."""
SENTENCE_SHARE = 0.35
"""Statements that are a sentence of a passage rather than a question with its answer."""
_LONGEST = 250
"""Characters of a sentence that becomes a statement."""

_FORMS = (
    (
        re.compile(r"who (?!did\b|do\b|does\b|is\b|was\b|are\b|were\b)(?P<rest>.+)", re.IGNORECASE),
        "{answer} {rest}",
    ),
    (
        re.compile(r"(?:what|who|which) (?P<verb>is|was|are|were) (?P<rest>.+)", re.IGNORECASE),
        "{rest} {verb} {answer}",
    ),
    (
        re.compile(r"where (?P<verb>is|was|are|were) (?P<rest>.+)", re.IGNORECASE),
        "{rest} {verb} in the {answer}",
    ),
)
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
_NAME = re.compile(r"(?:[A-Z][\w'-]+)(?: [A-Z][\w'-]+)*")


def as_statement(question: str, answer: str) -> str:
    """What a question with its answer says.

    >>> as_statement("Who designed the tower?", "Ruth"), as_statement("What is the capital?", "Paris")
    ('Ruth designed the tower.', 'the capital is Paris.')
    >>> as_statement("Since when?", "1907")
    'Since when: 1907.'
    """
    stem = question.strip().rstrip("?").rstrip()
    for pattern, form in _FORMS:
        if match := pattern.fullmatch(stem):
            return form.format(answer=answer, **match.groupdict()) + "."
    return f"{stem}: {answer}."


def statement_lesson(lesson: Lesson, distractors: Sequence[str], rng: Random) -> Lesson | None:
    """A statement about passages or distractors; None where none works. `lesson`'s answer is a span."""
    kind = rng.random()
    about = _sentence(lesson, rng) if rng.random() < SENTENCE_SHARE else None
    right = lesson.answers[0] if about is None else _thing(about, rng)
    if right is None:
        return None
    answer = right
    if RIGHT <= kind < RIGHT + WRONG:
        others = lookalikes(
            right, " ".join(lesson.passages), [*lesson.answers, lesson.question if about is None else about]
        )
        if not others:
            return None
        answer = rng.choice(others)
    statement = as_statement(lesson.question, answer) if about is None else about.replace(right, answer)
    if kind < RIGHT + WRONG:
        return Lesson(SOURCE, statement, lesson.passages, ("yes" if kind < RIGHT else "no",), lesson.places)
    silent = [text for text in distractors if plain_answer(right) not in plain_answer(text)]
    return Lesson(SOURCE, statement, tuple(silent), ()) if silent else None


def _sentence(lesson: Lesson, rng: Random) -> str | None:
    """A sentence of a passage that counts, with something in it that could be wrong."""
    text = lesson.passages[rng.choice(lesson.places)]
    sentences = [
        text[start:end]
        for start, end in split_sentences(text)
        if end - start <= _LONGEST and _things(text[start:end])
    ]
    return rng.choice(sentences) if sentences else None


def _thing(sentence: str, rng: Random) -> str | None:
    things = _things(sentence)
    return rng.choice(things) if things else None


def _things(text: str) -> list[str]:
    """Numbers, and names behind the first word."""
    names = [match[0] for match in _NAME.finditer(text) if match.start() > 0]
    return [*names, *_NUMBER.findall(text)]


def lookalikes(right: str, text: str, others: Sequence[str]) -> list[str]:
    """Other things of a text that look like `right`: numbers of as many digits for a number, else names; none
    that stands in `others`.

    >>> lookalikes("1907", "Ruth came in 1889 and left in 1907.", ["1907"])
    ['1889']
    """
    taken = plain_answer(" ".join([right, *others]))
    if _NUMBER.fullmatch(right):
        candidates = [number for number in _NUMBER.findall(text) if len(number) == len(right)]
    else:
        candidates = [match[0] for match in _NAME.finditer(text)]
    return [
        thing
        for thing in dict.fromkeys(candidates)
        if plain_answer(thing) and plain_answer(thing) not in taken
    ]
