"""A model behind an OpenAI-compatible endpoint, by the openai client.

vLLM, Ollama, llama.cpp, LM Studio, hosted ones, and the hub's inference. What may pass (429, 5xx, connections
that fail) is tried again as long as no text has been passed on. What an endpoint refuses, a structure or a
field of the request, is not asked of it again by this client. Every failure is one sentence that names the
model and its host; the endpoint's own words stand in it as a short quotation without the key.
"""

from __future__ import annotations

import email.utils
import re
import socket
import ssl
import time
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import httpx2
from pydantic import BaseModel, Field, SecretStr, ValidationError

from core.base.errors import BadRequest, UserError, quoted
from core.llm.address import ANYWHERE, HUB, Address, Reach, read_address
from core.llm.client import (
    MAX_REPLY_CHARACTERS,
    Ask,
    Client,
    estimated,
    mended,
    strict_schema,
    unheard,
    without_thoughts,
)
from core.llm.protocol import Cost, LlmError, Reply, Structure
from core.llm.wire import CheckedTransport, Failed, Patience, from_thread, pause

_STRUCTURES: tuple[Structure, ...] = ("json_schema", "json_object", "text")
_REFUSES_STRUCTURE = frozenset({400, 404, 415, 422, 501})
_PASSING = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Answers after which the same request may go better."""
_DISPENSABLE = {name: name for name in ("stream_options", "seed", "temperature", "top_p")}
_DISPENSABLE["max_completion_tokens"] = "max_tokens"
"""By a word of a complaint, the field to leave out; the last word takes its field's place."""
_MAX_SAID = 10_000
"""Characters of a complaint that are read."""
_REMEDIES = {
    404: "check the address and the name of the model",
    405: "check the address: it should end before /chat/completions",
    413: "ask over less evidence",
    429: "wait a while and try again",
}
_BREAKS: tuple[tuple[type[Exception], str, bool], ...] = (
    (socket.gaierror, "has a host name that nobody knows", True),
    (ssl.SSLCertVerificationError, "has no certificate to trust ({0.verify_message})", False),
    (ConnectionRefusedError, "does not listen", True),
    (httpx2.ConnectTimeout, "can't be reached within {1.connect:g} s", True),
    (httpx2.TimeoutException, "said nothing for {1.silence:g} s", False),
    (httpx2.TransportError, "broke the connection off ({2})", True),
    (OSError, "broke the connection off ({2})", True),
    (Exception, "sent something that is no part of a chat reply; check the address", False),
)
"""What an exception says of a connection, and whether it may pass; the first that fits."""


class _Usage(BaseModel):
    """Tokens as an endpoint counts them."""

    prompt_tokens: int = Field(strict=True, ge=0, le=10**9)
    completion_tokens: int = Field(strict=True, ge=0, le=10**9)


class EndpointLlm(Client):
    """A client of one model at one address. Every call is a connection: calls may run side by side."""

    def __init__(
        self, address: Address, model: str, key: SecretStr | None, reach: Reach, patience: Patience
    ) -> None:
        super().__init__(model)
        self.address = address
        self.has_key = key is not None
        self._key, self._reach, self._patience = key, reach, patience
        self._spared: set[str] = set()

    def _complete(self, ask: Ask) -> Reply:
        structures: list[Structure] = ["text"]
        if ask.schema:
            structures = [structure for structure in _STRUCTURES if structure not in self._refused]
        refused: set[Structure | None] = set()
        n_requests = n_failures = 0
        while True:
            n_requests += 1
            pieces: list[str] = []
            try:
                reply = self._reply(ask, structures[0], pieces)
            except Failed as failure:
                if field := self._complained_of(failure):
                    self._spared.add(field)
                    continue
                if len(structures) > 1 and failure.status in _REFUSES_STRUCTURE:
                    refused.add(structures.pop(0))
                    continue
                n_failures += 1
                wait = _seconds(failure.retry_after)
                if wait is None:
                    wait = self._patience.first_wait * 2 ** (n_failures - 1)
                if (
                    not failure.again
                    or (pieces and ask.on_text is not unheard)  # nobody can take it back
                    or n_failures >= self._patience.attempts
                    or wait > self._patience.longest_wait
                ):
                    tries = f", {n_failures} times in a row" if n_failures > 1 else ""
                    sentence = f"{self.name} at {self.address.netloc} {failure.words}{tries}"
                    raise LlmError(sentence, Cost(n_requests)) from None
            else:
                self._refused |= refused
                return replace(reply, n_attempts=n_requests)
            pause(wait, ask.cancelled)

    def _complained_of(self, failure: Failed) -> str | None:
        """A field that the endpoint refuses and can be spared."""
        if failure.status not in (400, 422):
            return None
        words = {word for word, field in _DISPENSABLE.items() if field not in self._spared}
        return next((_DISPENSABLE[word] for word in re.findall(r"\w+", failure.said) if word in words), None)

    def _body(self, ask: Ask, structure: Structure) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [
                {"role": message.role, "content": mended(message.content)} for message in ask.told(structure)
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": ask.sampling.temperature,
            "top_p": 1.0,  # some servers take a default of each model's instead
            "max_tokens": ask.sampling.max_tokens,
        }
        if ask.sampling.seed is not None:
            body["seed"] = ask.sampling.seed
        body = {name: value for name, value in body.items() if name not in self._spared}
        if "max_tokens" in self._spared:
            body["max_completion_tokens"] = ask.sampling.max_tokens
        if structure == "json_object":
            body["response_format"] = {"type": "json_object"}
        elif structure == "json_schema" and ask.schema:
            constraint = {"name": ask.schema.__name__, "schema": strict_schema(ask.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": constraint}
        return body

    def _reply(self, ask: Ask, structure: Structure, pieces: list[str]) -> Reply:
        """The answer to one request; its text goes into `pieces` on the way. Raises Failed."""
        usage: Any = None
        finish, room = "", MAX_REPLY_CHARACTERS
        with closing(self._events(self._body(ask, structure), ask.cancelled)) as events:
            for event in events:
                usage = event.get("usage") or usage
                choice = _first(event.get("choices"))
                said = choice.get("delta") or choice.get("message")
                piece = said.get("content") if isinstance(said, dict) else None
                if isinstance(piece, str) and piece:
                    room -= len(piece)
                    if room < 0:
                        most = f"{MAX_REPLY_CHARACTERS:,} characters"
                        raise Failed(f"replied with more than {most}; choose another model")
                    pieces.append(piece)
                    ask.on_text(mended(piece))
                reason = choice.get("finish_reason")
                finish = finish or (reason if isinstance(reason, str) else "")
        if not finish:
            raise Failed("broke off in the middle of its reply; try again", again=True)
        text = mended("".join(pieces))
        reply = replace(estimated(ask.told(structure), text, structure), text=without_thoughts(text))
        with suppress(ValidationError):
            reply = replace(reply, **_Usage.model_validate(usage).model_dump(), counted_by="endpoint")
        return replace(reply, cut=finish == "length")

    def _events(self, body: dict[str, Any], cancelled: Callable[[], bool]) -> Generator[dict[str, Any]]:
        """What comes back, event by event. Raises Failed, LlmError of `Reach`, LlmCancelled."""
        transport = CheckedTransport(self.address, self._key, self._reach)
        timeout = httpx2.Timeout(self._patience.silence, connect=self._patience.connect)

        def work(put: Callable[[dict[str, Any]], None]) -> None:
            import openai  # takes more than a second, which no start waits for

            failure: Exception
            try:
                with openai.OpenAI(
                    api_key="added by the transport",  # without one, it looks into the environment
                    base_url=str(self.address),
                    max_retries=0,
                    timeout=timeout,
                    http_client=httpx2.Client(transport=transport, trust_env=False, timeout=timeout),
                ) as client:
                    # plain values: its types would take a hostile answer at its word
                    stream = client.post(
                        "/chat/completions",
                        body=body,
                        cast_to=object,
                        stream=True,
                        stream_cls=openai.Stream[object],
                    )
                    for event in stream:
                        if not isinstance(event, dict):
                            raise TypeError
                        put(event)
                if not transport.ended:  # the client stops where the server says [DONE]
                    put({"choices": [{"finish_reason": "stop"}]})
                return
            except (Failed, UserError) as error:
                failure = error
            except Exception as error:  # whatever a hostile answer provokes
                failure = self._failed(error)
            raise failure.with_traceback(None)  # nothing behind it: its frames would hold the key

        try:
            yield from from_thread(work, cancelled, self._patience.whole)
        except TimeoutError:
            raise Failed(f"was not done within {self._patience.whole:g} s") from None
        finally:
            transport.end()

    def _failed(self, error: Exception) -> Failed:
        """What went wrong, in words."""
        import openai

        if isinstance(error, openai.APIStatusError):
            said = self._without_key(_words_of(error.body) or error.response.text)
            return self._refusal(error.status_code, said, error.response.headers["retry-after"])
        if type(error) is openai.APIError:
            said = quoted(self._without_key(_words_of(error.body)))
            return Failed(f"broke off with an error{said}; try again later")
        causes: list[BaseException] = [error]
        while cause := causes[-1].__cause__ or causes[-1].__context__:
            causes.append(cause)
        return next(
            Failed(words.format(cause, self._patience, type(causes[-1]).__name__), again)
            for kind, words, again in _BREAKS
            for cause in causes
            if isinstance(cause, kind)
        )

    def _without_key(self, said: str) -> str:
        """Some repeat it."""
        return (said.replace(self._key.get_secret_value(), "***") if self._key else said)[:_MAX_SAID]

    def _refusal(self, status: int, said: str, retry_after: str) -> Failed:
        """What a status other than 200 means."""
        if 300 <= status < 400:
            words = f"answered with a redirect ({status}), and none is followed; give the address it leads to"
        elif status in (401, 403):  # without its words: some repeat parts of the key
            asks = "refused the key ({}); check it" if self.has_key else "asks for a key ({}); give one"
            words = asks.format(status)
        else:
            usual = "try again later" if status in _PASSING else "see what it says, and try again"
            words = f"answered {status}{quoted(said)}; {_REMEDIES.get(status, usual)}"
        return Failed(words, status in _PASSING, status, said, retry_after)


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
    auth login`. Raises BadRequest for an address that is none or out of reach, a model without a name, and a
    key that is none.
    """
    at = read_address(address)
    reach.check(at)
    value = key.get_secret_value().strip() if key else ""
    if not value and reach.private and at.origin == read_address(HUB).origin:
        from huggingface_hub import get_token

        value = get_token() or ""
    if not re.fullmatch(r"[!-~]{0,2000}", value):
        raise BadRequest(
            f"the key has {len(value):,} characters; give one of up to 2,000, letters, digits and signs"
            " without blanks"
        )
    return EndpointLlm(at, model, SecretStr(value) if value else None, reach, patience)


def _words_of(body: Any) -> str:
    """What an error's body says, in any of the usual shapes."""
    if isinstance(body, dict):
        body = body.get("message", body.get("detail"))
    return body if isinstance(body, str) else ""


def _seconds(retry_after: str) -> float | None:
    """Retry-After in seconds from now, which may also be a date."""
    try:
        if retry_after.strip().isdecimal():
            return float(retry_after)
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _first(choices: Any) -> dict[str, Any]:
    """The first choice of an event; events that only carry usage have none."""
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
