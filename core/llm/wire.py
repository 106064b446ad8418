"""How a request to a language model travels.

A host's name is looked up once a request, and the connection goes to the address that was checked, while TLS
is verified against the name. Of what the client would send, only path, body and time limits are taken: no
header that it adds, or finds in the environment, leaves this machine. It is shown three headers of the
answer, so nothing is followed or kept, and what a server packed unasked is unpacked here, within the bound.
Who cancels waits for nothing, not even for a name to be looked up.
"""

from __future__ import annotations

import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from math import inf
from typing import Any

import httpx2
from pydantic import SecretStr

from core.base.progress import InThread
from core.llm.address import Address, Reach
from core.llm.protocol import LlmCancelled

MAX_ANSWER_BYTES = 8 * 2**20
"""Of one answer as it travels; a token takes some 250 bytes in a stream."""
_UNPACKED = ("gzip", "x-gzip", "deflate")
"""Packings that swell a thousandfold at most, so that a piece of the wire fits memory."""
_BEFORE_REPLY = b"\xef\xbb\xbf \t\r\n"
"""Bytes that are no part of it: a BOM and blanks."""
_IDLE = re.compile(rb"(?:event|id|retry):.*|data:[\w .-]*")
"""A line of a stream that holds nothing: another field, no data, a word as `ping` or `null`."""
_MOST_DEPTH = 100
"""Of brackets within brackets. At Python's bound not only the parser would fail, but also what the garbage
collector happens to end on top of it.
"""
_NO_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)|[^]\[{}"]++', re.DOTALL)
_LOOK_EVERY = 0.1
"""Seconds between looks whether the caller has cancelled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long to wait, in seconds, and how often to ask."""

    connect: float = 10.0
    """To reach a host, and once more for TLS."""
    silence: float = 120.0
    """Without a byte; a server that loads its model first says nothing for long."""
    whole: float = 600.0
    """One request in all."""
    attempts: int = 3
    """Most requests that failed in a way that may pass."""
    first_wait: float = 0.5
    """Before the second attempt; doubles with each further one."""
    longest_wait: float = 20.0
    """That a server may ask for with Retry-After; one that asks for more is given up at once."""


@dataclass(eq=False)
class Failed(Exception):
    """No usable answer. `words` continue a sentence that begins with who was asked."""

    words: str
    again: bool = False
    """Whether another attempt may go better."""
    status: int = 200
    said: str = ""
    """What the server says is wrong."""
    field: str = ""
    """Of the request, that it names as the fault."""
    wait: float | None = None
    """Seconds that it asks to wait."""


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class CheckedTransport(httpx2.BaseTransport):
    """For one request, which another thread may end."""

    def __init__(self, address: Address, key: SecretStr | None, reach: Reach) -> None:
        self._address, self._key, self._reach = address, key, reach
        self._inner = httpx2.HTTPTransport(verify=_tls(), trust_env=False)
        self._socket: socket.socket | None = None
        self._over = threading.Event()
        self.ended = False
        """Whether a stream ended without saying so."""

    def end(self) -> None:
        """Wakes the thread that asks out of whatever read it waits in."""
        self._over.set()
        if self._socket is not None:
            with suppress(OSError):
                # the plain one: TLS would take leave of its peer first
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Asks at the first place that can be reached. Raises the error of the last, Failed, LlmError."""
        fields = {
            "Host": self._address.netloc,
            "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",
            "Connection": "close",
            "User-Agent": "qrag-explorer",
        }
        if self._key is not None:
            fields["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        named = {**request.extensions, "sni_hostname": self._address.host, "trace": self._keep_socket}
        failure: Exception = socket.gaierror()
        for ip, port in self._reach.places(self._address):
            if self._over.is_set():
                break
            try:
                url = request.url.copy_with(host=ip, port=port)
                asked = httpx2.Request("POST", url, headers=fields, content=request.content, extensions=named)
                return self._shown(self._inner.handle_request(asked))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    def close(self) -> None:
        self._inner.close()

    def _keep_socket(self, event: str, info: dict[str, Any]) -> None:
        """Hears of every step of the request; the socket is what `end` needs."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._over.is_set():
                self.end()

    def _shown(self, answer: httpx2.Response) -> httpx2.Response:
        """What the client sees of an answer."""
        content_type = answer.headers.get("content-type", "").partition(";")[0].lower()
        is_reply = answer.status_code == 200
        if is_reply and "html" in content_type:
            raise Failed("answered with a web page; check the address")
        waits = {name: answer.headers.get(name, "") for name in ("Retry-After", "Retry-After-Ms")}
        shown = {"Content-Type": content_type, **waits}
        is_packed = answer.headers.get("content-encoding", "").strip().lower() in _UNPACKED
        body = self._bounded(answer.iter_bytes() if is_packed else answer.iter_raw(), is_reply)
        content = _data_of(body) if is_reply else _unless_deep(body)
        return httpx2.Response(answer.status_code, headers=shown, content=content)

    def _bounded(self, pieces: Iterable[bytes], is_reply: bool) -> Iterator[bytes]:
        """A body; a reply in one piece, whatever it is called, becomes the one event of a stream."""
        left, has_begun, in_one_piece = MAX_ANSWER_BYTES, not is_reply, False
        for piece in pieces:
            left -= len(piece)
            if left < 0:
                raise Failed(f"sent more than {MAX_ANSWER_BYTES // 2**20} MB")
            if not has_begun:
                piece = piece.lstrip(_BEFORE_REPLY)
                has_begun, in_one_piece = bool(piece), piece.startswith((b"{", b"["))
                if in_one_piece:
                    yield b"data: "
            yield piece.replace(b"\n", b" ").replace(b"\r", b" ") if in_one_piece else piece
        self.ended = not in_one_piece


def _data_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A stream without idle lines, which the client would read as broken events; its end ends an event."""
    line = bytearray()
    for piece in chain(pieces, (b"\n\n",)):
        for part in piece.splitlines(keepends=True):
            line += part
            if not part.endswith((b"\n", b"\r")):
                continue
            text = bytes(line).strip()
            line.clear()
            if text.startswith(b"data:"):
                text = b"data:" + text[5:].strip()
            if _is_deep(text):
                raise Failed("sent something that is no part of a chat reply; check the address")
            if not _IDLE.fullmatch(text):
                yield text + b"\n"


def _unless_deep(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The body of an error, which says something in few brackets or nothing at all."""
    whole = b"".join(pieces)
    yield b"" if _is_deep(whole) else whole


def _is_deep(json: bytes) -> bool:
    if json.count(b"[") + json.count(b"{") <= _MOST_DEPTH:
        return False
    steps = (1 if sign in b"[{" else -1 for sign in _NO_BRACKETS.sub(b"", json))
    return max(accumulate(steps), default=0) > _MOST_DEPTH


def from_thread(
    work: Callable[[Callable[[Any], None]], None], cancelled: Callable[[], bool], seconds: float
) -> Generator[Any]:
    """What `work` puts, as it comes. Raises as `work` does, LlmCancelled, TimeoutError after `seconds`; the
    thread is then left to end by itself.
    """
    begun, deadline = InThread(work), time.monotonic() + seconds
    while time.monotonic() <= deadline:
        if cancelled():
            raise LlmCancelled
        with suppress(queue.Empty):
            if (item := begun.reports.get(timeout=_LOOK_EVERY)) is None:
                return begun.result()
            yield item
    raise TimeoutError


def pause(seconds: float, cancelled: Callable[[], bool]) -> None:
    """Waits. Raises LlmCancelled."""
    list(from_thread(lambda _: time.sleep(seconds), cancelled, inf))
