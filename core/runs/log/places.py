"""Where the chunks of a logged run lie in its documents.

They are known as far as the log kept them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.runs.log.records import LoggedDocument


@dataclass(frozen=True)
class Place:
    """Where a chunk lies."""

    document: int
    start: int
    end: int
    heading_path: tuple[str, ...]


def borders_of(documents: Sequence[LoggedDocument], n_chunks: int) -> list[int]:
    """(documents + 1) first chunk ids; empty where the tables don't say."""
    sizes = [len(document.table) for document in documents if document.table is not None]
    whole = len(sizes) == len(documents) and sum(sizes) == n_chunks
    return [sum(sizes[:i]) for i in range(len(sizes) + 1)] if whole else []


def place_of(chunk_id: int, documents: Sequence[LoggedDocument], borders: Sequence[int]) -> Place | None:
    """The place of a chunk; None where the borders don't say."""
    for document, first in enumerate(borders[:-1]):
        table = documents[document].table
        if table is not None and first <= chunk_id < borders[document + 1]:
            row = chunk_id - first
            return Place(
                document,
                int(table.start[row]),
                int(table.end[row]),
                table.heading_paths[table.heading_code[row]],
            )
    return None
