"""What every language model client offers, as frozen data and one protocol.

Decides what a call costs and how it may fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import BaseModel

from core.base.errors import UserError

Role = Literal["system", "user", "assistant"]
Structure = Literal["json_schema", "grammar", "json_object", "text"]
"""How a structured reply was got: constrained to the schema by an endpoint, or here, token by token, after it
was told in words; constrained to some JSON object; or found in free text.
"""
CountedBy = Literal["endpoint", "tokenizer", "estimate"]


@dataclass(frozen=True, slots=True)
class Spent:
    """What a call had cost when it failed; of requests without a reply nobody counted tokens."""

    n_attempts: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    milliseconds: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.n_attempts + other.n_attempts,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.milliseconds + other.milliseconds,
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """What a turn of an agent took. Calls and tokens are 0 for rules."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    milliseconds: float = 0.0
    structure: Structure | None = None
    """How the structured reply was got."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.milliseconds + other.milliseconds,
            other.structure or self.structure,
        )


class LlmError(UserError):
    """A call that brought no usable reply, in one sentence that holds no key."""

    def __init__(self, sentence: str, spent: Spent = Spent()) -> None:
        super().__init__(sentence)
        self.spent = spent
        """Of all attempts of the call, those whose reply didn't fit included."""


class UnfitReply(LlmError):
    """The model replied, twice, and no object of the schema could be had from it."""


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
    prompt_tokens: int
    completion_tokens: int
    milliseconds: float
    counted_by: CountedBy
    n_attempts: int = 1
    structure: Structure | None = None
    """None where no schema was asked for."""
    value: BaseModel | None = None
    """The validated object where a schema was asked for."""
    cut: bool = False
    """Whether it ended because the tokens did."""


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
    """Model name, for traces and logs; never an address with credentials."""

    def chat(
        self,
        messages: Sequence[Message],
        sampling: Sampling = ...,
        *,
        schema: type[BaseModel] | None = None,
        on_text: Callable[[str], None] | None = None,
        cancelled: Callable[[], bool] = ...,
    ) -> Reply:
        """One reply. `on_text` gets each piece. Raises LlmError, LlmCancelled soon after `cancelled()`."""
        ...
