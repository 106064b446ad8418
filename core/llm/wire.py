"""One POST over a connection to an address that was checked.

Its answer is read piece by piece. Decides that nothing is followed: no redirect, no proxy of the environment,
no cookie, no compression; and that TLS is verified against the name of the host whatever address it resolved
to: the URL holds the address, the Host field and TLS the name. What fails comes out as words without any
exception behind it, whose frames would hold the request with its key.
"""

from __future__ import annotations

import email.utils
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx
from pydantic import SecretStr

from core.base.errors import UserError
from core.llm.address import Address, Place
from core.llm.background import from_thread

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

    def __init__(self, words: str, *, again: bool, wait: float | None = None) -> None:
        super().__init__(words)
        self.again = again
        """Whether another attempt may go better."""
        self.wait = wait
        """Seconds that the server asked to be left alone for, where it did."""


@dataclass(frozen=True, slots=True)
class Head:
    """Beginning of an answer."""

    status: int
    content_type: str
    retry_after: float | None
    """Seconds."""


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def post(
    address: Address,
    body: bytes,
    key: SecretStr | None,
    places: Callable[[], Sequence[Place]],
    patience: Patience,
    cancelled: Callable[[], bool],
) -> Generator[Head | bytes]:
    """Sends JSON to `address` and yields its head, then its body in pieces. Raises Failed, LlmCancelled, and
    what `places` raises of UserError.

    `places` is called once, on the thread that connects. Closing the generator ends the connection.
    """
    request = _Request(address, body, key, places, patience)
    try:
        yield from from_thread(request.run, cancelled, patience.whole)
    except TimeoutError:
        raise Failed(f"was not done within {patience.whole:g} s", again=False) from None
    finally:
        request.end()


class _Request:
    """A connection on a thread of its own, which another thread may end."""

    def __init__(
        self,
        address: Address,
        body: bytes,
        key: SecretStr | None,
        places: Callable[[], Sequence[Place]],
        patience: Patience,
    ) -> None:
        self._address = address
        self._body = body
        self._key = key
        self._places = places
        self._patience = patience
        self._socket: socket.socket | None = None
        self._over = threading.Event()

    def end(self) -> None:
        """Wakes the thread out of whatever read it waits in."""
        self._over.set()
        if self._socket is not None:
            with suppress(OSError):
                # the plain one: TLS would take leave of its peer first
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def run(self, put: Callable[[Head | bytes], None]) -> None:
        """Raises Failed, or what `places` raises of UserError."""
        failure = self._failure(put)
        if failure is not None:
            raise failure

    def _failure(self, put: Callable[[Head | bytes], None]) -> Failed | UserError | None:
        """Puts the answer; returns what went wrong, so that it is raised with nothing behind it."""
        try:
            self._exchange(put)
        except UserError as refusal:
            return refusal
        except socket.gaierror:
            return Failed("has a host name that nobody knows", again=True)
        except httpx.ConnectTimeout:
            return Failed(f"can't be reached within {self._patience.connect:g} s", again=True)
        except httpx.TimeoutException:
            return Failed(f"said nothing for {self._patience.silence:g} s", again=False)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            cause = _root(error)
            if isinstance(cause, ssl.SSLCertVerificationError):
                return Failed(f"has no certificate to trust ({cause.verify_message})", again=False)
            if isinstance(cause, ConnectionRefusedError):
                return Failed("does not listen", again=True)
            return Failed(f"broke the connection off ({type(cause).__name__})", again=True)
        return None

    def _exchange(self, put: Callable[[Head | bytes], None]) -> None:
        """Asks at the first place that can be reached. Raises the error of the last."""
        timeout = httpx.Timeout(self._patience.silence, connect=self._patience.connect)
        failure: Exception = socket.gaierror()
        with httpx.Client(verify=_tls(), trust_env=False, timeout=timeout) as client:
            for _, (ip, port, *_) in self._places():
                if self._over.is_set():
                    return
                try:
                    self._ask(client, ip, port, put)
                    return
                except (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL) as error:
                    failure = error
        raise failure

    def _ask(self, client: httpx.Client, ip: str, port: int, put: Callable[[Head | bytes], None]) -> None:
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
        url = httpx.URL(
            scheme=self._address.scheme, host=ip, port=port, path=f"{self._address.path}/chat/completions"
        )
        named = {"sni_hostname": self._address.host, "trace": self._keep_socket}
        with client.stream("POST", url, headers=fields, content=self._body, extensions=named) as answer:
            head = answer.headers
            put(Head(answer.status_code, head.get("content-type", ""), _seconds(head.get("retry-after"))))
            for piece in answer.iter_raw():
                put(piece)

    def _keep_socket(self, event: str, info: dict[str, Any]) -> None:
        """Hears of every step of the request; the socket is what `end` needs."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._over.is_set():
                self.end()


def _root(error: BaseException) -> BaseException:
    """What an error came from first."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds from now, which may also be a date."""
    if not retry_after:
        return None
    try:
        return max(
            0.0,
            float(retry_after)
            if retry_after.strip().isdecimal()
            else email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time(),
        )
    except (ValueError, OverflowError):
        return None


def bounded(pieces: Iterable[Head | bytes]) -> Iterator[bytes]:
    """The pieces of a body. Raises Failed when they are more than MAX_ANSWER_BYTES together."""
    left = MAX_ANSWER_BYTES
    for piece in pieces:
        assert isinstance(piece, bytes)
        left -= len(piece)
        if left < 0:
            raise Failed(f"sent more than {MAX_ANSWER_BYTES // 2**20} MB", again=False)
        yield piece


def lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines of UTF-8, without their ends, however they are cut into pieces.

    >>> list(lines([b"da", b"ta: 1\\r\\n\\nda", b"ta"]))
    ['data: 1', '', 'data']
    """
    parts: list[bytes] = []
    for piece in pieces:
        first, *further = piece.split(b"\n")
        parts.append(first)
        for line in further:
            yield b"".join(parts).decode("utf-8", "replace").rstrip("\r")
            parts = [line]
    if any(parts):
        yield b"".join(parts).decode("utf-8", "replace").rstrip("\r")


def server_sent(stream: Iterable[str]) -> Iterator[str]:
    """The data of server-sent events, a line each."""
    for line in stream:
        if line.startswith("data:"):
            yield line.removeprefix("data:").strip()
