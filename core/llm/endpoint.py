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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import httpx2
from pydantic import BaseModel, Field, SecretStr, ValidationError

from core.base.errors import BadRequest, UserError, quoted
from core.llm.address import ANYWHERE, HUB, Address, LookUp, Reach, read_address
from core.llm.background import from_thread, pause
from core.llm.client import (
    MAX_REPLY_CHARACTERS,
    Ask,
    Client,
    StructureRefused,
    estimated,
    mended,
    strict_schema,
    unheard,
    without_thoughts,
)
from core.llm.protocol import Cost, LlmError, Reply, Structure
from core.llm.wire import CheckedTransport, Failed, Patience

_REFUSES_STRUCTURE = frozenset({400, 404, 415, 422, 501})
_PASSING = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Answers after which the same request may go better."""
_DISPENSABLE = ("stream_options", "seed", "temperature", "top_p", "max_completion_tokens")
"""Fields that are left out where an endpoint complains of one; the last takes `max_tokens`'s place."""
_REMEDIES = {
    404: "check the address and the name of the model",
    405: "check the address: it should end before /chat/completions",
    413: "ask over less evidence",
    429: "wait a while and try again",
}


class _Usage(BaseModel):
    """Tokens as an endpoint counts them."""

    prompt_tokens: int = Field(strict=True, ge=0, le=10**9)
    completion_tokens: int = Field(strict=True, ge=0, le=10**9)


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

    def _complete(self, ask: Ask) -> Reply:
        tell = _Told(ask.on_text)
        n_requests = n_failures = 0
        while True:
            n_requests += 1
            try:
                with closing(self._events(self._body(ask), ask.cancelled)) as events:
                    return replace(self._gathered(ask, events, tell), n_attempts=n_requests)
            except Failed as failure:
                if field := self._complained_of(failure):
                    self._spared.add(field)
                    continue
                if ask.structure not in (None, "text") and failure.status in _REFUSES_STRUCTURE:
                    raise StructureRefused(n_requests) from None
                n_failures += 1
                wait = _seconds(failure.wait)
                if wait is None:
                    wait = self._patience.first_wait * 2 ** (n_failures - 1)
                if (
                    not failure.again
                    or tell.any
                    or n_failures >= self._patience.attempts
                    or wait > self._patience.longest_wait
                ):
                    tries = f", {n_failures} times in a row" if n_failures > 1 else ""
                    sentence = f"{self.name} at {self.address.netloc} {failure}{tries}"
                    raise LlmError(sentence, Cost(n_requests)) from None
            pause(wait, ask.cancelled)

    def _body(self, ask: Ask) -> dict[str, Any]:
        length = "max_completion_tokens" if "max_completion_tokens" in self._spared else "max_tokens"
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [
                {"role": message.role, "content": mended(message.content)} for message in ask.messages
            ],
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
            constraint = {"name": ask.schema.__name__, "schema": strict_schema(ask.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": constraint}
        return {
            name: value
            for name, value in body.items()
            if name not in self._spared or name == "max_completion_tokens"
        }

    def _events(self, body: dict[str, Any], cancelled: Callable[[], bool]) -> Generator[Any]:
        """The events of one answer as they come. Raises Failed, LlmError of `Reach`, LlmCancelled."""
        transport = CheckedTransport(self.address, self._key, self._reach, self._look_up)

        def work(put: Callable[[Any], None]) -> None:
            failure: Exception
            try:
                for event in self._streamed(transport, body):
                    put(event)
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

    def _streamed(self, transport: CheckedTransport, body: dict[str, Any]) -> Iterator[Any]:
        """The client gets no key, for the transport adds it: so it never looks for one in the environment."""
        import openai  # takes more than a second

        timeout = httpx2.Timeout(self._patience.silence, connect=self._patience.connect)
        with openai.OpenAI(
            api_key="kept elsewhere",
            base_url=str(self.address),
            timeout=timeout,
            max_retries=0,
            http_client=httpx2.Client(transport=transport, trust_env=False, timeout=timeout),
        ) as client:
            # plain values in place of its types, which take a hostile answer at its word
            stream = client.post(
                "/chat/completions",
                body=body,
                cast_to=object,
                stream=True,
                stream_cls=openai.Stream[object],
            )
            if "html" in stream.response.headers["content-type"]:
                raise Failed("answered with a web page; check the address")
            yield from stream

    def _gathered(self, ask: Ask, events: Iterable[Any], tell: _Told) -> Reply:
        """The reply that its events make up. Raises Failed."""
        pieces: list[str] = []
        usage: Any = None
        finish, room = "", MAX_REPLY_CHARACTERS
        for event in events:
            if not isinstance(event, dict):
                raise Failed(_NO_PART)
            usage = event.get("usage") or usage
            choice = _first(event.get("choices"))
            said = choice.get("delta") or choice.get("message")
            piece = said.get("content") if isinstance(said, dict) else None
            if isinstance(piece, str) and piece:
                room -= len(piece)
                if room < 0:
                    raise Failed(
                        f"replied with more than {MAX_REPLY_CHARACTERS:,} characters; choose another model"
                    )
                pieces.append(piece)
                tell(piece)
            if isinstance(choice.get("finish_reason"), str):
                finish = choice["finish_reason"]
        if not finish:
            raise Failed("broke off in the middle of its reply; try again", again=True)
        text = mended("".join(pieces))
        reply = replace(estimated(ask, text), text=without_thoughts(text), cut=finish == "length")
        try:
            return replace(reply, **_Usage.model_validate(usage).model_dump(), counted_by="endpoint")
        except ValidationError:
            return reply

    def _complained_of(self, failure: Failed) -> str | None:
        """A field that the endpoint refuses and can be spared."""
        fields = _DISPENSABLE if failure.status in (400, 422) else ()
        return next(
            (
                name
                for name in fields
                if name not in self._spared and re.search(rf"\b{name}\b", failure.said)
            ),
            None,
        )

    def _failed(self, error: Exception) -> Failed:
        """What went wrong, in words."""
        import openai

        causes = [error]
        while (cause := causes[-1].__cause__ or causes[-1].__context__) and isinstance(cause, Exception):
            causes.append(cause)
        match causes[-1]:
            case _ if isinstance(error, openai.APIStatusError):
                return self._refusal(error)
            case _ if type(error) is openai.APIError:
                return Failed(f"broke off with an error{self._quoted(_words_of(error.body))}; try again later")
            case socket.gaierror():
                return Failed("has a host name that nobody knows", again=True)
            case ssl.SSLCertVerificationError() as root:
                return Failed(f"has no certificate to trust ({root.verify_message})")
            case ConnectionRefusedError():
                return Failed("does not listen", again=True)
            case _ if any(isinstance(cause, httpx2.ConnectTimeout) for cause in causes):
                return Failed(f"can't be reached within {self._patience.connect:g} s", again=True)
            case _ if any(isinstance(cause, httpx2.TimeoutException) for cause in causes):
                return Failed(f"said nothing for {self._patience.silence:g} s")
            case root if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | OSError):
                return Failed(f"broke the connection off ({type(root).__name__})", again=True)
            case _:
                return Failed(_NO_PART)

    def _refusal(self, error: Any) -> Failed:
        """What a status other than 200 means."""
        status, said = error.status_code, _words_of(error.body)
        if 300 <= status < 400:
            words = (
                f"answered with a redirect ({status}), and none is followed; give the address that it leads to"
            )
        elif status in (401, 403):  # without its words: some repeat the key, or parts of it
            words = (
                f"refused the key ({status}); check it"
                if self.has_key
                else f"asks for a key ({status}); give one"
            )
        else:
            usual = "try again later" if status in _PASSING else "see what it says, and try again"
            words = f"answered {status}{self._quoted(said)}; {_REMEDIES.get(status, usual)}"
        wait = error.response.headers["retry-after"]
        return Failed(words, again=status in _PASSING, status=status, said=said, wait=wait)

    def _quoted(self, words: str) -> str:
        return quoted(words, () if self._key is None else (self._key.get_secret_value(),))


_NO_PART = "sent something that is no part of a chat reply; check the address"


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

        key = SecretStr(get_token() or "")
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
