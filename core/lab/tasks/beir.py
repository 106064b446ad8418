"""Folders of BEIR as labelled questions.

corpus.jsonl, queries.jsonl (each may end in .gz) and qrels/PART.tsv; judgements may also be TREC's four
columns without a header, in qrels/PART.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from core.base.errors import BadRequest, first_problem
from core.lab.tasks.data import checked_question, chunk_text, is_text, json_lines
from core.lab.tasks.example import Example

MAX_FILE_BYTES, MAX_LINE_BYTES = 1 << 30, 1 << 24
"""A million passages of BEIR have 0.6 GB."""
MAX_PASSAGES = 1_000_000
"""Ten million tokens have fewer."""


class Passages(tuple[str, ...]):
    """Chunks of a corpus that names them."""

    names: tuple[str, ...] = ()


class _Passage(BaseModel):
    id: str = Field(alias="_id")
    title: str = ""
    text: str


def read_beir(folder: Path, part: str) -> list[Example]:
    """The judged queries over the whole corpus, which all examples share; support are the passages judged
    above 0. Raises BadRequest, naming file and line.
    """
    corpus, queries = (_passages(folder, name) for name in ("corpus.jsonl", "queries.jsonl"))
    rows = {name: row for row, name in enumerate(corpus)}
    judged: dict[str, set[int]] = {}
    for where, query, passage in _judgements(folder, part):
        if query not in queries or passage not in rows:
            named = f"query {query!r} and passage {passage!r}"
            raise BadRequest(f"{where} judges {named}, of which one is missing; fetch the set again")
        judged.setdefault(query, set()).add(rows[passage])
    chunks = Passages(chunk_text(passage.title, passage.text) for passage in corpus.values())
    chunks.names = tuple(corpus)
    examples = []
    for query, support in judged.items():
        question = checked_question(queries[query].text, f"query {query!r} of {folder.name}")
        examples.append(Example(query, folder.name, question, chunks, tuple(sorted(support))))
    return examples


def _passages(folder: Path, name: str) -> dict[str, _Passage]:
    """The records of a file, by id."""
    path = folder / name if (folder / name).exists() else folder / f"{name}.gz"
    passages: dict[str, _Passage] = {}
    for where, record in json_lines(path, max_bytes=MAX_FILE_BYTES, max_line_bytes=MAX_LINE_BYTES):
        if len(passages) == MAX_PASSAGES:
            raise BadRequest(f"{path.name} has more than {MAX_PASSAGES:,} passages; take a part of it")
        try:
            passage = _Passage.model_validate(record)
        except ValidationError as error:
            raise BadRequest(f"{where}: {first_problem(error)}; put it right") from None
        if not all(map(is_text, (passage.id, passage.title, passage.text))):
            raise BadRequest(f"{where} holds half a character; put it right")
        if passage.id in passages:
            raise BadRequest(f"{where}: the id {passage.id[:80]!r} stands twice; give each its own")
        passages[passage.id] = passage
    return passages


def _judgements(folder: Path, part: str) -> Iterator[tuple[str, str, str]]:
    """(where, query, passage) of those above 0."""
    names = (f"{part}.tsv", f"{part}.txt")
    path = next((path for name in names if (path := folder / "qrels" / name).is_file()), None)
    if path is None:
        raise BadRequest(f"{folder} has no qrels/{part}.tsv; choose another part")
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if not fields or fields[-1] == "score":
                continue
            if len(fields) not in (3, 4) or not re.fullmatch(r"[-+]?\d+(\.\d*)?", fields[-1]):
                raise BadRequest(
                    f"{path.name} line {number} must have three columns (query, passage, and a number as"
                    " score) or TREC's four; put it right"
                )
            if float(fields[-1]) > 0:
                yield f"{path.name} line {number}", fields[0], fields[-2]
