"""One corpus of all paragraphs of a set's questions.

As the papers search: not ten paragraphs a question. Paragraphs that stand under several questions are kept
once, and each question's support is mapped to the pooled ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.lab.tasks.example import Example
from core.lab.tasks.qa_sets import read_qa


@dataclass(frozen=True, eq=False)
class Pool:
    """Questions over one list of paragraphs."""

    name: str
    part: str
    texts: tuple[str, ...]
    """In order of first appearance."""
    examples: tuple[Example, ...]
    """All over the same `texts`; `chunks` is the whole pool."""


def pool(examples: Sequence[Example], name: str, part: str) -> Pool:
    """The pool of some questions."""
    rows = {
        text: row
        for row, text in enumerate(dict.fromkeys(text for example in examples for text in example.chunks))
    }
    texts = tuple(rows)
    pooled = [
        replace(
            example,
            task=f"{name}-pooled",
            chunks=texts,
            support=tuple(sorted({rows[example.chunks[row]] for row in example.support})),
        )
        for example in examples
    ]
    return Pool(name, part, texts, tuple(pooled))


def read_pool(name: str, part: str = "eval", data: Path | None = None) -> Pool:
    """The pool of a set's part. Raises BadRequest as `read_qa` does."""
    return pool(read_qa(name, part, data), name, part)
