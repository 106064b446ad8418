"""The structured action of RES-RAG (eq. 2, 5, appendix B).

Chunk numbers by document, most relevant first, as a JSON object and as chunk ids. Numbers are 1-based within
their document, chunk ids 0-based over the workspace. A document may have none. A number may not stand twice:
a set holds a chunk once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.base.errors import BadRequest
from core.base.types import Workspace

UNREAD = -1.0
"""Score of a chunk that did not fit into the language model's context."""
Action = tuple[tuple[int, ...], ...]
"""By document, in the order of the workspace."""
_SHOWN = 60
"""Characters of a wrong value in an error."""


@dataclass(frozen=True)
class Evidence:
    """What the answer model reads (eq. 7): E and J."""

    chunk_ids: tuple[int, ...]
    texts: tuple[str, ...]
    """E (eq. 6): document by document, within each as the action orders them."""
    json_ld: tuple[tuple[Any, ...], ...]
    """J (eq. 3): parsed JSON-LD of every document, also of those without evidence."""


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


def parse_action(text: str, sizes: Sequence[int]) -> Action:
    """An action out of somebody's JSON. sizes: (M,) chunks of each document. Raises BadRequest, which names
    the first thing that is wrong.

    >>> parse_action('{"Document_2": [2, 1], "Document_1": []}', [3, 2])
    ((), (2, 1))
    """
    try:
        value = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadRequest):
            raise
        raise BadRequest(
            f"the action {_short(text)} is no JSON; write one object with a list of chunk numbers a document"
        ) from None
    if not isinstance(value, dict):
        raise BadRequest(
            f"the action {_short(text)} is JSON, but no object; write one object with a list of chunk numbers"
            " a document"
        )
    keys = [document_key(document) for document in range(len(sizes))]
    if unknown := [key for key in value if key not in keys]:
        raise BadRequest(
            f"the action names {_short(unknown[0])}, and the documents are {_span(keys)}; name these alone"
        )
    if missing := [key for key in keys if key not in value]:
        raise BadRequest(
            f"the action lacks {missing[0]}; name every one of {_span(keys)}, with an empty list where"
            " nothing is taken"
        )
    return tuple(_numbers(value[key], key, size) for key, size in zip(keys, sizes, strict=True))


def evidence_of(action: Action, workspace: Workspace) -> Evidence:
    """What an action stands for (eq. 6, 7)."""
    chunk_ids = chunk_ids_of(action, workspace.borders)
    texts = tuple(workspace[chunk_id].text for chunk_id in chunk_ids)
    return Evidence(chunk_ids, texts, tuple(document.json_ld for document in workspace.documents))


def _numbers(value: object, key: str, size: int) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise BadRequest(
            f"{key} of the action is {_short(value)}, no list; give a list of chunk numbers, which may be"
            " empty"
        )
    for number in value:
        if type(number) is not int or not 1 <= number <= size:
            bounds = f"a whole number from 1 to {size}" if size else "none, since the document has no chunks"
            raise BadRequest(
                f"{key} of the action holds {_short(number)}, and a chunk's number is {bounds}; correct or"
                " leave it out"
            )
    if len(set(value)) < len(value):
        twice = next(number for place, number in enumerate(value) if number in value[:place])
        raise BadRequest(f"{key} of the action holds {twice} twice; name each chunk once")
    return tuple(value)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise BadRequest(f"the action names {_short(twice)} twice; name each document once")
    return values


def _short(value: object) -> str:
    text = (
        value
        if isinstance(value, str)
        else repr(value)
        if not isinstance(value, int) or abs(value) < 10**_SHOWN
        else "a huge number"
    )
    line = " ".join(text[: 4 * _SHOWN].split())
    return (
        repr(line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…")
        if isinstance(value, str)
        else line[:_SHOWN]
    )


def _span(keys: Sequence[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{keys[0]} to {keys[-1]}" if keys else "none"
