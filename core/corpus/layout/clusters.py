"""Groups of chunks on a map, named by their own words."""

from __future__ import annotations

from collections import Counter

import numpy as np

from core.base.types import Workspace
from core.corpus.words import content_words

MOST_CLUSTERS = 8
_NAMED_BY = 3
"""Words."""
_LEAST_CHUNKS = 25
"""Of a cluster, in the mean."""
_MOST_READ = 400
"""Chunks of a cluster whose words are counted."""


def clusters(places: np.ndarray, workspace: Workspace) -> tuple[tuple[str, ...], np.ndarray]:
    """(names, (N,) uint8 which each chunk has). `places`: (N, 2).

    A name is the words that most chunks of the cluster have and few others: their number times the logarithm
    of how much more frequent they are there than in all, as c-TF-IDF.
    """
    n = min(MOST_CLUSTERS, len(places) // _LEAST_CHUNKS)
    if n < 2:
        return (), np.zeros(len(places), np.uint8)
    from scipy.cluster.vq import kmeans2  # brings scipy, which only a map needs

    _, groups = kmeans2(places.astype(float), n, minit="++", seed=0)
    counts, sizes = [], []
    for group in range(n):
        members = np.flatnonzero(groups == group)
        read = members[:: max(1, len(members) // _MOST_READ)].tolist()
        counts.append(Counter(word for i in read for word in set(content_words(workspace[i].text))))
        sizes.append(len(read))
    total = sum(counts, Counter[str]())
    names = []
    for count, size in zip(counts, sizes, strict=True):
        expected = {word: total[word] * size / sum(sizes) for word in count}
        weights = {word: n_here * np.log(n_here / expected[word]) for word, n_here in count.items()}
        best = sorted(weights, key=lambda word: (-weights[word], word))[:_NAMED_BY]
        names.append(", ".join(best))
    return tuple(names), groups.astype(np.uint8)
