"""Endpoints as people have them: each kind of reply, played by one scripted server."""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from core.llm import endpoint
from core.llm.draft import Draft
from core.llm.endpoint import connect
from core.llm.probe import probe
from core.llm.protocol import LlmError, Message
from tests.core.llm.conftest import QUICK
from tests.llm_server import USAGE, Answer, Answers, Hangs, LlmServer, Request, Script, event

ASKED = [Message("system", "Be brief."), Message("user", "Where is it?")]
FOUND = "In the hall [2]."
FOLDED = "It rained, so the hall."


class Place(BaseModel):
    """A schema of the test."""

    room: str


ROOM = '{"room": "hall"}'


@dataclass(frozen=True)
class Kind:
    """What a server answers, request by request, and what comes of it."""

    name: str
    answers: tuple[Answer, ...] | Script
    text: str = ""
    thoughts: str = ""
    cut: bool = False
    error: str = ""
    """In place of the other three."""
    n_requests: int = 1


def stream(*deltas: dict[str, Any], finish: str = "stop", usage: dict[str, int] | None = USAGE) -> Answers:
    events = [event(delta) for delta in deltas]
    body = "".join([*events, event({}, finish, usage=usage), "data: [DONE]\n\n"])
    return raw(body)


def pieces(text: str, **more: Any) -> Answers:
    return stream(*({"content": text[at : at + 5]} for at in range(0, len(text), 5)), **more)


def whole(
    content: Any, finish: str | None = "stop", content_type: str = "application/json", **more: Any
) -> Answers:
    message = {"role": "assistant", "content": content, **more}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": USAGE}
    return Answers(200, json.dumps(body, indent=1), content_type)


def raw(*events: str) -> Answers:
    return Answers(200, "".join(events), "text/event-stream")


def complains(status: int, message: str, **more: Any) -> Answers:
    return Answers(status, json.dumps({"error": {"message": message, **more}}))


def packed(answer: Answers) -> Answers:
    body = answer.body if isinstance(answer.body, bytes) else answer.body.encode()
    return Answers(200, gzip.compress(body), answer.content_type, {"Content-Encoding": "gzip"})


def asks_for(field: str, complaint: Answers, reply: Answers) -> Script:
    """Complains while a request holds a field."""
    return lambda request: complaint if field in request.body else reply


def without_system(complaint: Answers) -> Script:
    def script(request: Request) -> Answer:
        roles = [message["role"] for message in request.messages]
        return pieces(FOUND) if roles == ["user"] else complaint

    return script


def no_schema(request: Request) -> Answer:
    """Fails over a schema, and doesn't say why."""
    return Answers(500) if request.structure == "json_schema" else pieces(ROOM)


def picky(request: Request) -> Answer:
    """Takes no sampling at all, and says so field by field."""
    for field in ("temperature", "top_p"):
        if field in request.body:
            return complains(400, f"Unsupported value: '{field}' is not 0.5", param=field)
    return pieces(FOUND)


BEGUN = event({"content": "It"})
AGAIN = event({}, "stop").replace('"delta": {}', f'"delta": {{}}, "message": {{"content": "{FOUND}"}}')
UNAVAILABLE = 'data: {"error": {"message": "response_format is unavailable"}}\n\n'
REFUSED = r"refused to answer \(I can't help\)"
FILTERED = "was stopped by a content filter"
CUT = event({}, "length")
LAST = event({"content": "hall [2]."}, "stop")
WHOLE = event({"content": FOUND}, "stop")
OTHER = event({"content": "At the attic."}).replace('"index": 0', '"index": 1')
TOO_LONG = {"loc": ["body", "messages", 1], "msg": "too long"}
THOUGHT = "only thought and never replied"
SPENT = "spent its 7 tokens thinking; allow longer replies"
TEXT = (
    Kind("thoughts closed", (pieces(f"<think>\n{FOLDED}\n</think>\n\n{FOUND}"),), FOUND, FOLDED),
    Kind("thoughts that nothing opens", (pieces(f"{FOLDED}\n</think>\n\n{FOUND}"),), FOUND, FOLDED),
    Kind("thoughts that nothing closes", (pieces(f"<think>{FOLDED}", finish="length"),), error=SPENT),
    Kind("thoughts that end unclosed", (pieces(f"<think>{FOLDED}"),), error=THOUGHT),
    Kind("<thought>", (pieces(f"<thought>{FOLDED}</thought>{FOUND}"),), FOUND, FOLDED),
    Kind("[THINK]", (pieces(f"[THINK]{FOLDED}[/THINK]{FOUND}"),), FOUND, FOLDED),
    Kind(
        "two thoughts",
        (pieces(f"<think>{FOLDED[:10]}</think>\n<think>{FOLDED[11:]}</think>{FOUND}"),),
        FOUND,
        f"{FOLDED[:10]}\n\n{FOLDED[11:]}",
    ),
    Kind(
        "harmony",
        (
            pieces(
                f"<|channel|>analysis<|message|>{FOLDED}<|end|><|start|>assistant<|channel|>final"
                f"<|message|>{FOUND}<|return|>"
            ),
        ),
        FOUND,
        FOLDED,
    ),
    Kind("harmony without its marks", (pieces(f"analysis{FOLDED}assistantfinal{FOUND}"),), FOUND, FOLDED),
    Kind("a tag that is quoted", (pieces("R1 ends with `</think>` [1]."),), "R1 ends with `</think>` [1]."),
    Kind("reasoning_content", (stream({"reasoning_content": FOLDED}, {"content": FOUND}),), FOUND, FOLDED),
    Kind("reasoning", (whole(FOUND, reasoning=FOLDED),), FOUND, FOLDED),
    Kind("reasoning alone", (stream({"reasoning": FOLDED, "content": ""}),), error=THOUGHT),
    Kind("reasoning cut", (whole(None, "length", reasoning_content=FOLDED),), error=SPENT),
    Kind(
        "parts",
        (stream(*({"content": [{"type": "text", "text": part}]} for part in ("In the ", "hall [2]."))),),
        FOUND,
    ),
    Kind(
        "parts that think",
        (
            whole(
                [
                    {"type": "thinking", "thinking": [{"type": "text", "text": FOLDED}]},
                    {"type": "text", "text": FOUND},
                ]
            ),
        ),
        FOUND,
        FOLDED,
    ),
    Kind("a refusal", (stream({"refusal": "I can't "}, {"refusal": "help."}),), error=REFUSED),
    Kind("a refusal in one piece", (whole(None, refusal="I can't help."),), error=REFUSED),
    Kind("filtered midway", (pieces("It lies in", finish="content_filter"),), error=FILTERED),
    Kind("filtered at once", (whole("", "content_filter"),), error=FILTERED),
    Kind("cut", (pieces("It lies in", finish="length"),), "It lies in", cut=True),
    Kind(
        "cut before a word",
        (stream(finish="length"),),
        error="spent its 7 tokens without a word; allow longer replies",
    ),
    Kind("nothing", (stream(),), error="replied with nothing"),
    Kind(
        "words alone",
        (Answers(200, "It works!", "text/plain"),) * 3,
        error="broke off without a reply; check the address, 3 times",
        n_requests=3,
    ),
    Kind(
        "an error as an object",
        (Answers(200, '{"object": "error", "message": "no such model", "code": 40401}'),),
        error=r"\(no such model\)",
    ),
    Kind("an error in one piece", (complains(200, "no such model"),), error=r"\(no such model\)"),
    Kind(
        "an error event",
        (raw(BEGUN, 'event: error\ndata: {"message": "out of memory"}\n\n'),),
        error=r"\(out of memory\)",
    ),
    Kind(
        "an error that passes",
        (raw(BEGUN, 'data: {"error": {"code": 429, "message": "busy"}}\n\n'), pieces(FOUND)),
        FOUND,
        n_requests=2,
    ),
    *(
        Kind(
            f"broken off by {reason}", (pieces("It lies", finish=reason), pieces(FOUND)), FOUND, n_requests=2
        )
        for reason in ("error", "abort", "insufficient_system_resource", "network_error")
    ),
    Kind(
        "broken off for ever",
        (pieces("It lies in", finish="abort"),) * 3,
        error=r"broke off \(abort\); try again, 3 times in a row",
        n_requests=3,
    ),
    *(
        Kind(f"filtered by {reason}", (pieces("It lies in", finish=reason),), error=FILTERED)
        for reason in ("SAFETY", "RECITATION", "content_filter: PROHIBITED_CONTENT", "sensitive")
    ),
    *(
        Kind(f"cut by {reason}", (pieces("It lies in", finish=reason),), "It lies in", cut=True)
        for reason in ("MAX_TOKENS", "model_length")
    ),
    *(
        Kind(f"ended by {reason}", (pieces(FOUND, finish=reason),), FOUND)
        for reason in ("STOP", "eos_token", "stop_sequence", "end_turn", "COMPLETE", "tool_calls")
    ),
    Kind("no reason first", (raw(event({"content": "It lies"}, "null"), CUT),), "It lies", cut=True),
    *(
        Kind(f"idle: {idle}", (raw(event({"content": "In the "}), f"{idle}\n\n", LAST),), FOUND)
        for idle in (
            *("data:", "data: ", "data: null", "data: ping", "event: ping", "event: error", "id: 5"),
            *("retry: 3000", 'data: {"message": "queue position 3"}', ': x\ndata: {"choices":\ndata: []}'),
        )
    ),
    Kind("an end among blanks", (raw(event({"content": FOUND}), "data:  [DONE] \n\n"),), FOUND),
    Kind("an end without a blank line", (raw(event({"content": FOUND}, "stop").rstrip()),), FOUND),
    Kind(
        "an end cut in two",
        (raw(event({"content": "It lies"}), event({}, "stop")[:-9]), pieces(FOUND)),
        FOUND,
        n_requests=2,
    ),
    Kind(
        "a connection that breaks behind it",
        (Answers(200, WHOLE, headers={"Content-Length": "9999"}),),
        FOUND,
    ),
    Kind("another choice between", (raw(event({"content": "In the "}), OTHER, LAST),), FOUND),
    Kind("a mark of its bytes", (Answers(200, f"\ufeff{whole(FOUND).body}"),), FOUND),
    Kind(
        "parts that reason",
        (whole([{"type": "reasoning", "text": FOLDED}, {"type": "output_text", "text": FOUND}]),),
        FOUND,
        FOLDED,
    ),
    *(
        Kind(opens, (pieces(f"{opens}{FOLDED}{closes}{FOUND}{ends}"),), FOUND, FOLDED)
        for opens, closes, ends in (
            ("<THINK>", "</THINK>", "</s>"),
            ("<Thinking>", "</Thinking>", "<|im_end|>"),
            ("<longcat_think>", "</longcat_think>", ""),
            ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>", "<|END_RESPONSE|>"),
            ("<|begin_of_thought|>", "<|end_of_thought|>", ""),
            ("<|channel|>analysis<|message|>", "<|channel|>final <|constrain|>json<|message|>", "<|return|>"),
        )
    ),
    Kind(
        "a thought among words",
        (pieces(f"<think>{FOLDED}</think>In <think>Or not?</think>the hall [2]."),),
        FOUND,
        f"{FOLDED}\n\nOr not?",
    ),
    Kind("an end of its own", (pieces(f"{FOUND}<|eot_id|>"),), FOUND),
    Kind("a tool", (whole(None, "tool_calls", tool_calls=[{"id": "a"}]),), error="called a tool instead"),
    *(
        Kind(f"no chat: {[*body]}", (Answers(200, json.dumps(body)),), error="no part of a chat reply; check")
        for body in (
            {"object": "response", "output": [{"content": [{"type": "output_text", "text": FOUND}]}]},
            {"type": "message", "content": [{"type": "text", "text": FOUND}], "stop_reason": "end_turn"},
            {"choices": [{"text": FOUND, "finish_reason": "stop"}]},
        )
    ),
    *(
        Kind(
            f"an error that passes, {body[:9]}",
            (raw(BEGUN, f"data: {body}\n\n"), pieces(FOUND)),
            FOUND,
            n_requests=2,
        )
        for body in (
            '[{"error": {"code": 503, "message": "busy"}}]',
            '{"error": {"type": "server_error", "message": "busy"}}',
            '{"choices": [{"error": {"code": 502, "message": "busy"}, "finish_reason": "error"}]}',
        )
    ),
    Kind(
        "an error in a list",
        (Answers(400, '[{"error": {"message": "no such key", "status": "INVALID"}}]'),),
        error=r"answered 400 \(no such key\)",
    ),
    Kind(
        "a fault that repeats the request",
        lambda request: Answers(422, json.dumps({"detail": [TOO_LONG | {"input": request.body}]})),
        error=r"answered 422 \(body.messages.1: too long\)",
    ),
    Kind("one piece as a stream", (whole(FOUND, content_type="text/event-stream"),), FOUND),
    Kind("a stream as one piece", (Answers(200, pieces(FOUND).body, "application/json"),), FOUND),
    Kind("one piece without its end", (whole(FOUND, None),), FOUND),
    Kind("deltas, then all of it", (raw(event({"content": FOUND}), AGAIN),), FOUND),
    Kind(
        "no streams",
        asks_for("stream", complains(400, "streaming is not supported"), whole(FOUND)),
        FOUND,
        n_requests=2,
    ),
    Kind("a packed stream", (packed(pieces(FOUND)),), FOUND),
    Kind("a packed piece", (packed(whole(FOUND)),), FOUND),
    Kind("a packed bomb", (packed(raw("data: " + " " * 2**24)),), error="sent more than 8 MB"),
    Kind(
        "no system by 400", without_system(complains(400, "System role not supported")), FOUND, n_requests=2
    ),
    Kind(
        "no system by 500",
        without_system(complains(500, "Jinja Exception: roles must alternate user/assistant")),
        FOUND,
        n_requests=2,
    ),
    Kind("temperature and top_p", picky, FOUND, n_requests=3),
    Kind(
        "one of two",
        asks_for("top_p", complains(400, "temperature and top_p cannot both be specified"), pieces(FOUND)),
        FOUND,
        n_requests=2,
    ),
    Kind(
        "top_p in a list",
        asks_for(
            "top_p",
            Answers(422, '{"detail": [{"loc": ["body", "top_p"], "msg": "not permitted"}]}'),
            pieces(FOUND),
        ),
        FOUND,
        n_requests=2,
    ),
    Kind(
        "524",
        (Answers(524, "<html>A timeout occurred</html>", "text/html"), pieces(FOUND)),
        FOUND,
        n_requests=2,
    ),
    Kind(
        "524 for ever",
        (Answers(524, "<html>A timeout occurred</html>", "text/html"),) * 3,
        error="answered 524; ask over less evidence",
        n_requests=3,
    ),
    Kind(
        "retry-after-ms",
        (Answers(429, headers={"retry-after-ms": "20", "Retry-After": "9"}), pieces(FOUND)),
        FOUND,
        n_requests=2,
    ),
    Kind(
        "a wait that is no number",
        (Answers(429, headers={"Retry-After": "nan"}), pieces(FOUND)),
        FOUND,
        n_requests=2,
    ),
)


@pytest.mark.parametrize("kind", TEXT, ids=lambda kind: kind.name)
def test_a_reply_is_taken_for_what_it_is(server: LlmServer, kind: Kind) -> None:
    play(server, kind)
    llm, draft = connect(server.url, "tiny", patience=QUICK), Draft()
    if kind.error:
        with pytest.raises(LlmError, match=rf"^tiny at 127\.0\.0\.1:\d+ .*{kind.error}"):
            llm.chat(ASKED, draft=draft)
    else:
        reply = llm.chat(ASKED, draft=draft)
        assert (reply.text, reply.thoughts, reply.cut) == (kind.text, kind.thoughts, kind.cut)
        assert (draft.text, draft.thoughts) == (reply.text, reply.thoughts)
    assert len(server.requests) == kind.n_requests


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{FOLDED}</think>\n{FOUND}",
        f"[THINK]{FOLDED}[/THINK]{FOUND}",
        f"<|channel|>analysis<|message|>{FOLDED}<|end|><|start|>assistant<|channel|>final<|message|>{FOUND}",
    ],
)
def test_no_thought_is_said_meanwhile(text: str) -> None:
    draft = Draft()
    for character in text:
        draft.add(character)
        assert FOUND.startswith(draft.text)
        assert FOLDED.startswith(draft.thoughts)
    assert draft.text == FOUND


ROOMS = (
    Kind("thoughts before it", (pieces(f'Is it {{"room": "attic"}}?</think>{ROOM}'),), "json_schema"),
    Kind(
        "refused by 500",
        asks_for("response_format", complains(500, "failed to compile the json schema"), pieces(ROOM)),
        "text",
        n_requests=3,
    ),
    Kind("refused by 500 without a word", no_schema, "json_object", n_requests=3),
    Kind(
        "refused in the stream",
        asks_for("response_format", raw(UNAVAILABLE), pieces(ROOM)),
        "text",
        n_requests=3,
    ),
    Kind("in an outer object", (pieces(f'{{"name": "Place", "arguments": {ROOM}}}'),), "text"),
    Kind("a trailing comma", (pieces('{"room": "hall",}'),), "text"),
    Kind("a plan", (pieces(f'If it were dry, {{"room": "attic"}}. It rained: {ROOM}'),), "text"),
    Kind("a template", (pieces(f'```\n{{"room": "..."}}\n```\nFilled in:\n```\n{ROOM}\n```'),), "text"),
    Kind("a line break inside", (pieces('{"room": "hall", "why": "It\nrained"}'),), "json_schema"),
    Kind(
        "no last brace",
        (pieces(ROOM[:-1]),) * 2,
        error=r"its JSON is broken \(Expecting ',' delimiter",
        n_requests=2,
    ),
    Kind(
        "a filter before it",
        (complains(400, "The response was filtered", param="prompt", code="content_filter"),),
        error=r"answered 400 \(The response was filtered\)",
    ),
    Kind("thoughts alone", (stream({"reasoning": ROOM}, finish="length"),), error=SPENT),
    Kind("a refusal", (stream({"refusal": "No."}),), error="refused to answer"),
    Kind(
        "cut twice",
        (pieces('{"room": "ha', finish="length"),) * 2,
        error="cut off after 7 tokens; allow longer replies",
        n_requests=2,
    ),
)


@pytest.mark.parametrize("kind", ROOMS, ids=lambda kind: kind.name)
def test_an_object_is_found_in_it(server: LlmServer, kind: Kind) -> None:
    play(server, kind)
    llm = connect(server.url, "tiny", patience=QUICK)
    if kind.error:
        with pytest.raises(LlmError, match=rf"^tiny .*{kind.error}"):
            llm.chat(ASKED, schema=Place)
    else:
        reply = llm.chat(ASKED, schema=Place)
        assert (reply.value, reply.structure) == (Place(room="hall"), kind.text)
    assert len(server.requests) == kind.n_requests


def test_what_does_not_help_is_not_left_out_from_then_on(server: LlmServer) -> None:
    llm = connect(server.url, "tiny", patience=QUICK)
    server.script = lambda _: complains(400, "too long: 'temperature of a stream', told by the system role")
    with pytest.raises(LlmError, match=r"answered 400 \(too long"):
        llm.chat(ASKED)
    server.script = lambda _: FOUND
    llm.chat(ASKED)
    first, *_, last = server.requests
    assert last.body == first.body


def test_a_whole_reply_waits_for_its_counts_and_no_longer(
    server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "_FOR_USAGE", 0.2)
    server.answer(Hangs(FOUND, finish="stop"))
    began = time.monotonic()
    reply = connect(server.url, "tiny").chat(ASKED)
    assert (reply.text, reply.counted_by) == (FOUND, "estimate")
    assert time.monotonic() - began < 5.0  # silence would be waited out for two minutes


def test_a_model_whose_thoughts_nothing_opens_may_be_cut_within_them(server: LlmServer) -> None:
    llm = connect(server.url, "tiny", patience=QUICK)
    server.answer(pieces(FOLDED, finish="length"), pieces(f"{FOLDED}</think>{FOUND}"))
    assert [llm.chat(ASKED).text for _ in range(2)] == [FOLDED, FOUND]
    server.answer(pieces(FOLDED, finish="length"), pieces(FOUND))
    with pytest.raises(LlmError, match=SPENT):
        llm.chat(ASKED)
    assert llm.chat(ASKED).text == FOUND


def test_a_test_sends_what_the_app_sends(server: LlmServer) -> None:
    server.answer('{"ready": true}')
    probe(connect(server.url, "tiny", reply_tokens=3000))
    (request,) = server.requests
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert {"stream", "temperature", "top_p", "seed", "response_format"} <= request.body.keys()
    assert request.body["max_tokens"] == 3000


def play(server: LlmServer, kind: Kind) -> None:
    if callable(kind.answers):
        server.script = kind.answers
    else:
        server.answer(*kind.answers)
