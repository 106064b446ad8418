"""Arrays and texts as compressed bytes, and back.

Every size is checked before memory is taken. Q-values: the four bytes of each float32 are laid out as four
planes, and each plane's byte frequencies are coded (zlib, Huffman only). Scores look random to a search for
repetitions, so only the exponents shrink, to some 83% in all; the search of zlib's usual mode takes twice the
time and finds nothing. zlib's checksum shows damage. Lossless: a replay is compared at 1e-4, sums over runs
are not.
"""

from __future__ import annotations

import json
import zlib

import numpy as np

from core.base.errors import LogError
from core.base.types import ChunkTable
from core.runs.log.bounds import check_bounds

MAX_CHUNKS = 20_000_000
"""Most chunks a logged run may have: 80 MB of Q-values a step."""

MAX_FOREIGN_HEADER_BYTES = 1 << 24
"""Longest header of a chunk table out of a file: as Python's objects it takes many times that."""

MAX_TEXT_BYTES = 1 << 30
"""Longest document text that is unpacked, in bytes of UTF-8."""

_COLUMNS = (
    ("start", np.int64),
    ("length", np.int64),
    ("n_tokens", np.int32),
    ("type_code", np.uint8),
    ("heading_code", np.int32),
)


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
    return np.frombuffer(np.frombuffer(planes, np.uint8).reshape(4, n_chunks).T.tobytes(), "<f4")


def encode_text(text: str) -> bytes:
    """A document's text; raises UnicodeEncodeError on half a surrogate pair."""
    return zlib.compress(text.encode(), 1)


def decode_text(blob: bytes) -> str:
    """Inverse of `encode_text`."""
    return inflate(blob, MAX_TEXT_BYTES).decode()


def encode_table(table: ChunkTable) -> bytes:
    """A chunk table: a line of JSON, then its columns as byte planes, starts as differences."""
    columns = {
        "start": np.diff(table.start, prepend=0),
        "length": table.end - table.start,
        "n_tokens": table.n_tokens,
        "type_code": table.type_code,
        "heading_code": table.heading_code,
    }
    header = {
        "n": len(table),
        "heading_paths": table.heading_paths,
    }
    data = json.dumps(header).encode() + b"\n"
    for name, dtype in _COLUMNS:
        column = np.ascontiguousarray(columns[name], dtype=dtype)
        data += _planes(column)
    return zlib.compress(data, 1)


def decode_table(blob: bytes, max_chunks: int | None = None) -> ChunkTable:
    """Inverse of `encode_table`. Raises LogError when the bytes are no table; `max_chunks` is for one out of a
    file, of which more chunks are refused, and a header too long for them.
    """
    row_bytes = sum(np.dtype(dtype).itemsize for _, dtype in _COLUMNS)
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
        columns, offset = {}, 0
        for name, dtype in _COLUMNS:
            size = n * np.dtype(dtype).itemsize
            planes = np.frombuffer(data[offset : offset + size], np.uint8).reshape(
                np.dtype(dtype).itemsize, n
            )
            columns[name], offset = np.frombuffer(planes.T.tobytes(), dtype), offset + size
        start = np.cumsum(columns["start"])
        table = ChunkTable(
            start,
            start + columns["length"],
            columns["n_tokens"],
            columns["type_code"],
            columns["heading_code"],
            paths,
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LogError(
            f"a logged chunk table is damaged ({error}); the document has to be cut again"
        ) from error
    return table


def _planes(column: np.ndarray) -> bytes:
    return column.view(np.uint8).reshape(len(column), column.itemsize).T.tobytes()
