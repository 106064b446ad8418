"""What validation sets and measures.

The bias of "no answer", the two confidence lines, from where on an answer and a guess are shown, scores by
source. The bias is the one of a grid at which the mean F1 of all lessons is largest; an answer to a question
without one scores 0, saying so scores 1. Confidence is fitted on the best wording of every reading: right
shares at least half of its words with an accepted one (F1 of RIGHT_FROM). The reported calibration error is
that of a two-fold fit: each half is judged by the line of the other. What methods found for questions about
documents may be read beside the lessons, and then it alone makes the lines and chooses what is shown: lessons
make them too steep for retrieved evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.answer.confidence import Knots, confidence, expected_calibration_error, fit_confidence
from core.answer.reader import ExtractiveReader, Reading
from core.base.metrics import RIGHT_FROM, answer_em, answer_f1
from core.lab.reader.lesson import Lesson

BIASES = tuple(np.arange(-3.0, 3.01, 0.25).tolist())
"""In nats."""


@dataclass(frozen=True)
class Tuning:
    """See the module."""

    no_answer_bias: float
    confidence: Knots
    no_answer_confidence: Knots
    least_confidence: float
    least_guess: float
    scores: dict[str, Any]
    by_source: dict[str, dict[str, float]]
    standard_error: float
    """Of the mean F1."""


_OUTCOME = np.dtype(
    [
        ("certainty", "f8"),  # of the best wording, before calibration
        ("right", "?"),
        ("nobody", "f8"),  # probability of "no answer"
        ("is_empty", "?"),  # no answer is likelier than the best one
        ("is_absent", "?"),  # the lesson has no answer
        ("em", "f8"),
        ("f1", "f8"),
    ]
)
"""Of one lesson read."""


def tune(
    reader: ExtractiveReader,
    lessons: Sequence[Lesson],
    bias: float | None = None,
    found: Sequence[Lesson] = (),
) -> Tuning:
    """Reads the lessons without a bias and chooses, all but a `bias` that is given. At least one lesson.

    Confidence, and what is shown, are fitted on what was `found` where there is any; it scores nothing.
    """
    readings = _readings(reader, lessons)
    biases = BIASES if bias is None else [bias]
    scored = {tried: _outcomes(reader, readings, lessons, tried) for tried in biases}
    bias = max(scored, key=lambda tried: (round(float(scored[tried]["f1"].mean()), 6), -abs(tried)))
    outcomes = scored[bias]
    sources = np.array([lesson.source for lesson in lessons])
    by_source: dict[str, dict[str, float]] = {}
    for source in sorted({*sources.tolist()}):
        own = outcomes[(sources == source) & ~outcomes["is_absent"]]
        if len(own):
            by_source[source] = {"n": len(own), "em": _mean(own["em"]), "f1": _mean(own["f1"])}
    absent, f1 = outcomes[outcomes["is_absent"]], outcomes["f1"]
    scores = {
        "n": len(outcomes),
        "f1": _mean(f1),
        "em": _mean(outcomes["em"]),
        "no_answer_right": _mean(absent["f1"]) if len(absent) else None,
        "ece": _cross_fitted_error(outcomes),
        "ece_uncalibrated": _error(outcomes["certainty"].tolist(), outcomes["right"].tolist()),
    }
    judged = _outcomes(reader, _readings(reader, found), found, bias) if found else outcomes
    line, empty = _fit(judged), judged[judged["is_empty"]]
    line_of_none = fit_confidence(empty["nobody"].tolist(), empty["is_absent"].tolist())
    sure = [confidence(certainty, line) for certainty in judged["certainty"].tolist()]
    least, guess = least_shown(sure, judged["right"].tolist(), judged["is_absent"].tolist())
    error = float(np.std(f1, ddof=1)) / len(f1) ** 0.5 if len(f1) > 1 else 0.0
    return Tuning(bias, line, line_of_none, least, guess, scores, by_source, error)


WRONG_SHOWN = 0.08
"""Share of the questions with an answer for which a wrong one is shown as an answer, at most."""
RIGHT_OF_GUESSES, ABSENT_GUESSED = 0.5, 0.15
"""Share of the guesses that is right, at least; of questions without an answer, how many get one, at most."""


def least_shown(
    confidences: Sequence[float], right: Sequence[bool], absent: Sequence[bool]
) -> tuple[float, float]:
    """The confidence from which on answers are shown, and the lower one from which on guesses are: as low as
    the three shares above allow; 1 where none does, and the same twice where no guess is allowed.

    >>> least_shown([0.9, 0.8, 0.7, 0.6, 0.2], [True, True, False, True, False], [False] * 5)
    (0.8, 0.6)
    """
    sure, is_right, is_absent = np.asarray(confidences), np.asarray(right, bool), np.asarray(absent, bool)
    is_wrong = ~is_right & ~is_absent
    levels = np.unique(sure)[::-1]
    most_wrong = WRONG_SHOWN * (~is_absent).sum()
    answers = [level for level in levels if (is_wrong & (sure >= level)).sum() <= most_wrong]
    least = float(answers[-1]) if answers else 1.0
    guess = least
    for level in levels[levels < least]:
        between = (sure >= level) & (sure < least)
        told = between & ~is_absent
        if (
            told.any()
            and is_right[told].mean() >= RIGHT_OF_GUESSES
            and (between & is_absent).sum() <= ABSENT_GUESSED * is_absent.sum()
        ):
            guess = float(level)
    return round(least, 4), round(guess, 4)


def _readings(reader: ExtractiveReader, lessons: Sequence[Lesson]) -> list[Reading]:
    return reader.readings(
        [lesson.question for lesson in lessons],
        [lesson.passages for lesson in lessons],
        [lesson.ranks for lesson in lessons],
    )


def _outcomes(
    reader: ExtractiveReader, readings: Sequence[Reading], lessons: Sequence[Lesson], bias: float
) -> np.ndarray:
    rows = []
    for reading, lesson in zip(readings, lessons, strict=True):
        best, expected = reading.best(bias)
        nobody, answers = reading.nobody(bias), lesson.answers
        text = "" if nobody >= expected else best.text
        certainty = reading.certainty(best, expected, reader.spec.rank_cost)
        is_right = bool(answers) and answer_f1(best.text, answers) >= RIGHT_FROM
        em, f1 = (of(text, answers) if answers else float(not text) for of in (answer_em, answer_f1))
        rows.append((certainty, is_right, nobody, not text, not answers, em, f1))
    return np.array(rows, dtype=_OUTCOME)


def _fit(outcomes: np.ndarray) -> Knots:
    return fit_confidence(outcomes["certainty"].tolist(), outcomes["right"].tolist())


def _cross_fitted_error(outcomes: np.ndarray) -> float | None:
    """Calibration error, each half judged by the line fitted on the other."""
    sure, right = [], []
    for judged, fitted in ((outcomes[::2], outcomes[1::2]), (outcomes[1::2], outcomes[::2])):
        knots = _fit(fitted)
        sure += [confidence(certainty, knots) for certainty in judged["certainty"].tolist()]
        right += judged["right"].tolist()
    return _error(sure, right)


def _error(confidences: Sequence[float], right: Sequence[bool]) -> float | None:
    error = expected_calibration_error(confidences, right)
    return None if error is None else round(error, 4)


def _mean(values: np.ndarray) -> float:
    return round(float(np.mean(values)), 4)
