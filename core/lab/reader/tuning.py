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


_OUTCOME = np.dtype(
    [
        *(("source", "U200"), ("answerable", bool), ("answered", bool), ("probability", float)),
        *(("em", float), ("f1", float), ("right", bool)),
    ]
)


_Outcomes = Any
"""Lessons read: a record array of `_OUTCOME`."""


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
    scored = {tried: _outcomes(readings, tried, lessons) for tried in (BIASES if bias is None else [bias])}
    bias = max(scored, key=lambda tried: (round(scored[tried].f1.mean(), 6), -abs(tried)))
    read = scored[bias]
    answerable, silent = read[read.answerable], read[~read.answerable]
    by_source = {}
    for source in np.unique(answerable.source).tolist():
        own = answerable[answerable.source == source]
        by_source[source] = {"n": len(own), "em": _mean(own.em), "f1": _mean(own.f1)}
    known = np.concatenate([read, _outcomes(_readings(reader, found), bias, found)]).view(np.recarray)
    kinds = [known[known.answered], known[~known.answered]]
    lines = _fit(kinds[0]), _fit(kinds[1])
    scores = {
        "n": len(read),
        "f1": _mean(read.f1),
        "em": _mean(read.em),
        "no_answer_right": _mean(silent.f1) if len(silent) else None,
        "ece": _cross_fitted_error([read[read.answered], read[~read.answered]]),
        "ece_uncalibrated": _error(read.probability.tolist(), read.right.tolist()),
    }
    sure = [
        confidence(probability, line)
        for kind, line in zip(kinds, lines, strict=True)
        for probability in kind.probability
    ]
    least = least_confidence(sure, [bool(right) for kind in kinds for right in kind.right])
    error = float(read.f1.std(ddof=1)) / len(read) ** 0.5 if len(read) > 1 else 0.0
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


def _outcomes(readings: Sequence[Reading], bias: float, lessons: Sequence[Lesson]) -> _Outcomes:
    """A row a lesson read: whether it was answered, with what probability, and how well."""
    rows = []
    for reading, lesson in zip(readings, lessons, strict=True):
        best, probability = reading.best(bias)
        text = "" if best is None else best.text
        if lesson.answers:
            em, f1 = answer_em(text, lesson.answers), answer_f1(text, lesson.answers)
        else:
            em = f1 = float(best is None)
        rows.append(
            (lesson.source, bool(lesson.answers), best is not None, probability, em, f1, f1 >= RIGHT_FROM)
        )
    return np.array(rows, dtype=_OUTCOME).view(np.recarray)


def _fit(outcomes: _Outcomes) -> Knots:
    return fit_confidence(outcomes.probability.tolist(), outcomes.right.tolist())


def _cross_fitted_error(kinds: Sequence[_Outcomes]) -> float | None:
    """Calibration error, each half judged by the line fitted on the other; `kinds` that share a line."""
    confidences, right = [], []
    for kind in kinds:
        for judged, fitted in ((kind[::2], kind[1::2]), (kind[1::2], kind[::2])):
            line = _fit(fitted)
            confidences += [confidence(probability, line) for probability in judged.probability]
            right += judged.right.tolist()
    return _error(confidences, right)


def _error(confidences: Sequence[float], right: Sequence[bool]) -> float | None:
    error = expected_calibration_error(confidences, right)
    return None if error is None else round(error, 4)


def _mean(values: np.ndarray) -> float:
    return round(float(values.mean()), 4)
