"""Questions over one pool of paragraphs, as in the SPARC-RAG paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.lab.tasks.example import Example


def pooled(examples: Sequence[Example], name: str) -> tuple[Example, ...]:
    """The same questions over one tuple of the distinct paragraphs of all, by first appearance; the task is
    `name`.
    """
    rows = {
        text: row
        for row, text in enumerate(dict.fromkeys(text for example in examples for text in example.chunks))
    }
    texts = tuple(rows)
    return tuple(
        replace(
            example,
            task=name,
            chunks=texts,
            support=tuple(sorted({rows[example.chunks[row]] for row in example.support})),
        )
        for example in examples
    )
