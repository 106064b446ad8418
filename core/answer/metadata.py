"""JSON-LD of documents (RES-RAG eq. 7) as an answer model reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core.base.types import Document
from core.ingest.json_ld import json_ld_lines, json_ld_text

MAX_OF_DOCUMENT = 2_000
"""Characters of one document."""
MAX_OF_ALL = 8_000
"""Characters of all documents together that an answer model reads, shared equally."""
MAX_KEPT = 400_000
"""Characters of all documents together that the page and the log keep."""
_LEAST_SHARE = 100
"""Characters below which a share says nothing: of so many documents the last ones are left out."""


def metadata_json(documents: Sequence[Document], of_all: int = MAX_OF_ALL) -> list[str]:
    """(M,) JSON-LD of every document as JSON, empty where it has none."""
    return _bounded(documents, json_ld_text, of_all)


def metadata_lines(documents: Sequence[Document]) -> list[str]:
    """(M,) what the JSON-LD of every document says, a fact a line, empty where it has none."""
    return _bounded(documents, json_ld_lines, MAX_OF_ALL)


def _bounded(
    documents: Sequence[Document], written: Callable[[Sequence[Any], int], str], of_all: int
) -> list[str]:
    n_with = sum(bool(document.json_ld) for document in documents)
    share = min(MAX_OF_DOCUMENT, max(of_all // max(n_with, 1), _LEAST_SHARE))
    left, texts = of_all, []
    for document in documents:
        most = min(left, share)
        texts.append(written(document.json_ld, most) if document.json_ld and most > 1 else "")
        left -= len(texts[-1])
    return texts
