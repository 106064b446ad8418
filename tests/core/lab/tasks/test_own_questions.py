"""A person's own questions: their bounds; what a line must be, the reader of question sets says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadRequest
from core.lab.tasks import own_questions, qa_sets
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
    assert (first.id, first.question, first.task) == ("mine.jsonl line 1", "Who made the lamp?", "own")
    assert (first.chunks, first.support) == (tuple(GOOD["chunks"]), (0, 1))
    assert (second.id, second.answers) == ("x", ("Ada", "her"))


def test_bounds_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own_questions, "MAX_QUESTIONS", 2)
    assert len(read_own_questions(write(tmp_path, GOOD, GOOD))) == 2
    with pytest.raises(BadRequest, match="more than 2 questions; split it"):
        read_own_questions(write(tmp_path, GOOD, GOOD, GOOD))
    monkeypatch.setattr(qa_sets, "MAX_CHUNKS", 2)
    with pytest.raises(BadRequest, match="line 1 has 3 chunks, more than 2"):
        read_own_questions(write(tmp_path, GOOD))
    monkeypatch.setattr(own_questions, "MAX_LINE_BYTES", 50)
    with pytest.raises(BadRequest, match="line 1 has more than 50 bytes"):
        read_own_questions(write(tmp_path, GOOD))
    with pytest.raises(BadRequest, match=r"mine\.jsonl has no questions; write lines"):
        read_own_questions(write(tmp_path))
