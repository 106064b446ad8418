"""One POST over a connection to an address that was checked, its answer read piece by piece.

Decides that nothing is followed: no redirect, no proxy of the environment, no cookie, no compression; that
TLS is verified against the name of the host whatever address it resolved to; and that a key goes from its
SecretStr straight into the request. The standard library's client is used because the ready-made ones look
names up by themselves, and huggingface_hub's also shares one session that follows redirects. What fails comes
out as words without any exception behind it, whose frames would hold the request. Knows nothing of language
models.
"""

from __future__ import annotations

import email.utils
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from pydantic import SecretStr

from core.errors import UserError
from core.llm.address import Address, Place
from core.llm.background import from_thread

MAX_ANSWER_BYTES = 8 * 2**20
"""Of one answer as it travels; a token takes some 250 bytes in a stream."""
_PIECE = 2**16


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
        self._address, self._body, self._key, self._places, self._patience = (
            address,
            body,
            key,
            places,
            patience,
        )
        self._socket: socket.socket | None = None
        self._connected = False
        self._over = threading.Event()

    def end(self) -> None:
        """Wakes the thread out of whatever read it waits in."""
        self._over.set()
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(
                    self._socket, socket.SHUT_RDWR
                )  # the plain one: TLS would take leave of its peer first

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
        except ssl.SSLCertVerificationError as error:
            return Failed(f"has no certificate to trust ({error.verify_message})", again=False)
        except socket.gaierror:
            return Failed("has a host name that nobody knows", again=True)
        except ConnectionRefusedError:
            return Failed("does not listen", again=True)
        except TimeoutError:
            if self._connected:
                return Failed(f"said nothing for {self._patience.silence:g} s", again=False)
            return Failed(f"can't be reached within {self._patience.connect:g} s", again=True)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Failed(f"broke the connection off ({type(error).__name__})", again=True)
        finally:
            if self._socket is not None:
                self._socket.close()
        return None

    def _exchange(self, put: Callable[[Head | bytes], None]) -> None:
        connection = http.client.HTTPConnection("unused")
        connection.auto_open = 0  # it writes and reads, and never connects by itself
        connection.sock = self._connect()
        connection.putrequest(
            "POST", f"{self._address.path}/chat/completions", skip_host=True, skip_accept_encoding=True
        )
        fields = {
            "Host": self._address.netloc,
            "Content-Type": "application/json",
            "Content-Length": str(len(self._body)),
        }
        for name, value in (
            fields
            | {
                "Accept": "text/event-stream, application/json",
                "Connection": "close",
                "User-Agent": "qrag-explorer",
            }
        ).items():
            connection.putheader(name, value)
        if self._key is not None:
            connection.putheader("Authorization", f"Bearer {self._key.get_secret_value()}")
        connection.endheaders(self._body)
        answer = connection.getresponse()
        put(
            Head(
                answer.status, answer.getheader("Content-Type", ""), _seconds(answer.getheader("Retry-After"))
            )
        )
        while piece := answer.read1(_PIECE):
            put(piece)

    def _connect(self) -> socket.socket:
        """Raises OSError of the last place that was tried."""
        failure: OSError = socket.gaierror()
        for family, place in self._places():
            if self._over.is_set():
                break
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            try:
                self._socket.settimeout(self._patience.connect)
                self._socket.connect(place)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._address.scheme == "https":
                    self._socket = _tls().wrap_socket(self._socket, server_hostname=self._address.host)
                self._socket.settimeout(self._patience.silence)
                self._connected = True
                return self._socket
            except OSError as error:
                self._socket.close()
                failure = error
        raise failure


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
