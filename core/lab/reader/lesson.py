"""A question, passages and what is right.

An accepted answer counts wherever it stands as whole words, whatever its case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.answer.network import CLASSES, NONE
from core.answer.windows import Window

YES_OR_NO = CLASSES[NONE + 1 :]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A question over passages."""

    source: str
    """The data set or generator it comes from."""
    question: str
    passages: tuple[str, ...]
    answers: tuple[str, ...]
    """Accepted answers, the main one first; none where there is no answer. "yes" or "no" is no span."""
    places: tuple[int, ...] = ()
    """Passages in which an accepted answer counts."""
    spans: tuple[tuple[int, int, int], ...] = ()
    """Where the right words stand, as (passage, start, end), if that is known: accepted answers are then only
    what a given answer is compared with.
    """
    ranks: tuple[int, ...] = ()
    """Of each passage, 0 for what was found first; none where passages have no order."""

    @property
    def label(self) -> str | None:
        """The class that is right; None where a span is."""
        if self.spans:
            return None
        if not self.answers:
            return CLASSES[NONE]
        word = self.answers[0].strip().lower().rstrip(".")
        return word if word in YES_OR_NO else None


def occurrences(answer: str, text: str) -> Iterator[tuple[int, int]]:
    """Where an answer stands in a text as whole words.

    >>> list(occurrences("art", "Art and part of the art."))
    [(0, 3), (20, 23)]
    """
    words = answer.split()
    if words:
        pattern = r"\s+".join(map(re.escape, words))
        left = r"(?<!\w)" if words[0][0].isalnum() else ""
        right = r"(?!\w)" if words[-1][-1].isalnum() else ""
        yield from (match.span() for match in re.finditer(left + pattern + right, text, re.IGNORECASE))


def has_answer(lesson: Lesson) -> bool:
    """Whether what is right can be pointed at."""
    return lesson.label is not None or any(_places(lesson, row) for row in lesson.places)


def gold_answers(lesson: Lesson, window: Window, longest: int) -> np.ndarray | None:
    """(T * longest + len(CLASSES),) bool like a row of `Logits.flat`, unpadded; None where none is right."""
    n = len(window.ids)
    gold = np.zeros(n * longest + len(CLASSES), dtype=bool)
    if lesson.label is not None:
        gold[n * longest + CLASSES.index(lesson.label)] = True
        return gold
    for row in lesson.places:
        here = np.flatnonzero(window.passages == row)
        for start, end in _places(lesson, row):
            first = here[(window.starts[here] == start) & window.may_begin[here]]
            last = here[(window.ends[here] == end) & window.may_end[here]]
            if len(first) and len(last) and 0 <= last[0] - first[0] < longest:
                gold[first[0] * longest + last[0] - first[0]] = True
    return gold if gold.any() else None


def _places(lesson: Lesson, row: int) -> set[tuple[int, int]]:
    if lesson.spans:
        return {(start, end) for passage, start, end in lesson.spans if passage == row}
    return {place for answer in lesson.answers for place in occurrences(answer, lesson.passages[row])}
