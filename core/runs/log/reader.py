"""Reading the log from a process that does not own it.

The file itself while nobody owns it, else the owner's last snapshot, whose age a notice tells. A reader keeps
owners out for as long as it has the file open: close it soon.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from core.base.errors import LogError
from core.runs.log.database import Connection, Database, snapshot_of
from core.runs.log.inbox import inbox_of
from core.runs.log.lock import READER_PATIENCE, LogOwned, lock_as_reader
from core.runs.log.migrations import VERSION, version_of
from core.runs.log.queries import RunReader
from core.runs.log.store import ExperimentLog
from core.runs.log.undo import undo_of
from core.views.draw.words import duration

T = TypeVar("T")


class LogReader(RunReader):
    """A read-only view of the log."""

    def __init__(self, database: Database, lock: int | None, age_seconds: float) -> None:
        self._database = database
        self._lock = lock
        self.age_seconds = age_seconds
        """Seconds since the snapshot was made; 0 for the file itself."""

    @property
    def notice(self) -> str | None:
        """A sentence for the person when this is a snapshot."""
        if self._lock is not None:
            return None
        return f"another process owns the log: this is its snapshot, made {duration(self.age_seconds)} ago"

    def read(self, work: Callable[[Connection], T]) -> T:
        return self._database.read(work)

    def close(self) -> None:
        """Let go of the file. Further calls do nothing."""
        self._database.close()
        if self._lock is not None and self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def open_reader(path: Path) -> LogReader:
    """A view of the log at `path`. Raises LogError when missing, damaged or without a snapshot yet."""
    path = Path(path).absolute()
    if not path.exists():
        raise LogError(
            f"there is no log at {path}; run something with --log first, or pass another file with --log"
        )
    if undo_of(path.resolve()).exists():
        with suppress(LogOwned):  # else a killed process left it, and an owner puts it in order
            ExperimentLog.open(path).close()
    reader = _open(path)
    try:
        outdated = reader.read(lambda con: version_of(con, path)) < VERSION
    except LogError:
        reader.close()
        raise
    waits = reader.notice is None and any(inbox_of(path).glob("*.jsonl"))
    if not outdated and not waits:
        return reader
    reader.close()
    try:
        with ExperimentLog.open(path) as log:  # brings the file up to date, or says who owns it
            log.import_inbox()  # of processes that wrote while another one did, before any app finds it
    except LogError:  # somebody owns it, or it can't be written: what is in it can be read all the same
        if outdated:
            raise
    return _open(path)


def _open(path: Path) -> LogReader:
    snapshot, deadline = snapshot_of(path), time.monotonic() + READER_PATIENCE
    while (lock := lock_as_reader(path)) is None and not snapshot.exists() and time.monotonic() < deadline:
        time.sleep(0.02)  # another reader may be taking in the inbox
    if lock is not None:
        try:
            return LogReader(Database(path, read_only=True), lock, 0.0)
        except BaseException:
            os.close(lock)
            raise
    try:
        age = max(0.0, time.time() - snapshot.stat().st_mtime)
    except FileNotFoundError as error:
        raise LogError(
            f"the log {path} is in use by another process, which has made no snapshot yet; try again later,"
            " or close it there"
        ) from error
    return LogReader(Database(snapshot, read_only=True), None, age)
