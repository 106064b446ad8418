"""What all clients share.

How a structured reply is asked for, found, checked and asked for again, and how tokens are counted where
nobody says. Decides the order of asking: constrained to the JSON schema, constrained to some JSON object,
free text in which the object is looked for; a client names those that its model serves. A reply that doesn't
fit is answered once with what is wrong with it. `Reply.structure` names what really served: an object that
had to be picked out of other words counts as text, whatever was asked for. Replies are as hostile as uploads:
their size is bounded, half characters are mended, and objects come out of pydantic only.
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

from core.base.errors import BadRequest
from core.llm.protocol import (
    CountedBy,
    LlmError,
    Message,
    Reply,
    Sampling,
    Spent,
    Structure,
    UnfitReply,
    never,
)

MAX_REPLY_CHARACTERS = 200_000
_MAX_NAME = 200
_MAX_OBJECTS = 50
"""Opening braces at which an object is looked for: replies are not trusted to be short of them."""
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Completion:
    """One model's turn, and what it cost."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    counted_by: CountedBy
    n_attempts: int = 1
    cut: bool = False
    """Whether it ended because the tokens did."""

    @property
    def spent(self) -> Spent:
        """Its cost, where nothing comes of it."""
        return Spent(self.n_attempts, self.prompt_tokens, self.completion_tokens)


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
    """The endpoint does not serve the structure asked for: its word on the last of `n_attempts` requests."""

    def __init__(self, n_attempts: int) -> None:
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
        """See `core.llm.protocol.Llm`. Raises UnfitReply when two replies running hold no such object."""
        began = time.perf_counter()
        ask = Ask(messages, sampling, on_text or unheard, cancelled, schema)
        structure: Structure | None = None
        value: BaseModel | None = None
        try:
            if schema is None:
                done = self._complete(ask)
            else:
                done, structure, value = self._structured(ask, schema)
        except LlmError as error:
            error.spent += Spent(milliseconds=1000 * (time.perf_counter() - began))
            raise
        milliseconds = 1000 * (time.perf_counter() - began)
        return Reply(
            done.text,
            done.prompt_tokens,
            done.completion_tokens,
            milliseconds,
            done.counted_by,
            done.n_attempts,
            structure,
            value,
            done.cut,
        )

    @property
    def _structures(self) -> Sequence[Structure]:
        """What the model may serve, best first; "text" is last and always among them."""
        return ("text",)

    @abstractmethod
    def _complete(self, ask: Ask) -> Completion:
        """The model's turn. Raises LlmError, LlmCancelled, StructureRefused for a structure but text."""

    def _structured(self, ask: Ask, schema: type[BaseModel]) -> tuple[Completion, Structure, BaseModel]:
        first, structure = self._as_served(ask, schema)
        try:
            value, alone = find_object(first, schema)
            return first, self._noted(structure, alone), value
        except _Unfit as unfit:
            self._noted(structure, first.cut or _is_object(first.text))
            complaint = f"That reply can't be used: {unfit}. Reply again.\n\n{schema_words(schema)}"
        again = [*ask.messages, Message("assistant", first.text), Message("user", complaint)]
        try:
            second, structure = self._as_served(replace(ask, messages=again), schema)
        except LlmError as error:
            error.spent += first.spent
            raise
        both = _together(first, second)
        try:
            value, alone = find_object(second, schema)
            return both, self._noted(structure, alone), value
        except _Unfit as unfit:
            sentence = (
                f"{self.name} twice gave no usable JSON object: {unfit}; try again, or choose a model that is"
                " better at JSON"
            )
            raise UnfitReply(sentence, both.spent) from None

    def _as_served(self, ask: Ask, schema: type[BaseModel]) -> tuple[Completion, Structure]:
        """The reply under the best structure served. A refusal is remembered once something else works."""
        refused: list[Structure] = []
        n_refused = 0
        for structure in self._structures:
            if structure in self._refused:
                continue
            words = ask.messages if structure == "json_schema" else with_words(ask.messages, schema)
            try:
                done = self._complete(replace(ask, messages=words, structure=structure))
            except StructureRefused as refusal:
                refused.append(structure)
                n_refused += refusal.n_attempts
            except LlmError as error:
                error.spent += Spent(n_refused)
                raise
            else:
                self._refused.update(refused)
                return replace(done, n_attempts=done.n_attempts + n_refused), structure
        raise AssertionError("text is refused by nobody")

    def _noted(self, structure: Structure, alone: bool) -> Structure:
        """What served. Words around the object: not constrained, so words tell the schema from now on."""
        if alone or structure == "text":
            return structure
        self._refused.add(structure)
        return "text"


def unheard(_: str) -> None:
    """For callers that wait for the whole reply."""


def _together(first: Completion, second: Completion) -> Completion:
    """The second of two turns, at the cost of both."""
    return replace(
        second,
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
        counted_by=second.counted_by if first.counted_by == second.counted_by else "estimate",
        n_attempts=first.n_attempts + second.n_attempts,
    )


def schema_words(schema: type[BaseModel]) -> str:
    """The schema for a model whose server doesn't put it before it."""
    text = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    return f"Reply with one JSON object that fits this JSON schema, and with nothing else:\n{text}"


def with_words(messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
    """The schema at the end of the last message: some chat templates take no further turn of the system."""
    *before, last = messages
    return [*before, replace(last, content=f"{last.content}\n\n{schema_words(schema)}")]


def strict_schema(node: Any) -> Any:
    """A JSON schema for servers that constrain strictly: every property required, no other, no defaults."""
    if isinstance(node, list):
        return [strict_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    strict = {
        key: strict_schema(value) for key, value in node.items() if key not in ("default", "properties")
    }
    if "properties" in node:
        strict["properties"] = {name: strict_schema(value) for name, value in node["properties"].items()}
        strict |= {"required": list(node["properties"]), "additionalProperties": False}
    return strict


def find_object(done: Completion, schema: type[BaseModel]) -> tuple[BaseModel, bool]:
    """The object in a completion, and whether it is all. Raises _Unfit with the best candidate's fault."""
    text = done.text.strip()
    why = f"it was cut off after {done.completion_tokens:,} tokens" if done.cut else "it holds no JSON object"
    for start, end in _objects(text):
        try:
            return schema.model_validate_json(text[start:end]), (start, end) == (0, len(text))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            why = f"{where}: {first['msg']}" if where else str(first["msg"])
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


def estimated_tokens(characters: int) -> int:
    """About how many tokens a text has: four characters each."""
    return -(-characters // 4)
