"""Q-RAG Explorer's library: everything that is not user interface.

Rooms, each of which imports only those before it: base, ingest, encode, corpus, llm, answer, methods, views,
runs, integrations, lab, book, cli. So flow the data: bytes -> Document -> ChunkTable -> ChunkIndex -> episode
(events) -> Trace -> figures, log rows. Nothing here imports Gradio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from core.base.types import Document
    from core.book.book import Book


def open(
    source: str | Path | Document | Sequence[str | Path | Document],
    *,
    agent: str | None = None,
    device: str | None = None,
    log: Path | None = None,
) -> Book:
    """Opens files, or documents that were read, to be asked: `core.open("book.html").ask("...")`.

    agent: name or folder of the checkpoint; None: the one that suits the first document. log: file of the
    log that runs are kept in when asked to; None: the usual one. Raises BadDocument, BadCheckpoint.
    """
    from core.book.book import open_book  # with torch, which takes seconds

    return open_book(source, agent, device, log)
