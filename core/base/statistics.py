"""How sure scores are: intervals of means, paired tests.

Pure functions of numbers; of nothing measured there is none. `scipy.stats` computes them; its import takes a
second, so it waits for the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.95
"""Of every interval here."""
_EXACT_SIGNS = 12
"""Up to this many differences that aren't 0, all sign vectors are gone through."""
_DRAWN: dict[str, Any] = {"n_resamples": 10_000, "batch": 1_000}
"""Bootstrap samples of an interval, and random sign vectors of a test; so many in memory at once."""


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of what was measured; None when nothing was."""
    measured = [value for value in values if value is not None]
    return float(np.mean(measured)) if measured else None


def interval(values: Iterable[float | None]) -> tuple[float, float] | None:
    """95 % confidence interval of the mean; None below two measured values.

    Where all values are 0 or 1: Wilson's score interval of the share, which doesn't shrink to a point at 0 or
    1. Otherwise the percentiles of the means of 10,000 bootstrap samples (seed 0); equal values give a point.
    """
    measured = np.array([value for value in values if value is not None], dtype=np.float64)
    if len(measured) < 2:
        return None
    if np.isin(measured, (0.0, 1.0)).all():
        return wilson(int(measured.sum()), len(measured))
    return _bootstrap(measured)


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % score interval of a share.

    >>> [round(end, 3) for end in wilson(50, 100)]
    [0.404, 0.596]
    """
    from scipy.stats import binomtest

    ends = binomtest(successes, n).proportion_ci(CONFIDENCE, method="wilson")
    return float(ends.low), float(ends.high)


def _bootstrap(values: np.ndarray) -> tuple[float, float]:
    from scipy.stats import bootstrap

    drawn = bootstrap((values,), np.mean, confidence_level=CONFIDENCE, method="percentile", rng=0, **_DRAWN)
    ends = drawn.confidence_interval
    return float(ends.low), float(ends.high)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Two agents on the same questions."""

    n: int
    difference: float
    """Mean of first minus second."""
    interval: tuple[float, float] | None
    """95 % bootstrap interval of that mean, questions resampled."""
    p_value: float
    """Two-sided sign-flip permutation test of a mean difference of 0."""


def paired_test(first: Sequence[float | None], second: Sequence[float | None]) -> PairedTest | None:
    """The difference between two agents' scores, question by question; None when no question was measured for
    both.

    Sign-flip permutation test: if the agents were alike, each question's difference could as well have had
    the other sign. p is the share of sign vectors whose mean difference is at least as far from 0 as the one
    seen: all 2^m vectors where m <= 12 differences aren't 0, otherwise (1 + hits) / (1 + 10,000) over 10,000
    random ones (seed 0).
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if not pairs:
        return None
    differences = np.array([a - b for a, b in pairs])
    spread = _bootstrap(differences) if len(differences) > 1 else None
    return PairedTest(
        len(differences), float(differences.mean()), spread, _sign_flip_p(differences[differences != 0])
    )


def _sign_flip_p(differences: np.ndarray) -> float:
    """p-value from the differences that aren't 0: the others add nothing, whatever their sign."""
    from scipy.stats import monte_carlo_test, permutation_test

    def flipped(size: tuple[int, ...]) -> np.ndarray:
        values: np.ndarray = differences * (1 - 2 * rng.integers(0, 2, size, dtype=np.int8))
        return values

    m, rng, how = len(differences), np.random.default_rng(0), _DRAWN | {"alternative": "greater"}
    if m < 2:  # of one, both signs are as far from 0
        return 1.0
    if m <= _EXACT_SIGNS:  # of one sample, "samples" are its signs
        return float(permutation_test((differences,), _from_zero, permutation_type="samples", **how).pvalue)
    return float(monte_carlo_test(differences, flipped, _from_zero, **how).pvalue)


def _from_zero(differences: np.ndarray, axis: int) -> np.ndarray:
    """How far their sum is from 0."""
    distance: np.ndarray = np.abs(differences.sum(axis=axis))
    return distance
