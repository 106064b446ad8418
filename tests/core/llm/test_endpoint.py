"""The client of endpoints against a real HTTP server that behaves in every way a server may."""

from __future__ import annotations

import email.utils
import gzip
import json
import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import BaseModel, Field, SecretStr

from core.base.errors import BadRequest
from core.llm.address import HUB, Reach, reach_of_strangers, read_address
from core.llm.client import MAX_REPLY_CHARACTERS
from core.llm.draft import Draft
from core.llm.endpoint import EndpointLlm, connect
from core.llm.protocol import LlmCancelled, LlmError, Message, Sampling, UnfitReply
from core.llm.wire import MAX_ANSWER_BYTES
from tests.core.llm.conftest import QUICK
from tests.llm_server import (
    KEY,
    USAGE,
    Answer,
    Answers,
    BreaksOff,
    Hangs,
    LlmServer,
    Request,
    Says,
    event,
    refuses,
    serve_llm,
)

ASKED = [Message("system", "Be brief."), Message("user", "Is it so?")]


class Ready(BaseModel):
    """A schema of the test."""

    ready: bool
    why: str = Field(default="", max_length=40)


def test_a_reply_is_streamed_counted_and_timed(server: LlmServer, llm: EndpointLlm) -> None:
    server.answer(Says("It was in the kitchen, \U0001f600."))
    draft, seen = Draft(), []
    cancelled = lambda: seen.append(draft.text) is not None  # noqa: E731
    reply = llm.chat(ASKED, Sampling(max_tokens=50, seed=3), draft=draft, cancelled=cancelled)
    assert reply.text == draft.text == "It was in the kitchen, \U0001f600."
    assert len({*seen}) > 2
    assert (reply.prompt_tokens, reply.completion_tokens, reply.counted_by) == (
        USAGE["prompt_tokens"],
        USAGE["completion_tokens"],
        "endpoint",
    )
    assert (reply.n_attempts, reply.structure, reply.value) == (1, None, None)
    assert reply.milliseconds > 0
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    sent = {name: request.body[name] for name in ("model", "temperature", "max_tokens", "seed", "stream")}
    assert sent == {"model": "tiny", "temperature": 0.0, "max_tokens": 50, "seed": 3, "stream": True}
    assert request.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it so?"},
    ]


def test_a_reply_in_one_piece_and_without_counts_is_taken_too(server: LlmServer, llm: EndpointLlm) -> None:
    server.answer(Says("<think>Hm. {}</think>\nYes, it is.", streamed=False, usage=None))
    reply = llm.chat(ASKED)
    assert (reply.text, reply.counted_by, reply.prompt_tokens) == ("Yes, it is.", "estimate", 5)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -1, "completion_tokens": 2},
        {"prompt_tokens": 10**30, "completion_tokens": 2},
        {"prompt_tokens": True},
        {"prompt_tokens": 0, "completion_tokens": 0},
    ],
)
def test_counts_that_make_no_sense_are_replaced_by_an_estimate(
    server: LlmServer, llm: EndpointLlm, usage: dict[str, int]
) -> None:
    server.answer(Says("Yes.", usage=usage))
    reply = llm.chat(ASKED)
    assert (reply.counted_by, reply.completion_tokens) == ("estimate", 1)


@pytest.mark.parametrize(
    ("answers", "n_attempts"),
    [
        ([Answers(500, '{"error": {"message": "worker died"}}')], 2),
        ([Answers(429, headers={"Retry-After": "0"}), Answers(503)], 3),
        ([BreaksOff("The be"), Answers(502, "<html>bad gateway</html>", "text/html")], 3),
    ],
)
def test_what_may_pass_is_tried_again(
    server: LlmServer, llm: EndpointLlm, answers: list[Answer], n_attempts: int
) -> None:
    server.answer(*answers, "At last.")
    reply = llm.chat(ASKED)
    assert (reply.text, reply.n_attempts) == ("At last.", n_attempts)


def test_a_wait_that_is_asked_for_is_kept(server: LlmServer, llm: EndpointLlm) -> None:
    server.answer(Answers(429, headers={"Retry-After": "1"}), "Now.")
    began = time.monotonic()
    assert llm.chat(ASKED).text == "Now."
    assert time.monotonic() - began >= 1


def test_a_wait_beyond_the_bound_is_not_begun(server: LlmServer, llm: EndpointLlm) -> None:
    later = email.utils.format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    server.answer(Answers(429, '{"error": {"message": "over quota"}}', headers={"Retry-After": later}))
    with pytest.raises(
        LlmError, match=r"tiny at 127.0.0.1:\d+ answered 429 \(over quota\); wait a while and try again$"
    ):
        llm.chat(ASKED)
    assert len(server.requests) == 1


def test_text_of_a_stream_that_broke_is_not_said_twice(server: LlmServer, llm: EndpointLlm) -> None:
    server.answer(BreaksOff("The letter was in the"), "The hall.", *[BreaksOff("The letter")] * 3)
    draft = Draft()
    assert llm.chat(ASKED, draft=draft).text == draft.text == "The hall."
    with pytest.raises(LlmError, match="broke off in the middle of its reply; try again, 3 times in a row"):
        llm.chat(ASKED, draft=draft)
    assert draft.text == "The letter"


def test_a_dead_port_is_told_in_a_sentence() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(LlmError, match=rf"^tiny at 127.0.0.1:{port} does not listen, 3 times in a row$"):
        connect(f"http://127.0.0.1:{port}", "tiny", patience=QUICK).chat(ASKED)


def junk(body: str | bytes, content_type: str = "text/event-stream") -> Answers:
    return Answers(200, body, content_type)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Hangs(head=False), "said nothing for 0.5 s$"),
        (Hangs("It beg"), "said nothing for"),
        (junk("data: {not json}\n\n"), "sent something that is no part of a chat reply"),
        (junk("data: [1, 2]\n\n"), "sent something that is no part of a chat reply"),
        (junk("data: " + "[" * 100_000 + "\n\n"), "sent something that is no part of a chat reply"),
        (junk("{broken", "application/json"), "sent something that is no part of a chat reply"),
        (junk("<html>Welcome</html>", "text/html"), "answered with a web page; check the address"),
        (
            junk(event({"content": "Well"}) + 'data: {"error": {"message": "out of memory"}}\n\n'),
            r"broke off with an error \(out of memory\)",
        ),
        (
            junk(event({"content": "word " * (MAX_REPLY_CHARACTERS // 5 + 1)})),
            "replied with more than 200,000 characters",
        ),
        (junk(b": " + b"x" * MAX_ANSWER_BYTES + b"\n"), "sent more than 8 MB"),
        (
            Answers(302, headers={"Location": "http://169.254.169.254/v1/chat/completions"}),
            "answered with a redirect .302., and none is followed",
        ),
        (
            Answers(401, json.dumps({"error": {"message": f"{KEY} is wrong"}})),
            r"refused the key \(401\); check it",
        ),
        (
            Answers(403, json.dumps({"error": {"message": f"flagged for violence, {KEY}"}})),
            r"answered 403 \(flagged for violence, \*\*\*\); see what it says, and check the key$",
        ),
        (
            Answers(404, '{"detail": "no model tiny"}'),
            r"answered 404 \(no model tiny\); check the address and the name of the model",
        ),
        (
            Answers(400, f"bad\x00 key {KEY}\n" + "very " * 100),
            r"answered 400 \(bad key \*\*\* very very .{0,200}…\); see what it says",
        ),
        (Answers(500, "down"), r"answered 500 \(down\); try again later, 3 times in a row"),
    ],
)
def test_every_failure_is_one_sentence_without_the_key(
    server: LlmServer,
    llm: EndpointLlm,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    answer: Answer,
    words: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answer(answer, answer, answer)
    with pytest.raises(LlmError, match=words) as refused:
        llm.chat(ASKED)
    behind = [traceback.TracebackException.from_exception(refused.value, capture_locals=True)]
    while behind[-1].__context__ is not None:
        behind.append(behind[-1].__context__)
    frames = [str(frame.locals) for part in behind for frame in part.stack if "/tests/" not in frame.filename]
    told = [
        *frames,
        *traceback.format_exception(refused.value),
        repr(refused.value),
        repr(llm),
        repr(vars(llm)),
        caplog.text,
        *capfd.readouterr(),
    ]
    assert not any(KEY in text for text in told)
    assert ASKED[0].content not in caplog.text
    assert "\n" not in str(refused.value)
    assert refused.value.spent.calls == len(server.requests)


def test_an_answer_of_odd_events_is_read_for_what_it_holds(server: LlmServer, llm: EndpointLlm) -> None:
    halves = (
        r'data: {"choices": [{"delta": {"content": "\ud83d"}}]}'
        + "\n\n"
        + r'data: {"choices": [{"delta": {"content": "\ude00 a\udc00"}}]}'
        + "\n\n"
    )
    odd = (
        'data: {"choices": null}\n\ndata: {"choices": [{"delta": null}]}\n\ndata: {"choices":'
        ' [7]}\r\n\r\ndata: {"choices": [{"delta": {"content": 7}}]}\n\n'
    )
    server.answer(junk(": hello\nevent: x\n" + odd + halves + "data:[DONE]\n\n"))
    assert llm.chat(ASKED).text == "\U0001f600 a\ufffd"


@pytest.mark.parametrize(
    "answer",
    [
        Hangs(head=False),
        Hangs("It beg"),
        Says("word " * 500, pause=0.05),
        Answers(429, headers={"Retry-After": "9"}),
    ],
)
def test_cancelling_returns_at_once_whatever_is_waited_for(server: LlmServer, answer: Answer) -> None:
    patient = connect(server.url, "tiny")
    server.answer(answer)
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    began = time.monotonic()
    with pytest.raises(LlmCancelled):
        patient.chat(ASKED, cancelled=cancel.is_set)
    assert time.monotonic() - began < 5.0  # each would take longer by itself


def test_cancelling_does_not_wait_for_a_name_to_be_looked_up() -> None:
    looking, found = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> list[object]:
        looking.set()
        found.wait(10)
        return []

    llm = connect("http://models.example", "tiny", reach=Reach(look_up=slow))
    with pytest.raises(LlmCancelled):
        llm.chat(ASKED, cancelled=looking.is_set)
    found.set()


def test_several_calls_run_side_by_side(server: LlmServer, llm: EndpointLlm) -> None:
    together = threading.Barrier(4, timeout=30)

    def when_all_have_asked(_: Request) -> str:
        together.wait()
        return "word " * 20

    server.script = when_all_have_asked
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: llm.chat(ASKED).text, range(4)))
    assert replies == ["word " * 20] * 4


# Structured replies


@pytest.mark.parametrize(
    ("refused", "served", "asked"),
    [
        ((), "json_schema", ["json_schema"]),
        (("json_schema",), "json_object", ["json_schema", "json_object"]),
        (("json_schema", "json_object"), "text", ["json_schema", "json_object", "text"]),
    ],
)
def test_a_structure_that_is_refused_gives_way_to_the_next_and_is_not_asked_for_again(
    refused: tuple[str, ...], served: str, asked: list[str]
) -> None:
    with serve_llm(refuses(*refused)) as server:
        llm = connect(server.url, "tiny", patience=QUICK)
        reply = llm.chat(ASKED, schema=Ready)
        assert (reply.value, reply.structure) == (Ready(ready=True), served)
        assert reply.n_attempts == len(asked), "requests that were refused are counted, too"
        assert llm.chat(ASKED, schema=Ready).structure == served
        assert [request.structure for request in server.requests] == [*asked, served]
        told = server.requests[-1].messages[-1]["content"]
        assert ('"ready"' in told) == (served != "json_schema"), (
            "the schema is told in words where nothing enforces it"
        )
        constraint = server.requests[0].body["response_format"]["json_schema"]
        assert constraint["strict"]
        assert constraint["schema"]["required"] == ["ready", "why"]
        assert constraint["schema"]["additionalProperties"] is False


def test_a_request_that_is_wrong_in_itself_does_not_cost_a_structure(
    server: LlmServer, llm: EndpointLlm
) -> None:
    too_long = Answers(400, '{"error": {"message": "this model reads 10 tokens"}}')
    server.answer(too_long, too_long, too_long)
    with pytest.raises(LlmError, match=r"answered 400 \(this model reads 10 tokens\)"):
        llm.chat(ASKED, schema=Ready)
    server.answer('{"ready": true}')
    assert llm.chat(ASKED, schema=Ready).structure == "json_schema"


def test_a_wrong_object_is_complained_of_once(server: LlmServer, llm: EndpointLlm) -> None:
    server.answer('{"ready": "perhaps", "why": ""}', '{"ready": false, "why": "no"}')
    reply = llm.chat(ASKED, schema=Ready)
    assert (reply.value, reply.structure, reply.n_attempts) == (
        Ready(ready=False, why="no"),
        "json_schema",
        2,
    )
    assert (reply.prompt_tokens, reply.completion_tokens) == (
        2 * USAGE["prompt_tokens"],
        2 * USAGE["completion_tokens"],
    )
    first, second = server.requests
    assert second.messages[:2] == first.messages
    assert second.messages[2] == {"role": "assistant", "content": '{"ready": "perhaps", "why": ""}'}
    assert "ready: Input should be a valid boolean" in second.messages[3]["content"]
    assert second.messages[3]["content"].count("fits this JSON schema") == 1


@pytest.mark.parametrize(
    "text",
    [
        'Sure! Here you are:\n```json\n{"ready": true, "why": "a } b"}\n```\nAnything else?',
        'Not {this} nor {"that": 1}, but {"ready": true, "why": "a } b"} it is',
        "{" * 40 + ' {"ready": true, "why": "a } b"}',
    ],
)
def test_an_object_among_words_counts_as_found_in_text(
    server: LlmServer, llm: EndpointLlm, text: str
) -> None:
    server.answer(text, text)
    reply = llm.chat(ASKED, schema=Ready)
    assert (reply.value, reply.structure) == (Ready(ready=True, why="a } b"), "text")
    assert llm.chat(ASKED, schema=Ready).structure == "text"
    assert [request.structure for request in server.requests] == [
        "json_schema",
        "json_object",
    ], "an endpoint that did not constrain is told in words"


def test_braces_without_end_cost_no_time(server: LlmServer, llm: EndpointLlm) -> None:
    server.answer(*[Says('{"a":' * 30_000, streamed=False)] * 2)
    began = time.thread_time()
    with pytest.raises(UnfitReply, match="its JSON is broken"):
        llm.chat(ASKED, schema=Ready)
    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    ("complaint", "field", "instead"),
    [
        ("Unknown field: stream_options", "stream_options", None),
        (
            "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "max_completion_tokens",
        ),
        ("Unsupported value: 'temperature' does not support 0.0", "temperature", None),
        ("Unsupported parameter: 'top_p' is not supported with this model.", "top_p", None),
    ],
)
def test_a_field_that_is_refused_is_left_out_from_then_on(
    server: LlmServer, llm: EndpointLlm, complaint: str, field: str, instead: str | None
) -> None:
    server.answer(Answers(400, json.dumps({"error": {"message": complaint}})), "Yes.", "Yes again.")
    assert llm.chat(ASKED).text == "Yes."
    assert llm.chat(ASKED).text == "Yes again."
    first, second, third = server.requests
    assert field in first.body
    assert field not in second.body
    assert field not in third.body
    assert instead is None or third.body[instead] == 600


# Where it goes


def resolver(*ips: str) -> Callable[..., list[tuple[object, ...]]]:
    """A look-up that gives one of the addresses a call, the last one for ever."""
    left = list(ips)

    def look_up(_: str, port: int, **__: object) -> list[tuple[object, ...]]:
        if not left:
            return []
        ip = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))]

    return look_up


def test_the_connection_goes_to_the_address_that_was_looked_up_once(server: LlmServer) -> None:
    port = read_address(server.url).port
    reach = Reach(look_up=resolver("127.0.0.1", "203.0.113.1"))
    llm = connect(f"http://models.example:{port}", "tiny", reach=reach, patience=QUICK)
    assert llm.chat(ASKED).text == "Yes."
    assert server.requests[0].headers["host"] == f"models.example:{port}"


def test_a_listed_host_that_turns_inward_is_not_connected_to(server: LlmServer) -> None:
    """DNS rebinding: the name led out when it was listed, and leads to this machine when it is asked."""
    port = read_address(server.url).port
    listed = reach_of_strangers(f"http://models.example:{port}")
    reach = replace(listed, look_up=resolver("127.0.0.1"))
    llm = connect(f"http://models.example:{port}", "tiny", SecretStr(KEY), reach=reach, patience=QUICK)
    with pytest.raises(LlmError, match=rf"^models.example:{port} leads into a private network"):
        llm.chat(ASKED)
    assert server.requests == []


def test_nothing_that_the_client_adds_or_finds_travels(
    server: LlmServer, llm: EndpointLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL", "CUSTOM_HEADERS"):
        monkeypatch.setenv(f"OPENAI_{name}", "http://mine.example: 1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert llm.chat(ASKED).text == connect(server.url, "tiny", patience=QUICK).chat(ASKED).text == "Yes."
    usual = {"host", "content-type", "content-length", "connection", "user-agent"}
    usual |= {"accept", "accept-encoding"}
    with_key, without = (request.headers.keys() for request in server.requests)
    assert with_key == usual | {"authorization"}
    assert without == usual


def test_a_packing_that_may_burst_is_not_unpacked(server: LlmServer, llm: EndpointLlm) -> None:
    twice = gzip.compress(gzip.compress(event({"content": "word " * 1000}).encode(), mtime=1), mtime=1)
    assert b"\n" not in twice, "else the first line of it is told before the body ends"
    server.answer(Answers(200, twice, "text/event-stream; charset=hex", {"Content-Encoding": "gzip, gzip"}))
    with pytest.raises(LlmError, match="sent something that is no part of a chat reply"):
        llm.chat(ASKED)


def test_a_name_that_nobody_knows_is_told_in_a_sentence() -> None:
    for host, reach in (("models.example", Reach(look_up=resolver())), ("models..example", Reach())):
        llm = connect(f"http://{host}", "tiny", reach=reach, patience=QUICK)
        with pytest.raises(LlmError, match=rf"^tiny at {host} has a host name that nobody knows, 3 times"):
            llm.chat(ASKED)


def test_strangers_reach_listed_hosts_only() -> None:
    reach = reach_of_strangers("api.example.org https://other.example:8443/v1 hub")
    for good in ("https://api.example.org/v1", "https://other.example:8443", "hub"):
        connect(good, "m", SecretStr(KEY), reach=reach)
    for bad in (
        "http://api.example.org/v1",
        "https://api.example.org:8443",
        "https://api.example.org.evil.example",
        "http://localhost:11434",
    ):
        with pytest.raises(BadRequest, match="this server does not ask language models at"):
            connect(bad, "m", SecretStr(KEY), reach=reach)
    with pytest.raises(BadRequest, match="whoever runs it would have to list the host"):
        connect("https://api.example.org", "m", reach=Reach((), private=False))


def test_the_hub_is_asked_where_its_own_client_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.inference._providers import get_provider_helper

    helper = get_provider_helper(None, task="conversational", model="someone/model")
    prepared = helper.prepare_request(
        inputs=[], parameters={}, headers={}, model="someone/model", api_key="hf_x"
    )
    assert prepared.url == f"{HUB}/chat/completions"
    monkeypatch.setenv("HF_TOKEN", "hf_tokenOfThePerson")
    assert connect("hub", "someone/model").has_key
    assert not connect("hub", "someone/model", SecretStr(" "), reach=reach_of_strangers("hub")).has_key, (
        "the server's own token is not the visitors'"
    )
    assert not connect("http://localhost:1", "m").has_key


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "umläut", "x" * 2001])
def test_a_key_that_is_none_is_refused_without_being_repeated(key: str) -> None:
    with pytest.raises(BadRequest, match=f"the key has {len(key):,} characters") as refused:
        connect("http://localhost:1", "m", SecretStr(key))
    assert key not in str(refused.value)


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201])
def test_a_model_needs_a_name(name: str) -> None:
    with pytest.raises(BadRequest, match="the language model's name has"):
        connect("http://localhost:1", name)
