"""What commands share besides their flags.

The log that --log names, what goes to stdout and to stderr, and progress where somebody watches.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from core.runs.log import RunLog, default_log_path, open_log


class Told(Protocol):
    """How far something has come."""

    @property
    def stage(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def seconds_left(self) -> float | None: ...


@contextmanager
def named_log(named: str | None) -> Iterator[RunLog | None]:
    """The log of --log, "" for the usual: owned by this process, or its inbox. None without the flag."""
    if named is None:
        yield None
        return
    with closing(open_log(Path(named) if named else default_log_path())) as log:
        yield log


def progress_printer(label: str = "") -> Callable[[Told], None]:
    """Prints progress twice a second where somebody watches; silent where stderr goes to a file."""
    out, last = sys.stderr, 0.0

    def report(progress: Told) -> None:
        nonlocal last
        now, at_end = time.monotonic(), progress.stage != "embedding" and progress.done == progress.total
        if out.isatty() and (now - last > 0.5 or at_end):
            left = "" if progress.seconds_left is None else f", {progress.seconds_left:.0f} s left"
            named = f"{label}: " if label else ""
            print(
                f"\r{named}{progress.stage} {progress.done:,} of {progress.total:,}{left}   ",
                end="\n" if at_end else "",
                file=out,
                flush=True,
            )
            last = now

    return report


def print_json(value: Any) -> None:
    """One line of the result."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False), flush=True)


def say(text: str) -> None:
    """A notice, beside the result."""
    print(text, file=sys.stderr)
