"""A person's own questions, for training and evaluation.

A line `{"question", "chunks": [text], "support": [ids], "id"?, "answer"?}` each. Support are 0-based indices
into the chunks. Every bound is named here; every refusal names the line and the remedy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.base.config import MAX_QUERY_CHARACTERS, check_query
from core.base.errors import BadRequest
from core.lab.tasks.data import is_text, json_lines
from core.lab.tasks.example import Example

TASK = "own"
MAX_FILE_BYTES = 256 * 1024 * 1024
"""Largest file, unpacked."""
MAX_LINE_BYTES = 32 * 1024 * 1024
"""Longest line: a question over some five million words."""
MAX_QUESTIONS = 100_000
"""Most questions in a file."""
MAX_CHUNKS = 100_000
"""Most chunks of one question."""
MAX_SUPPORT = 32
"""Most support chunks of one question: an episode takes them one after another, and a state has to hold them.
"""


def read_own_questions(path: Path) -> list[Example]:
    """All questions of a JSONL file, plain or gzipped. Raises BadRequest for the first wrong line."""
    examples: list[Example] = []
    for where, record in json_lines(path, max_bytes=MAX_FILE_BYTES, max_line_bytes=MAX_LINE_BYTES):
        if len(examples) == MAX_QUESTIONS:
            raise BadRequest(f"{path.name} has more than {MAX_QUESTIONS:,} questions; split it")
        examples.append(_example(record, where, len(examples)))
    if not examples:
        raise BadRequest(
            f'{path.name} has no questions; write lines {{"question": ..., "chunks": [...], "support":'
            " [...]}"
        )
    return examples


def _example(record: dict[str, Any], where: str, row: int) -> Example:
    question = record.get("question")
    if not isinstance(question, str):
        raise BadRequest(f'{where} has no "question" with a text; add one')
    try:
        question = check_query(question)
    except BadRequest as error:
        raise BadRequest(f"{where}: {error}") from None
    chunks = record.get("chunks")
    if not isinstance(chunks, list) or not all(is_text(chunk) and chunk.strip() for chunk in chunks):
        raise BadRequest(
            f'{where} needs "chunks", a list of texts none of which is empty or holds half a character; put'
            " it right"
        )
    if not 1 <= len(chunks) <= MAX_CHUNKS:
        raise BadRequest(
            f"{where} has {len(chunks):,} chunks, there must be between 1 and {MAX_CHUNKS:,}; change their"
            " number"
        )
    support = checked_support(record.get("support"), len(chunks), where)
    answer = record.get("answer", [])
    answers = (
        (answer,)
        if isinstance(answer, str)
        else tuple(text for text in answer if isinstance(text, str))
        if isinstance(answer, list)
        else ()
    )
    return Example(
        str(record.get("id", f"own-{row + 1}"))[:MAX_QUERY_CHARACTERS],
        TASK,
        question,
        tuple(chunks),
        support,
        answers,
    )


def checked_support(support: object, n_chunks: int, where: str) -> tuple[int, ...]:
    """Support ids, ascending. Raises BadRequest unless they are 1 to MAX_SUPPORT different chunks."""
    if not isinstance(support, list) or not all(type(chunk_id) is int for chunk_id in support):
        raise BadRequest(f'{where} needs "support", a list of whole numbers; put it right')
    outside = [chunk_id for chunk_id in support if not 0 <= chunk_id < n_chunks]
    if outside:
        raise BadRequest(
            f"{where}: support {outside[0]} is no chunk; its numbers must be between 0 and {n_chunks - 1}"
        )
    if not 1 <= len(set(support)) <= MAX_SUPPORT:
        raise BadRequest(
            f"{where} has {len(set(support))} support chunks, there must be between 1 and {MAX_SUPPORT};"
            " change their number"
        )
    return tuple(sorted(set(support)))
