"""What commands share besides their flags."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.base.errors import BadRequest
from core.runs.log import RunLog, default_log_path, open_log, open_reader
from core.runs.log.reader import LogReader

if TYPE_CHECKING:
    from core.corpus.opening import OpenProgress
    from core.lab.evaluate.run import EvaluationProgress


@contextmanager
def named_log(named: str | None) -> Iterator[RunLog | None]:
    """The log of --log, "" for the usual: owned by this process, or its inbox. None without the flag."""
    if named is None:
        yield None
        return
    with closing(open_log(Path(named) if named else default_log_path())) as log:
        yield log


def log_reader(named: Path | None) -> LogReader:
    """The log of --log, None for the usual, to look at; says where that is a snapshot. Raises LogError."""
    reader = open_reader((named or default_log_path()).absolute())
    if reader.notice is not None:
        say(reader.notice)
    return reader


def check_targets(
    targets: Iterable[Path | None], read: Iterable[Path | None] = (), log: Path | str | None = None
) -> None:
    """Raises BadRequest where a file to write is the log or lies beside it, is read, or is another target.
    `log`: what --log says.
    """
    log = Path(log or default_log_path())
    logs = {(realpath(log.parent), log.name), os.path.split(realpath(log))}
    known = {realpath(path) for path in read if path is not None}
    for target in targets:
        if target is None:
            continue
        file = realpath(target)
        folder, name = os.path.split(file)
        if any(folder == at and re.match(rf"\.?{re.escape(own)}(\.|$)", name) for at, own in logs):
            raise BadRequest(f"{target} is the log {log}, or belongs to it; name another file")
        if file in known:
            raise BadRequest(
                f"{target} would overwrite what else this command reads or writes; name another file"
            )
        if target.is_file() or not target.exists():  # /dev/null may be several
            known.add(file)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises BadRequest where a file can't be written."""
    try:
        yield
    except OSError as error:
        raise BadRequest(f"{path} can't be written ({error.strerror}); name another file") from error


def count_printer(label: str = "") -> Callable[..., None]:
    """Prints progress, (done, total, stage, seconds left), twice a second where somebody watches; silent
    where stderr goes to a file.
    """
    out, last, named = sys.stderr, 0.0, f"{label}: " if label else ""

    def report(done: int, total: int, stage: str = "retrieving", seconds_left: float | None = None) -> None:
        nonlocal last
        now, at_end = time.monotonic(), stage != "embedding" and done == total
        if out.isatty() and (now - last > 0.5 or at_end):
            left = "" if seconds_left is None else f", {seconds_left:.0f} s left"
            said = f"\r{named}{stage} {done:,} of {total:,}{left}   "
            print(said, end="\n" if at_end else "", file=out, flush=True)
            last = now

    return report


def progress_printer(label: str = "") -> Callable[[OpenProgress | EvaluationProgress], None]:
    """See `count_printer`."""
    report = count_printer(label)
    return lambda now: report(now.done, now.total, now.stage, now.seconds_left)


def print_json(value: Any) -> None:
    """One line of the result."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False), flush=True)


def say(text: str) -> None:
    """A notice, beside the result."""
    print(text, file=sys.stderr)
