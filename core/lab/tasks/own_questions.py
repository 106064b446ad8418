"""A person's own questions, for training and evaluation.

A line `{"question", "chunks": [text], "support": [0-based ids], "id"?, "answer"?}` each.
"""

from __future__ import annotations

from pathlib import Path

from core.base.errors import BadRequest
from core.lab.tasks.data import json_lines
from core.lab.tasks.example import Example
from core.lab.tasks.qa_sets import labelled

TASK = "own"
MAX_FILE_BYTES = 256 * 1024 * 1024
"""Largest file, unpacked."""
MAX_LINE_BYTES = 32 * 1024 * 1024
"""Longest line: a question over some five million words."""
MAX_QUESTIONS = 100_000


def read_own_questions(path: Path) -> list[Example]:
    """All questions of a JSONL file, plain or gzipped. Raises BadRequest for the first wrong line."""
    examples: list[Example] = []
    for where, record in json_lines(path, max_bytes=MAX_FILE_BYTES, max_line_bytes=MAX_LINE_BYTES):
        if len(examples) == MAX_QUESTIONS:
            raise BadRequest(f"{path.name} has more than {MAX_QUESTIONS:,} questions; split it")
        examples.append(labelled(record, where, TASK))
    if not examples:
        raise BadRequest(
            f'{path.name} has no questions; write lines {{"question": ..., "chunks": [...], "support":'
            " [...]}"
        )
    return examples
