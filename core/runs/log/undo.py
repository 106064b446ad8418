"""What a checkpoint writes over, kept until it is through.

A checkpoint of DuckDB (2.0.1) writes new metadata into free parts of blocks that are in use. Only then it
writes the header that makes the checkpoint count. A process that is killed inside of such a write leaves a
block with a wrong checksum, and a log that nothing opens. So these blocks are copied before. Who opens the log
next puts them back; the write-ahead log still has what was to be folded.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from duckdb import DuckDBPyConnection

from core.runs.log.atomic import write_whole

HEADER_BYTES = 3 * 4096
"""Of a DuckDB file, before its blocks."""

_NUMBERS = struct.Struct("<QQ")
"""Offset of a block in the log, and its length."""


def undo_of(path: Path) -> Path:
    """Where the blocks lie that a checkpoint of the log at `path` writes over."""
    return Path(f"{path}.undo")


def keep_blocks(connection: DuckDBPyConnection, catalog: str, file: FileIO, undo: Path) -> None:
    """Copy the headers of the log, then its metadata blocks with free parts, each behind its offset and length.
    Raises OSError, duckdb.Error.

    file: the log, open as long as the connection.
    """
    blocks = connection.execute(
        "SELECT part.block_id, whole.block_size FROM pragma_metadata_info(?) part, pragma_database_size() whole"
        " WHERE whole.database_name = ? AND part.free_blocks > 0",
        [catalog, catalog],
    ).fetchall()
    kept = [os.pread(file.fileno(), HEADER_BYTES, 0)]
    for block_id, n_bytes in blocks:
        offset = HEADER_BYTES + block_id * n_bytes
        block = os.pread(file.fileno(), n_bytes, offset)
        kept += [_NUMBERS.pack(offset, len(block)), block]
    write_whole(undo, b"".join(kept))


def put_blocks_back(path: Path) -> None:
    """Undo a checkpoint that was cut off before its header counted. For the owner of the log at `path` before
    it connects. Raises OSError.
    """
    undo = undo_of(path)
    if not undo.exists():
        return
    with path.open("r+b", buffering=0) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as DuckDB locks it
        except BlockingIOError:  # another program has it open, which DuckDB will say
            return
        kept = undo.read_bytes()
        if file.read(HEADER_BYTES) == kept[:HEADER_BYTES]:
            for offset, block in kept_blocks(kept):
                os.pwrite(file.fileno(), block, offset)
            os.fsync(file.fileno())
        undo.unlink()


def kept_blocks(kept: bytes) -> Iterator[tuple[int, bytes]]:
    """(offset in the log, block) of each that `keep_blocks` copied."""
    at = HEADER_BYTES
    while at < len(kept):
        offset, n_bytes = _NUMBERS.unpack_from(kept, at)
        at += _NUMBERS.size + n_bytes
        yield offset, kept[at - n_bytes : at]
