"""Who may use the log file.

One owner process that writes, or any number of short readers, by flock on `<log>.lock`. It is held until its
descriptor is closed, at the latest by the end of the process, however it ends. The owner's process id stands
in the file for the error message only.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from core.base.errors import LogError
from core.base.home import make_folder

READER_PATIENCE = 5.0
"""Seconds an owner-to-be waits for readers, which hold the file for the length of one command."""


class LogOwned(LogError):
    """Another process owns the log."""


def lock_as_owner(path: Path) -> int:
    """A descriptor that holds the log at `path` alone. Raises LogOwned when another process owns it."""
    descriptor = _open_lock_file(path)
    deadline = time.monotonic() + READER_PATIENCE
    while not _try(descriptor, fcntl.LOCK_EX):
        only_readers = _try(descriptor, fcntl.LOCK_SH)
        if not only_readers or time.monotonic() > deadline:
            pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            os.close(descriptor)
            who = "other processes that are reading it" if only_readers else f"process {pid or 'unknown'}"
            raise LogOwned(
                f"the log {path} is in use by {who}; close it there or pass another file with --log"
            )
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(0.02)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def lock_as_reader(path: Path) -> int | None:
    """A descriptor that keeps owners out of the log at `path`, or None when it has an owner."""
    descriptor = _open_lock_file(path)
    if _try(descriptor, fcntl.LOCK_SH):
        return descriptor
    os.close(descriptor)
    return None


def _open_lock_file(path: Path) -> int:
    try:
        make_folder(path.parent)
        return os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise LogError(
            f"the log {path} can't be locked ({error.strerror}); pass a file in a folder you can write to"
            " with --log"
        ) from error


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
