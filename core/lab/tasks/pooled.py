"""Questions over one pool of paragraphs.

As in the papers of SPARC-RAG and of others who report recall on HotpotQA: one corpus has all paragraphs of a
set's questions; those that stand under several are kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.lab.tasks.example import Example


def pooled(examples: Sequence[Example], name: str) -> tuple[Example, ...]:
    """The same questions, each over the distinct paragraphs of all, in order of first appearance. They share
    one tuple of chunks; their task is named `name`.
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
