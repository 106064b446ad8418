"""What clients share: how a structured reply is asked for and checked.

Where nothing constrains it to its JSON schema, the schema is told in words and the object looked for among
the words of the reply, without a comma too many, also inside another object; of several the last that fits,
since models plan aloud and show templates. A reply that doesn't fit is answered once with what is wrong with
it; one without a word is an error. Replies are as hostile as uploads: their size is bounded, half characters
are mended, and objects come out of pydantic alone.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from core.base.errors import BadRequest, first_problem, quoted
from core.llm.draft import Draft
from core.llm.protocol import (
    Cost,
    LlmError,
    Message,
    NotAnswered,
    Reply,
    Sampling,
    Structure,
    UnfitReply,
    never,
)

MAX_REPLY_CHARACTERS = 200_000
LONGEST_REPLY = 50_000
"""Most tokens that may be allowed one."""
_MAX_NAME = 200
_MAX_OBJECTS = 50
"""Opening braces at which an object is looked for."""
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)
"""A string, which stays, or a comma that nothing follows."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What a model is to complete, and how."""

    messages: Sequence[Message]
    sampling: Sampling
    draft: Draft
    cancelled: Callable[[], bool]
    schema: type[BaseModel] | None = None
    is_again: bool = False
    """Whether the last message says what was wrong with a reply."""

    def told(self, structure: Structure | None = "text") -> Sequence[Message]:
        """The conversation; the schema in words, too, unless a server puts it before its model, which by then
        has kept to it.
        """
        if self.schema is None or (structure == "json_schema" and not self.is_again):
            return self.messages
        return with_words(self.messages, self.schema)


class Client(ABC):
    """A language model that has to say only how it completes a conversation."""

    name: str

    def __init__(self, name: str, reply_tokens: int | None = None) -> None:
        """reply_tokens: see `Llm`. Raises BadRequest for those, or a name that can't stand in a sentence."""
        if not (name.strip() and name.isprintable() and len(name) <= _MAX_NAME):
            raise BadRequest(
                f"the language model's name has {len(name):,} characters; give one of 1 to {_MAX_NAME}"
                " printable ones, as its server calls it"
            )
        if reply_tokens is not None and not 1 <= reply_tokens <= LONGEST_REPLY:
            raise BadRequest(
                f"a reply of {reply_tokens:,} tokens can't be asked for; give 1 to {LONGEST_REPLY:,}, or"
                " none for what each task needs"
            )
        self.name, self.reply_tokens = name.strip(), reply_tokens
        self._refused: set[Structure | None] = set()

    def chat(
        self,
        messages: Sequence[Message],
        sampling: Sampling = Sampling(),  # noqa: B008 - frozen
        *,
        schema: type[BaseModel] | None = None,
        draft: Draft | None = None,
        cancelled: Callable[[], bool] = never,
    ) -> Reply:
        """See `Llm`. Raises NotAnswered, UnfitReply when two replies running hold no object of the schema."""
        began = time.perf_counter()
        ask = Ask(messages, sampling, draft or Draft(), cancelled, schema)
        try:
            if schema is None:
                reply = replace(self._said(ask), structure=None)
            else:
                reply = self._structured(ask, schema)
        except LlmError as error:
            milliseconds = 1000 * (time.perf_counter() - began)
            error.spent = replace(error.spent, milliseconds=milliseconds, structure=None)
            raise
        return replace(reply, milliseconds=1000 * (time.perf_counter() - began))

    @abstractmethod
    def _complete(self, ask: Ask) -> Reply:
        """The model's turn, with what it was constrained to. Raises LlmError, LlmCancelled."""

    @property
    def called(self) -> str:
        """How a sentence names it."""
        return self.name

    def _said(self, ask: Ask) -> Reply:
        """The model's turn, which has words, unless an object is asked for: it is then asked again. Raises as
        `_complete`, NotAnswered.
        """
        reply = self._complete(ask)
        if reply.text.strip() or not (ask.schema is None or reply.cut or reply.thoughts):
            return reply
        if reply.cut:
            how = "thinking" if reply.thoughts else "without a word"
            words = f"spent its {reply.completion_tokens:,} tokens {how}; allow longer replies"
        else:
            did = "only thought and never replied" if reply.thoughts else "replied with nothing"
            words = f"{did}; ask again, or choose another model"
        raise NotAnswered(f"{self.called} {words}", reply.cost)

    def _structured(self, ask: Ask, schema: type[BaseModel]) -> Reply:
        first: Reply | None = None
        while True:
            try:
                reply = self._said(ask)
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
                remedy = "try again, or choose a model that is better at JSON"
                if reply.cut:
                    remedy = "allow longer replies"
                raise UnfitReply(
                    f"{self.called} twice gave no usable JSON object: {why}; {remedy}", total.cost
                )
            first = reply
            complaint = Message("user", f"That reply can't be used: {why}. Reply again.")
            again = (Message("assistant", reply.text), complaint)
            ask = replace(ask, messages=[*ask.messages, *again], is_again=True)


def estimated_tokens(*texts: str) -> int:
    """About how many tokens texts have: four bytes each, which is four letters of English, and fewer of the
    scripts that take more tokens.

    >>> estimated_tokens("harbour", "s"), estimated_tokens("渡轮几点开")
    (2, 4)
    """
    return -(-sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // 4)


def estimated(ask: Ask, structure: Structure | None = "text") -> Reply:
    """The reply that was written, whose tokens nobody counted."""
    thoughts, text = ask.draft.parts(finished=True)
    n_asked = estimated_tokens(*(message.content for message in ask.told(structure)))
    n_written = estimated_tokens(ask.draft.raw)
    return Reply(text, n_asked, n_written, 0.0, "estimate", structure=structure, thoughts=thoughts)


def _together(first: Reply, second: Reply) -> Reply:
    """The second of two turns, at the cost of both."""
    cost = first.cost + second.cost
    return replace(
        second,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        counted_by=second.counted_by if first.counted_by == second.counted_by else "estimate",
        n_attempts=cost.calls,
    )


def with_words(messages: Sequence[Message], schema: type[BaseModel]) -> list[Message]:
    """The schema at the end of the last message: some chat templates take no further turn of the system."""
    *before, last = messages
    text = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    words = f"Reply with one JSON object that fits this JSON schema, and with nothing else:\n{text}"
    return [*before, replace(last, content=f"{last.content}\n\n{words}")]


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


def without_system(messages: Sequence[Message]) -> list[Message]:
    """The same conversation with what the system says at the head of the first turn."""
    system = [message.content for message in messages if message.role == "system"]
    first, *further = [message for message in messages if message.role != "system"]
    return [Message(first.role, "\n\n".join([*system, first.content])), *further]


def _found(reply: Reply, schema: type[BaseModel]) -> tuple[BaseModel | None, bool, str]:
    """The object in a reply, whether it is all that the reply holds, and without one, what is wrong."""
    text, alone = reply.text.strip(), reply.cut
    found, why = _objects(text)
    if reply.cut:
        why = f"it was cut off after {reply.completion_tokens:,} tokens"
    elif not text:
        why = "it is empty"
    last: tuple[BaseModel, bool, str] | None = None
    for objects, is_all in found:
        alone = alone or is_all
        faults: list[str] = []
        for candidate in objects:
            try:
                last = schema.model_validate_json(candidate), is_all and not faults, ""
                break
            except ValidationError as error:
                faults.append(first_problem(error))
        else:
            why = faults[0]
    return last or (None, alone, why)


def _objects(text: str) -> tuple[list[tuple[list[str], bool]], str]:
    """The outermost JSON objects in a text, in order, each with those right inside it, and whether the text
    holds nothing else; and what is wrong with a text without one.
    """
    # not strict: models break lines inside of strings
    decoder, start, length, is_mended = json.JSONDecoder(strict=False), text.find("{"), len(text), False
    objects: list[tuple[list[str], bool]] = []
    why = ""
    for _ in range(_MAX_OBJECTS):
        if start < 0:
            break
        try:
            found, end = decoder.raw_decode(text, start)
            within = islice((inner for inner in found.values() if isinstance(inner, dict)), _MAX_OBJECTS)
            objects.append(([*map(json.dumps, [found, *within])], (start, end) == (0, length)))
        except (ValueError, RecursionError) as error:
            if not is_mended:
                text, start, is_mended = _COMMA.sub(r"\1", text[start:]), 0, True
                continue
            why = why or f"its JSON is broken{quoted(str(error))}"
            end = start + 1
        start = text.find("{", end)
    return objects, why or "it holds no JSON object"
