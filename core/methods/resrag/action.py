"""The structured action of RES-RAG (eq. 2, 5, appendix B).

Chunk numbers by document, most relevant first, as a JSON object and as chunk ids. Numbers are 1-based within
their document, none stands twice; chunk ids are 0-based over the workspace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

UNREAD = -1.0
"""Score of a chunk that did not fit into the language model's context."""
Action = tuple[tuple[int, ...], ...]
"""By document, in the order of the workspace."""


def document_key(document: int) -> str:
    """The name of a document, counted from 0, in an action.

    >>> document_key(0)
    'Document_1'
    """
    return f"Document_{document + 1}"


def action_of(chunk_ids: Sequence[int], borders: np.ndarray) -> Action:
    """Chunk ids in falling relevance as an action. borders: (M + 1,), see `Workspace.borders`.

    >>> action_of([4, 0, 3], np.array([0, 3, 5]))
    ((1,), (2, 1))
    """
    documents: list[list[int]] = [[] for _ in range(len(borders) - 1)]
    for chunk_id in chunk_ids:
        document = int(np.searchsorted(borders, chunk_id, side="right")) - 1
        documents[document].append(chunk_id - int(borders[document]) + 1)
    return tuple(map(tuple, documents))


def chunk_ids_of(action: Action, borders: np.ndarray) -> tuple[int, ...]:
    """The chunks of an action in the order of eq. 6: document by document, within each as listed.

    >>> chunk_ids_of(((1,), (2, 1)), np.array([0, 3, 5]))
    (0, 4, 3)
    """
    return tuple(
        int(first) + number - 1 for first, numbers in zip(borders, action, strict=False) for number in numbers
    )


def action_json(action: Action) -> dict[str, list[int]]:
    """Plain JSON values (eq. 5).

    >>> action_json(((1,), ()))
    {'Document_1': [1], 'Document_2': []}
    """
    return {document_key(document): list(numbers) for document, numbers in enumerate(action)}
