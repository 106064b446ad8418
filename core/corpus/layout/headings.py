"""The headings by which chunks are told apart in a map.

Those of the first level count at which a document, or a list of them, has several; the MOST_NAMED with most
chunks have a name; parts of one name are one group.
"""

from __future__ import annotations

import numpy as np

from core.base.types import Workspace

MOST_NAMED = 7
"""More colours are not told apart."""
UNNAMED = 255
"""Code of chunks under no heading, and under others than those with a name."""
_DEEPEST = 3


def heading_groups(workspace: Workspace) -> tuple[tuple[str, ...], np.ndarray]:
    """(names in order, (N,) uint8 which each chunk has or UNNAMED); none where no level has several."""
    for depth in range(_DEEPEST):
        numbers: dict[str, int] = {"": -1}
        groups = np.concatenate(
            [
                np.array(
                    [
                        numbers.setdefault(path[depth] if depth < len(path) else "", len(numbers) - 1)
                        for path in table.heading_paths
                    ],
                    dtype=np.int64,
                )[table.heading_code]
                for table in workspace.tables
            ]
        )
        names = [name for name in numbers if name]
        if len(names) > 1:
            sizes = np.bincount(groups[groups >= 0], minlength=len(names))
            named = np.sort(np.argsort(-sizes, kind="stable")[:MOST_NAMED])
            code_of = np.full(len(names) + 1, UNNAMED, np.uint8)  # the last one is that of -1
            code_of[named] = np.arange(len(named))
            return tuple(names[i] for i in named.tolist()), code_of[groups]
    return (), np.full(len(workspace), UNNAMED, np.uint8)
