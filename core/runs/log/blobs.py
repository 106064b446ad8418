"""Arrays and texts as compressed bytes, and back.

Every size is checked before memory is taken. Q-values: the four bytes of each float32 are laid out as four
planes, and each plane's byte frequencies are coded (zlib, Huffman only): scores look random to zlib's search
for repetitions, which takes twice the time and finds nothing. Only the exponents shrink, to some 83% in all.
Lossless: a replay is compared at 1e-4, sums over runs are not. zlib's checksum shows damage.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from core.base.errors import LogError
from core.base.events import StepScores, StepTaken, Stopped, event_from_json
from core.base.types import ChunkTable
from core.runs.log.bounds import check_bounds

MAX_CHUNKS = 20_000_000
"""Most chunks a logged run may have: 80 MB of Q-values a step."""

MAX_FOREIGN_HEADER_BYTES = 1 << 24
"""Longest header of a chunk table out of a file: as Python's objects it takes many times that."""

MAX_TEXT_BYTES = 1 << 30
"""Longest document text that is unpacked, in bytes of UTF-8."""

_COLUMNS = tuple(map(np.dtype, (np.int64, np.int64, np.int32, np.uint8, np.int32)))
"""Of a chunk table: starts as differences, lengths, n_tokens, type_code, heading_code."""


def inflate(blob: bytes, max_bytes: int) -> bytes:
    """Decompressed bytes. Raises LogError when damaged or longer than `max_bytes`."""
    decoder = zlib.decompressobj()
    try:
        data = decoder.decompress(blob, max_bytes + 1)
    except zlib.error as error:
        raise LogError(
            f"a compressed value of the log is damaged ({error}); the run that holds it can't be read"
        ) from error
    if len(data) > max_bytes or not decoder.eof:
        raise LogError(
            f"a compressed value of the log is incomplete or longer than the {max_bytes:,} bytes expected;"
            " the run that holds it can't be read"
        )
    return data


def encode_scores(q_values: np.ndarray) -> bytes:
    """(N,) float32 as bytes; of (160_000,) some 534 KB in 8 ms."""
    planes = _planes(np.ascontiguousarray(q_values, dtype="<f4"))
    encoder = zlib.compressobj(1, strategy=zlib.Z_HUFFMAN_ONLY)
    return encoder.compress(planes) + encoder.flush()


def decode_scores(blob: bytes, n_chunks: int) -> np.ndarray:
    """Inverse of `encode_scores`: (n_chunks,) float32. Raises LogError on any other length."""
    planes = inflate(blob, 4 * n_chunks)
    if len(planes) != 4 * n_chunks:
        raise LogError(
            f"logged Q-values fill {len(planes):,} bytes instead of {4 * n_chunks:,} for {n_chunks:,} chunks;"
            " the run can't be read"
        )
    return _column(planes, np.dtype("<f4"), n_chunks)


def read_event(values: dict[str, Any], blob: bytes | None, n_chunks: int) -> StepTaken | Stopped:
    """An event of a run out of its JSON values, with the scores that were kept."""
    scores = None if blob is None else StepScores(decode_scores(blob, n_chunks), None)
    event = event_from_json({**values, "scores": scores})
    assert isinstance(event, StepTaken | Stopped)
    return event


def encode_text(text: str) -> bytes:
    """A document's text; raises UnicodeEncodeError on half a surrogate pair."""
    return zlib.compress(text.encode(), 1)


def decode_text(blob: bytes) -> str:
    """Inverse of `encode_text`."""
    return inflate(blob, MAX_TEXT_BYTES).decode()


def encode_table(table: ChunkTable) -> bytes:
    """A chunk table: a line of JSON, then its columns as byte planes, starts as differences."""
    starts, lengths = np.diff(table.start, prepend=0), table.end - table.start
    columns = (starts, lengths, table.n_tokens, table.type_code, table.heading_code)
    data = json.dumps({"n": len(table), "heading_paths": table.heading_paths}).encode() + b"\n"
    for column, dtype in zip(columns, _COLUMNS, strict=True):
        data += _planes(np.ascontiguousarray(column, dtype=dtype))
    return zlib.compress(data, 1)


def decode_table(blob: bytes, max_chunks: int | None = None) -> ChunkTable:
    """Inverse of `encode_table`; of one out of a file at most `max_chunks`. Raises LogError for no table."""
    row_bytes = sum(dtype.itemsize for dtype in _COLUMNS)
    max_bytes = MAX_TEXT_BYTES if max_chunks is None else MAX_FOREIGN_HEADER_BYTES + row_bytes * max_chunks
    header, _, data = inflate(blob, max_bytes).partition(b"\n")
    max_header = min(MAX_FOREIGN_HEADER_BYTES, 65_536 + 4_096 * (len(data) // row_bytes))
    if max_chunks is not None and len(header) > max_header:
        raise LogError(
            "a chunk table is damaged (its header is too long for its chunks); export the run again"
        )
    try:
        values = json.loads(header)
        check_bounds({"n": values["n"]})
        n = int(values["n"])
        paths = tuple(tuple(str(part) for part in path) for path in values["heading_paths"])
        columns, offset = [], 0
        for dtype in _COLUMNS:
            size = n * dtype.itemsize
            columns.append(_column(data[offset : offset + size], dtype, n))
            offset += size
        starts, lengths, n_tokens, type_code, heading_code = columns
        start = np.cumsum(starts)
        return ChunkTable(start, start + lengths, n_tokens, type_code, heading_code, paths)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LogError(
            f"a logged chunk table is damaged ({error}); the document has to be cut again"
        ) from error


def _planes(column: np.ndarray) -> bytes:
    return column.view(np.uint8).reshape(len(column), column.itemsize).T.tobytes()


def _column(planes: bytes, dtype: np.dtype[Any], n: int) -> np.ndarray:
    """Inverse of `_planes`: (n,). Raises ValueError on any other length."""
    return np.frombuffer(np.frombuffer(planes, np.uint8).reshape(dtype.itemsize, n).T.tobytes(), dtype)
