"""Texts to encode: composed prose, cut as a chunker would, and a novel."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from random import Random

from benchmarks import DATA
from core.tasks.narrative import generate_narrative
from core.tasks.prose import compose_paragraph

BOOK = DATA / "books" / "eval" / "Trollope_Angel_1881.txt.gz"
BYTES_A_TOKEN = 4.1
"""Of the novel."""


def compose_chunks() -> Iterator[str]:
    """Composed prose cut at random sentence borders, without end: the same texts every time."""
    rng = Random(0)
    while True:
        wanted = rng.choice((1, 2, 4, 8, 12))
        sentences = (sentence for _ in range(4) for sentence in compose_paragraph(rng))
        yield " ".join(islice(sentences, wanted))


def novel(n_tokens: int) -> bytes:
    """The beginning of a novel; of a story that is told anew where the novels are not there."""
    data = gzip.decompress(BOOK.read_bytes()) if BOOK.exists() else generate_narrative(n_tokens).text.encode()
    return data[: int(n_tokens * BYTES_A_TOKEN)]
