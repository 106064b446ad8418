"""Preference pairs, their files, and settings of a tuning.

A file is JSON lines in the conversational form that preference trainers take: `prompt`, `chosen` and
`rejected` are lists of messages, beside them `weight`, `kind` and `question`. It may come from anywhere, so
its sizes are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from core.base.config import check_numbers
from core.base.errors import BadRequest, first_problem
from core.lab.tasks.data import json_lines
from core.llm.draft import mended
from core.llm.protocol import Message, Role

Kind = Literal["rewrite", "continue_over_stop", "stop_over_continue"]
"""rewrite: the one of two that found more support. The others: the action before `over` is preferred."""

MAX_PAIRS, MAX_LINE_BYTES, MAX_FILE_BYTES = 100_000, 1_000_000, 4 << 30
"""Of one file."""


@dataclass(frozen=True, slots=True)
class Preference:
    """`chosen` is preferred to `rejected` as the reply to `prompt`."""

    kind: Kind
    question: str
    """Of the run: pairs of one question are held out together."""
    prompt: tuple[Message, ...]
    chosen: str
    rejected: str
    weight: float = 1.0
    """Factor of this pair's loss, above 0."""

    def to_json(self) -> dict[str, Any]:
        """A line of a file, plain JSON values."""
        return {
            "prompt": [{"role": message.role, "content": message.content} for message in self.prompt],
            "chosen": [{"role": "assistant", "content": self.chosen}],
            "rejected": [{"role": "assistant", "content": self.rejected}],
            "weight": self.weight,
            "kind": self.kind,
            "question": self.question,
        }


def pair_lines(pairs: Iterable[Preference]) -> Iterator[str]:
    """The lines of a file."""
    return (json.dumps(pair.to_json(), ensure_ascii=False, allow_nan=False) + "\n" for pair in pairs)


def read_pairs(path: Path) -> list[Preference]:
    """The pairs of a file. Raises BadRequest, with the line where one can't be used."""
    pairs: list[Preference] = []
    for where, record in json_lines(path, max_bytes=MAX_FILE_BYTES, max_line_bytes=MAX_LINE_BYTES):
        if len(pairs) == MAX_PAIRS:
            raise BadRequest(f"{path.name} has more than {MAX_PAIRS:,} pairs; split it")
        pairs.append(_pair(record, where))
    if not pairs:
        raise BadRequest(f"{path.name} holds no pairs; collect more runs and make it anew")
    return pairs


class _Turn(BaseModel, strict=True):
    role: Role
    content: str


class _Line(BaseModel, strict=True):
    prompt: list[_Turn] = Field(min_length=1)
    chosen: list[_Turn] = Field(min_length=1, max_length=1)
    rejected: list[_Turn] = Field(min_length=1, max_length=1)
    weight: float = Field(1.0, gt=0, le=1000)
    kind: Kind
    question: str = ""


def _pair(record: dict[str, Any], where: str) -> Preference:
    try:
        read = _Line.model_validate(record)
    except ValidationError as error:
        raise BadRequest(f"{where}: {first_problem(error)}; write it as `preferences` does") from error
    turns = (*read.prompt, *read.chosen, *read.rejected)
    *prompt, chosen, rejected = (Message(turn.role, mended(turn.content)) for turn in turns)
    if prompt[-1].role != "user":
        raise BadRequest(f"{where}: the last message of prompt must be the user's")
    if (chosen.role, rejected.role) != ("assistant", "assistant"):
        raise BadRequest(f"{where}: chosen and rejected must each be one message of the assistant")
    if chosen.content == rejected.content:
        raise BadRequest(f"{where}: chosen and rejected are the same; leave the line out")
    question, replies = mended(read.question), (chosen.content, rejected.content)
    return Preference(read.kind, question, tuple(prompt), *replies, read.weight)


@dataclass(frozen=True, kw_only=True)
class TuneConfig:
    """One tuning by DPO."""

    weight_lambda: float = 2.0
    """lambda: weight of pairs in which going on is preferred to stopping; others weigh as their file says."""
    beta: float = 0.1
    """Scale of the difference of log-probabilities within the loss."""
    reference: bool = True
    """Log-probabilities count relative to the untuned model; False as SPARC-RAG section 3.4 displays it."""
    epochs: int = 3
    """Times that all pairs are gone through."""
    learning_rate: float = 5e-5
    """At the first step; falls linearly to 0."""
    accumulate: int = 16
    """Pairs of one step of the optimizer."""
    rank: int = 16
    """Of the LoRA changes."""
    lora_alpha: float = 32.0
    """The changes are scaled by lora_alpha / rank."""
    max_tokens: int = 8192
    """Of prompt and reply together; longer pairs are left out."""
    seed: int = 42
    """Of everything random."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        least = {"epochs": 1, "accumulate": 1, "rank": 1, "max_tokens": 16, "seed": 0}
        check_numbers(self, least, ("beta", "learning_rate", "lora_alpha", "weight_lambda"))
