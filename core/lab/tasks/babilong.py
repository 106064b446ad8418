"""The bAbI tasks, and their stories hidden in long texts.

The published format has stories line by line, with questions between the facts. A question sees the facts
above it and nothing else. Its support is given as line numbers, which count question lines too; here they
become ascending indices into the facts.

In a haystack every fact is a chunk of its own, in order, at uniformly random places, the rest noise. A length
is a budget of tokens that facts and noise share. The noise starts anywhere in the books and begins again
where they don't reach.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from core.base.errors import BadRequest
from core.ingest.tokenizer import Tokenizer
from core.lab.tasks.data import UNREADABLE
from core.lab.tasks.example import Example, Noise, Woven, weave_to_length

Part = Literal["train", "test"]


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """One question and the facts told before it."""

    question: str
    facts: tuple[str, ...]
    support: tuple[int, ...]
    """Ascending indices into `facts`."""
    answer: str
    story: str = ""
    """Which story it belongs to; questions of one story share their first facts."""

    def over(self, chunks: Woven, example_id: str, task: str, kind: str = "") -> Example:
        """The question over its facts in a haystack."""
        support = tuple(chunks.places[row] for row in self.support)
        return Example(example_id, task, self.question, chunks, support, (self.answer,), kind)


def read_babi(folder: Path, task: str, part: Part) -> list[FactQuestion]:
    """All questions of the one file `<task>_<name>_<part>.txt`, or `.txt.gz`. Raises BadRequest."""
    paths = sorted([*folder.glob(f"{task}_*_{part}.txt.gz"), *folder.glob(f"{task}_*_{part}.txt")])
    if len(paths) != 1:
        raise BadRequest(
            f"{folder} has {len(paths)} files {task}_*_{part}.txt.gz, there must be one; unpack bAbI's en-10k"
            " there"
        )
    opened = gzip.open if paths[0].suffix == ".gz" else open
    try:
        with opened(paths[0], "rt", encoding="utf-8") as lines:
            return list(_questions(lines, paths[0].name, f"{task}-{part}"))
    except (*UNREADABLE, UnicodeDecodeError) as error:
        raise BadRequest(f"{paths[0].name} can't be read ({error}); fetch it again") from error


def _questions(lines: Iterable[str], file: str, prefix: str) -> Iterator[FactQuestion]:
    facts: list[str] = []
    row_of_line: dict[str, int] = {}
    story = 0
    for at, line in enumerate(lines, start=1):
        number, _, rest = line.strip().partition(" ")
        if not rest:
            continue
        if number == "1":
            story, facts, row_of_line = story + 1, [], {}
        if "\t" not in rest:
            row_of_line[number] = len(facts)
            facts.append(rest.strip())
            continue
        try:
            question, answer, support = (field.strip() for field in rest.split("\t"))
            rows = tuple(sorted({row_of_line[named] for named in support.split()}))
        except (ValueError, KeyError):
            raise BadRequest(
                f"{file} line {at}: a question must be followed by answer and numbers of earlier facts, split"
                " by tabs; put it right"
            ) from None
        yield FactQuestion(question, tuple(facts), rows, answer, f"{prefix}-{story}")


MAX_LENGTH = 20_000_000
"""Longest haystack, tokens: the most that a document may have."""

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)([km]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_length(text: str | int) -> int:
    """Tokens of a length as people write it: 4096, "1K", "1.5M". Raises BadRequest.

    >>> parse_length("32K")
    32000
    """
    match = _LENGTH.fullmatch(str(text).strip())
    tokens = round(float(match[1]) * _UNITS[match[2].lower()]) if match else 0
    if not 1 <= tokens <= MAX_LENGTH:
        raise BadRequest(
            f"length {text!r} is no number of tokens between 1 and {MAX_LENGTH:,}; write one as 4096, 32K"
            " or 1M"
        )
    return tokens


def name_length(tokens: int) -> str:
    """The shortest way to write a length.

    >>> name_length(32_000), name_length(1_500)
    ('32K', '1500')
    """
    for unit, size in (("M", 1_000_000), ("K", 1_000)):
        if tokens >= size and tokens % size == 0:
            return f"{tokens // size}{unit}"
    return str(tokens)


def babilong_examples(
    task: str,
    questions: Sequence[FactQuestion],
    noise: Noise,
    token_budget: int,
    n: int | None,
    seed: int,
    tokenizer: Tokenizer,
) -> tuple[list[Example], int]:
    """The first `n` questions that fit, None for all, in an order of the seed, each over its own haystack of
    at most `token_budget` tokens; and how many were left out since their story alone is longer.
    """
    order = list(range(len(questions)))
    Random(f"{task} {seed}").shuffle(order)
    examples: list[Example] = []
    left_out = 0
    for row in order:
        if len(examples) == n:
            break
        rng, told = Random(f"{task} {seed} {row} {token_budget}"), questions[row]
        n_own = int(tokenizer.count(told.facts).sum())
        chunks = weave_to_length(told.facts, n_own, noise, token_budget, rng)
        if chunks is None:
            left_out += 1
        else:
            name = f"{task}-{name_length(token_budget)}-{seed}-{row}"
            examples.append(told.over(chunks, name, task))
    return examples, left_out
