"""Layouts of documents, made in a child process, kept by their vectors."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from core.base.child import ChildEnded, Spend, Waiting, ask_once
from core.base.errors import UserError
from core.base.home import cache_folder, keep_arrays, kept_arrays
from core.corpus.layout.places import LEAST_CHUNKS, MOST_CHUNKS

MAX_SECONDS = 300
"""Computing time of one; 5,000 chunks take 20."""
_FORMAT = 1
"""Raise when layouts come out differently, so that old ones are not found."""


def vectors_key(vectors: np.ndarray) -> str:
    """What the layout of vectors (N, D) is kept under."""
    digest = hashlib.sha256(f"{_FORMAT} {vectors.dtype.str} {vectors.shape}".encode())
    digest.update(np.ascontiguousarray(vectors).data)
    return digest.hexdigest()[:32]


def kept_layout(key: str, part: str = "") -> np.ndarray | None:
    """(N, 2) uint16 as `layout_of` made it before; None when there is none, or it is damaged."""
    return kept_arrays(_path(key, part)).get("places")


def layout_of(
    vectors: np.ndarray,
    key: str,
    part: str = "",
    waiting: Waiting = lambda *_: None,
    spend: Spend = lambda _: None,
) -> np.ndarray:
    """(N, 2) uint16 places (see `core.corpus.layout.places`) of vectors (N, D), kept under their key.

    Raises UserError; what `waiting` or `spend` raises ends the child.
    """
    if not LEAST_CHUNKS <= len(vectors) <= MOST_CHUNKS:
        raise UserError(
            f"a map is made of {LEAST_CHUNKS} to {MOST_CHUNKS:,} chunks, and these are {len(vectors):,}; open"
            " another document"
        )
    rows = np.ascontiguousarray(vectors)
    head, most_bytes = {"dtype": rows.dtype.str, "n": len(rows)}, 8 * len(rows) + 65_536
    try:
        _, payload = ask_once(
            "core.corpus.layout.worker",
            head,
            rows.data,
            waiting,
            seconds=MAX_SECONDS,
            most_bytes=most_bytes,
            spend=spend,
        )
    except OSError as error:
        raise UserError(f"no map could be begun ({error.strerror}); close other programs") from error
    except ChildEnded as end:
        why = f"its process ended with status {end.status}"
        if end.by_memory:
            why = "it needs more memory than there is for it"
        elif end.by_time:
            why = f"it takes longer than {MAX_SECONDS} s of computing"
        raise UserError(f"the map could not be made: {why}; open a part of the document") from None
    places = np.frombuffer(payload, "<u2").reshape(-1, 2)
    keep_arrays(_path(key, part), {"places": places})
    return places


def _path(key: str, part: str) -> Path:
    return cache_folder("layouts", part) / f"{key}.npz"
