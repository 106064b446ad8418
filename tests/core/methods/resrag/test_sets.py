"""A set beside its rivals and under the reward, against cases counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.methods.resrag.reward import RewardConfig, budget_penalty
from core.methods.resrag.sets import document_sets, reward_terms, rivals

BORDERS = np.array([0, 4, 4, 9])
"""Three documents: of four chunks, of none, of five."""
TOKENS = np.array([10, 20, 30, 40, 1, 2, 3, 4, 5])


def test_what_is_taken_of_each_document() -> None:
    first, empty, last = document_sets([8, 3, 1, 0, 4], BORDERS, TOKENS)
    assert (first.taken, first.n_tokens, first.n_chunks, first.root) == ((3, 1, 0), 70, 4, 2.0)
    assert first.is_beyond  # three of four, and the root is two
    assert (empty.taken, empty.n_tokens, empty.is_beyond) == ((), 0, False)
    assert (last.taken, last.n_tokens, last.is_beyond) == ((8, 4), 6, False)
    assert last.root == pytest.approx(math.sqrt(5))


def test_top_k_needs_as_many_chunks_as_hold_the_same_support() -> None:
    likeness = np.array([0.1, 0.9, 0.5, 0.2, 0.5, 0.0, 0.0, 0.0, 0.3])
    top_k, threshold, everything = rivals([4, 8], {8, 4, 5}, likeness, likeness, 0.3, TOKENS)
    assert (top_k.name, top_k.n_chunks, top_k.n_tokens) == ("top-k, same support", 4, 20 + 30 + 1 + 5)
    assert (threshold.n_chunks, threshold.n_tokens) == (4, 56)
    assert (everything.n_chunks, everything.n_tokens) == (9, int(TOKENS.sum()))
    for gold in ((), {7}):
        without = rivals([4, 8], gold, likeness, likeness, 0.3, TOKENS)[0]
        assert (without.name, without.n_chunks, without.n_tokens) == ("top-k, same size", 2, 50)


def test_the_reward_and_what_it_comes_from() -> None:
    """Three of four are taken of the first: half a penalty of three documents; both F1 as in eq. 12."""
    told = reward_terms([3, 1, 0], [3, 8], BORDERS, 0.5)
    assert told.consistency == pytest.approx((0.5 + 1 + 0) / 3)
    assert (told.mean_penalty, told.n_beyond) == (pytest.approx(0.5 / 3), 1)


@given(st.sets(st.integers(0, 8)), st.sets(st.integers(0, 8)), st.none() | st.floats(0, 1))
def test_the_terms_add_up(taken: set[int], gold: set[int], f1: float | None) -> None:
    told = reward_terms(sorted(taken), sorted(gold), BORDERS, f1)
    config, reward = RewardConfig(), told.reward
    answer = config.bad_answer if f1 is None else config.answer_weight * f1
    assert reward.answer == answer
    assert reward.consistency == pytest.approx(config.consistency_weight * told.consistency)
    assert reward.penalty == pytest.approx(config.penalty_weight * told.mean_penalty)
    counts = [len(one.taken) for one in document_sets(sorted(taken), BORDERS, TOKENS)]
    assert reward.penalty == pytest.approx(budget_penalty(counts, [4, 0, 5], config.penalty_weight))
