"""Chunk vectors on disk.

One append-only file per encoder, read through memory maps, with a checksum per block. A vector is keyed by
the SHA-256 (first 16 bytes) of its chunk's text, so an edited document embeds only what changed. Several
processes may read and append, under a file lock. A block whose checksum fails is skipped, so its texts are
embedded again; a torn block at the end (killed writer) is cut off by the next append. Not protected against:
someone who edits the file and its checksums.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct
import threading
import time
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from core.base.errors import UserError
from core.base.home import make_folder
from core.base.progress import finish
from core.encode.spread import LEAST_STRETCH, PART_CHARACTERS, spread
from core.encode.turns import give_way

if TYPE_CHECKING:  # it brings torch and transformers, seconds that the store alone doesn't need
    from core.encode.encoder import DualEncoder

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
    vectors: np.ndarray = field(repr=False, compare=False)
    """(N, D), filled as embedding goes on."""
    mask: np.ndarray | None = field(default=None, repr=False, compare=False)
    """(N,) bool: which rows have their vector for good. None until some of them lie evenly over the texts."""


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
        """Blocks that failed a checksum; what they held has to be embedded again."""
        self.failure = ""
        """Why the last vectors could not be kept, in a sentence; empty when they were."""
        self._lock = threading.Lock()
        self._rows: dict[bytes, tuple[int, int]] = {}  # key -> (offset of its block's vectors, row)
        self._blocks: dict[int, tuple[int, int]] = {}  # vectors' offset -> (rows, CRC)
        self._verified: dict[int, bool] = {}
        self._scanned = 0

    def read(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(which keys are stored (N,) bool, vectors (N, D), zeros for the others). Raises UserError."""
        vectors = np.zeros((len(keys), self.dim), dtype=self.dtype)
        is_stored = np.zeros(len(keys), dtype=bool)
        with self._lock:
            if not self.path.exists():
                return is_stored, vectors
            try:
                with self.path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_SH)  # a block that somebody is writing must not look damaged
                    self._scan(file)
                    if not self._rows:
                        return is_stored, vectors
                    mapped = np.memmap(file, dtype=np.uint8, mode="r")
            except OSError as error:
                raise UserError(
                    f"the kept vectors in {self.path} can't be read ({error.strerror}); make the file"
                    " readable or remove it"
                ) from error
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
                    is_stored[targets] = True
        return is_stored, vectors

    def append(self, keys: np.ndarray, vectors: np.ndarray) -> None:
        """Writes (n,) keys, (n, D) vectors as one block. Raises UserError on a full or read-only disk."""
        rows = np.ascontiguousarray(vectors, dtype=self.dtype).tobytes()
        packed = np.ascontiguousarray(keys).tobytes()
        header = _HEADER.pack(_MAGIC, len(keys), self.dim, zlib.crc32(packed), zlib.crc32(rows))
        with self._lock:
            try:
                make_folder(self.path.parent)
                with self.path.open("a+b", buffering=0) as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    self._scan(file)
                    if file.seek(0, os.SEEK_END) > self._scanned:
                        # a torn block; appending behind it would hide what follows
                        file.truncate(self._scanned)
                    try:
                        unwritten = memoryview(header + packed + rows)
                        while unwritten:
                            unwritten = unwritten[file.write(unwritten) :]
                    except OSError:
                        file.truncate(self._scanned)
                        raise
                    self._scan(file)
            except OSError as error:
                raise UserError(
                    f"vectors can't be kept in {self.path.parent} ({error.strerror}); free some disk space or"
                    " set QRAG_HOME to a folder that can be written"
                ) from error

    def _scan(self, file: IO[bytes]) -> None:
        """Takes in the blocks behind what is known, under the file lock: one without an end is a killed
        writer's. Behind a damaged block it goes on at the next header; where none follows, the next append
        cuts.
        """
        size = os.fstat(file.fileno()).st_size
        if size < self._scanned:  # somebody removed or cut the file
            self._rows.clear()
            self._blocks.clear()
            self._verified.clear()
            self._scanned = 0
        if size == self._scanned:
            return
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as mapped:
            while self._scanned < size:
                end = self._take_block(mapped, self._scanned)
                if end is None:
                    end = mapped.find(_MAGIC, self._scanned + 1)
                    if end < 0:
                        return
                    self.n_damaged_blocks += 1
                self._scanned = end

    def _take_block(self, mapped: mmap.mmap, start: int) -> int | None:
        """Enters the block at `start` and returns its end; None where it is damaged or cut short."""
        keys_start = start + _HEADER.size
        if keys_start > len(mapped):
            return None
        magic, n, dim, keys_crc, vectors_crc = _HEADER.unpack(mapped[start:keys_start])
        offset = keys_start + n * _KEY.itemsize
        end: int = offset + n * self.dim * self.dtype.itemsize
        if magic != _MAGIC or dim != self.dim or end > len(mapped):
            return None
        packed = mapped[keys_start:offset]
        if zlib.crc32(packed) != keys_crc:
            return None
        self._blocks[offset] = (n, vectors_crc)
        for row in range(n):
            self._rows[packed[16 * row : 16 * row + 16]] = (offset, row)
        return end

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


def embed_chunks(encoder: DualEncoder, texts: Sequence[str], store: VectorStore | None) -> np.ndarray:
    """All vectors of `embedding`."""
    return finish(embedding(encoder, texts, store))


def embedding(
    encoder: DualEncoder, texts: Sequence[str], store: VectorStore | None
) -> Generator[EmbedProgress, None, np.ndarray]:
    """(N, D) vectors of the checkpoint's storage dtype; equal texts are embedded once, known ones not at all.

    Once closed, the store keeps what is embedded by then. The rows that lie evenly over the texts first
    number one stretch; from then on embedding gives way to what is urgent.
    """
    dtype = np.dtype(encoder.spec.vectors)
    keys = text_keys(texts)
    is_stored, vectors = (
        store.read(keys)
        if store is not None
        else (np.zeros(len(texts), bool), np.zeros((len(texts), encoder.dim), dtype))
    )
    missing: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(~is_stored).tolist():
        missing.setdefault(keys[i].tobytes(), []).append(i)
    places = list(missing.values())
    is_long = sum(len(texts[rows[0]]) for rows in places) > PART_CHARACTERS
    if is_long:
        places = [places[i] for i in spread(len(places)).tolist()]
    n_first = LEAST_STRETCH if is_long else 0
    n_cached, done = int(is_stored.sum()), 0
    began: tuple[float, float] | None = None
    last = n_even = 0
    there: np.ndarray | None = None
    pending: list[tuple[np.ndarray, np.ndarray]] = []
    weights = np.array([len(texts[rows[0]]) for rows in places])  # time goes with characters, not with chunks
    all_characters = float(weights.sum())

    def progress(characters: float) -> EmbedProgress:
        nonlocal began
        now, left = time.monotonic(), None
        if characters == all_characters:
            left = 0.0
        elif began is None:  # the first batch also waits for the encoder
            began = (now, characters) if characters else None
        else:
            left = (all_characters - characters) * (now - began[0]) / (characters - began[1])
        return EmbedProgress(n_cached + done, n_cached + len(places), n_cached, left, vectors, there)

    def keep() -> None:
        if store is not None and pending and not store.failure:
            try:
                store.append(np.concatenate([k for k, _ in pending]), np.concatenate([v for _, v in pending]))
            except UserError as error:  # a cache that can't be written only costs time
                store.failure = str(error)
        pending.clear()

    try:
        yield progress(0)
        flushed, characters = time.monotonic(), 0.0
        for indices, batch in _encoded(encoder, [texts[rows[0]] for rows in places], n_first):
            stored = batch.astype(dtype)
            for index, vector in zip(indices.tolist(), stored, strict=True):
                vectors[places[index]] = vector
            pending.append((keys[[places[index][0] for index in indices.tolist()]], stored))
            done += len(indices)
            last = max(last, int(indices.max()))
            characters += float(weights[indices].sum())
            if time.monotonic() - flushed > _FLUSH_SECONDS:
                keep()
                flushed = time.monotonic()
            is_even = last + 1 == done  # else longer ones are done and shorter ones between them not
            if is_even and LEAST_STRETCH <= done - n_even < len(places) - n_even:
                is_stored[[row for rows in places[n_even:done] for row in rows]] = True
                n_even, there = done, is_stored.copy()
            yield progress(characters)
            if n_even:
                give_way()
    finally:
        keep()
    return vectors


def _encoded(
    encoder: DualEncoder, texts: Sequence[str], n_first: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """As `DualEncoder.iter_encode_chunks`, the first so many texts before all others."""
    for first, last in ((0, n_first), (n_first, len(texts))):
        for indices, vectors in encoder.iter_encode_chunks(texts[first:last]):
            yield first + indices, vectors
