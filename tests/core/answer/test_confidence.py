"""Calibration: a line that rises, and says what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from core.answer.confidence import check_knots, confidence, expected_calibration_error, fit_confidence
from core.lab.reader.tuning import least_confidence


def test_an_overconfident_model_is_corrected() -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.uniform(0, 1, 4_000)
    right = rng.uniform(0, 1, 4_000) < probabilities**2
    knots = fit_confidence(probabilities.tolist(), right.tolist())
    told = [confidence(p, knots) for p in probabilities]
    before, after = (
        expected_calibration_error(probabilities.tolist(), right.tolist()),
        expected_calibration_error(told, right.tolist()),
    )
    assert before is not None
    assert after is not None
    assert before > 0.12
    assert after < 0.03
    grid = [confidence(p, knots) for p in np.linspace(0, 1, 101)]
    assert grid == sorted(grid)
    assert max(abs(told_at - p**2) for told_at, p in zip(grid, np.linspace(0, 1, 101), strict=True)) < 0.12


@pytest.mark.parametrize("n", [0, 1, 7, 23, 200])
@pytest.mark.parametrize("kind", [True, False])
def test_nothing_is_certain(n: int, kind: bool) -> None:
    knots = fit_confidence([0.9] * n, [kind] * n)
    assert all(0 < share < 1 for _, share in knots)


def test_knots_must_rise() -> None:
    for knots in (((0.5, 0.5), (0.5, 0.6)), ((0.1, 0.6), (0.2, 0.5)), ((0.0, 1.5),), ()):
        with pytest.raises(ValueError, match="must"):
            check_knots(knots)


def test_calibration_error() -> None:
    assert expected_calibration_error([], []) is None
    assert expected_calibration_error([1.0, 1.0, 0.0, 0.0], [True, True, False, False]) == 0
    assert expected_calibration_error([0.95, 0.95, 0.05, 0.05], [False, True, False, False]) == pytest.approx(
        (0.45 + 0.05) / 2
    )


@pytest.mark.parametrize(
    ("confidences", "right", "least"),
    [
        ([0.9, 0.8, 0.3, 0.2], [True, True, False, False], 0.8),
        ([0.9, 0.8, 0.3, 0.2], [True, True, False, True], 0.8),
        ([0.9, 0.9, 0.9, 0.2], [True, False, True, False], 0.9),
        ([0.4, 0.3], [False, False], 1.0),
        ([0.5], [True], 0.5),
    ],
)
def test_the_least_confidence_shows_most_right_answers_less_wrong_ones(
    confidences: list[float], right: list[bool], least: float
) -> None:
    assert least_confidence(confidences, right) == least
