"""Conversions in a child process.

Starting it, handing it files, watching the clock, and ending it, whatever happens. One child serves the files
of one opening, since starting it takes longer than most conversions; no child ever serves two people. Nothing
is written to disk: files and results go through pipes. Whoever waits is asked ten times a second whether to
go on. Of the environment the child gets where programs and temporary files lie, no key that may stand there.
Decides which pages are read without a child: the first small ones of an opening.
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
from pathlib import Path
from typing import IO, Any

from core.errors import BadDocument
from core.ingest.bounds import BeyondBounds
from core.ingest.converted import Converted, Format
from core.ingest.limits import (
    BASE_CONVERSION_SECONDS,
    CONVERSION_SECONDS_PER_MEGABYTE,
    MAX_CONVERSION_BYTES,
    MAX_CONVERSION_SECONDS,
    MAX_CONVERTED_CHARACTERS,
    MAX_OWN_CHARACTERS,
    MAX_OWN_TAGS,
    MAX_READING_SECONDS,
)

Waiting = Callable[[int, int], None]
"""Gets (pages done, pages in all), (0, 1) where there are none; called while a conversion goes on, and may
raise `Cancelled`.
"""

Spend = Callable[[float], None]
"""Gets seconds of reading that have just passed, and may raise to end it."""

_ROOT = Path(__file__).resolve().parents[2]
_TICK = 0.1
_ENDING_SECONDS = 10.0
_PIECE = 64 * 1024
_MAX_HEAD_BYTES = 1024 * 1024
CLOCK_FACTOR = 4
"""Clock time of a conversion to its computing time, where other work takes the cores."""
OUT_OF_MEMORY = 77
"""Exit status of a child that ran out of memory."""
_PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR")
_REMEDY = "open a part of it, or save its text and open that"


def seconds_for(n_bytes: int) -> int:
    """Computing time that a conversion may take."""
    return min(
        MAX_CONVERSION_SECONDS,
        BASE_CONVERSION_SECONDS + CONVERSION_SECONDS_PER_MEGABYTE * n_bytes // 1_000_000,
    )


class Converter:
    """Converts the files of one opening, one after another; close it to end its child, which starts when it
    is needed first.
    """

    def __init__(self, spend: Spend = lambda _: None) -> None:
        """`spend` hears of all time that goes by while files are read here."""
        self._child: subprocess.Popen[bytes] | None = None
        self._deadline = time.monotonic() + MAX_READING_SECONDS
        self._spend = spend
        self._tags_left, self._characters_left = MAX_OWN_TAGS, MAX_OWN_CHARACTERS

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
        """Raises BeyondBounds when this opening has been reading for too long, and what `spend` raises once
        no time is left.
        """
        self._spend(0.0)
        if time.monotonic() > self._deadline:
            raise BeyondBounds(
                f"reading took longer than {MAX_READING_SECONDS:,} s when it came to {name}; open fewer files"
                " at once"
            )

    def read_page(self, html: str, name: str, waiting: Waiting | None = None) -> Converted:
        """Markdown of a page, read in this process while what was read so is little. Raises as `convert`
        does.
        """
        from core.ingest.html import (
            check_size,
            read_html,
        )  # when the first page is read, as its libraries take a moment

        self.check_time(name)
        n_tags = check_size(html, name)
        if self._child is not None or n_tags > self._tags_left or len(html) > self._characters_left:
            return self.convert(html.encode(), "html", name, waiting)
        self._tags_left, self._characters_left = self._tags_left - n_tags, self._characters_left - len(html)
        began = time.monotonic()
        try:
            return read_html(html, name)
        finally:
            self._spend(time.monotonic() - began)

    def convert(self, data: bytes, form: Format, name: str, waiting: Waiting | None = None) -> Converted:
        """Markdown of a file. Raises BadDocument; what `waiting` or `spend` raises passes through, and ends
        the child.
        """
        self.check_time(name)
        try:
            head, payload = self._answer(data, form, name, waiting or (lambda *_: None))
        except BaseException:
            self.close()
            raise
        if "refused" in head:
            raise BadDocument(head["refused"])
        markdown, json_ld = payload[: head["markdown"]], payload[head["markdown"] :]
        return Converted(
            markdown.decode("utf-8", "surrogatepass"),
            head["title"],
            tuple(head["notices"]),
            tuple(json.loads(json_ld)),
        )

    def _answer(self, data: bytes, form: Format, name: str, waiting: Waiting) -> tuple[dict[str, Any], bytes]:
        if self._child is None:
            self._child = _start()
        seconds = seconds_for(len(data))
        channel = _Channel(self._child, waiting, self._spend, time.monotonic() + CLOCK_FACTOR * seconds)
        head = (
            json.dumps({"form": form, "name": name, "seconds": seconds, "payload": len(data)}).encode()
            + b"\n"
        )
        try:
            channel.send(head)
            channel.send(data)
            while True:
                answer: dict[str, Any] = json.loads(channel.line())
                if "done" not in answer:
                    return answer, channel.take(answer["payload"])
                channel.progress = (answer["done"], answer["total"])
        except TimeoutError:
            raise BadDocument(_too_slow(name, seconds)) from None
        except (BrokenPipeError, EOFError):
            raise BadDocument(_why_ended(_status(self._child), name, seconds)) from None


def _status(child: subprocess.Popen[bytes]) -> int:
    """The exit status of a child that says no more; one that does not end by itself is ended."""
    try:
        return child.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def _too_slow(name: str, seconds: float) -> str:
    return f"{name} takes longer to convert than {seconds:,} s; {_REMEDY}"


def _why_ended(status: int, name: str, seconds: float) -> str:
    if status in (
        OUT_OF_MEMORY,
        -signal.SIGKILL,
        -signal.SIGABRT,
    ):  # aborted: where a library can't do without the memory
        return f"{name} needs more than {MAX_CONVERSION_BYTES:,} bytes of memory to be converted; {_REMEDY}"
    if status in (-signal.SIGXCPU, -signal.SIGALRM):
        return _too_slow(name, seconds)
    return (
        f"{name} could not be converted (the converter ended with status {status}); save it again from its"
        " program and open that"
    )


def _start() -> subprocess.Popen[bytes]:
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "core.ingest.worker"],
            cwd=_ROOT,
            env={
                "OMP_NUM_THREADS": "1",
                "LC_ALL": "C.UTF-8",
                **{key: os.environ[key] for key in _PASSED_ON if key in os.environ},
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        raise BadDocument(
            f"no converter could be started ({error.strerror}); save the file as HTML, Markdown or plain text"
            " and open that"
        ) from error
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
    return child


class _Channel:
    """The pipes of a child during one job: never blocks longer than a tick."""

    def __init__(
        self, child: subprocess.Popen[bytes], waiting: Waiting, spend: Spend, deadline: float
    ) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self._to: IO[bytes] = child.stdin
        self._from: IO[bytes] = child.stdout
        self._waiting = waiting
        self._spend = spend
        self._spent_until = time.monotonic()
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
                now = time.monotonic()
                passed, self._spent_until = now - self._spent_until, now
                self._spend(passed)
                if now >= self._next_tick:
                    self._next_tick = now + _TICK
                    self._waiting(*self.progress)
                if now > self._deadline:
                    raise TimeoutError
                if ready:
                    return
