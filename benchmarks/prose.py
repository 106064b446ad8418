"""Texts to encode: composed prose, cut as a chunker would cut it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

from core.tasks.prose import compose_paragraph


def compose_chunks() -> Iterator[str]:
    """Composed prose cut at random sentence borders, without end: the same texts every time."""
    rng = Random(0)
    while True:
        wanted = rng.choice((1, 2, 4, 8, 12))
        sentences = (sentence for _ in range(4) for sentence in compose_paragraph(rng))
        yield " ".join(islice(sentences, wanted))
