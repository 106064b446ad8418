"""Larger chunks from the ones a task has.

Neighbours joined, as if the document had been cut more coarsely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.ingest.tokenizer import Tokenizer
from core.lab.tasks.example import Example


def join_chunks(example: Example, tokenizer: Tokenizer, max_tokens: int) -> Example:
    """The example with neighbouring chunks joined, greedily from the first, while they have at most
    `max_tokens` tokens together.

    A chunk that alone has more stays as it is. A joined chunk is support when it holds a support chunk.
    """
    texts = example.chunks[:]
    owners = _owners(tokenizer.count(texts).tolist(), max_tokens)
    joined: dict[int, list[str]] = {}
    for text, owner in zip(texts, owners, strict=True):
        joined.setdefault(owner, []).append(text)
    chunks = tuple(" ".join(parts) for parts in joined.values())
    support = sorted({owners[chunk_id] for chunk_id in example.support})
    return replace(example, chunks=chunks, support=tuple(support))


def _owners(n_tokens: Sequence[int], max_tokens: int) -> list[int]:
    """The joined chunk that each chunk goes into.

    >>> _owners([3, 3, 5, 9, 1], 8)
    [0, 0, 1, 2, 3]
    """
    owners: list[int] = []
    room = -1
    for n in n_tokens:
        if n > room:
            owners.append(owners[-1] + 1 if owners else 0)
            room = max_tokens
        else:
            owners.append(owners[-1])
        room -= n
    return owners
