"""An OpenAI-compatible endpoint on this machine."""

from __future__ import annotations

import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-canary-0123456789abcdefghij"
"""A key that must turn up nowhere but in requests."""
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(frozen=True)
class Says:
    """A reply in good order."""

    text: str
    streamed: bool = True
    usage: dict[str, int] | None = field(default_factory=lambda: dict(USAGE))
    finish: str = "stop"
    pause: float = 0.0
    """Seconds between pieces."""


@dataclass(frozen=True)
class Answers:
    """Any answer, as it stands."""

    status: int
    body: str | bytes = ""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hangs:
    """Says the beginning of a reply and then nothing, until the test ends; with `head` False not even that it
    was heard, with `finish` why the reply ends.
    """

    text: str = ""
    head: bool = True
    finish: str = ""


@dataclass(frozen=True)
class BreaksOff:
    """Says the beginning of a reply and hangs up."""

    text: str = ""


Answer = Says | Answers | Hangs | BreaksOff


@dataclass(frozen=True)
class Request:
    """What a client asked."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]

    @property
    def structure(self) -> str:
        return str(self.body.get("response_format", {}).get("type", "text"))

    @property
    def messages(self) -> list[dict[str, str]]:
        return list(self.body["messages"])


Script = Callable[[Request], Answer | str]


@dataclass
class LlmServer:
    """What it will answer, and what it was asked."""

    url: str
    """Base address, with /v1."""
    script: Script
    requests: list[Request] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    _queue: deque[Answer] = field(default_factory=deque)

    def answer(self, *answers: Answer | str) -> None:
        self._queue.extend(Says(answer) if isinstance(answer, str) else answer for answer in answers)

    def answer_to(self, request: Request) -> Answer:
        self.requests.append(request)
        with suppress(IndexError):
            return self._queue.popleft()
        said = self.script(request)
        return Says(said) if isinstance(said, str) else said


def event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return (
        "data: "
        + json.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [choice], **more})
        + "\n\n"
    )


def refuses(*structures: str) -> Script:
    """A script that refuses some structures and says a JSON object to anything else."""

    def script(request: Request) -> Answer:
        if request.structure in structures:
            return Answers(
                400, json.dumps({"error": {"message": f"response_format {request.structure} is unavailable"}})
            )
        return Says('{"ready": true}')

    return script


def _handler(server: LlmServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = server.answer_to(
                Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            )
            self.close_connection = True
            with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
                self._give(answer)

        def _give(self, answer: Answer) -> None:
            match answer:
                case Answers():
                    body = answer.body if isinstance(answer.body, bytes) else answer.body.encode()
                    self._head(
                        answer.status,
                        answer.content_type,
                        {"Content-Length": str(len(body)), **answer.headers},
                    )
                    self.wfile.write(body)
                case Says(streamed=False):
                    choice = {
                        "index": 0,
                        "message": {"role": "assistant", "content": answer.text},
                        "finish_reason": answer.finish,
                    }
                    self._head(200, "application/json", {})
                    self.wfile.write(json.dumps({"choices": [choice], "usage": answer.usage}).encode())
                case Says():
                    self._head(200, "text/event-stream", {})
                    self._stream(answer.text, answer.pause)
                    self.wfile.write(event({}, answer.finish).encode())
                    self.wfile.write(
                        event({}, usage=answer.usage)
                        .replace('"choices": [', '"choices": [], "x": [')
                        .encode()
                        if answer.usage
                        else b""
                    )
                    self.wfile.write(b"data: [DONE]\n\n")
                case Hangs():
                    if answer.head:
                        self._head(200, "text/event-stream", {})
                        self._stream(answer.text, 0)
                    if answer.finish:
                        self.wfile.write(event({}, answer.finish).encode())
                    server.over.wait(60)
                case BreaksOff():
                    self._head(200, "text/event-stream", {})
                    self._stream(answer.text, 0)

        def _head(self, status: int, content_type: str, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in ({"Content-Type": content_type, "Connection": "close"} | headers).items():
                self.send_header(name, value)
            self.end_headers()

        def _stream(self, text: str, pause: float) -> None:
            self.wfile.write(
                b": a comment keeps the line open\n\n" + event({"role": "assistant", "content": ""}).encode()
            )
            for start in range(0, len(text), 7):
                self.wfile.write(event({"content": text[start : start + 7]}).encode())
                self.wfile.flush()
                if pause and server.over.wait(pause):
                    return

        def log_message(self, *_: object) -> None:
            """Silent."""

    return Handler


@contextmanager
def serve_llm(script: Script = lambda _: "Yes.", tls: ssl.SSLContext | None = None) -> Iterator[LlmServer]:
    """A server that answers until the block ends; hanging answers end with it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as http:
        http.daemon_threads = True
        if tls is not None:
            http.socket = tls.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
        server = LlmServer(f"{'http' if tls is None else 'https'}://127.0.0.1:{http.server_port}/v1", script)
        http.RequestHandlerClass = _handler(server)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            http.shutdown()
            thread.join()
