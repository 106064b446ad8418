"""A model behind an OpenAI-compatible endpoint, by the openai client.

What may pass (429, 5xx, connections that fail) is tried again. What an endpoint refuses, a structure, a field
of the request or the system's role, is not asked of it again by this client, once it has replied without.
Every failure is one sentence that names the model and its host; the endpoint's own words stand in it as a
short quotation without the key. An error says the same wherever it stands, in the status, in a reply or in
the midst of a stream. A reply that says that it is whole is taken, however its connection ends.
"""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import httpx2
from pydantic import BaseModel, Field, SecretStr, TypeAdapter, ValidationError

from core.base.errors import BadRequest, UserError, quoted
from core.llm.address import ANYWHERE, HUB, Address, Reach, read_address
from core.llm.client import MAX_REPLY_CHARACTERS, Ask, Client, estimated, strict_schema, without_system
from core.llm.draft import mended, opened_before
from core.llm.protocol import Cost, LlmError, NotAnswered, Reply, Structure
from core.llm.wire import CheckedTransport, Failed, Patience, from_thread, pause

if TYPE_CHECKING:
    import openai

_STRUCTURES: tuple[Structure, ...] = ("json_schema", "json_object", "text")
_REFUSES_STRUCTURE = frozenset({400, 404, 415, 422, 501})
_OF_STRUCTURE = re.compile(r"response_format|schema|grammar|guided|structured|json", re.IGNORECASE)
_OF_SYSTEM = re.compile(
    r"\broles?\b|\bsystem (?:role|message|prompt|instruction)|\bdeveloper instruction", re.IGNORECASE
)
_IN_REPLY = 200
"""The status of errors that say no other."""
_PASSING = frozenset({408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Answers after which the same request may go better."""
_DISPENSABLE = {name: name for name in ("stream_options", "stream", "seed", "temperature", "top_p")}
_DISPENSABLE |= {"streaming": "stream", "max_completion_tokens": "max_tokens"}
"""By a word of a complaint, the field to leave out; the last word takes its field's place."""
_MAX_SAID = 10_000
"""Characters of a complaint that are read."""
_FOR_USAGE = 2.0
"""Seconds that a whole reply is kept waiting for the counts of its tokens, or for the end of the stream."""
_DONE = re.compile(r"(?:stop|eos|end|complete|finish|done|tool|function)\w*")
_CUT = re.compile(r"length|max_\w*tokens|context")
_FILTERED = re.compile(r"filter|safety|recitation|prohibited|blocklist|sensitive|spii|toxic|refus|guardrail")
"""Reasons to end, in small letters, as servers call them; what none knows is no end."""
_PASSES = re.compile(r"server_error|internal|overloaded|rate_limit|unavailable|timeout", re.IGNORECASE)
"""Kinds of errors after which the same request may go better."""
_SAID = (None, "text", "output_text")
"""Types of the parts of a content that are no thoughts."""
_REMEDIES = {
    403: "see what it says, and check the key",
    404: "check the address and the name of the model",
    405: "check the address: it should end before /chat/completions",
    413: "ask over less evidence",
    429: "wait a while and try again",
    524: "ask over less evidence, or have its server wait longer for the model",
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
    """Tokens as an endpoint counts them; one that counts none doesn't count."""

    prompt_tokens: int = Field(strict=True, gt=0, le=10**9)
    completion_tokens: int = Field(strict=True, gt=0, le=10**9)


class _Fault(BaseModel):
    """One of those that FastAPI lists, without what it repeats of the request."""

    loc: list[str | int]
    msg: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.loc))}: {self.msg}"


_FAULTS = TypeAdapter(list[_Fault])


class EndpointLlm(Client):
    """A client of one model at one address. Every call is a connection: calls may run side by side."""

    def __init__(
        self,
        address: Address,
        model: str,
        key: SecretStr | None,
        reach: Reach,
        patience: Patience,
        reply_tokens: int | None,
    ) -> None:
        super().__init__(model, reply_tokens)
        self.address = address
        self.has_key = key is not None
        self._key, self._reach, self._patience = key, reach, patience
        self._spared: set[str] = set()
        """Fields that it refuses; "system" for the role."""
        self._thinks_first = False
        """Whether its replies begin with thoughts that nothing opens."""

    @property
    def called(self) -> str:
        return f"{self.name} at {self.address.netloc}"

    def _complete(self, ask: Ask) -> Reply:
        offered = [structure for structure in _STRUCTURES if structure not in self._refused]
        structures: list[Structure] = offered if ask.schema else ["text"]
        refused: set[Structure | None] = set()
        spared = {*self._spared}
        n_requests = n_failures = 0
        while True:
            n_requests += 1
            try:
                reply = self._reply(ask, structures[0], spared)
            except NotAnswered as error:
                error.spent = replace(error.spent, calls=n_requests)
                raise
            except Failed as failure:
                if field := _complained_of(failure, spared):
                    spared.add(field)
                    continue
                n_failures += 1
                if len(structures) > 1 and _refuses_structure(failure, n_failures):
                    refused.add(structures.pop(0))
                    n_failures = 0
                    continue
                patience, wait = self._patience, self._patience.first_wait * 2 ** (n_failures - 1)
                if failure.wait is not None and failure.wait >= 0:
                    wait = failure.wait
                is_over = n_failures >= patience.attempts or wait > patience.longest_wait
                if is_over or not failure.again:
                    tries = f", {n_failures} times in a row" if n_failures > 1 else ""
                    raise LlmError(f"{self.called} {failure.words}{tries}", Cost(n_requests)) from None
            else:
                self._refused |= refused
                self._spared |= spared
                return replace(reply, n_attempts=n_requests)
            pause(wait, ask.cancelled)

    def _body(self, ask: Ask, structure: Structure, spared: set[str]) -> dict[str, Any]:
        told = ask.told(structure)
        if "system" in spared:
            told = without_system(told)
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": message.role, "content": mended(message.content)} for message in told],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": ask.sampling.temperature,
            "top_p": 1.0,  # some servers take a default of each model's instead
            "max_tokens": ask.sampling.max_tokens,
        }
        if ask.sampling.seed is not None:
            body["seed"] = ask.sampling.seed
        body = {name: value for name, value in body.items() if name not in spared}
        if "stream" in spared:
            body.pop("stream_options", None)
        if "max_tokens" in spared:
            body["max_completion_tokens"] = ask.sampling.max_tokens
        if structure == "json_object":
            body["response_format"] = {"type": "json_object"}
        elif structure == "json_schema" and ask.schema:
            constraint = {"name": ask.schema.__name__, "schema": strict_schema(ask.schema), "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": constraint}
        return body

    def _reply(self, ask: Ask, structure: Structure, spared: set[str]) -> Reply:
        """The answer to one request, written into the draft on the way. Raises Failed, NotAnswered."""
        usage: Any = None
        event: dict[str, Any] | None = None
        finish, refusal, room, has_deltas, deadline = "", "", MAX_REPLY_CHARACTERS, False, inf

        def cancelled() -> bool:
            if time.monotonic() > deadline:
                raise TimeoutError
            return ask.cancelled()

        ask.draft.clear()
        try:
            with closing(self._events(self._body(ask, structure, spared), cancelled)) as events:
                for event in events:
                    usage = event.get("usage") or usage
                    choice = _first(event.get("choices"))
                    turn, whole = choice.get("delta"), choice.get("message")
                    has_deltas = has_deltas or bool(turn)
                    if not turn and not has_deltas:
                        turn = whole  # behind deltas it says all of them again
                    if isinstance(turn, dict):
                        said, thought = _text(turn.get("content")), _thought(turn)
                        no = _text(turn.get("refusal"))
                        room -= len(said) + len(thought) + len(no)
                        if room < 0:
                            most = f"{MAX_REPLY_CHARACTERS:,} characters"
                            raise Failed(f"replied with more than {most}; choose another model")
                        ask.draft.add(said, thought)
                        refusal += no
                    finish = finish or self._reason(choice.get("finish_reason"))
                    if finish:
                        deadline = min(deadline, time.monotonic() + _FOR_USAGE)
        except Failed:
            if not finish:
                raise
        if not finish:
            where = "in the middle of its reply; try again" if event else "without a reply; check the address"
            raise Failed(f"broke off {where}", again=True)
        reply = replace(estimated(ask, structure), cut=_CUT.search(finish) is not None)
        with suppress(ValidationError):
            reply = replace(reply, **_Usage.model_validate(usage).model_dump(), counted_by="endpoint")
        return self._judged(reply, ask, finish, refusal)

    def _reason(self, reason: Any) -> str:
        """Why a reply ends, in small letters; empty while it goes on."""
        reason = self._without_key(reason).strip().lower() if isinstance(reason, str) else ""
        return "" if reason in ("null", "none") else reason

    def _judged(self, reply: Reply, ask: Ask, finish: str, refusal: str) -> Reply:
        """A reply, by the reason that ended it. Raises Failed, NotAnswered."""
        if opened_before(ask.draft.raw):
            self._thinks_first = True
        elif reply.cut and self._thinks_first and not reply.thoughts:
            reply = replace(reply, text="", thoughts=reply.text)
        if refusal.strip():
            did = f"refused to answer{quoted(self._without_key(mended(refusal)))}"
        elif _FILTERED.search(finish):
            did = "was stopped by a content filter"
        elif finish.startswith(("tool", "function")) and not (reply.text.strip() or ask.schema):
            did = "called a tool instead of replying"
        elif reply.cut or _DONE.fullmatch(finish):
            return reply
        else:
            raise Failed(f"broke off{quoted(finish)}; try again", again=True)
        words = f"{self.called} {did}; ask otherwise, or choose another model"
        raise NotAnswered(words, reply.cost)

    def _events(self, body: dict[str, Any], cancelled: Callable[[], bool]) -> Generator[dict[str, Any]]:
        """What comes back, event by event. Raises Failed, LlmError of `Reach`, LlmCancelled."""
        transport = CheckedTransport(self.address, self._key, self._reach)
        timeout = httpx2.Timeout(self._patience.silence, connect=self._patience.connect)

        def work(put: Callable[[dict[str, Any]], None]) -> None:
            import openai  # takes more than a second, which no start waits for

            failure: Exception
            is_reply = False
            client = openai.OpenAI(
                api_key="added by the transport",  # without one, it looks into the environment
                base_url=str(self.address),
                max_retries=0,
                timeout=timeout,
                http_client=httpx2.Client(transport=transport, trust_env=False, timeout=timeout),
            )
            try:
                with client:
                    # plain values: its types would take a hostile answer at its word
                    kind = openai.Stream[object]
                    stream = client.post(
                        "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=kind
                    )
                    for event in self._heard(stream):
                        put(event)
                        is_reply = True
                if not transport.ended:  # whole, or the client stopped where the server said [DONE]
                    put({"choices": [{"finish_reason": "stop"}]})
                return
            except (Failed, UserError) as error:
                failure = error
            except Exception as error:  # whatever a hostile answer provokes
                if is_reply and transport.ended and isinstance(error, ValueError):
                    return  # an event that the end of the connection cut
                failure = self._failed(error, client)
            raise failure.with_traceback(None)  # nothing behind it: its frames would hold the key

        try:
            yield from from_thread(work, cancelled, self._patience.whole)
        except TimeoutError:
            raise Failed(f"was not done within {self._patience.whole:g} s") from None
        finally:
            transport.end()

    def _heard(self, stream: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """The events of a reply. Raises Failed for an error among them, TypeError where it is no chat."""
        is_chat: bool | None = None
        fault: dict[str, Any] | None = None
        for event in map(_only, stream):
            if not isinstance(event, dict):
                raise TypeError
            choice = _first(event.get("choices"))
            if "text" in choice and choice.keys().isdisjoint(("delta", "message")):
                raise TypeError
            if choice.get("error"):
                raise self._broken_off(choice["error"])
            if "choices" not in event and _words_of(_fault(event)):
                fault = event  # unless a choice follows: then it was news of a queue
                continue
            if choice:
                fault = None
            is_chat = is_chat or "choices" in event
            yield event
        if fault is not None:
            raise self._broken_off(fault)
        if is_chat is False:
            raise TypeError

    def _failed(self, error: Exception, client: openai.OpenAI) -> Failed:
        import openai

        if isinstance(error, openai.APIStatusError):
            wait = client._parse_retry_after_header(error.response.headers)
            body = _fault(error.body)
            said = _words_of(body) or error.response.text
            said = "" if said.lstrip().startswith("<") else self._without_key(said)
            return replace(self._refusal(error.status_code, said), field=_field_of(body), wait=wait)
        if type(error) is openai.APIError:
            return self._broken_off(error.body)
        causes: list[BaseException] = [error]
        while cause := causes[-1].__cause__ or causes[-1].__context__:
            causes.append(cause)
        return next(
            Failed(words.format(cause, self._patience, type(causes[-1]).__name__), again)
            for kind, words, again in _BREAKS
            for cause in causes
            if isinstance(cause, kind)
        )

    def _broken_off(self, body: Any) -> Failed:
        """What an error means that stands in a reply; some say the status that it would have had."""
        body = _fault(body)
        said = self._without_key(_words_of(body))
        kinds = [body.get("code"), body.get("type")] if isinstance(body, dict) else []
        kind = " ".join(str(kind) for kind in kinds if isinstance(kind, int | str))
        if status := re.match(r"[45]\d\d\b", kind):
            return replace(self._refusal(int(status[0]), said), field=_field_of(body))
        again = _PASSES.search(kind) is not None
        return Failed(f"broke off with an error{quoted(said)}; try again later", again, said=said)

    def _without_key(self, said: str) -> str:
        return (said.replace(self._key.get_secret_value(), "***") if self._key else said)[:_MAX_SAID]

    def _refusal(self, status: int, said: str) -> Failed:
        """What a status other than 200 means."""
        if 300 <= status < 400:
            words = f"answered with a redirect ({status}), and none is followed; give the address it leads to"
        elif status == 401:  # without its words: some repeat parts of the key
            words = "refused the key (401); check it" if self.has_key else "asks for a key (401); give one"
        else:
            usual = "try again later" if status in _PASSING else "see what it says, and try again"
            words = f"answered {status}{quoted(said)}; {_REMEDIES.get(status, usual)}"
        return Failed(words, status in _PASSING, status, said)


def connect(
    address: str,
    model: str,
    key: SecretStr | None = None,
    *,
    reply_tokens: int | None = None,
    reach: Reach = ANYWHERE,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> EndpointLlm:
    """A client of the model at an address as people write it. Asks nothing yet.

    For the hub, the person at the machine may leave the key out: it is then the token of HF_TOKEN or of `hf
    auth login`. reply_tokens: see `Llm`. Raises BadRequest for an address that is none or out of reach, a
    model without a name, a key that is none, and replies of no length.
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
    return EndpointLlm(at, model, SecretStr(value) if value else None, reach, patience, reply_tokens)


def _complained_of(failure: Failed, spared: set[str]) -> str | None:
    """A field that the endpoint refuses and can be spared, or the system's role."""
    if failure.status in (_IN_REPLY, 400, 422, 500) and _OF_SYSTEM.search(failure.said):
        return None if "system" in spared else "system"
    if failure.status not in (400, 422):
        return None
    open_ = {word: field for word, field in _DISPENSABLE.items() if field not in spared}
    named = [word for word in re.findall(r"\w+", f"{failure.field} {failure.said}") if word in open_]
    if failure.field not in named and {"temperature", "top_p"} <= {*named}:
        return "top_p"  # one of the two: the other matters more
    return open_[named[0]] if named else None


def _refuses_structure(failure: Failed, n_failures: int) -> bool:
    """Whether an endpoint may do better without the structure: it says so, or failed twice over it."""
    if failure.field == "prompt":  # Azure's filter
        return False
    if failure.status == 500 and n_failures > 1:
        return True
    is_said = failure.status in (_IN_REPLY, 500) and _OF_STRUCTURE.search(failure.said) is not None
    return is_said or failure.status in _REFUSES_STRUCTURE


def _only(value: Any) -> Any:
    """What a list of one holds, as Gemini sends its errors."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _fault(body: Any) -> Any:
    """What an error's body says is wrong, out of what it is wrapped in."""
    body = _only(body)
    return (body.get("error") or body) if isinstance(body, dict) else body


def _words_of(body: Any) -> str:
    """What an error's body says, in any of the usual shapes."""
    for name in ("message", "detail"):  # the first may hold the second
        body = (body.get(name) or body) if isinstance(body, dict) else body
    with suppress(ValidationError):
        return "; ".join(map(str, _FAULTS.validate_python(body)))
    return body if isinstance(body, str) else ""


def _field_of(body: Any) -> str:
    """The field of the request that an error's body blames."""
    field = body.get("param") if isinstance(body, dict) else None
    return field if isinstance(field, str) else ""


def _parts(content: Any) -> list[dict[str, Any]]:
    """The parts of a content, some of them thoughts; none of one that is no list."""
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _text(content: Any) -> str:
    """What a content says."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in _parts(content) if part.get("type") in _SAID]
    return "".join(text for text in texts if isinstance(text, str))


def _thought(turn: dict[str, Any]) -> str:
    """What a turn thinks, in a field beside its content, or in parts of it."""
    thoughts = [part for part in _parts(turn.get("content")) if part.get("type") not in _SAID]
    beside = _text(turn.get("reasoning_content")) or _text(turn.get("reasoning"))
    return beside + "".join(_text(part.get("thinking", part.get("text"))) for part in thoughts)


def _first(choices: Any) -> dict[str, Any]:
    """The first choice of an event; events that only carry usage, or another choice, have none."""
    listed = choices if isinstance(choices, list) else []
    return next((choice for choice in listed if isinstance(choice, dict) and not choice.get("index")), {})
