"""The order in which chunks are embedded.

Spread over the documents, so that whoever asks early searches an even sample: in stretches of neighbours,
since a passage is understood by what stands beside it, which halve the largest gap (van der Corput).
"""

from __future__ import annotations

import numpy as np

LEAST_STRETCH = 32
"""Neighbouring chunks that are embedded together."""
PART_CHARACTERS = 200_000
"""Of texts tokenized at once and sorted by length, so that a part can be asked after some seconds; twenty
times as much would pad sentences by 6 % less and passages by 1 %.
"""
MOST_STRETCHES = 1_024
"""Of a text, so that which of its chunks were searched is said in few numbers."""


def spread(n: int) -> np.ndarray:
    """(n,) the indices 0 ... n - 1 in an order whose every beginning lies evenly over them.

    >>> spread(4 * LEAST_STRETCH)[::LEAST_STRETCH].tolist()
    [0, 64, 32, 96]
    """
    stretch = max(LEAST_STRETCH, -(-n // MOST_STRETCHES))
    starts = np.arange(0, n, stretch)
    mirrored = np.zeros(len(starts), dtype=np.int64)
    for bit in range(max(1, int(len(starts) - 1).bit_length())):
        mirrored = 2 * mirrored + (np.arange(len(starts)) >> bit & 1)
    ids = (starts[np.argsort(mirrored)][:, None] + np.arange(stretch)).ravel()
    return ids[ids < n]


def ranges_of(mask: np.ndarray, most: int) -> tuple[tuple[int, int], ...]:
    """The runs of True in (N,) bool as [first, last), in order; the `most` longest of them.

    >>> ranges_of(np.array([True, False, True, True]), 10)
    ((0, 1), (2, 4))
    """
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False)).reshape(-1, 2)
    if len(edges) > most:
        longest = np.argsort(edges[:, 0] - edges[:, 1], kind="stable")[:most]
        edges = edges[np.sort(longest)]
    return tuple((int(first), int(last)) for first, last in edges)
