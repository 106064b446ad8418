"""From a model's probability to the share of answers that are right.

A rising line through a few points, fitted by isotonic regression. Equal shares merge, and the line passes the
middle of each merged block.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

Knots = tuple[tuple[float, float], ...]
"""(probability, share that is right), both rising."""
FEWEST_IN_BLOCK = 20
"""Answers that a point of the line rests on, so that a handful of lucky ones makes no certainty."""
_BINS = 10


def check_knots(knots: Knots) -> Knots:
    """Raises ValueError unless in the unit square, probability rises strictly and share never falls."""
    if not knots:
        raise ValueError("must have a point")
    for (p, share), (next_p, next_share) in pairwise(knots):
        if next_p <= p or next_share < share:
            raise ValueError("must rise from point to point")
    if not all(0 <= value <= 1 for point in knots for value in point):
        raise ValueError("must lie between 0 and 1")
    return knots


def confidence(probability: float, knots: Knots) -> float:
    """The share of right answers at a probability; beyond the outer points, theirs.

    >>> confidence(0.5, ((0.0, 0.1), (1.0, 0.9)))
    0.5
    """
    return float(np.interp(probability, [p for p, _ in knots], [share for _, share in knots]))


def fit_confidence(probabilities: Sequence[float], right: Sequence[bool]) -> Knots:
    """Isotonic regression of `right` on the probabilities, by pooling neighbours that violate the order; one
    flat point where there is too little.

    Shares are those of one right and one wrong answer more in every block, so none is 0 or 1.
    """
    order = np.argsort(probabilities, kind="stable")
    places, hits = np.asarray(probabilities, np.float64)[order], np.asarray(right, np.float64)[order]
    blocks: list[np.ndarray] = []  # (sum of probabilities, number right, answers)
    first = 0
    while first < len(order):
        last = first + FEWEST_IN_BLOCK
        if last < len(order):  # equal places stay together: their order says nothing
            last = int(np.searchsorted(places, places[last - 1], side="right"))
        block = np.array([places[first:last].sum(), hits[first:last].sum(), len(places[first:last])])
        if blocks and block[2] < FEWEST_IN_BLOCK:
            block += blocks.pop()
        while blocks and (_share(blocks[-1]) >= _share(block) or _place(blocks[-1]) == _place(block)):
            block += blocks.pop()
        blocks.append(block)
        first = last
    points = tuple((_place(block), round(_share(block), 4)) for block in blocks)
    return check_knots(points) if points else ((0.5, 0.5),)


def expected_calibration_error(confidences: Sequence[float], right: Sequence[bool]) -> float | None:
    """ECE: ten bins of equal width, mean distance weighted by answers; None without any.

    >>> expected_calibration_error([0.75, 0.75], [True, False])
    0.25
    """
    if not len(confidences):
        return None
    sure, hits = np.asarray(confidences), np.asarray(right)
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    members = [bins == b for b in np.unique(bins)]
    return float(sum(abs(np.mean(sure[own]) - np.mean(hits[own])) * np.mean(own) for own in members))


def _place(block: np.ndarray) -> float:
    return round(float(block[0] / block[2]), 4)


def _share(block: np.ndarray) -> float:
    return float((block[1] + 1) / (block[2] + 2))
