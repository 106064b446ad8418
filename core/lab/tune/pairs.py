"""Preference pairs and files of them.

A file is JSON lines in the conversational form that preference trainers take: `prompt`, `chosen` and
`rejected` are lists of messages, beside them `weight`, `kind` and `question`. It may come from anywhere, so
its sizes are bounded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from core.base.errors import BadRequest
from core.llm.client import mended
from core.llm.protocol import Message, Role

Kind = Literal["rewrite", "continue_over_stop", "stop_over_continue"]
"""rewrite: the one of two that found more support. The others: the action before `over` is preferred."""
KINDS: tuple[Kind, ...] = get_args(Kind)

MAX_PAIRS = 100_000
"""Most pairs of one file."""
MAX_LINE_BYTES = 1_000_000
"""Longest line of a file."""
_MAX_WEIGHT = 1000.0
_ROLES = get_args(Role)


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
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), start=1):
                if len(line) > MAX_LINE_BYTES:
                    raise BadRequest(
                        f"{path.name}, line {number}: it is longer than {MAX_LINE_BYTES:,} bytes; shorten its"
                        " prompt"
                    )
                if line.strip():
                    pairs.append(_pair(line, f"{path.name}, line {number}"))
                if len(pairs) > MAX_PAIRS:
                    raise BadRequest(f"{path.name} has more than {MAX_PAIRS:,} pairs; split it")
    except OSError as error:
        raise BadRequest(
            f"{path} can't be read ({error.strerror}); name a file that `preferences` wrote"
        ) from error
    if not pairs:
        raise BadRequest(f"{path.name} holds no pairs; collect more runs and make it anew")
    return pairs


def _pair(line: bytes, where: str) -> Preference:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRequest(
            f"{where}: it is no JSON; write an object with prompt, chosen, rejected, weight and kind a line"
        ) from error
    if not isinstance(values, dict):
        raise BadRequest(
            f"{where}: it is no JSON object; write one with prompt, chosen, rejected, weight and kind"
        )
    prompt = _messages(values.get("prompt"), "prompt", where)
    if prompt[-1].role != "user":
        raise BadRequest(f"{where}: the last message of prompt must be the user's")
    replies = [_messages(values.get(name), name, where) for name in ("chosen", "rejected")]
    if any(len(reply) != 1 or reply[0].role != "assistant" for reply in replies):
        raise BadRequest(f"{where}: chosen and rejected must each be one message of the assistant")
    chosen, rejected = (reply[0].content for reply in replies)
    if chosen == rejected:
        raise BadRequest(f"{where}: chosen and rejected are the same; leave the line out")
    weight, kind, question = values.get("weight", 1.0), values.get("kind"), values.get("question", "")
    if kind not in KINDS:
        raise BadRequest(f"{where}: its kind is none of {', '.join(KINDS)}")
    if type(weight) not in (int, float) or not (math.isfinite(weight) and 0 < weight <= _MAX_WEIGHT):
        raise BadRequest(f"{where}: its weight must be a number above 0, of {_MAX_WEIGHT:g} at most")
    if not isinstance(question, str):
        raise BadRequest(f"{where}: its question is no text")
    return Preference(kind, mended(question), prompt, chosen, rejected, float(weight))


def _messages(value: Any, name: str, where: str) -> tuple[Message, ...]:
    if not isinstance(value, list) or not value:
        raise BadRequest(f"{where}: {name} must be a list of messages")
    for message in value:
        fits = (
            isinstance(message, dict)
            and message.get("role") in _ROLES
            and isinstance(message.get("content"), str)
        )
        if not fits:
            raise BadRequest(
                f"{where}: each message of {name} needs a role ({', '.join(_ROLES)}) and a text as content"
            )
    return tuple(Message(message["role"], mended(message["content"])) for message in value)
