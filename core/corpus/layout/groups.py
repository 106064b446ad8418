"""Groups of chunks on a map: by headings, and by place."""

from __future__ import annotations

from collections import Counter

import numpy as np

from core.base.types import Workspace
from core.corpus.words import content_words

MOST_NAMED = 7
"""More colours are not told apart."""
UNNAMED = 255
"""Code of chunks under no heading, and under others than those with a name."""
_DEEPEST = 3
MOST_CLUSTERS = 8
_NAMED_BY = 3
"""Words."""
_LEAST_CHUNKS = 25
"""Of a cluster, in the mean."""
_MOST_READ = 400
"""Chunks of a cluster whose words are counted."""


def heading_groups(workspace: Workspace) -> tuple[tuple[str, ...], np.ndarray]:
    """(names in order, (N,) uint8 which each chunk has or UNNAMED); none where no level has several.

    Of the first level with several headings, the MOST_NAMED with most chunks; equal names are one group.
    """
    for depth in range(_DEEPEST):
        numbers: dict[str, int] = {"": -1}
        coded = []
        for table in workspace.tables:
            headings = [path[depth] if depth < len(path) else "" for path in table.heading_paths]
            codes = [numbers.setdefault(heading, len(numbers) - 1) for heading in headings]
            coded.append(np.array(codes, dtype=np.int64)[table.heading_code])
        groups = np.concatenate(coded)
        names = [name for name in numbers if name]
        if len(names) > 1:
            sizes = np.bincount(groups[groups >= 0], minlength=len(names))
            named = np.sort(np.argsort(-sizes, kind="stable")[:MOST_NAMED])
            code_of = np.full(len(names) + 1, UNNAMED, np.uint8)  # the last one is that of -1
            code_of[named] = np.arange(len(named))
            return tuple(names[i] for i in named.tolist()), code_of[groups]
    return (), np.full(len(workspace), UNNAMED, np.uint8)


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
