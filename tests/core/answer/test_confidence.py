"""Calibration: a line that rises, and says what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from core.answer.confidence import check_knots, confidence, expected_calibration_error, fit_confidence
from core.lab.reader.tuning import least_shown


def test_an_overconfident_model_is_corrected() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.uniform(0, 1, 4_000)
    right = (rng.uniform(0, 1, 4_000) < probabilities**2).tolist()
    knots = fit_confidence(probabilities.tolist(), right)
    assert expected_calibration_error(probabilities.tolist(), right) > 0.12
    assert expected_calibration_error([confidence(p, knots) for p in probabilities], right) < 0.03
    grid = np.linspace(0, 1, 101)
    told = [confidence(p, knots) for p in grid]
    assert told == sorted(told)
    assert np.abs(told - grid**2).max() < 0.12


def test_nothing_is_certain() -> None:
    for n in (0, 1, 23, 200):
        for right in (True, False):
            assert all(0 < share < 1 for _, share in fit_confidence([0.9] * n, [right] * n))


def test_the_order_of_equal_probabilities_says_nothing() -> None:
    tied = [False] * 30 + [True] * 30
    for right in (tied, tied[::-1]):
        assert fit_confidence([0.3] * 60, right) == ((0.3, 0.5),)
        assert len(fit_confidence([0.3] * 60 + [0.6] * 30, [*right, *[True] * 30])) == 2


def test_blocks_in_one_place_are_one() -> None:
    """Their points are told apart by the sixth digit only, which is rounded away."""
    probabilities = [0.3] * 20 + [0.300001] * 20
    assert fit_confidence(probabilities, [False] * 20 + [True] * 20) == ((0.3, 0.5),)


def test_knots_must_rise() -> None:
    for knots in (((0.5, 0.5), (0.5, 0.6)), ((0.1, 0.6), (0.2, 0.5)), ((0.0, 1.5),), ()):
        with pytest.raises(ValueError, match="must"):
            check_knots(knots)


def test_calibration_error() -> None:
    assert expected_calibration_error([], []) is None
    error = expected_calibration_error([0.95, 0.95, 0.05, 0.05], [False, True, False, False])
    assert error == pytest.approx((0.45 + 0.05) / 2)


def test_answers_are_rarely_wrong_and_guesses_half_right() -> None:
    none = [False] * 4
    assert least_shown([0.9, 0.8, 0.3, 0.2], [True, True, False, False], none) == (0.8, 0.8)
    assert least_shown([0.9, 0.8, 0.7, 0.6], [True, False, True, False], none) == (0.9, 0.7)
    assert least_shown([0.9, 0.8, 0.7], [True, False, True], [False, True, False]) == (0.7, 0.7)
    assert (
        least_shown([0.9, 0.8, 0.7, 0.6], [True, False, True, False], [False, False, False, True])[1] == 0.7
    )
    assert least_shown([0.4, 0.3], [False, False], none[:2]) == (1.0, 1.0)
