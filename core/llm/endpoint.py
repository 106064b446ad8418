"""A model behind an OpenAI-compatible endpoint.

vLLM, Ollama, llama.cpp, LM Studio, hosted ones, and the hub's inference, which speaks the same. Decides what
is tried again (429, 5xx, connections that fail, as long as no text has been passed on), how long a server's
Retry-After is honoured, and that what an endpoint refuses (a structure, a field of the request) is not asked
of it again by this client. Every failure is one sentence that names the model and its host; the endpoint's
own words stand in it as a short quotation without the key.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeGuard

from pydantic import SecretStr

from core.base.errors import BadRequest, quoted
from core.llm.address import ANYWHERE, HUB, Address, LookUp, Reach, read_address
from core.llm.background import pause
from core.llm.client import (
    MAX_REPLY_CHARACTERS,
    Ask,
    Client,
    Completion,
    StructureRefused,
    estimated_tokens,
    mended,
    strict_schema,
    unheard,
    without_thoughts,
)
from core.llm.protocol import CountedBy, LlmError, Spent, Structure
from core.llm.wire import Failed, Head, Patience, bounded, lines, post, server_sent

_REFUSES_STRUCTURE = frozenset({400, 404, 415, 422, 501})
_PASSING = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Answers after which the same request may go better."""
_DISPENSABLE = ("stream_options", "seed", "temperature", "top_p", "max_completion_tokens")
"""Fields that are left out where an endpoint complains of one; the last takes `max_tokens`'s place."""
_MAX_COMPLAINT_BYTES = 2**16
_MAX_TOKENS = 10**9
_DONE = "[DONE]"


class _FieldRefused(Exception):
    """The endpoint complains of a field that it can be spared."""


@dataclass
class _Told:
    """Passes text on, and remembers that it did: another attempt can't take it back."""

    on_text: Callable[[str], None]
    any: bool = False

    def __call__(self, text: str) -> None:
        self.any = self.on_text is not unheard
        self.on_text(mended(text))


class EndpointLlm(Client):
    """A client of one model at one address. Every call is a connection: calls may run side by side."""

    def __init__(
        self,
        address: Address,
        model: str,
        key: SecretStr | None = None,
        *,
        reach: Reach = ANYWHERE,
        patience: Patience = Patience(),  # noqa: B008 - frozen
        look_up: LookUp = socket.getaddrinfo,
    ) -> None:
        """Raises BadRequest for an address out of reach, a model without a name and a key that is none."""
        super().__init__(model)
        reach.check(address)
        self.address = address
        self._key, self._reach, self._patience, self._look_up = _checked_key(key), reach, patience, look_up
        self._spared: set[str] = set()

    def __repr__(self) -> str:
        return f"EndpointLlm({self.name!r} at {self.address})"

    @property
    def has_key(self) -> bool:
        """Whether its requests carry a key."""
        return self._key is not None

    @property
    def _structures(self) -> Sequence[Structure]:
        return ("json_schema", "json_object", "text")

    def _complete(self, ask: Ask) -> Completion:
        tell = _Told(ask.on_text)
        n_requests = n_failures = 0
        while True:
            n_requests += 1
            try:
                return self._post(ask, n_requests, tell)
            except _FieldRefused as refused:
                self._spared.add(str(refused))
            except Failed as failure:
                n_failures += 1
                wait = (
                    self._patience.first_wait * 2 ** (n_failures - 1)
                    if failure.wait is None
                    else failure.wait
                )
                if (
                    not failure.again
                    or tell.any
                    or n_failures >= self._patience.attempts
                    or wait > self._patience.longest_wait
                ):
                    tries = f", {n_failures} times in a row" if n_failures > 1 else ""
                    raise LlmError(f"{self._who} {failure}{tries}", Spent(n_requests)) from None
                pause(wait, ask.cancelled)

    @property
    def _who(self) -> str:
        return f"{self.name} at {self.address.netloc}"

    def _body(self, ask: Ask) -> bytes:
        length = "max_completion_tokens" if "max_completion_tokens" in self._spared else "max_tokens"
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": message.role, "content": message.content} for message in ask.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": ask.sampling.temperature,
            "top_p": 1.0,  # some servers take a default of each model's instead
            length: ask.sampling.max_tokens,
        }
        if ask.sampling.seed is not None:
            body["seed"] = ask.sampling.seed
        if ask.structure == "json_object":
            body["response_format"] = {"type": "json_object"}
        elif ask.structure == "json_schema" and ask.schema is not None:
            constraint = {
                "name": ask.schema.__name__,
                "schema": strict_schema(ask.schema.model_json_schema()),
                "strict": True,
            }
            body["response_format"] = {"type": "json_schema", "json_schema": constraint}
        for name in self._spared - {"max_completion_tokens"}:
            body.pop(name, None)
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")

    def _post(self, ask: Ask, n_requests: int, tell: _Told) -> Completion:
        """One request. Raises Failed, _FieldRefused, StructureRefused, LlmError, LlmCancelled."""

        def places() -> Any:
            return self._reach.places(self.address, self._look_up)

        body = self._body(ask)
        with closing(post(self.address, body, self._key, places, self._patience, ask.cancelled)) as answer:
            head = next(answer)
            assert isinstance(head, Head)
            if head.status != 200:
                raise self._refusal(head, _complaint(answer), ask.structure, n_requests)
            if "html" in head.content_type:
                raise Failed("answered with a web page; check the address", again=False)
            events = lines(bounded(answer))
            whole = "json" in head.content_type
            text, usage, finish = self._gathered(
                iter(["".join(events)]) if whole else server_sent(events), tell
            )
        n_characters = sum(len(message.content) for message in ask.messages)
        counted = _counts(usage)
        n_prompt, n_reply = counted or (estimated_tokens(n_characters), estimated_tokens(len(text)))
        counted_by: CountedBy = "endpoint" if counted else "estimate"
        return Completion(
            without_thoughts(mended(text)), n_prompt, n_reply, counted_by, n_requests, finish == "length"
        )

    def _gathered(self, events: Iterator[str], tell: _Told) -> tuple[str, Any, str]:
        """(text, usage, finish reason) of a reply. Raises Failed."""
        pieces: list[str] = []
        usage: Any = None
        finish, room = "", MAX_REPLY_CHARACTERS
        for data in events:
            if data == _DONE:
                finish = finish or "stop"
                break
            event = _parsed(data)
            if event.get("error"):
                raise Failed(
                    f"broke off with an error{quoted(_words_of(event), self._secrets)}; try again later",
                    again=False,
                )
            usage = event.get("usage") or usage
            choice = _first(event.get("choices"))
            said = choice.get("delta") or choice.get("message")
            piece = said.get("content") if isinstance(said, dict) else None
            if isinstance(piece, str) and piece:
                room -= len(piece)
                if room < 0:
                    raise Failed(
                        f"replied with more than {MAX_REPLY_CHARACTERS:,} characters; choose another model",
                        again=False,
                    )
                pieces.append(piece)
                tell(piece)
            if isinstance(choice.get("finish_reason"), str):
                finish = choice["finish_reason"]
        if not finish:
            raise Failed("broke off in the middle of its reply; try again", again=True)
        return "".join(pieces), usage, finish

    @property
    def _secrets(self) -> tuple[str, ...]:
        return () if self._key is None else (self._key.get_secret_value(),)

    def _refusal(self, head: Head, complaint: str, structure: Structure | None, n_requests: int) -> Exception:
        """What an answer other than 200 means."""
        status, words = head.status, quoted(complaint, self._secrets)
        if status in (400, 422):
            for name in _DISPENSABLE:
                if name not in self._spared and re.search(rf"\b{name}\b", complaint):
                    return _FieldRefused(name)
        if structure not in (None, "text") and status in _REFUSES_STRUCTURE:
            return StructureRefused(n_requests)
        if 300 <= status < 400:
            return Failed(
                f"answered with a redirect ({status}), and none is followed; give the address that it"
                " leads to",
                again=False,
            )
        if status in (401, 403):  # without its words: some repeat the key, or parts of it
            return Failed(
                (
                    f"refused the key ({status}); check it"
                    if self.has_key
                    else f"asks for a key ({status}); give one"
                ),
                again=False,
            )
        usual = "try again later" if status in _PASSING else "see what it says, and try again"
        return Failed(
            f"answered {status}{words}; {_REMEDIES.get(status, usual)}",
            again=status in _PASSING,
            wait=head.retry_after,
        )


_REMEDIES = {
    404: "check the address and the name of the model",
    405: "check the address: it should end before /chat/completions",
    413: "ask over less evidence",
    429: "wait a while and try again",
}


def connect(
    address: str,
    model: str,
    key: SecretStr | None = None,
    *,
    reach: Reach = ANYWHERE,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> EndpointLlm:
    """A client of the model at an address as people write it. Asks nothing yet.

    For the hub, the person at the machine may leave the key out: it is then the token of HF_TOKEN or of `hf
    auth login`. Raises BadRequest.
    """
    at, key = read_address(address), _checked_key(key)
    if key is None and reach.private and at.origin == read_address(HUB).origin:
        from huggingface_hub import get_token

        token = get_token()
        key = SecretStr(token) if token else None
    return EndpointLlm(at, model, key, reach=reach, patience=patience)


def _checked_key(key: SecretStr | None) -> SecretStr | None:
    """None for an empty key. Raises BadRequest, without the key, for one that can't stand in a request."""
    value = "" if key is None else key.get_secret_value().strip()
    if not value:
        return None
    if not re.fullmatch(r"[!-~]{1,2000}", value):
        raise BadRequest(
            f"the key has {len(value):,} characters; give one of up to 2,000, letters, digits and signs"
            " without blanks"
        )
    return SecretStr(value)


def _complaint(answer: Generator[Head | bytes]) -> str:
    """What an endpoint says is wrong, as far as it fits. Raises Failed."""
    said = b""
    for piece in bounded(answer):
        said += piece
        if len(said) > _MAX_COMPLAINT_BYTES:
            break
    text = said[:_MAX_COMPLAINT_BYTES].decode("utf-8", "replace")
    try:
        return _words_of(json.loads(text)) or text
    except (ValueError, RecursionError):
        return text


def _words_of(event: Any) -> str:
    """The message of an error object in any of the usual shapes."""
    error = (
        event.get("error", event.get("message", event.get("detail"))) if isinstance(event, dict) else event
    )
    message = error.get("message", "") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _parsed(data: str) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise Failed("sent something that is no part of a chat reply; check the address", again=False)
    return event


def _first(choices: Any) -> dict[str, Any]:
    """The first choice of an event; events that only carry usage have none."""
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _counts(usage: Any) -> tuple[int, int] | None:
    """(prompt, completion) tokens as the endpoint counts them; None where it gives no sensible numbers."""
    if not isinstance(usage, dict):
        return None
    prompt, replied = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return (prompt, replied) if _is_count(prompt) and _is_count(replied) else None


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MAX_TOKENS
