"""Processes that write to a vector store."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np

from core.base.errors import UserError
from core.encode.cache import VectorStore, text_keys

DIM = 8


def vectors_of(texts: list[str]) -> np.ndarray:
    """(n, DIM) float16 that depend on nothing but the texts."""
    return np.array(
        [np.random.default_rng(list(text.encode())).normal(size=DIM) for text in texts], dtype=np.float16
    )


def store_at(path: Path) -> VectorStore:
    return VectorStore(path, DIM, np.dtype(np.float16))


def append_many(path: Path, name: str, n_blocks: int) -> None:
    """`n_blocks` blocks of 20 texts, each block read back at once, and once more at the end."""
    store, written = store_at(path), []
    for block in range(n_blocks):
        texts = [f"{name} {block} {i}" for i in range(20)]
        store.append(text_keys(texts), vectors_of(texts))
        written += texts
        check(store, texts)
    check(store, written)
    assert store.n_damaged_blocks == 0, store.n_damaged_blocks


def check(store: VectorStore, texts: list[str]) -> None:
    found, vectors = store.read(text_keys(texts))
    assert found.all(), found
    np.testing.assert_array_equal(vectors, vectors_of(texts))


def append_to_full_disk(path: Path, n_bytes: int) -> None:
    """Appends 1,000 texts where no file may grow past `n_bytes`; prints what was said, then appends one with
    room again.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))
    store, texts = store_at(path), [f"full {i}" for i in range(1000)]
    try:
        store.append(text_keys(texts), vectors_of(texts))
        said = None
    except UserError as error:
        said = str(error)
    size = path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.append(text_keys(["room again"]), vectors_of(["room again"]))
    print(json.dumps({"said": said, "size": size}))


if __name__ == "__main__":
    command, file, *rest = sys.argv[1:]
    if command == "append":
        append_many(Path(file), rest[0], int(rest[1]))
    else:
        append_to_full_disk(Path(file), int(rest[0]))
