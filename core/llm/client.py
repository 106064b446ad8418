"""What clients share: how a structured reply is asked for and checked.

Where nothing constrains it to its JSON schema, the schema is told in words and the object looked for among
the words of the reply. A reply that doesn't fit is answered once with what is wrong with it. Replies are as
hostile as uploads: their size is bounded, half characters are mended, and objects come out of pydantic alone.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from core.base.errors import BadRequest
from core.llm.protocol import Cost, LlmError, Message, Reply, Sampling, Structure, UnfitReply, never

MAX_REPLY_CHARACTERS = 200_000
_MAX_NAME = 200
_MAX_OBJECTS = 50
"""Opening braces at which an object is looked for."""
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a model is to complete, and how."""

    messages: Sequence[Message]
    sampling: Sampling
    on_text: Callable[[str], None]
    cancelled: Callable[[], bool]
    schema: type[BaseModel] | None = None

    def told(self, structure: Structure | None = "text") -> Sequence[Message]:
        """The conversation; the schema in words, too, unless a server puts it before its model."""
        if self.schema is None or structure == "json_schema":
            return self.messages
        return with_words(self.messages, self.schema)


class Client(ABC):
    """A language model that has to say only how it completes a conversation."""

    name: str

    def __init__(self, name: str) -> None:
        """Raises BadRequest for a name that can't stand in a sentence."""
        if not (name.strip() and name.isprintable() and len(name) <= _MAX_NAME):
            raise BadRequest(
                f"the language model's name has {len(name):,} characters; give one of 1 to {_MAX_NAME}"
                " printable ones, as its server calls it"
            )
        self.name = name.strip()
        self._refused: set[Structure | None] = set()
        """Structures that it doesn't serve."""

    def chat(
        self,
        messages: Sequence[Message],
        sampling: Sampling = Sampling(),  # noqa: B008 - frozen
        *,
        schema: type[BaseModel] | None = None,
        on_text: Callable[[str], None] | None = None,
        cancelled: Callable[[], bool] = never,
    ) -> Reply:
        """See `Llm`. Raises UnfitReply when two replies running hold no object of the schema."""
        began = time.perf_counter()
        ask = Ask(messages, sampling, on_text or unheard, cancelled, schema)
        try:
            reply = (
                replace(self._complete(ask), structure=None)
                if schema is None
                else self._structured(ask, schema)
            )
        except LlmError as error:
            milliseconds = 1000 * (time.perf_counter() - began)
            error.spent = replace(error.spent, milliseconds=milliseconds, structure=None)
            raise
        return replace(reply, milliseconds=1000 * (time.perf_counter() - began))

    @abstractmethod
    def _complete(self, ask: Ask) -> Reply:
        """The model's turn, with what it was constrained to. Raises LlmError, LlmCancelled."""

    def _structured(self, ask: Ask, schema: type[BaseModel]) -> Reply:
        first: Reply | None = None
        while True:
            try:
                reply = self._complete(ask)
            except LlmError as error:
                error.spent += first.cost if first else Cost()
                raise
            value, alone, why = _found(reply, schema)
            if not alone and reply.structure != "text":  # nothing constrained it: from now on words do
                self._refused.add(reply.structure)
                reply = replace(reply, structure="text")
            total = _together(first, reply) if first else reply
            if value is not None:
                return replace(total, value=value)
            if first:
                raise UnfitReply(
                    f"{self.name} twice gave no usable JSON object: {why}; try again, or choose a model that"
                    " is better at JSON",
                    total.cost,
                )
            first = reply
            complaint = f"That reply can't be used: {why}. Reply again.\n\n{_schema_words(schema)}"
            again = (Message("assistant", reply.text), Message("user", complaint))
            ask = replace(ask, messages=[*ask.messages, *again])


def unheard(_: str) -> None:
    """For callers that wait for the whole reply."""


def estimated_tokens(characters: int) -> int:
    """About how many tokens a text has: four characters each."""
    return -(-characters // 4)


def estimated(messages: Sequence[Message], text: str, structure: Structure | None = "text") -> Reply:
    """A reply whose tokens nobody counted."""
    n_asked = estimated_tokens(sum(len(message.content) for message in messages))
    return Reply(text, n_asked, estimated_tokens(len(text)), 0.0, "estimate", structure=structure)


def _together(first: Reply, second: Reply) -> Reply:
    """The second of two turns, at the cost of both."""
    return replace(
        second,
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        counted_by=second.counted_by if first.counted_by == second.counted_by else "estimate",
        n_attempts=first.n_attempts + second.n_attempts,
    )


def _schema_words(schema: type[BaseModel]) -> str:
    """The schema for a model whose server doesn't put it before it."""
    text = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    return f"Reply with one JSON object that fits this JSON schema, and with nothing else:\n{text}"


def with_words(messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
    """The schema at the end of the last message: some chat templates take no further turn of the system."""
    *before, last = messages
    return [*before, replace(last, content=f"{last.content}\n\n{_schema_words(schema)}")]


class _Strict(GenerateJsonSchema):
    """For servers that constrain strictly: every property required, no other, no defaults."""

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: ARG002
        return True

    def model_schema(self, schema: Any) -> dict[str, Any]:
        return {**super().model_schema(schema), "additionalProperties": False}


def strict_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema as servers take it that constrain replies."""
    return schema.model_json_schema(schema_generator=_Strict)


def _found(reply: Reply, schema: type[BaseModel]) -> tuple[BaseModel | None, bool, str]:
    """The object in a reply, whether it is all that the reply holds, and without one, what is wrong."""
    text, alone = reply.text.strip(), reply.cut
    why = (
        f"it was cut off after {reply.completion_tokens:,} tokens" if reply.cut else "it holds no JSON object"
    )
    for start, end in _objects(text):
        is_all = (start, end) == (0, len(text))
        alone = alone or is_all
        try:
            return schema.model_validate_json(text[start:end]), is_all, ""
        except ValidationError as error:
            fault = error.errors(include_input=False, include_url=False)[0]
            why = ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"])))
    return None, alone, why


def _objects(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the JSON objects in a text, outermost ones, in order."""
    decoder, start = json.JSONDecoder(), text.find("{")
    for _ in range(_MAX_OBJECTS):
        if start < 0:
            return
        try:
            _, end = decoder.raw_decode(text, start)
            yield start, end
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)


def mended(text: str) -> str:
    """Text that every encoder reads: halves of a character that came apart are joined, lone ones and NUL
    replaced.

    >>> mended("\\ud83d\\ude00 a\\udc00\\0") == "\\U0001f600 a\\ufffd\\ufffd"
    True
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")


def without_thoughts(text: str) -> str:
    """What a model says after thinking aloud."""
    return _THOUGHTS.sub("", text, count=1)
