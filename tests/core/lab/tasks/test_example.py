"""Woven haystacks against the list they stand for."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.lab.tasks.example import Noise, Woven, weave

noises = st.lists(st.integers(1, 9), min_size=1, max_size=12).map(
    lambda counts: Noise(
        "letters", tuple(f"n{row}" for row in range(len(counts))), np.array(counts, dtype=np.int32)
    )
)
owns = st.integers(0, 5).map(lambda n: tuple(f"own{row}" for row in range(n)))


def laid_out(woven: Woven) -> list[str]:
    """The haystack made the slow way: noise first, own texts inserted at their places."""
    texts = [woven.noise.texts[(woven.start + row) % len(woven.noise.texts)] for row in range(woven.n_noise)]
    for place, text in zip(woven.places, woven.own, strict=True):
        texts.insert(place, text)
    return texts


@given(noises, owns, st.integers(0, 40), st.integers(0, 1000))
def test_a_woven_haystack_is_the_list_it_stands_for(
    noise: Noise, own: tuple[str, ...], n_noise: int, seed: int
):
    woven = weave(own, noise, n_noise, Random(seed))
    texts = laid_out(woven)
    assert [woven[chunk_id] for chunk_id in range(len(woven))] == list(woven) == list(woven[:]) == texts
    assert [woven[chunk_id - len(texts)] for chunk_id in range(len(texts))] == texts
    assert [woven[place] for place in woven.places] == list(own)
    rows = woven.noise_rows
    assert [noise.texts[row] if row >= 0 else None for row in rows] == [
        None if chunk_id in woven.places else text for chunk_id, text in enumerate(texts)
    ]


@given(noises, st.integers(0, 200), st.data())
def test_as_much_noise_as_fits(noise: Noise, budget: int, data: st.DataObject):
    start = data.draw(st.integers(0, len(noise.texts) - 1))
    n = noise.n_fitting(start, budget)
    tokens = [int(noise.n_tokens[(start + row) % len(noise.texts)]) for row in range(n + 1)]
    assert sum(tokens[:n]) <= budget < sum(tokens)
