"""What all clients share: how a structured reply is asked for, found, checked and asked for again.

A client names the structures that its model serves, best first, and each refusal leads to the next: the JSON
schema, any JSON object, free text in which the object is looked for. A reply that doesn't fit is answered once
with what is wrong with it. Replies are as hostile as uploads: their size is bounded, half characters are
mended, and objects come out of pydantic alone.
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
    structure: Structure | None = None
    """What the reply is constrained to; None without a schema."""


class StructureRefused(Exception):
    """The model does not serve the structure asked for, as it said after `n_attempts` requests."""

    def __init__(self, n_attempts: int = 0) -> None:
        super().__init__(n_attempts)
        self.n_attempts = n_attempts


class _Unfit(Exception):
    """Why a text holds no object of the schema, as a clause for the model."""


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
        self._refused: set[Structure] = set()

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
            reply = self._complete(ask) if schema is None else self._structured(ask, schema)
        except LlmError as error:
            error.spent += Cost(milliseconds=1000 * (time.perf_counter() - began))
            raise
        return replace(reply, milliseconds=1000 * (time.perf_counter() - began))

    @property
    def _structures(self) -> Sequence[Structure]:
        """What the model may serve, best first; "text" is last and always among them."""
        return ("text",)

    @abstractmethod
    def _complete(self, ask: Ask) -> Reply:
        """The model's turn. Raises LlmError, LlmCancelled, StructureRefused for a structure but text."""

    def _structured(self, ask: Ask, schema: type[BaseModel]) -> Reply:
        first: Reply | None = None
        while True:
            try:
                reply, structure = self._as_served(ask, schema)
            except LlmError as error:
                error.spent += first.cost if first else Cost()
                raise
            total = _together(first, reply) if first else reply
            try:
                value, alone = _find_object(reply, schema)
                return replace(total, value=value, structure=self._noted(structure, alone))
            except _Unfit as unfit:
                self._noted(structure, reply.cut or _is_object(reply.text))
                why = str(unfit)
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

    def _as_served(self, ask: Ask, schema: type[BaseModel]) -> tuple[Reply, Structure]:
        """The reply under the best structure served. A refusal is remembered once something else works."""
        refused: list[Structure] = []
        n_refused = 0
        for structure in self._structures:
            if structure in self._refused:
                continue
            words = ask.messages if structure == "json_schema" else with_words(ask.messages, schema)
            try:
                reply = self._complete(replace(ask, messages=words, structure=structure))
            except StructureRefused as refusal:
                refused.append(structure)
                n_refused += refusal.n_attempts
            except LlmError as error:
                error.spent += Cost(n_refused)
                raise
            else:
                self._refused.update(refused)
                return replace(reply, n_attempts=reply.n_attempts + n_refused), structure
        raise AssertionError("text is refused by nobody")

    def _noted(self, structure: Structure, alone: bool) -> Structure:
        """What served. Words around the object: not constrained, so words tell the schema from now on."""
        if alone or structure == "text":
            return structure
        self._refused.add(structure)
        return "text"


def unheard(_: str) -> None:
    """For callers that wait for the whole reply."""


def estimated_tokens(characters: int) -> int:
    """About how many tokens a text has: four characters each."""
    return -(-characters // 4)


def estimated(ask: Ask, text: str) -> Reply:
    """A reply whose tokens nobody counted."""
    n_asked = sum(len(message.content) for message in ask.messages)
    return Reply(text, estimated_tokens(n_asked), estimated_tokens(len(text)), 0.0, "estimate")


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


def _find_object(reply: Reply, schema: type[BaseModel]) -> tuple[BaseModel, bool]:
    """The object in a reply, and whether it is all. Raises _Unfit with the last candidate's fault."""
    text = reply.text.strip()
    why = f"it was cut off after {reply.completion_tokens:,} tokens" if reply.cut else "it holds no JSON object"
    for start, end in _objects(text):
        try:
            return schema.model_validate_json(text[start:end]), (start, end) == (0, len(text))
        except ValidationError as error:
            fault = error.errors(include_input=False, include_url=False)[0]
            why = ": ".join(filter(None, (".".join(map(str, fault["loc"])), fault["msg"])))
    raise _Unfit(why)


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


def _is_object(text: str) -> bool:
    text = text.strip()
    return next(_objects(text), None) == (0, len(text))


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
