"""Scores against small cases done by hand; intervals and tests against what they promise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.metrics import (
    answer_accuracy,
    answer_em,
    answer_f1,
    fact_em,
    fact_f1,
    fact_precision,
    fact_recall,
    false_positive_rate,
    is_covered,
    share_covered,
)
from core.base.statistics import interval, mean, paired_test, wilson

IDS = st.sets(st.integers(0, 9), max_size=6)


PLACE = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda place: (place[0], place[0] + place[1]))


@given(PLACE, st.lists(PLACE, max_size=5))
def test_a_place_is_covered_by_the_union_of_the_evidence(
    place: tuple[int, int], evidence: list[tuple[int, int]]
) -> None:
    held = {character for span in evidence for character in range(*span)} & set(range(*place))
    assert share_covered(place, evidence) == pytest.approx(len(held) / (place[1] - place[0]))
    assert is_covered(place, evidence) == (10 * len(held) >= 6 * (place[1] - place[0]))


@given(IDS, IDS.filter(bool))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(retrieved: set[int], support: set[int]) -> None:
    precision, recall = fact_precision(retrieved, support), fact_recall(retrieved, support)
    assert (precision is None) == (not retrieved)
    expected = 0.0 if not precision or not recall else 2 * precision * recall / (precision + recall)
    assert fact_f1(retrieved, support) == pytest.approx(expected)
    assert (fact_f1(retrieved, support) == 1) == (retrieved == support)
    assert fact_em(retrieved, support) == (retrieved >= support)


@pytest.mark.parametrize("score", [fact_f1, fact_recall, answer_em, answer_f1, answer_accuracy])
def test_nothing_is_scored_without_what_is_right(score: Callable[[list[str], list[str]], float]) -> None:
    with pytest.raises(ValueError, match=r"no support|no answer is known"):
        score("Paris", [])


def test_false_positives_are_a_share_of_the_other_chunks() -> None:
    assert false_positive_rate([1, 2, 5], [1, 3], 10) == 2 / 8
    assert false_positive_rate([1], [0, 1], 2) is None


def test_what_was_not_measured_is_left_out_and_never_0() -> None:
    assert mean([0.5, None, 1.0]) == 0.75
    assert mean([None]) is None
    assert interval([0.5, None]) is None


def test_wilson_by_hand() -> None:
    """81 of 263 is the worked example of Wilson's interval in Newcombe (1998), method 3."""
    lo, hi = wilson(81, 263)
    assert (round(lo, 4), round(hi, 4)) == (0.2553, 0.3662)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_never_shrinks_to_a_point(counts: tuple[int, int]) -> None:
    successes, n = counts
    lo, hi = wilson(successes, n)
    assert 0 <= lo <= successes / n + 1e-12
    assert successes / n - 1e-12 <= hi <= 1
    assert hi > lo


def test_the_interval_of_shares_is_wilsons_and_of_other_values_a_bootstrap() -> None:
    assert interval([1.0, 0.0, 1.0]) == wilson(2, 3)
    values = np.random.default_rng(1).uniform(size=400)
    lo, hi = interval(values.tolist())
    half = 1.96 * values.std(ddof=1) / 20
    assert lo == pytest.approx(values.mean() - half, abs=0.15 * half)
    assert hi == pytest.approx(values.mean() + half, abs=0.15 * half)
    assert interval(values.tolist()) == (lo, hi)


@given(st.lists(st.floats(-1, 1).map(lambda value: round(value, 3)), min_size=1, max_size=8))
def test_the_sign_flip_test_against_going_through_all_signs(differences: list[float]) -> None:
    seen = abs(sum(differences))
    flipped = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    expected = np.mean([value >= seen - 1e-9 for value in flipped])
    test = paired_test(differences, [0.0] * len(differences))
    assert test.p_value == pytest.approx(expected)
    assert test.difference == pytest.approx(np.mean(differences))


def test_many_differences_by_sampling() -> None:
    """20 of 20 in favour: one sign vector in 2^19 is as extreme, so none of 10,000 is."""
    better, worse = [1.0] * 20 + [0.5], [0.0] * 20 + [0.5]
    test, again = paired_test(better, worse), paired_test(worse, better)
    assert (test.n, test.p_value) == (21, 1 / 10_001)
    assert (again.difference, again.p_value) == (-test.difference, test.p_value)


def test_alike_agents_and_unmeasured_questions() -> None:
    same = paired_test([0.5, None, 1.0, 0.3], [0.5, 0.2, 1.0, None])
    assert (same.n, same.difference, same.interval, same.p_value) == (2, 0.0, (0.0, 0.0), 1.0)
    assert paired_test([None], [1.0]) is None


@pytest.mark.parametrize(
    ("answer", "accepted", "em", "f1", "accuracy"),
    [
        ("The Eiffel Tower.", ["eiffel  tower"], 1, 1, 1),
        ("Paris, France", ["Paris"], 0, 2 / 3, 1),
        ("Parisian", ["Paris"], 0, 0, 0),
        ("two", ["one", "two"], 1, 1, 1),
        ("", ["Paris"], 0, 0, 0),
        ("New New York", ["New York York"], 0, 2 / 3, 0),
    ],
)
def test_answers_are_compared_as_squad_does(
    answer: str, accepted: list[str], em: float, f1: float, accuracy: float
) -> None:
    assert (answer_em(answer, accepted), answer_f1(answer, accepted), answer_accuracy(answer, accepted)) == (
        em,
        pytest.approx(f1),
        accuracy,
    )
