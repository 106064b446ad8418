"""Questions over one pool of paragraphs, as in the SPARC-RAG paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from core.lab.tasks.example import Example
from core.lab.tasks.qa_sets import title_of


def pooled(
    examples: Sequence[Example], name: str, borrowed: Iterable[str] = (), size: int = 0
) -> tuple[Example, ...]:
    """The same questions over one tuple of the distinct paragraphs of all, by first appearance, and of
    `borrowed` ones up to `size` paragraphs; the task is `name`. Nothing is borrowed that bears the title of a
    support paragraph: it might support a question unlabelled.
    """
    rows: dict[str, int] = {}
    for example in examples:
        for text in example.chunks:
            rows.setdefault(text, len(rows))
    gold = {title_of(example.chunks[row]).casefold() for example in examples for row in example.support} - {
        ""
    }
    for text in borrowed:
        if len(rows) >= size:
            break
        if title_of(text).casefold() not in gold:
            rows.setdefault(text, len(rows))
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
