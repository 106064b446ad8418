"""Q-RAG Explorer's library: everything that is not user interface.

Rooms, each of which imports only those before it: base, ingest, encode, corpus, llm, answer, methods, views,
runs, integrations, lab, book, cli. So flow the data: bytes -> Document -> ChunkTable -> ChunkIndex -> episode
(events) -> Trace -> figures, log rows. Nothing here imports Gradio.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from core.base.types import Document
    from core.book.book import Book

# How often a thread of torch looks whether the others are ready before it sleeps. GNU's OpenMP looks 300,000
# times; where other work has a core, a question takes many times as long, since each waits for a thread that
# waits for its core. Alone, 1,000 are as fast. OpenMP reads this once, as torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def open(
    source: str | Path | Document | Sequence[str | Path | Document],
    *,
    agent: str | Path | None = None,
    device: str | None = None,
    log: Path | None = None,
) -> Book:
    """Opens files, or documents that were read, to be asked: `core.open("book.html").ask("...")`.

    agent: name or folder of the checkpoint; None: the one that suits the first document. log: file of the
    log that runs are kept in when asked to; None: the usual one. Raises BadDocument, BadCheckpoint,
    BadRequest.
    """
    from core.book.book import open_book  # with torch, which takes seconds

    return open_book(source, agent, device, log)
