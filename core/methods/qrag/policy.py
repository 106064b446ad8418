"""Choosing among Q-values: Boltzmann policy, state value (Q-RAG eq. 3, 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TIE = 1e-6
"""Q-values this close count as equal: identical sentences on one grid point differ by rounding only."""


@dataclass(frozen=True, slots=True)
class ChosenAction:
    """One action."""

    chunk_id: int
    q_value: float
    probability: float
    state_value: float
    n_tied: int


def candidates(q_values: np.ndarray, available: np.ndarray, top_k: int | None) -> np.ndarray:
    """Ids of available chunks, best first, equals in order; the `top_k` best if given. Both (N,)."""
    ids = np.flatnonzero(available)
    if top_k is not None and top_k < len(ids):
        n_below = len(ids) - top_k
        kth = np.partition(q_values[ids], n_below)[n_below]
        ids = ids[q_values[ids] >= kth]
    best_first = np.argsort(-q_values[ids], kind="stable")
    return ids[best_first][:top_k]


def probabilities(
    q_values: np.ndarray, available: np.ndarray, temperature: float, top_k: int | None = None
) -> np.ndarray:
    """(N,) Boltzmann probabilities (eq. 3), 0 outside the candidates; all on the best chunk at temperature 0.

    >>> probabilities(np.array([1.0, 1.0, 5.0]), np.array([True, True, False]), 0.5).tolist()
    [0.5, 0.5, 0.0]
    """
    out = np.zeros(len(q_values))
    if temperature == 0:
        out[greedy(q_values, available)[0]] = 1.0
    else:
        from scipy.special import softmax  # takes a moment, and a greedy agent does without

        ids = available if top_k is None else candidates(q_values, available, top_k)
        out[ids] = softmax(_scaled(q_values[ids], temperature))
    return out


def _scaled(q_values: np.ndarray, temperature: float) -> np.ndarray:
    """(Q - largest Q) / temperature, float64; the largest moves to 0 first, so that none overflows."""
    with np.errstate(over="ignore"):
        return (q_values.astype(np.float64) - float(q_values.max())) / temperature


def state_value(
    q_values: np.ndarray, available: np.ndarray, temperature: float, top_k: int | None = None
) -> float:
    """V(s) = temperature * log sum exp(Q / temperature) over the candidates (eq. 4); the largest Q at 0."""
    values = q_values[available] if top_k is None else q_values[candidates(q_values, available, top_k)]
    if temperature == 0:
        return float(values.max())
    from scipy.special import logsumexp

    return float(values.max() + temperature * logsumexp(_scaled(values, temperature)))


def greedy(q_values: np.ndarray, available: np.ndarray) -> tuple[int, int]:
    """(id of the best available chunk, how many tie with it); the first in document order wins a tie."""
    masked = np.where(available, q_values, -np.inf)
    tied = np.flatnonzero(masked >= masked.max() - TIE)
    return int(tied[0]), len(tied)


def place(q_values: np.ndarray, available: np.ndarray, chunk_id: int, tie: float = TIE) -> int:
    """A chunk's place among the available ones, from 1, where differences up to `tie` count as none: behind
    those that are worth more, and equals that stand before it.

    >>> q_values = np.array([0.5, 0.5 + 1e-8, 0.7])
    >>> [place(q_values, np.ones(3, bool), chunk_id) for chunk_id in range(3)]
    [2, 3, 1]
    """
    own, before = q_values[chunk_id], q_values[:chunk_id]
    more = available & (q_values - tie > own)
    equal = available[:chunk_id] & (before - tie <= own) & (own - tie <= before)
    return 1 + int(np.count_nonzero(more)) + int(np.count_nonzero(equal))


def choose(
    q_values: np.ndarray,
    available: np.ndarray,
    temperature: float,
    top_k: int | None,
    rng: np.random.Generator,
) -> ChosenAction:
    """Samples from the Boltzmann policy; the best one at temperature 0. A chunk must be available."""
    best, n_tied = greedy(q_values, available)
    value = state_value(q_values, available, temperature, top_k)
    if temperature == 0:
        return ChosenAction(best, float(q_values[best]), 1.0, value, n_tied)
    p = probabilities(q_values, available, temperature, top_k)
    chunk_id = int(rng.choice(len(p), p=p / p.sum()))
    return ChosenAction(chunk_id, float(q_values[chunk_id]), float(p[chunk_id]), value, n_tied)
