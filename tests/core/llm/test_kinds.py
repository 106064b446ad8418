"""Endpoints as people have them: each kind of reply, played by one scripted server."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from core.llm.draft import Draft
from core.llm.endpoint import connect
from core.llm.probe import probe
from core.llm.protocol import LlmError, Message
from tests.core.llm.conftest import QUICK
from tests.llm_server import USAGE, Answer, Answers, LlmServer, Request, Script, event

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
    Kind("an error as the end", (pieces("It lies in", finish="error"),), error="broke off with an error"),
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
