"""Texts to encode: composed prose, cut as a chunker would, and novels."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from random import Random

from core.base.errors import BadRequest
from core.lab.tasks.data import data_folder
from core.lab.tasks.narrative import generate_narrative
from core.lab.tasks.prose import compose_paragraph

BYTES_A_TOKEN = 4.1
"""Of the novels."""


def compose_chunks() -> Iterator[str]:
    """Composed prose cut at random sentence borders, without end: the same texts every time."""
    rng = Random(0)
    while True:
        wanted = rng.choice((1, 2, 4, 8, 12))
        sentences = (sentence for _ in range(4) for sentence in compose_paragraph(rng))
        yield " ".join(islice(sentences, wanted))


def novels(n_tokens: int) -> bytes:
    """The beginning of all novels one after the other, again and again; of a story without data sets."""
    size = int(n_tokens * BYTES_A_TOKEN)
    try:
        books = data_folder() / "books"
    except BadRequest as missing:
        print(f"a story stands for the novels: {missing}", file=sys.stderr)
        return generate_narrative(n_tokens).text.encode()[:size]
    first = books / "eval" / "Trollope_Angel_1881.txt.gz"
    paths = cycle([first, *sorted(path for path in books.glob("*/*.txt.gz") if path != first)])
    data = b""
    while len(data) < size:
        data += gzip.decompress(next(paths).read_bytes())
    return data[:size]
