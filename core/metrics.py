"""Scores of what was retrieved, and how sure they are: facts, intervals of means, paired tests.

Pure functions of sets, texts and numbers. Fact EM is the paper's (Q-RAG appendix H): 1 when all support is among the retrieved chunks, whatever
else is. A score over nothing is None, never 0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

CONFIDENCE = 0.95
"""Of every interval here."""
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_Z = 1.959963984540054
"""Standard normal quantile of that confidence, both sides."""
RESAMPLES = 10_000
"""Bootstrap samples of an interval, and random sign vectors of a test."""
_EXACT_SIGNS = 12
"""Up to this many differences that aren't 0, all sign vectors are gone through."""
_BLOCK = 1_000
"""Resamples held in memory at once."""


def fact_em(retrieved: Collection[int], support: Collection[int]) -> float:
    """1 when every support chunk was retrieved, else 0 (Q-RAG appendix H).

    >>> fact_em([4, 1, 9], [1, 4])
    1.0
    """
    return float(set(support) <= set(retrieved))


def fact_f1(retrieved: Collection[int], support: Collection[int]) -> float:
    """Harmonic mean of precision and recall; 0 when nothing was retrieved. Raises ValueError when no support is known.

    >>> fact_f1([1, 2, 3, 4], [3, 4, 7, 8])
    0.5
    """
    _check(support)
    return 2 * _hits(retrieved, support) / (len(set(retrieved)) + len(set(support)))


def fact_recall(retrieved: Collection[int], support: Collection[int]) -> float:
    """Share of the support that was retrieved. Raises ValueError when no support is known."""
    _check(support)
    return _hits(retrieved, support) / len(set(support))


def fact_precision(retrieved: Collection[int], support: Collection[int]) -> float | None:
    """Share of the retrieved chunks that are support; None when nothing was retrieved."""
    return _hits(retrieved, support) / len(set(retrieved)) if retrieved else None


def false_positive_rate(retrieved: Collection[int], support: Collection[int], n_chunks: int) -> float | None:
    """Share of the other chunks that were retrieved (Q-RAG appendix B); None when every chunk is support."""
    others = n_chunks - len(set(support))
    return len(set(retrieved) - set(support)) / others if others else None


def _hits(retrieved: Collection[int], support: Collection[int]) -> int:
    return len(set(retrieved) & set(support))


def _check(support: Collection[int]) -> None:
    if not support:
        raise ValueError("no support is known for this question, so its facts can't be scored")


RIGHT_FROM = 0.5
"""F1 from which on an answer counts as right: people put the answers of documents into words of their own."""
COVERED = 0.6
"""Share of a quote that evidence must hold to count as having found it."""


def share_covered(place: tuple[int, int], evidence: Iterable[tuple[int, int]]) -> float:
    """Share of the characters of a place that the evidence holds; places are (first, behind the last), and those of the evidence may overlap.

    >>> share_covered((10, 20), [(0, 12), (11, 14), (18, 30)])
    0.6
    """
    first, end = place
    held, reached = 0, first
    for start, stop in sorted(evidence):
        start, stop = max(start, reached), min(stop, end)
        if stop > start:
            held, reached = held + stop - start, stop
    return held / (end - first)


def is_covered(place: tuple[int, int], evidence: Iterable[tuple[int, int]]) -> bool:
    """Whether the evidence holds enough of a place to have found it."""
    return share_covered(place, evidence) >= COVERED


def plain_answer(text: str) -> str:
    """An answer as SQuAD compares answers: lower case, without punctuation and English articles, single spaces.

    >>> plain_answer("The  Eiffel Tower.")
    'eiffel tower'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def answer_em(answer: str, accepted: Collection[str]) -> float:
    """1 when the answer is one of the accepted ones, compared as SQuAD does. Raises ValueError when none is accepted."""
    return max(float(plain_answer(answer) == plain_answer(one)) for one in _known(accepted))


def answer_f1(answer: str, accepted: Collection[str]) -> float:
    """Word overlap with the accepted answer that is nearest: harmonic mean of precision and recall. "yes", "no" and empty answers are right or wrong.

    >>> answer_f1("Paris, France", ["Paris"]), answer_f1("no", ["no relation"])
    (0.6666666666666666, 0.0)
    """
    return max(_word_f1(plain_answer(answer).split(), plain_answer(one).split()) for one in _known(accepted))


def answer_accuracy(answer: str, accepted: Collection[str]) -> float:
    """1 when the answer contains an accepted one, word for word (SPARC-RAG section 4.1).

    >>> answer_accuracy("in Paris, France", ["paris"]), answer_accuracy("Parisian", ["paris"])
    (1.0, 0.0)
    """
    said = f" {plain_answer(answer)} "
    return max(float(bool(plain_answer(one)) and f" {plain_answer(one)} " in said) for one in _known(accepted))


def _known(accepted: Collection[str]) -> Collection[str]:
    if not accepted:
        raise ValueError("no answer is known for this question, so an answer can't be scored")
    return accepted


def _word_f1(said: Sequence[str], wanted: Sequence[str]) -> float:
    if said == wanted or not said or not wanted or {"yes", "no"} & {" ".join(said), " ".join(wanted)}:
        return float(said == wanted)
    shared = sum((Counter(said) & Counter(wanted)).values())
    return 2 * shared / (len(said) + len(wanted))


def jaccard(first: Collection[int], second: Collection[int]) -> float | None:
    """Shared over all; None where both are empty.

    >>> jaccard([1, 2, 3], [3, 4])
    0.25
    """
    union = {*first, *second}
    return len({*first} & {*second}) / len(union) if union else None


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of what was measured; None when nothing was."""
    measured = [value for value in values if value is not None]
    return float(np.mean(measured)) if measured else None


def interval(values: Iterable[float | None]) -> tuple[float, float] | None:
    """95 % confidence interval of the mean; None below two measured values.

    Where all values are 0 or 1: Wilson's score interval of the share, which doesn't shrink to a point at 0 or 1. Otherwise the percentiles of
    the means of 10,000 bootstrap samples (seed 0); equal values give a point.
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
    """The difference between two agents' scores, question by question; None when no question was measured for both.

    Sign-flip permutation test: if the agents were alike, each question's difference could as well have had the other sign. p is the share of
    sign vectors whose mean difference is at least as far from 0 as the one seen: all 2^m vectors where m <= 12 differences aren't 0,
    otherwise (1 + hits) / (1 + 10,000) over 10,000 random ones (seed 0).
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    if not pairs:
        return None
    differences = np.array([a - b for a, b in pairs])
    spread = _bootstrap(differences) if len(differences) > 1 else None
    return PairedTest(len(differences), float(differences.mean()), spread, _sign_flip_p(differences[differences != 0]))


def _sign_flip_p(differences: np.ndarray) -> float:
    """p-value from the differences that aren't 0: the others add nothing, whatever their sign."""
    m = len(differences)
    if m == 0:
        return 1.0
    seen = abs(differences.sum()) * (1 - 1e-12)  # sums of equal numbers in another order may differ by rounding
    if m <= _EXACT_SIGNS:
        signs = 1 - 2 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1)
        return float((np.abs(signs @ differences) >= seen).mean())
    rng, hits = np.random.default_rng(0), 0
    for _ in range(0, RESAMPLES, _BLOCK):
        signs = 1 - 2 * rng.integers(0, 2, (_BLOCK, m), dtype=np.int8)
        hits += int((np.abs(signs @ differences) >= seen).sum())
    return (1 + hits) / (1 + RESAMPLES)
