"""Chunk vectors on disk: one append-only file per encoder, read through memory maps, with a checksum per block.

A vector is keyed by the SHA-256 (first 16 bytes) of its chunk's text, so an edited document embeds only what changed, and several
documents share. Several processes may read and append; appending takes a file lock. A block whose checksum fails is skipped, so its
texts are embedded again; a torn block at the end (killed writer, full disk) is cut off by the next append.
Does not know how vectors are made. Not protected against: someone who edits the file and its checksums.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from core.encode.encoder import DualEncoder
from core.errors import UserError

_MAGIC = b"QXV1"
_HEADER = struct.Struct("<4sIIII")
"""magic, rows, dim, CRC-32 of the keys, CRC-32 of the vectors."""
_KEY = np.dtype("V16")


@dataclass(frozen=True, slots=True)
class EmbedProgress:
    """How far embedding is. `seconds_left` is None until something was measured."""

    done: int
    total: int
    n_cached: int
    """Of `total`, how many vectors were found in the cache."""
    seconds_left: float | None


def text_keys(texts: Iterable[str]) -> np.ndarray:
    """(N,) 16-byte keys of texts."""
    digests = b"".join(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16] for text in texts)
    return np.frombuffer(digests, dtype=_KEY)


class VectorStore:
    """The vectors of one encoder. Thread-safe."""

    def __init__(self, path: Path, dim: int, dtype: np.dtype) -> None:
        """`path` is created on the first append. Blocks of another dimension count as damaged."""
        self.path, self.dim, self.dtype = path, dim, dtype
        self.n_damaged_blocks = 0
        self._lock = threading.Lock()
        self._rows: dict[bytes, tuple[int, int]] = {}  # key -> (offset of its block's vectors, row)
        self._blocks: dict[int, tuple[int, int]] = {}  # vectors' offset -> (rows, CRC)
        self._verified: dict[int, bool] = {}
        self._scanned = 0

    def read(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(found (N,) bool, vectors (N, D) of the store's dtype; rows not found are zero)."""
        vectors = np.zeros((len(keys), self.dim), dtype=self.dtype)
        found = np.zeros(len(keys), dtype=bool)
        with self._lock:
            if not self.path.exists():
                return found, vectors
            with self.path.open("rb") as file:
                self._scan(file)
            if not self._rows:
                return found, vectors
            mapped = np.memmap(self.path, dtype=np.uint8, mode="r")
            places: dict[int, tuple[list[int], list[int]]] = {}
            for i, key in enumerate(keys.tolist()):
                place = self._rows.get(key)
                if place is not None:
                    targets, rows = places.setdefault(place[0], ([], []))
                    targets.append(i)
                    rows.append(place[1])
            for offset, (targets, rows) in places.items():
                block = self._block(mapped, offset)
                if block is not None:
                    vectors[targets] = block[rows]
                    found[targets] = True
        return found, vectors

    def append(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Writes one block: (n,) keys and (n, D) vectors. Raises UserError when the disk is full or read-only; what was stored stays."""
        rows = np.ascontiguousarray(vectors, dtype=self.dtype).tobytes()
        packed = np.ascontiguousarray(keys).tobytes()
        header = _HEADER.pack(_MAGIC, len(keys), self.dim, zlib.crc32(packed), zlib.crc32(rows))
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    self._scan(file)
                    if file.seek(0, os.SEEK_END) > self._scanned:
                        file.truncate(self._scanned)  # a torn block; appending behind it would hide what follows
                    try:
                        file.write(header + packed + rows)
                        file.flush()
                    except OSError:
                        file.truncate(self._scanned)
                        raise
                    self._scan(file)
            except OSError as error:
                raise UserError(
                    f"vectors can't be kept in {self.path.parent.name} ({error.strerror}); free some disk space, what is embedded so far stays"
                ) from error

    def _scan(self, file: BinaryIO) -> None:
        """Takes in the blocks behind what is known; stops at a torn one, steps over one with damaged keys."""
        size = file.seek(0, os.SEEK_END)
        if size < self._scanned:  # somebody removed or cut the file
            self._rows.clear()
            self._blocks.clear()
            self._verified.clear()
            self._scanned = 0
        while self._scanned + _HEADER.size <= size:
            file.seek(self._scanned)
            magic, n, dim, keys_crc, vectors_crc = _HEADER.unpack(file.read(_HEADER.size))
            if magic != _MAGIC or not 0 < dim <= 65_536:
                self.n_damaged_blocks += 1
                self._scanned = self._next_block(file, self._scanned + 1, size)
                continue
            row_bytes = dim * self.dtype.itemsize
            end = self._scanned + _HEADER.size + n * (_KEY.itemsize + row_bytes)
            if end > size:
                following = self._next_block(file, self._scanned + 1, size)
                if following == size:
                    return  # torn: the next append cuts it off
                self.n_damaged_blocks += 1
                self._scanned = following
                continue
            packed = file.read(n * _KEY.itemsize)
            if dim != self.dim or zlib.crc32(packed) != keys_crc:
                self.n_damaged_blocks += 1
            else:
                offset = self._scanned + _HEADER.size + len(packed)
                self._blocks[offset] = (n, vectors_crc)
                for row in range(n):
                    self._rows[packed[16 * row : 16 * row + 16]] = (offset, row)
            self._scanned = end

    @staticmethod
    def _next_block(file: BinaryIO, start: int, size: int) -> int:
        """Offset of the next block header at or behind `start`, or `size`."""
        file.seek(start)
        found = file.read(size - start).find(_MAGIC)
        return size if found < 0 else start + found

    def _block(self, mapped: np.ndarray, offset: int) -> np.ndarray | None:
        """(n, D) view of a block's vectors, checked once; None when damaged."""
        n, crc = self._blocks[offset]
        raw = mapped[offset : offset + n * self.dim * self.dtype.itemsize]
        if offset not in self._verified:
            self._verified[offset] = zlib.crc32(raw.data) == crc
            self.n_damaged_blocks += not self._verified[offset]
        return raw.view(self.dtype).reshape(n, self.dim) if self._verified[offset] else None


_FLUSH_SECONDS = 2.0
"""How much embedding work a kill may lose."""


def embed_chunks(
    encoder: DualEncoder, texts: Sequence[str], store: VectorStore | None, on_progress: Callable[[EmbedProgress], None] | None = None
) -> np.ndarray:
    """(N, D) vectors of the checkpoint's storage dtype, row i for texts[i]; distinct texts are embedded once, known ones not at all.

    `on_progress` is called between batches and may raise `Cancelled`: what is embedded by then is kept in the store.
    """
    dtype = np.dtype(encoder.spec.vectors)
    keys = text_keys(texts)
    found, vectors = store.read(keys) if store is not None else (np.zeros(len(texts), bool), np.empty((len(texts), encoder.dim), dtype))
    missing: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(~found).tolist():
        missing.setdefault(keys[i].tobytes(), []).append(i)
    places = list(missing.values())
    n_cached, started, done = int(found.sum()), time.monotonic(), 0
    pending: list[tuple[np.ndarray, np.ndarray]] = []
    weights = np.cumsum([0] + [len(texts[rows[0]]) for rows in places])  # time goes with characters, not with chunks

    def report(done: int, characters: float) -> None:
        if on_progress is not None:
            rate = characters / max(time.monotonic() - started, 1e-9)
            left = (float(weights[-1]) - characters) / rate if characters else None
            on_progress(EmbedProgress(n_cached + done, n_cached + len(places), n_cached, left))

    def keep() -> None:
        if store is not None and pending:
            store.append(np.concatenate([k for k, _ in pending]), np.concatenate([v for _, v in pending]))
        pending.clear()

    try:
        report(0, 0)
        flushed, characters = time.monotonic(), 0.0
        for indices, batch in encoder.iter_encode_chunks([texts[rows[0]] for rows in places]):
            stored = batch.astype(dtype)
            for index, vector in zip(indices.tolist(), stored, strict=True):
                vectors[places[index]] = vector
            pending.append((keys[[places[index][0] for index in indices.tolist()]], stored))
            done += len(indices)
            characters += float(np.diff(weights)[indices].sum())
            if time.monotonic() - flushed > _FLUSH_SECONDS:
                keep()
                flushed = time.monotonic()
            report(done, characters)
    finally:
        keep()
    return vectors
