"""How a request to a language model travels: a transport for the openai client that goes to checked places.

The host's name is looked up once a request, and the connection goes to the address that was checked, while TLS
is verified against the name. Of what the client would send, only path, body and time limits are taken: no
header that it adds, or takes from the environment, leaves this machine. Of an answer's header, it sees what it
needs, so nothing is unpacked or followed.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2
from pydantic import SecretStr

from core.llm.address import Address, LookUp, Reach

MAX_ANSWER_BYTES = 8 * 2**20
"""Of one answer as it travels; a token takes some 250 bytes in a stream."""


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


class Failed(Exception):
    """No usable answer. `str(failed)` continues a sentence that begins with who was asked."""

    def __init__(self, words: str, *, again: bool = False, status: int = 0, said: str = "", wait: str = ""):
        super().__init__(words)
        self.again = again
        """Whether another attempt may go better."""
        self.status, self.said, self.wait = status, said, wait
        """Of an answer: its status, what it says is wrong, and its Retry-After."""


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


class CheckedTransport(httpx2.BaseTransport):
    """For one request, which another thread may end."""

    def __init__(self, address: Address, key: SecretStr | None, reach: Reach, look_up: LookUp) -> None:
        self._address, self._key, self._reach, self._look_up = address, key, reach, look_up
        self._inner = httpx2.HTTPTransport(verify=_tls(), trust_env=False)
        self._socket: socket.socket | None = None
        self._over = threading.Event()

    def end(self) -> None:
        """Wakes the thread that asks out of whatever read it waits in."""
        self._over.set()
        if self._socket is not None:
            with suppress(OSError):
                # the plain one: TLS would take leave of its peer first
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Asks at the first place that can be reached. Raises the error of the last, Failed, LlmError."""
        failure: Exception = socket.gaierror()
        for _, (ip, port, *_) in self._reach.places(self._address, self._look_up):
            if self._over.is_set():
                break
            try:
                return self._ask(request, request.url.copy_with(host=ip, port=port))
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.InvalidURL) as error:
                failure = error
        raise failure

    def close(self) -> None:
        self._inner.close()

    def _ask(self, request: httpx2.Request, url: httpx2.URL) -> httpx2.Response:
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
        answer = self._inner.handle_request(
            httpx2.Request("POST", url, headers=fields, content=request.content, extensions=named)
        )
        content_type = answer.headers.get("content-type", "").partition(";")[0].lower()
        whole = answer.status_code == 200 and "json" in content_type
        kept = {"content-type": content_type, "retry-after": answer.headers.get("retry-after", "")}
        return httpx2.Response(answer.status_code, headers=kept, stream=_Body(answer.stream, whole))

    def _keep_socket(self, event: str, info: dict[str, Any]) -> None:
        """Hears of every step of the request; the socket is what `end` needs."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._over.is_set():
                self.end()


class _Body(httpx2.SyncByteStream):
    """What comes back, as far as it is bounded; a reply in one piece becomes a stream of one event."""

    def __init__(self, stream: Any, whole: bool) -> None:
        self._stream, self._whole = stream, whole

    def __iter__(self) -> Iterator[bytes]:
        left = MAX_ANSWER_BYTES
        if self._whole:
            yield b"data: "
        for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise Failed(f"sent more than {MAX_ANSWER_BYTES // 2**20} MB")
            yield piece.translate(_ONE_LINE) if self._whole else piece
        if self._whole:
            yield b"\n\n"

    def close(self) -> None:
        self._stream.close()


_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
"""JSON has ends of lines between its parts alone."""
