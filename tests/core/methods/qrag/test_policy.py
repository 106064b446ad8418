"""The Boltzmann policy and the state value: limits, sums, ties, seeds and frequencies."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.methods.qrag.policy import candidates, choose, greedy, probabilities, state_value

Q = st.floats(-50, 50, width=32)


@st.composite
def looks(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Q-values (N,) float32 and a mask with at least one chunk available."""
    values = np.array(draw(st.lists(Q, min_size=1, max_size=30)), dtype=np.float32)
    mask = np.array(draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    mask[draw(st.integers(0, len(values) - 1))] = True
    return values, mask


temperatures = st.sampled_from([1e-320, 1e-12, 0.01, 0.5, 1.0, 30.0])


@given(looks(), temperatures, st.one_of(st.none(), st.integers(1, 8)))
def test_probabilities_are_equation_3_over_the_candidates(
    look: tuple[np.ndarray, np.ndarray], temperature: float, top_k: int | None
) -> None:
    q_values, available = look
    p = probabilities(q_values, available, temperature, top_k)
    assert p.sum() == pytest.approx(1)
    assert (p[~available] == 0).all()
    assert np.count_nonzero(p) <= (top_k or len(p))
    ids = candidates(q_values, available, top_k)
    shares = [math.exp(max((float(q_values[i]) - float(q_values[ids[0]])) / temperature, -800)) for i in ids]
    np.testing.assert_allclose(p[ids], np.array(shares) / sum(shares), atol=1e-12)


@given(looks(), temperatures, st.one_of(st.none(), st.integers(1, 8)))
def test_state_value_lies_between_the_largest_q_and_that_plus_entropy(
    look: tuple[np.ndarray, np.ndarray], temperature: float, top_k: int | None
) -> None:
    """max Q <= temperature log sum exp(Q / temperature) <= max Q + temperature log n."""
    q_values, available = look
    best = float(q_values[available].max())
    n = len(candidates(q_values, available, top_k))
    value = state_value(q_values, available, temperature, top_k)
    assert best - 1e-6 <= value <= best + temperature * math.log(n) + 1e-6
    assert state_value(q_values, available, 0, top_k) == best


@given(looks())
def test_state_value_rises_with_temperature_and_with_candidates(look: tuple[np.ndarray, np.ndarray]) -> None:
    q_values, available = look
    by_temperature = [state_value(q_values, available, t) for t in (0, 0.01, 0.1, 1, 10)]
    by_candidates = [state_value(q_values, available, 0.5, k) for k in (1, 2, 3, 1000)]
    for values in (by_temperature, by_candidates):
        assert all(b >= a - 1e-6 for a, b in pairwise(values))
    assert by_candidates[0] == pytest.approx(q_values[available].max())


@given(looks(), st.one_of(st.none(), st.integers(1, 40)))
def test_candidates_are_the_best_in_order(look: tuple[np.ndarray, np.ndarray], top_k: int | None) -> None:
    """Sorted by falling Q, equals by document order, as Python's sort has it."""
    q_values, available = look
    expected = sorted(np.flatnonzero(available).tolist(), key=lambda i: -q_values[i])[:top_k]
    assert candidates(q_values, available, top_k).tolist() == expected


def test_ties_go_to_the_first_in_document_order() -> None:
    q_values = np.array([0.1, 0.7, 0.7 + 5e-7, 0.7, 0.9], np.float32)
    available = np.array([True, True, True, True, False])
    assert greedy(q_values, available) == (1, 3)
    choice = choose(q_values, available, 0.0, None, np.random.default_rng(0))
    assert (choice.chunk_id, choice.n_tied, choice.probability) == (1, 3, 1.0)
    assert choice.state_value == pytest.approx(0.7, abs=1e-6)


@given(looks(), temperatures, st.integers(0, 2**32 - 1))
def test_sampling_takes_available_chunks_and_repeats_with_its_seed(
    look: tuple[np.ndarray, np.ndarray], temperature: float, seed: int
) -> None:
    q_values, available = look
    first, second = (
        choose(q_values, available, temperature, 3, np.random.default_rng(seed)) for _ in range(2)
    )
    assert first == second
    assert available[first.chunk_id]
    assert first.q_value == q_values[first.chunk_id]
    assert first.probability == probabilities(q_values, available, temperature, 3)[first.chunk_id]


def test_frequencies_follow_the_probabilities() -> None:
    """Chi-squared over 1,000 draws of a fixed seed; 13.8 is the 0.1% point at 2 degrees of freedom."""
    q_values = np.array([0.0, 0.4, 9.0, 0.8, 0.2], np.float32)
    available = np.array([True, True, False, True, True])
    p, rng = probabilities(q_values, available, 0.5, 3), np.random.default_rng(7)
    drawn = [choose(q_values, available, 0.5, 3, rng).chunk_id for _ in range(1_000)]
    counts, possible = np.bincount(drawn, minlength=5), p > 0
    assert counts[~possible].sum() == 0
    assert (((counts - 1_000 * p) ** 2)[possible] / (1_000 * p[possible])).sum() < 13.8
