"""How sure scores are: intervals of means, paired tests.

Pure functions of numbers; of nothing measured there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

CONFIDENCE = 0.95
"""Of every interval here."""
_Z = 1.959963984540054
"""Standard normal quantile of that confidence, both sides."""
RESAMPLES = 10_000
"""Bootstrap samples of an interval, and random sign vectors of a test."""
_EXACT_SIGNS = 12
"""Up to this many differences that aren't 0, all sign vectors are gone through."""
_BLOCK = 1_000
"""Resamples held in memory at once."""


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
    share, shrink = successes / n, 1 + _Z**2 / n
    middle = (share + _Z**2 / (2 * n)) / shrink
    half = _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / shrink
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def _bootstrap(values: np.ndarray) -> tuple[float, float]:
    rng, means = np.random.default_rng(0), []
    for _ in range(0, RESAMPLES, _BLOCK):
        means.append(values[rng.integers(0, len(values), (_BLOCK, len(values)))].mean(axis=1))
    lo, hi = np.quantile(np.concatenate(means), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(lo), float(hi)


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

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self) | {"interval": None if self.interval is None else list(self.interval)}


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
    m = len(differences)
    if m == 0:
        return 1.0
    seen = abs(differences.sum()) * (
        1 - 1e-12
    )  # sums of equal numbers in another order may differ by rounding
    if m <= _EXACT_SIGNS:
        signs = 1 - 2 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1)
        return float((np.abs(signs @ differences) >= seen).mean())
    rng, hits = np.random.default_rng(0), 0
    for _ in range(0, RESAMPLES, _BLOCK):
        signs = 1 - 2 * rng.integers(0, 2, (_BLOCK, m), dtype=np.int8)
        hits += int((np.abs(signs @ differences) >= seen).sum())
    return (1 + hits) / (1 + RESAMPLES)
