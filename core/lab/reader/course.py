"""What the reader is trained on.

Questions over evidence that answers them, or doesn't. Answers of the data sets are strings, so every place of
an accepted answer in the supporting passages counts as right. A question is asked over its support alone,
over its support among passages that distract, or over distracting passages only, whose answer is "none": no
passage with an accepted answer is ever among those. Stories and needles come from the project's generators,
without end; test stories of bAbI are left out. Of the data sets only training parts are read. Validation
holds out every question about one passage in twelve, so it asks about passages that supported no training
question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any

from core.base.errors import BadRequest
from core.encode.tokens import FastTokenizer
from core.lab.reader.lesson import YES_OR_NO, Lesson, has_answer
from core.lab.tasks.babi_world import TASKS, UntestedStories
from core.lab.tasks.babilong import FactQuestion
from core.lab.tasks.data import babi_folder, plain
from core.lab.tasks.example import Example
from core.lab.tasks.natural import QuestionInChunks, questions_in_chunks, training_questions
from core.lab.tasks.noise import compose_noise, read_noise
from core.lab.tasks.qa_sets import read_qa
from core.lab.tasks.ruler import RANDOM_IDS, VARIANTS, needle_example, needle_hay
from core.lab.tasks.story import tell_story
from core.lab.train.mixtures import TrainingData

NATURAL = "natural"
SETS: dict[str, tuple[str, str, float]] = {
    "squad": ("squad", "train", 1.5),
    "nq": ("nq", "train", 2.5),
    "hotpotqa": ("hotpotqa", "train", 1.5),
    "hotpotqa-sentences": ("hotpotqa", "train_sentences", 1.5),
    "hotpotqa-more": ("hotpotqa", "train_more", 1.5),
    "2wiki": ("2wiki", "train", 1),
    "2wiki-more": ("2wiki", "train_more", 1),
    "musique": ("musique", "train", 1.5),
    "hybridqa": ("hybridqa", "train", 1.5),
}
"""Data set, part and share behind each name."""
SHARES: dict[str, float] = {name: share for name, (_, _, share) in SETS.items()}
SHARES |= {NATURAL: 20, "babi": 3, "stories": 1.5, "needles": 0.5}
"""How often each source is drawn, as weights."""
ALONE, AMONG = 0.5, 0.3
"""Shares of questions over support alone and among distracting passages; the rest has only the latter."""
MOST_DISTRACTORS = 3
NARROW = 0.4
"""Share of questions about documents that are asked over the surroundings of their quotes rather than over
whole chunks: more of them in the same time.
"""
_MARGIN = 160
"""Characters before and behind the quotes that surroundings have, at most."""
RETRIEVED = 0.3
"""Share of stories told by the facts that share most words with the question, as retrieval without learning
gives them; where a deciding one isn't among them, nothing answers the question.
"""
RETRIEVED_CHUNKS = 4
"""Of a question about a document that is validated over what BM25 ranks first, for the confidence."""
HELD_OUT = 12
"""One passage in so many is validation's, and one document in so many."""
NOISE_TOKENS = 60_000
"""Of prose that stands between the facts of stories."""
_MOST_NOISE = 4
"""Sentences of prose or other facts beside a story's deciding facts."""
_VALIDATION_GENERATED, _VALIDATION_NATURAL = 0.2, 0.4
"""Shares of generated questions and of questions about documents in validation."""


Course = TrainingData[Lesson]


class ReadingCourse:
    """The course of the reader that ships; a `Course`."""

    name = "reading"

    def __init__(self, data: Path | None, tokenizer: FastTokenizer) -> None:
        """Raises BadRequest when a set is missing."""
        self._tokenizer = tokenizer
        examples = {name: _answerable(of, part, data) for name, (of, part, _) in SETS.items()}
        everything = [example for several in examples.values() for example in several]
        asked_of_held = [example for example in everything if any(map(_is_held_out, _titles(example)))]
        held = {plain(example.question) for example in asked_of_held}
        self._train = {
            name: [example for example in several if plain(example.question) not in held]
            for name, several in examples.items()
        }
        self._held_out = [example for example in everything if plain(example.question) in held]
        Random("order of the reader's validation").shuffle(self._held_out)
        self._noise = [
            *compose_noise(Random("prose of the reader's training"), tokenizer, NOISE_TOKENS).texts,
            *read_noise("books/train", tokenizer, None, NOISE_TOKENS, data).texts,
        ]
        self._untested = UntestedStories(babi_folder(data))
        natural = list(questions_in_chunks(*training_questions(data), tokenizer))
        learnable = [asked for asked in natural if asked.spans or not asked.support or _yes_or_no(asked)]
        self._natural = [asked for asked in learnable if not _is_held_out(asked.question.document)]
        self._natural_held = [asked for asked in natural if _is_held_out(asked.question.document)]
        Random("order of the reader's documents").shuffle(self._natural_held)
        self._tellers = {"babi": self._babi, "stories": self._story, "needles": self._needle}

    def draw(self, rng: Random, n: int) -> list[Lesson]:
        names = rng.choices(list(SHARES), list(SHARES.values()), k=n)
        return [self._lesson(name, rng) for name in names]

    def validation(self, n: int) -> list[Lesson]:
        """See `Course`; a part of them generated."""
        rng = Random("validation of the reader")
        n_made = round(_VALIDATION_GENERATED * n)
        n_natural = min(len(self._natural_held), round(_VALIDATION_NATURAL * n))
        natural = [
            _over_nearest(asked) if i % 2 else _lesson_of_document(asked, rng)
            for i, asked in enumerate(self._natural_held[:n_natural])
        ]
        examples = self._held_out[: n - n_made - n_natural]
        lessons = natural + [_lesson_of_example(example, rng) for example in examples]
        return lessons + [tell(rng) for tell in islice(cycle(self._tellers.values()), n_made)]

    def describe(self) -> dict[str, Any]:
        train = self._train | {NATURAL: self._natural}
        return {
            "shares": SHARES,
            "questions": {name: len(several) for name, several in train.items()},
            "held_out": len(self._held_out) + len(self._natural_held),
            "test_stories_left_out": len(self._untested),
        }

    def _lesson(self, name: str, rng: Random) -> Lesson:
        if name in self._tellers:
            return self._tellers[name](rng)
        if name == NATURAL:
            return _lesson_of_document(rng.choice(self._natural), rng)
        return _lesson_of_example(rng.choice(self._train[name]), rng)

    def _babi(self, rng: Random) -> Lesson:
        return self._lesson_of_story("babi", self._untested.tell(rng.choice(TASKS), rng), rng)

    def _story(self, rng: Random) -> Lesson:
        n_each = rng.choice((1, 2, 3))
        story = tell_story(rng, 9 * n_each + rng.randrange(21 * n_each + 1), 3 * n_each)
        question = rng.choice(story.questions)
        facts, support = tuple(fact.text for fact in story.facts), tuple(sorted(question.support))
        asked = FactQuestion(question.question, facts, support, question.answer)
        return self._lesson_of_story("stories", asked, rng)

    def _lesson_of_story(self, source: str, story: FactQuestion, rng: Random) -> Lesson:
        """A story's deciding facts in order, perhaps among others; or facts that name nothing asked about."""
        question = story.question.rstrip("?")
        facts = [fact.rstrip(".") for fact in story.facts]
        named = set(question.split()[2:]) - {"the", "is", "was"}
        others = [row for row in range(len(facts)) if row not in story.support]
        if rng.random() < RETRIEVED:
            asked = set(question.lower().split())
            alike = [len(asked & set(fact.lower().split())) for fact in facts]
            most_alike = sorted(range(len(facts)), key=lambda row: (-alike[row], rng.random()))
            rows = sorted(most_alike[: rng.randint(3, 6)])
        elif rng.random() > ALONE + AMONG:
            silent = [row for row in others if not named & set(facts[row].split())]
            rows = sorted(rng.sample(silent, min(len(silent), rng.randint(1, _MOST_NOISE))))
        else:
            among = rng.sample(others, min(len(others), rng.randrange(_MOST_NOISE + 1)))
            rows = sorted({*story.support, *among})
        passages, places = self._with_noise([story.facts[row] for row in rows], rng)
        if not set(story.support) <= set(rows):
            return Lesson(source, story.question, passages, ())
        support = tuple(places[rows.index(row)] for row in story.support)
        return Lesson(source, story.question, passages, (story.answer,), support)

    def _with_noise(self, facts: Sequence[str], rng: Random) -> tuple[tuple[str, ...], list[int]]:
        """The facts in their order, some prose between them, and where the facts are; never nothing."""
        noise = rng.sample(self._noise, rng.choice((0, 0, 1, 2)) or int(not facts))
        texts = list(facts)
        for text in noise:
            texts.insert(rng.randrange(len(texts) + 1), text)
        taken = set(noise)
        return tuple(texts), [row for row, text in enumerate(texts) if text not in taken]

    def _needle(self, rng: Random) -> Lesson:
        single = [name for name, kinds in VARIANTS.items() if kinds.n_asked * kinds.n_values == 1]
        variant = rng.choice(single)
        hay = needle_hay(rng, variant, 3, self._tokenizer, "train")
        example = needle_example(rng, variant, hay, 4 if VARIANTS[variant].kind == RANDOM_IDS else 5)
        return _lesson_of_example(replace(example, task="needles", chunks=tuple(example.chunks)), rng)


def _answerable(name: str, part: str, data: Path | None) -> list[Example]:
    """The questions whose answer stands in their support. Raises BadRequest where none does."""
    examples = [example for example in read_qa(name, part, data) if has_answer(_over_support(example))]
    if not examples:
        raise BadRequest(
            f"no answer of {name} ({part}) stands in the passages that support it; fetch the set again"
        )
    return examples


def _lesson_of_example(example: Example, rng: Random) -> Lesson:
    """A question over its support, over its support among others, or over others only."""
    over_support, wanted = _over_support(example), _phrases(example.answers)
    others = [text for row, text in enumerate(example.chunks) if row not in example.support]
    distractors = [text for text in others if not any(answer in plain(text) for answer in wanted)]
    kind = rng.random()
    if kind < ALONE or not distractors:
        return over_support
    drawn = rng.sample(distractors, min(len(distractors), rng.randint(1, MOST_DISTRACTORS)))
    if kind >= ALONE + AMONG:
        return Lesson(example.task, example.question, tuple(drawn), ())
    texts = [*over_support.passages, *drawn]
    order = rng.sample(range(len(texts)), len(texts))
    places = tuple(now for now, was in enumerate(order) if was in over_support.places)
    return replace(over_support, passages=tuple(texts[row] for row in order), places=places)


def _lesson_of_document(asked: QuestionInChunks, rng: Random) -> Lesson:
    """A question over the chunks with its quotes, their surroundings, chunks like them, or others only."""
    wanted = _phrases(asked.question.answers)
    others = [
        row
        for row in asked.nearest
        if row not in asked.support and not any(answer in plain(asked.texts[row]) for answer in wanted)
    ]
    drawn = rng.sample(others, min(len(others), rng.randint(1, MOST_DISTRACTORS)))
    kind, question = rng.random(), asked.question.question
    if not asked.support or (kind >= ALONE + AMONG and drawn):
        return Lesson(NATURAL, question, tuple(asked.texts[row] for row in sorted(drawn)), ())
    narrow = rng.random() < NARROW
    rows = sorted({*asked.support, *(drawn if kind >= ALONE and not narrow else ())})
    cuts = {row: _surroundings(asked, row, rng) if narrow else (0, len(asked.texts[row])) for row in rows}
    passages = tuple(asked.texts[row][cuts[row][0] : cuts[row][1]] for row in rows)
    spans = tuple(
        (rows.index(row), start - cuts[row][0], end - cuts[row][0]) for row, start, end in asked.spans
    )
    word = "" if spans else _yes_or_no(asked)
    places = tuple(rows.index(row) for row in asked.support)
    return Lesson(NATURAL, question, passages, (word,) if word else asked.question.answers, places, spans)


def _over_nearest(asked: QuestionInChunks) -> Lesson:
    """A question over BM25's first chunks; no answer where neither support nor its words are there."""
    rows = sorted(asked.nearest[:RETRIEVED_CHUNKS])
    texts = tuple(asked.texts[row] for row in rows)
    wanted = _phrases(asked.question.answers)
    is_there = bool(asked.support) and (
        set(asked.support) <= set(rows) or any(answer in plain(text) for answer in wanted for text in texts)
    )
    return Lesson(NATURAL, asked.question.question, texts, asked.question.answers if is_there else ())


def _surroundings(asked: QuestionInChunks, row: int, rng: Random) -> tuple[int, int]:
    """Start and end of the quotes in a chunk with some text around them, between words."""
    text, quotes = asked.texts[row], [(start, end) for place, start, end in asked.quotes if place == row]
    first = max(0, min(start for start, _ in quotes) - rng.randrange(_MARGIN))
    last = max(end for _, end in quotes) + rng.randrange(_MARGIN)
    while first > 0 and not text[first - 1].isspace():
        first -= 1
    while last < len(text) and not text[last].isspace():
        last += 1
    return first, min(last, len(text))


def _yes_or_no(asked: QuestionInChunks) -> str:
    """The accepted answer that is yes or no; empty without one."""
    words = (plain(answer).rstrip(".") for answer in asked.question.answers)
    return next((word for word in words if word in YES_OR_NO), "")


def _over_support(example: Example) -> Lesson:
    passages = tuple(example.chunks[row] for row in example.support)
    return Lesson(example.task, example.question, passages, example.answers, tuple(range(len(passages))))


def _phrases(answers: Iterable[str]) -> list[str]:
    """Accepted answers that can stand in a text, in plain letters."""
    return [phrase for phrase in map(plain, answers) if phrase not in YES_OR_NO]


def _titles(example: Example) -> Iterator[str]:
    """Of the supporting passages; the text of one that has none."""
    return (plain(example.chunks[row].partition(": ")[0]) for row in example.support)


def _is_held_out(name: str) -> bool:
    """Whether a document, or a passage of that title, validates."""
    return hashlib.sha256(name.encode()).digest()[0] % HELD_OUT == 0
