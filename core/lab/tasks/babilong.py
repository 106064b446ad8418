"""bAbI stories hidden in long texts, as BabiLong composes them.

Every fact a chunk of its own, in order, the rest noise. A length is a budget of tokens that facts and noise
share, counted by the encoder's tokenizer without special tokens. Facts stand at uniformly random places; the
noise starts anywhere in the books and begins again where they don't reach. Stories that are longer than the
budget are left out, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from core.base.errors import BadRequest
from core.ingest.tokenizer import Tokenizer
from core.lab.tasks.babi import BabiQuestion, Part, read_babi
from core.lab.tasks.example import Example, Noise, Woven, weave, weave_to_length

MAX_LENGTH = 20_000_000
"""Longest haystack, tokens: the most that a document may have."""

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)([km]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_length(text: str | int) -> int:
    """Tokens of a length as people write it: 4096, "1K", "32K", "1.5M". Raises BadRequest when it is none, or
    out of bounds.

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


@dataclass(frozen=True, slots=True)
class Composed:
    """Examples of one length, and how many questions were left out because their story alone is longer."""

    examples: tuple[Example, ...]
    left_out: int


def compose(
    task: str,
    question: BabiQuestion,
    noise: Noise,
    token_budget: int,
    rng: Random,
    tokenizer: Tokenizer,
    example_id: str,
) -> Example | None:
    """One question over a haystack of at most `token_budget` tokens; None when the story alone is longer."""
    chunks = weave_to_length(
        question.facts, int(tokenizer.count(question.facts).sum()), noise, token_budget, rng
    )
    return None if chunks is None else _example(task, question, chunks, example_id)


def compose_chunks(
    task: str, question: BabiQuestion, noise: Noise, n_chunks: int, rng: Random, example_id: str
) -> Example:
    """One question over `n_chunks` chunks, or as many as the story has: the short haystacks of training."""
    chunks = weave(question.facts, noise, max(0, n_chunks - len(question.facts)), rng)
    return _example(task, question, chunks, example_id)


def _example(task: str, question: BabiQuestion, chunks: Woven, example_id: str) -> Example:
    support = tuple(chunks.places[row] for row in question.support)
    return Example(example_id, task, question.question, chunks, support, (question.answer,))


def compose_all(
    task: str,
    questions: Sequence[BabiQuestion],
    noise: Noise,
    token_budget: int,
    seed: int,
    tokenizer: Tokenizer,
    n: int | None,
) -> Composed:
    """The first `n` questions that fit, None for all, in an order of the seed."""
    order = list(range(len(questions)))
    Random(f"{task} {seed}").shuffle(order)
    examples: list[Example] = []
    left_out = 0
    for row in order:
        if n is not None and len(examples) == n:
            break
        rng = Random(f"{task} {seed} {row} {token_budget}")
        example = compose(
            task,
            questions[row],
            noise,
            token_budget,
            rng,
            tokenizer,
            f"{task}-{name_length(token_budget)}-{seed}-{row}",
        )
        if example is None:
            left_out += 1
        else:
            examples.append(example)
    return Composed(tuple(examples), left_out)


def babilong_examples(
    task: str,
    part: Part,
    length: str | int,
    n: int | None,
    seed: int,
    noise: Noise,
    *,
    tokenizer: Tokenizer,
    folder: Path,
) -> Composed:
    """Up to `n` questions (None: all) of a bAbI file in `folder`, each over its own haystack of `length`
    tokens.

    Raises BadRequest when the file can't be read, or no story fits.
    """
    token_budget = parse_length(length)
    composed = compose_all(task, read_babi(folder, task, part), noise, token_budget, seed, tokenizer, n)
    if not composed.examples:
        raise BadRequest(f"no story of {task} fits in {token_budget:,} tokens; ask for a greater length")
    return composed
