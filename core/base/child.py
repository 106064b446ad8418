"""Child processes of this project, and what they may use.

A child is a module of `core` that takes jobs on stdin and answers on stdout, in frames: a line of JSON that
says how many bytes of payload follow. Of the environment it gets where programs and temporary files lie, no
key that may stand there. It bounds itself once its libraries are imported: a limit that strikes ends the
process, and so does its parent's end.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from core.base.home import ROOT
from core.base.progress import InThread

Waiting = Callable[[int, int], None]
"""Gets (done, in all), (0, 1) until something is known; called during a job, may raise `Cancelled`."""

Spend = Callable[[float], None]
"""Gets seconds that have just passed, and may raise to end it."""

CLOCK_FACTOR = 4
"""Clock time of a job to its computing time, where other work takes the cores."""
OUT_OF_MEMORY = 77
"""Exit status of a child that ran out of memory."""
_TICK = 0.1
_ENDING_SECONDS = 10.0
_MAX_HEAD_BYTES = 1024 * 1024
_PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR")


# The parent's side


def start_child(module: str) -> subprocess.Popen[bytes]:
    """`python -m MODULE` with one thread, frames on both its pipes. Raises OSError."""
    return subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={
            "OMP_NUM_THREADS": "1",
            "LC_ALL": "C.UTF-8",
            **{key: os.environ[key] for key in _PASSED_ON if key in os.environ},
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def end_child(child: subprocess.Popen[bytes]) -> None:
    """At once."""
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


class ChildEnded(Exception):
    """A child ended, or is to be ended, before it answered."""

    def __init__(self, status: int | None) -> None:
        """status: it ended with; None where the clock ran out."""
        self.status = status
        self.by_time = status in (None, -signal.SIGXCPU, -signal.SIGALRM)
        # libraries that can't do without memory abort
        self.by_memory = status in (OUT_OF_MEMORY, -signal.SIGKILL, -signal.SIGABRT)


def _exit_status(child: subprocess.Popen[bytes]) -> int:
    """Of a child that says no more; one that does not end by itself is ended."""
    try:
        return child.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def ask_once(module: str, *job: Any, **bounds: Any) -> tuple[dict[str, Any], bytes]:
    """`ask` of a child of one job. Raises OSError, ChildEnded."""
    child = start_child(module)
    try:
        return ask(child, *job, **bounds)
    finally:
        end_child(child)


def ask(
    child: subprocess.Popen[bytes],
    head: Mapping[str, Any],
    payload: bytes | memoryview,
    waiting: Waiting,
    *,
    seconds: int,
    most_bytes: int,
    spend: Spend = lambda _: None,
) -> tuple[dict[str, Any], bytes]:
    """One job's answer of `most_bytes` at most, within CLOCK_FACTOR times its computing time `seconds`.

    Raises ChildEnded, and what `waiting` and `spend` raise; the caller then has to end the child.
    """
    frame = {**head, "seconds": seconds, "payload": memoryview(payload).nbytes}
    progress = (0, 1)

    def talk(_: Callable[[None], None]) -> tuple[dict[str, Any], bytes]:
        nonlocal progress
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(frame).encode() + b"\n")
        child.stdin.write(payload)
        child.stdin.flush()
        while (line := child.stdout.readline(_MAX_HEAD_BYTES)).endswith(b"\n"):
            answer: dict[str, Any] = json.loads(line)
            if "done" in answer:
                progress = (answer["done"], answer["total"])
                continue
            n_bytes = answer["payload"]
            data = child.stdout.read(n_bytes) if 0 <= n_bytes <= most_bytes else b""
            if len(data) == n_bytes:
                return answer, data
            break
        raise EOFError

    began = until = time.monotonic()
    talking = InThread(talk)  # which waits for the pipes, and ends with the child
    while talking.thread.is_alive():
        spend((now := time.monotonic()) - until)
        until = now
        waiting(*progress)
        if now - began > CLOCK_FACTOR * seconds:
            raise ChildEnded(None)
        talking.thread.join(_TICK)
    spend(time.monotonic() - until)
    try:
        return talking.result()
    except (BrokenPipeError, EOFError):
        raise ChildEnded(_exit_status(child)) from None


# The child's side


def answering_end() -> BinaryIO:
    """Where a child's answers go; from now on nothing that a library prints is among them."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def send_frame(answers: BinaryIO, head: Mapping[str, object], payload: bytes = b"") -> None:
    """One answer, or a word on how far it is: {"done", "total"}."""
    answers.write(json.dumps({**head, "payload": len(payload)}).encode() + b"\n" + payload)
    answers.flush()


def _end_with_parent() -> None:
    """Ends this process when the other end of stdin is closed, in the midst of a job, too; for a thread."""
    closing = select.poll()
    closing.register(sys.stdin.fileno(), 0)  # no event but the hang-up, which needs no asking
    closing.poll()
    os._exit(0)


def _limit_memory_and_files(most_bytes: int) -> None:
    """Memory beyond what is taken by now; no file may grow by a byte."""
    with suppress(FileNotFoundError):  # elsewhere than on Linux the system knows no such limit
        n_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        _limit(resource.RLIMIT_AS, n_pages * resource.getpagesize() + most_bytes)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(what: int, most: int) -> None:
    """For good; a lower limit that is set already stays."""
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _limit_time(seconds: int) -> None:
    """Computing and clock time from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime) + 1 + seconds
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY:
        until = min(until, max(0, hard - 1))  # before the hard one, which kills without saying why
    resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
    signal.setitimer(signal.ITIMER_REAL, CLOCK_FACTOR * seconds)


def serve(job: Callable[[dict[str, Any], bytes], None], most_bytes: int) -> None:
    """Has jobs answered until stdin ends; `job` gets the head and the payload of each."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit_memory_and_files(most_bytes)
    jobs = sys.stdin.buffer
    while line := jobs.readline():
        head = json.loads(line)
        _limit_time(head["seconds"])
        try:
            job(head, jobs.read(head["payload"]))
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_REAL, 0)
