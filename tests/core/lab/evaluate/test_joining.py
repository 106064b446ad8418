"""Joined chunks hold the same text in the same order, and support stays support."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.lab.evaluate.joining import join_chunks
from core.lab.tasks.example import Example


class Words:
    """A tokenizer that counts words."""

    def count(self, texts: list[str]) -> np.ndarray:
        return np.array([len(text.split()) for text in texts], dtype=np.int32)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 20), st.data())
def test_joining(sizes: list[int], max_tokens: int, data: st.DataObject) -> None:
    chunks = tuple(" ".join(f"w{i}.{j}" for j in range(size)) for i, size in enumerate(sizes))
    support = tuple(sorted(data.draw(st.sets(st.integers(0, len(chunks) - 1), min_size=1, max_size=3))))
    joined = join_chunks(Example("e", "t", "q ?", chunks, support), Words(), max_tokens)
    assert " ".join(joined.chunks) == " ".join(chunks)
    assert all(len(text.split()) <= max_tokens or text in chunks for text in joined.chunks)
    first_words = {chunks[i].split()[0] for i in support}
    assert set(joined.support) == {
        i for i, text in enumerate(joined.chunks) if first_words & set(text.split())
    }
    for before, after in pairwise(joined.chunks):
        following = next(chunk for chunk in chunks if chunk.split()[0] == after.split()[0])
        assert len(before.split()) + len(following.split()) > max_tokens, "the next chunk would have fitted"
