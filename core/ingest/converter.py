"""Conversions in a child process: starting it, handing it files, watching the clock, and ending it, whatever happens.

One child serves the files of one opening, since starting it takes longer than most conversions; no child ever serves two people. Nothing is written
to disk: files and results go through pipes. Whoever waits is asked ten times a second whether to go on. Of the
environment the child gets where programs and temporary files lie, no key that may stand there. Knows nothing of formats.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from core.errors import BadDocument
from core.ingest.bounds import BeyondBounds
from core.ingest.limits import MAX_CONVERSION_BYTES, MAX_CONVERSION_SECONDS, MAX_CONVERTED_CHARACTERS, MAX_READING_SECONDS

Waiting = Callable[[int, int], None]
"""Gets (pages done, pages in all), (0, 1) where there are none; called while a conversion goes on, and may raise `Cancelled`."""

Format = Literal["pdf", "docx", "epub"]

_ROOT = Path(__file__).resolve().parents[2]
_TICK = 0.1
_ENDING_SECONDS = 10.0
_PIECE = 64 * 1024
_MAX_HEAD_BYTES = 1024 * 1024
OUT_OF_MEMORY = 77
"""Exit status of a child that ran out of memory."""
_PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR")
_REMEDY = "open a part of it, or save its text and open that"


@dataclass(frozen=True)
class Converted:
    """What was read of a file. `title` is what its metadata say, unchecked."""

    markdown: str
    title: str = ""
    notices: tuple[str, ...] = ()


class Converter:
    """Converts the files of one opening, one after another; close it to end its child, which starts with the first file."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._deadline = time.monotonic() + MAX_READING_SECONDS

    def __enter__(self) -> Converter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is none."""
        return None if self._child is None else self._child.pid

    def close(self) -> None:
        """Ends the child, at once."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def check_time(self, name: str) -> None:
        """Raises BeyondBounds when this opening has been reading for too long."""
        if time.monotonic() > self._deadline:
            raise BeyondBounds(f"reading took longer than {MAX_READING_SECONDS:,} s when it came to {name}; open fewer files at once")

    def convert(self, data: bytes, form: Format, name: str, waiting: Waiting | None = None) -> Converted:
        """Markdown of a file. Raises BadDocument; what `waiting` raises passes through, and ends the child."""
        self.check_time(name)
        try:
            head, payload = self._answer(data, form, name, waiting or (lambda *_: None))
        except BaseException:
            self.close()
            raise
        if "refused" in head:
            raise BadDocument(head["refused"])
        return Converted(payload.decode("utf-8", "surrogatepass"), head["title"], tuple(head["notices"]))

    def _answer(self, data: bytes, form: Format, name: str, waiting: Waiting) -> tuple[dict[str, Any], bytes]:
        if self._child is None:
            self._child = _start()
        channel = _Channel(self._child, waiting, time.monotonic() + MAX_CONVERSION_SECONDS)
        head = json.dumps({"form": form, "name": name, "payload": len(data)}).encode() + b"\n"
        try:
            channel.send(head)
            channel.send(data)
            while True:
                answer: dict[str, Any] = json.loads(channel.line())
                if "done" not in answer:
                    return answer, channel.take(answer["payload"])
                channel.progress = (answer["done"], answer["total"])
        except TimeoutError:
            raise BadDocument(f"{name} takes longer to convert than {MAX_CONVERSION_SECONDS} s; {_REMEDY}") from None
        except (BrokenPipeError, EOFError):
            raise BadDocument(_why_ended(_status(self._child), name)) from None


def _status(child: subprocess.Popen[bytes]) -> int:
    """The exit status of a child that says no more; one that does not end by itself is ended."""
    try:
        return child.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def _why_ended(status: int, name: str) -> str:
    if status in (OUT_OF_MEMORY, -signal.SIGKILL):
        return f"{name} needs more than {MAX_CONVERSION_BYTES:,} bytes of memory to be converted; {_REMEDY}"
    if status in (-signal.SIGXCPU, -signal.SIGALRM):
        return f"{name} takes longer to convert than {MAX_CONVERSION_SECONDS} s; {_REMEDY}"
    return f"{name} could not be converted (the converter ended with status {status}); save it again from its program and open that"


def _start() -> subprocess.Popen[bytes]:
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "core.ingest.worker"],
            cwd=_ROOT,
            env={"OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", **{key: os.environ[key] for key in _PASSED_ON if key in os.environ}},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise BadDocument(f"no converter could be started ({error.strerror}); save the file as HTML, Markdown or plain text and open that") from error
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
    return child


class _Channel:
    """The pipes of a child during one job: never blocks longer than a tick."""

    def __init__(self, child: subprocess.Popen[bytes], waiting: Waiting, deadline: float) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self._to: IO[bytes] = child.stdin
        self._from: IO[bytes] = child.stdout
        self._waiting = waiting
        self._deadline = deadline
        self._received = bytearray()
        self._next_tick = 0.0
        self.progress = (0, 1)

    def send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._wait(self._to, selectors.EVENT_WRITE)
            with suppress(BlockingIOError):
                rest = rest[os.write(self._to.fileno(), rest[:_PIECE]) :]

    def line(self) -> bytes:
        while (end := self._received.find(b"\n")) < 0:
            self._receive(_MAX_HEAD_BYTES)
        return self._cut(end + 1)

    def take(self, n_bytes: int) -> bytes:
        while len(self._received) < n_bytes:
            self._receive(4 * MAX_CONVERTED_CHARACTERS)
        return self._cut(n_bytes)

    def _cut(self, n_bytes: int) -> bytes:
        taken = bytes(self._received[:n_bytes])
        del self._received[:n_bytes]
        return taken

    def _receive(self, most: int) -> None:
        self._wait(self._from, selectors.EVENT_READ)
        with suppress(BlockingIOError):
            piece = os.read(self._from.fileno(), _PIECE)
            if not piece or len(self._received) > most:
                raise EOFError
            self._received += piece

    def _wait(self, pipe: IO[bytes], event: int) -> None:
        """Until the pipe is ready. Raises TimeoutError, and what the waiting one raises."""
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, event)
            while True:
                ready = selector.select(_TICK)
                if (now := time.monotonic()) >= self._next_tick:
                    self._next_tick = now + _TICK
                    self._waiting(*self.progress)
                if now > self._deadline:
                    raise TimeoutError
                if ready:
                    return
