"""Labels without anybody's labelling (RES-RAG section 3.4.1).

Every chunk whose similarity with the question exceeds a threshold. No document has fewer or more for it: K_m
is how many exceed it.
"""

from __future__ import annotations

import numpy as np

from core.methods.resrag.action import Action, action_of


def similarity_labels(similarities: np.ndarray, borders: np.ndarray, threshold: float) -> Action:
    """S~ (eq. 16): by document the numbers of the chunks above the threshold, most similar first, equals in
    document order.

    similarities: (N,), borders: (M + 1,).

    >>> similarity_labels(np.array([0.5, 0.2, 0.9, 0.4]), np.array([0, 3, 4]), 0.4)
    ((3, 1), ())
    """
    ranked = np.argsort(-similarities, kind="stable")
    return action_of(ranked[similarities[ranked] > threshold].tolist(), borders)
