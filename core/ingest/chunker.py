"""Document -> chunk table, by either chunker."""

from __future__ import annotations

import numpy as np

from core.base.config import ChunkConfig, Chunker
from core.base.types import ChunkTable, Document, DocumentKind
from core.ingest.packing import Progress, Units, pack
from core.ingest.structure import sentence_layout, structure_layout
from core.ingest.tokenizer import Tokenizer


def default_chunker(kind: DocumentKind) -> Chunker:
    """`structure` where the text has marked structure, else `sentences`."""
    return "structure" if kind in ("html", "markdown") else "sentences"


def chunk_document(
    document: Document, config: ChunkConfig, tokenizer: Tokenizer, on_progress: Progress | None = None
) -> ChunkTable:
    """Cuts a document; every chunk is an exact slice with at most `config.max_tokens` tokens.

    `on_progress(characters done, characters in all)` may raise Cancelled, which passes through.
    Raises BadDocument when the text has more than MAX_DOCUMENT_TOKENS tokens.
    """
    layout = (
        structure_layout(document.text) if config.chunker == "structure" else sentence_layout(document.text)
    )
    units = layout.units
    if config.one_sentence:
        units = Units(units.spans, np.arange(len(units), dtype=np.int32))
    chunks, n_tokens = pack(document.text, units, config.max_tokens, tokenizer, on_progress)
    group = layout.units.group[chunks.group] if config.one_sentence else chunks.group
    start, end = chunks.spans.T.copy()
    return ChunkTable(
        start=start,
        end=end,
        n_tokens=n_tokens,
        type_code=layout.type_code[group],
        heading_code=layout.heading_code[group],
        heading_paths=layout.heading_paths,
    )
