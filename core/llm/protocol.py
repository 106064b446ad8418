"""What every client of a language model offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import BaseModel

from core.base.errors import UserError
from core.llm.draft import Draft

Role = Literal["system", "user", "assistant"]
Structure = Literal["json_schema", "grammar", "json_object", "text"]
"""How a structured reply was got: constrained to the schema by an endpoint, or here, token by token;
constrained to any JSON object; or found in free text.
"""
CountedBy = Literal["endpoint", "tokenizer", "estimate"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a turn of an agent, or a call, took. Calls and tokens are 0 for rules; of requests without a reply
    nobody counted tokens.
    """

    calls: int = 0
    """Requests, repeated ones included."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    milliseconds: float = 0.0
    structure: Structure | None = None

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.milliseconds + other.milliseconds,
            other.structure or self.structure,
        )


class LlmError(UserError):
    """A call that brought no usable reply, in one sentence without the key."""

    def __init__(self, sentence: str, spent: Cost = Cost()) -> None:
        super().__init__(sentence)
        self.spent = spent
        """Of all requests of the call, those whose reply didn't fit included."""


class NotAnswered(LlmError):
    """The model was there and gave nothing to use: it refused, was stopped, only thought, or said no word."""


class UnfitReply(NotAnswered):
    """It replied twice, and neither reply held an object of the schema."""


class LlmCancelled(Exception):
    """The caller cancelled while a reply was on its way."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished reply and what it cost."""

    text: str
    """What is said, and never empty."""
    prompt_tokens: int
    completion_tokens: int
    milliseconds: float
    counted_by: CountedBy
    n_attempts: int = 1
    structure: Structure | None = None
    value: BaseModel | None = None
    """The validated object; like the structure, None where no schema was asked for."""
    cut: bool = False
    """Whether the tokens ran out before the reply ended."""
    thoughts: str = ""
    """What the model thought first, where it thinks aloud."""

    @property
    def cost(self) -> Cost:
        return Cost(
            self.n_attempts, self.prompt_tokens, self.completion_tokens, self.milliseconds, self.structure
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How to generate."""

    temperature: float = 0.0
    max_tokens: int = 600
    seed: int | None = None


def never() -> bool:
    """For callers that don't cancel."""
    return False


class Llm(Protocol):
    """A language model. Safe to call from several threads at once."""

    name: str
    """For traces and logs; never an address with credentials."""
    reply_tokens: int | None
    """Most tokens of a reply, thoughts included, as callers are to ask for; None: what their task needs."""

    def chat(
        self,
        messages: Sequence[Message],
        sampling: Sampling = ...,
        *,
        schema: type[BaseModel] | None = None,
        draft: Draft | None = None,
        cancelled: Callable[[], bool] = ...,
    ) -> Reply:
        """One reply, written into `draft` as it comes. Raises LlmError, LlmCancelled soon after
        `cancelled()`.
        """
        ...
