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


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One lesson read."""

    certainty: float
    """Of the best wording, before calibration."""
    right: bool
    nobody: float
    """Probability of "no answer"."""
    is_empty: bool
    """No answer is likelier than the best one."""
    is_absent: bool
    """The lesson has no answer."""
    em: float
    f1: float


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
    scored = {
        bias: [
            _outcome(reader, reading, bias, lesson) for reading, lesson in zip(readings, lessons, strict=True)
        ]
        for bias in (BIASES if bias is None else [bias])
    }
    bias = max(
        scored,
        key=lambda bias: (round(float(np.mean([outcome.f1 for outcome in scored[bias]])), 6), -abs(bias)),
    )
    outcomes = scored[bias]
    values = [outcome.f1 for outcome in outcomes]
    by_source: dict[str, dict[str, float]] = {}
    for source in sorted({lesson.source for lesson in lessons}):
        own = [
            outcome
            for outcome, lesson in zip(outcomes, lessons, strict=True)
            if lesson.source == source and lesson.answers
        ]
        if own:
            by_source[source] = {
                "n": len(own),
                "em": _mean([outcome.em for outcome in own]),
                "f1": _mean([outcome.f1 for outcome in own]),
            }
    unanswerable = [outcome for outcome, lesson in zip(outcomes, lessons, strict=True) if not lesson.answers]
    known = [
        _outcome(reader, reading, bias, lesson)
        for reading, lesson in zip(_readings(reader, found), found, strict=True)
    ]
    judged = known or outcomes
    scores = {
        "n": len(outcomes),
        "f1": _mean(values),
        "em": _mean([outcome.em for outcome in outcomes]),
        "no_answer_right": _mean([outcome.f1 for outcome in unanswerable]) if unanswerable else None,
        "ece": _cross_fitted_error(outcomes),
        "ece_uncalibrated": _error(
            [outcome.certainty for outcome in outcomes], [outcome.right for outcome in outcomes]
        ),
    }
    line = _fit(judged)
    empty = [outcome for outcome in judged if outcome.is_empty]
    line_of_none = fit_confidence(
        [outcome.nobody for outcome in empty], [outcome.is_absent for outcome in empty]
    )
    least, guess = least_shown(
        [confidence(outcome.certainty, line) for outcome in judged],
        [outcome.right for outcome in judged],
        [outcome.is_absent for outcome in judged],
    )
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
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


def _outcome(reader: ExtractiveReader, reading: Reading, bias: float, lesson: Lesson) -> _Outcome:
    best, expected = reading.best(bias)
    nobody = reading.nobody(bias)
    text = "" if nobody >= expected else best.text
    answers = lesson.answers
    return _Outcome(
        reading.certainty(best, expected, reader.spec.rank_cost),
        bool(answers) and answer_f1(best.text, answers) >= RIGHT_FROM,
        nobody,
        not text,
        not answers,
        answer_em(text, answers) if answers else float(not text),
        answer_f1(text, answers) if answers else float(not text),
    )


def _fit(outcomes: Sequence[_Outcome]) -> Knots:
    return fit_confidence(
        [outcome.certainty for outcome in outcomes], [outcome.right for outcome in outcomes]
    )


def _cross_fitted_error(outcomes: Sequence[_Outcome]) -> float | None:
    """Calibration error, each half judged by the line fitted on the other."""
    confidences, right = [], []
    for judged, fitted in ((outcomes[::2], outcomes[1::2]), (outcomes[1::2], outcomes[::2])):
        knots = _fit(fitted)
        confidences += [confidence(outcome.certainty, knots) for outcome in judged]
        right += [outcome.right for outcome in judged]
    return _error(confidences, right)


def _error(confidences: Sequence[float], right: Sequence[bool]) -> float | None:
    error = expected_calibration_error(confidences, right)
    return None if error is None else round(error, 4)


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)
