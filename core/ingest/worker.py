"""The child process that converts files.

`python -m core.ingest.worker`, a job a frame on stdin, progress and results as frames on stdout. A frame is a
line of JSON, which says how many bytes of payload follow. Decides the limits: memory from what is taken once
the libraries are imported, computing time and clock time a job, and no file may grow by a byte. A limit that
strikes ends the process; the parent says so to the person. It ends with its parent, too, however that ends.
Does not protect against errors in the interpreter itself.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from core.errors import BadDocument
from core.ingest.converted import Converted
from core.ingest.converter import CLOCK_FACTOR, OUT_OF_MEMORY
from core.ingest.lean import import_markitdown
from core.ingest.limits import MAX_CONVERSION_BYTES

_TITLE_CHARACTERS = 2_000
"""Enough of a title for whoever clips it."""


def main() -> None:
    """Serves jobs until stdin ends."""
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no frame
    import_markitdown(without=("pandas",))  # it reads spreadsheets
    from core.ingest.convert import convert

    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit_memory_and_files()
    while line := jobs.readline():
        job = json.loads(line)
        _limit_time(job["seconds"])
        try:
            _serve(convert, job, jobs.read(job["payload"]), answers)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _serve(convert: Callable[..., Converted], job: Mapping[str, Any], data: bytes, answers: BinaryIO) -> None:
    def on_page(done: int, total: int) -> None:
        _send(answers, {"done": done, "total": total})

    try:
        converted = convert(data, job["form"], job["name"], on_page)
    except BadDocument as error:
        _send(answers, {"refused": str(error)})
    else:
        markdown, json_ld = (
            converted.markdown.encode("utf-8", "surrogatepass"),
            json.dumps(converted.json_ld).encode(),
        )
        head = {
            "title": converted.title[:_TITLE_CHARACTERS],
            "notices": converted.notices,
            "markdown": len(markdown),
        }
        _send(answers, head, markdown + json_ld)


def _send(answers: BinaryIO, head: Mapping[str, object], payload: bytes = b"") -> None:
    answers.write(json.dumps({**head, "payload": len(payload)}).encode() + b"\n" + payload)
    answers.flush()


def _end_with_parent() -> None:
    """Ends this process when the other end of stdin is closed, in the midst of a job, too."""
    closing = select.poll()
    closing.register(sys.stdin.fileno(), 0)  # no event but the hang-up, which needs no asking
    closing.poll()
    os._exit(0)


def _limit_memory_and_files() -> None:
    with suppress(FileNotFoundError):  # elsewhere than on Linux the system knows no such limit
        taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _limit(resource.RLIMIT_AS, taken + MAX_CONVERSION_BYTES)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(what: int, most: int) -> None:
    """For good; a lower limit that is set already stays."""
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _limit_time(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime) + 1 + seconds
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if hard != resource.RLIM_INFINITY:
        until = min(until, max(0, hard - 1))  # before the hard one, which kills without saying why
    resource.setrlimit(resource.RLIMIT_CPU, (until, hard))
    signal.setitimer(signal.ITIMER_REAL, CLOCK_FACTOR * seconds)


if __name__ == "__main__":
    main()
