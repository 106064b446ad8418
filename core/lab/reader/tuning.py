"""What validation sets and measures.

The bias of "no answer", the two confidence lines, the least confidence that is shown, scores by source. The
bias is the one of a grid at which the mean F1 of all lessons is largest; an answer to a question without one
scores 0, saying so scores 1. Confidence is fitted on answers that are right: that share at least half of
their words with an accepted one (F1 of RIGHT_FROM). The reported calibration error is that of a two-fold fit:
each half is judged by the line of the other. What methods found for questions about documents may be
read beside the lessons: 300 lessons alone make a line too steep for retrieved evidence.
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
    scores: dict[str, Any]
    by_source: dict[str, dict[str, float]]
    standard_error: float
    """Of the mean F1."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """One lesson read."""

    answered: bool
    probability: float
    em: float
    f1: float

    @property
    def right(self) -> bool:
        return self.f1 >= RIGHT_FROM


def tune(
    reader: ExtractiveReader,
    lessons: Sequence[Lesson],
    bias: float | None = None,
    found: Sequence[Lesson] = (),
) -> Tuning:
    """Reads the lessons without a bias and chooses, all but a `bias` that is given. At least one lesson.

    Confidence is fitted on the lessons and on those that were `found`, which choose and score nothing else.
    """
    readings = _readings(reader, lessons)
    scored = {
        bias: [_outcome(reading, bias, lesson) for reading, lesson in zip(readings, lessons, strict=True)]
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
    kinds = _by_kind(outcomes)
    known = [
        _outcome(reading, bias, lesson)
        for reading, lesson in zip(_readings(reader, found), found, strict=True)
    ]
    answered, empty = _by_kind([*outcomes, *known])
    scores = {
        "n": len(outcomes),
        "f1": _mean(values),
        "em": _mean([outcome.em for outcome in outcomes]),
        "no_answer_right": _mean([outcome.f1 for outcome in unanswerable]) if unanswerable else None,
        "ece": _cross_fitted_error(kinds),
        "ece_uncalibrated": _error(
            [outcome.probability for outcome in outcomes], [outcome.right for outcome in outcomes]
        ),
    }
    lines = _fit(answered), _fit(empty)
    sure = [
        confidence(outcome.probability, knots)
        for kind, knots in zip((answered, empty), lines, strict=True)
        for outcome in kind
    ]
    least = least_confidence(sure, [outcome.right for outcome in (*answered, *empty)])
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return Tuning(bias, *lines, least, scores, by_source, error)


def least_confidence(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """The confidence from which on answers are shown: the one with the most right answers less wrong ones; 1
    where no more are right than wrong.

    At least one answer.

    >>> least_confidence([0.2, 0.4, 0.6, 0.8], [False, False, True, True])
    0.6
    """
    order = np.argsort(confidences)[::-1]
    surest_first = np.asarray(confidences)[order]
    is_right = np.asarray(right)[order]
    gained = np.cumsum(np.where(is_right, 1, -1))
    falls = np.append(np.diff(surest_first) < 0, True)
    gained = np.where(falls, gained, 0)
    if gained.max() <= 0:
        return 1.0
    return round(float(surest_first[gained.argmax()]), 4)


def _readings(reader: ExtractiveReader, lessons: Sequence[Lesson]) -> list[Reading]:
    return reader.readings(
        [lesson.question for lesson in lessons],
        [lesson.passages for lesson in lessons],
        [lesson.ranks for lesson in lessons],
    )


def _by_kind(outcomes: Sequence[_Outcome]) -> tuple[list[_Outcome], list[_Outcome]]:
    """Those with an answer and those without, which have a line each."""
    return [outcome for outcome in outcomes if outcome.answered], [
        outcome for outcome in outcomes if not outcome.answered
    ]


def _outcome(reading: Reading, bias: float, lesson: Lesson) -> _Outcome:
    best, probability = reading.best(bias)
    text = "" if best is None else best.text
    if not lesson.answers:
        return _Outcome(best is not None, probability, float(best is None), float(best is None))
    return _Outcome(
        best is not None, probability, answer_em(text, lesson.answers), answer_f1(text, lesson.answers)
    )


def _fit(outcomes: Sequence[_Outcome]) -> Knots:
    return fit_confidence(
        [outcome.probability for outcome in outcomes], [outcome.right for outcome in outcomes]
    )


def _cross_fitted_error(kinds: Sequence[Sequence[_Outcome]]) -> float | None:
    """Calibration error, each half judged by the line fitted on the other; `kinds` that share a line."""
    confidences, right = [], []
    for outcomes in kinds:
        for judged, fitted in ((outcomes[::2], outcomes[1::2]), (outcomes[1::2], outcomes[::2])):
            knots = _fit(fitted)
            confidences += [confidence(outcome.probability, knots) for outcome in judged]
            right += [outcome.right for outcome in judged]
    return _error(confidences, right)


def _error(confidences: Sequence[float], right: Sequence[bool]) -> float | None:
    error = expected_calibration_error(confidences, right)
    return None if error is None else round(error, 4)


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)
