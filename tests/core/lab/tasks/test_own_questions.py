"""A person's own questions: what is read, and one sentence with file and line for everything that isn't."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadRequest
from core.lab.tasks import own_questions
from core.lab.tasks.own_questions import read_own_questions

GOOD = {
    "question": " Who made the lamp? ",
    "chunks": ["A lamp.", "Ada made it.", "Rain."],
    "support": [1, 0, 1],
}


def write(folder: Path, *records: Any) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    return path


def test_questions_are_read_as_they_are(tmp_path: Path):
    first, second = read_own_questions(write(tmp_path, GOOD, {**GOOD, "id": "x", "answer": ["Ada", "her"]}))
    assert (first.id, first.question, first.chunks, first.support) == (
        "own-1",
        "Who made the lamp?",
        tuple(GOOD["chunks"]),
        (0, 1),
    )
    assert (second.id, second.answers) == ("x", ("Ada", "her"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": None}, 'needs|has no "question"'),
        ({"question": "  "}, "line 2: the question is empty"),
        ({"question": "x" * 10_001}, "line 2: the question has 10,001 characters"),
        ({"question": "\ud800"}, "half a character"),
        ({"chunks": "text"}, 'needs "chunks", a list'),
        ({"chunks": ["a", ""]}, "none of which is empty"),
        ({"chunks": ["a", 1]}, 'needs "chunks", a list'),
        ({"chunks": ["a", "\ud800"]}, "half a character"),
        ({"chunks": []}, "has 0 chunks, there must be between 1"),
        ({"support": None}, 'needs "support", a list of whole numbers'),
        ({"support": ["1"]}, "whole numbers"),
        ({"support": [True]}, "whole numbers"),
        ({"support": []}, "has 0 support chunks, there must be between 1 and 32"),
        ({"support": [0, 3]}, "support 3 is no chunk; its numbers must be between 0 and 2"),
        ({"support": [-1]}, "support -1 is no chunk"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, change: dict[str, Any], message: str):
    with pytest.raises(BadRequest, match=message) as refusal:
        read_own_questions(write(tmp_path, GOOD, {**GOOD, **change}))
    assert "mine.jsonl line 2" in str(refusal.value)


def test_bounds_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own_questions, "MAX_QUESTIONS", 2)
    assert len(read_own_questions(write(tmp_path, GOOD, GOOD))) == 2
    with pytest.raises(BadRequest, match="more than 2 questions; split it"):
        read_own_questions(write(tmp_path, GOOD, GOOD, GOOD))
    monkeypatch.setattr(own_questions, "MAX_CHUNKS", 2)
    with pytest.raises(BadRequest, match="has 3 chunks, there must be between 1 and 2"):
        read_own_questions(write(tmp_path, GOOD))
    monkeypatch.setattr(own_questions, "MAX_LINE_BYTES", 50)
    with pytest.raises(BadRequest, match="line 1 has more than 50 bytes"):
        read_own_questions(write(tmp_path, GOOD))


def test_an_empty_file_says_what_to_write(tmp_path: Path):
    with pytest.raises(BadRequest, match=r"mine\.jsonl has no questions; write lines"):
        read_own_questions(write(tmp_path))
