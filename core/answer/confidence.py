"""From a model's probability to the share of answers that are right.

A rising line through a few points, fitted by isotonic regression. Equal shares merge, and the line passes the
middle of each merged block. Calibration error (ECE): ten bins of equal width, mean distance of confidence and
accuracy, weighted by answers. Pure functions of numbers.
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
    blocks: list[_Block] = []
    first = 0
    while first < len(order):
        last = first + FEWEST_IN_BLOCK
        if last < len(order):  # equal places stay together: their order says nothing
            last = int(np.searchsorted(places, places[last - 1], side="right"))
        block = (float(places[first:last].sum()), float(hits[first:last].sum()), len(places[first:last]))
        if blocks and block[2] < FEWEST_IN_BLOCK:
            block = _together(blocks.pop(), block)
        while blocks and (_share(blocks[-1]) >= _share(block) or _place(blocks[-1]) == _place(block)):
            block = _together(blocks.pop(), block)
        blocks.append(block)
        first = last
    points = tuple((_place(block), round(_share(block), 4)) for block in blocks)
    return check_knots(points) if points else ((0.5, 0.5),)


def expected_calibration_error(confidences: Sequence[float], right: Sequence[bool]) -> float | None:
    """ECE; None without answers.

    >>> expected_calibration_error([0.75, 0.75], [True, False])
    0.25
    """
    if not len(confidences):
        return None
    bins = np.minimum((np.asarray(confidences) * _BINS).astype(int), _BINS - 1)
    distances = [
        abs(np.mean(np.asarray(confidences)[bins == b]) - np.mean(np.asarray(right)[bins == b]))
        * np.mean(bins == b)
        for b in np.unique(bins)
    ]
    return float(sum(distances))


_Block = tuple[float, float, int]
"""(sum of probabilities, number right, answers)."""


def _together(one: _Block, other: _Block) -> _Block:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _place(block: _Block) -> float:
    total, _, n = block
    return round(total / n, 4)


def _share(block: _Block) -> float:
    _, hits, n = block
    return (hits + 1) / (n + 2)
