"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, lines: Iterable[str] | bytes) -> None:
    """Writes lines or bytes beside `path`, syncs them and moves them into its place. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines([lines] if isinstance(lines, bytes) else (line.encode() for line in lines))
            file.flush()
            os.fsync(file.fileno())
        replace_for_good(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_for_good(temporary: Path, path: Path) -> None:
    """Moves a file that was synced into the place of another, also for a power cut. Raises OSError."""
    os.replace(temporary, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Brings a file, or the names in a folder, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
