"""Telling "a passage bears out a statement" from "it doesn't".

It is told by words, by meaning and by reading. Statements are held-out training questions of SQuAD and
Natural Questions put together with their answer. They are borne out by the supporting passage. Against that
stand the same statement beside a passage that distracts, and the statement with another thing of the passage
in place of the answer. The measure is the area under the ROC curve: 0.5 is guessing, 1 is never wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from benchmarks import Row
from core.answer.agreement import agreement
from core.answer.reader import ExtractiveReader, load_reader
from core.encode.encoder import load_encoder
from core.lab.reader.course import ReadingCourse
from core.lab.reader.statements import as_statement, lookalikes

Pair = tuple[str, str]
"""A statement and a passage."""
SINGLE_HOP = ("squad", "nq")


def rows() -> list[Row]:
    """A row per way of telling and kind of wrong pair; and the agreement that best parts right from
    distracting.
    """
    reader = load_reader()
    right, apart, swapped = _pairs(ReadingCourse(None, reader.tokenizer))
    out = []
    for name, score in (
        ("words (agreement)", _by_words),
        ("base encoder's cosine", _by_meaning),
        ("reader's yes", lambda pairs: _by_reading(reader, pairs)),
    ):
        good = score(right)
        for kind, pairs in (("another passage", apart), ("another answer", swapped)):
            out.append(
                Row(
                    f"{name}: against {kind}",
                    _auc(good, score(pairs)),
                    f"AUC of {len(right)} and {len(pairs)}",
                )
            )
    good, bad = _by_words(right), _by_words(apart)
    borders = np.linspace(0.05, 1.0, 20)
    best = max(borders, key=lambda border: float((good >= border).mean() + (bad < border).mean()))
    out.append(
        Row(
            "words: border that parts best",
            float(best),
            "agreement",
            "share told rightly",
            float(((good >= best).mean() + (bad < best).mean()) / 2),
        )
    )
    return out


def _pairs(course: ReadingCourse) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Borne out, beside another passage, with another answer."""
    rng = Random("pairs of statements and passages")
    right: list[Pair] = []
    apart: list[Pair] = []
    swapped: list[Pair] = []
    for lesson, distractors in course.held_out_pairs():
        if lesson.source not in SINGLE_HOP or lesson.label is not None or not distractors:
            continue
        passage = lesson.passages[0]
        statement = as_statement(lesson.question, lesson.answers[0])
        right.append((statement, passage))
        apart.append((statement, rng.choice(distractors)))
        if others := lookalikes(lesson.answers[0], passage, [*lesson.answers, lesson.question]):
            swapped.append((as_statement(lesson.question, rng.choice(others)), passage))
    return right, apart, swapped


def _by_words(pairs: Sequence[Pair]) -> np.ndarray:
    return np.array([agreement(statement, passage) for statement, passage in pairs])


def _by_meaning(pairs: Sequence[Pair]) -> np.ndarray:
    encoder = load_encoder("base")
    left, right = (encoder.encode_chunks([pair[side] for pair in pairs]) for side in (0, 1))
    cosines: np.ndarray = (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
    return cosines


def _by_reading(reader: ExtractiveReader, pairs: Sequence[Pair]) -> np.ndarray:
    """Log-odds of "yes" against "no" and "no answer"."""
    readings = reader.readings([statement for statement, _ in pairs], [[passage] for _, passage in pairs])
    told = [{candidate.text: log_odds for candidate, log_odds in reading.answers} for reading in readings]
    return np.array([odds["yes"] - np.logaddexp(0.0, odds["no"]) for odds in told])


def _auc(good: np.ndarray, bad: np.ndarray) -> float:
    """Share of pairs of one good and one bad in which the good scores higher; equals count half."""
    difference = good[:, None] - bad[None, :]
    return float((difference > 0).mean() + (difference == 0).mean() / 2)
