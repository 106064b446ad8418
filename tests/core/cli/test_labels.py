"""What a file of episodes knows of its questions, as logs take it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadRequest
from core.cli.inputs import _read_episodes


def episodes(folder: Path, **known: Any) -> Path:
    path = folder / "episodes.jsonl"
    path.write_text(json.dumps({"id": 1, "query": "Who?", "chunks": ["Ann.", "Bob."], **known}))
    return path


@pytest.mark.parametrize(
    ("known", "label"),
    [
        ({"support": [1], "answers": ["Bob"]}, {"support": [1], "answers": ["Bob"], "answer": "Bob"}),
        ({"support": [], "answers": None}, {"support": []}),
        ({}, None),
    ],
)
def test_support_and_answers_become_the_label(
    tmp_path: Path, known: dict[str, Any], label: dict[str, Any] | None
) -> None:
    [(_, _, _, told)] = _read_episodes(episodes(tmp_path, **known))
    assert told == label


@pytest.mark.parametrize(
    ("known", "words"),
    [({"support": [True]}, "chunk ids"), ({"support": 1}, "chunk ids"), ({"answers": "Bob"}, "texts")],
)
def test_what_is_no_label_is_refused(tmp_path: Path, known: dict[str, Any], words: str) -> None:
    with pytest.raises(
        BadRequest,
        match=(
            f'"{next(iter(known))}" in line 1 of episodes.jsonl must be a list of {words}; correct the file'
        ),
    ):
        list(_read_episodes(episodes(tmp_path, **known)))


def test_support_that_is_no_chunk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"names chunk 2; its ids must be between 0 and 1; correct the file"):
        list(_read_episodes(episodes(tmp_path, support=[1, 2])))
