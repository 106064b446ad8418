"""Folders of BEIR as labelled questions.

corpus.jsonl, queries.jsonl (each may end in .gz) and qrels/PART.tsv; judgements may also be TREC's four
columns without a header, in qrels/PART.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from core.base.config import check_query
from core.base.errors import BadRequest, first_problem
from core.lab.tasks.data import chunk_text, json_lines
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
    corpus = _passages(folder, "corpus.jsonl")
    rows = {passage.id: row for row, passage in enumerate(corpus)}
    queries = {query.id: query.text for query in _passages(folder, "queries.jsonl")}
    judged: dict[str, set[int]] = {}
    for where, query, passage in _judgements(folder, part):
        if query not in queries or passage not in rows:
            named = f"query {query!r} and passage {passage!r}"
            raise BadRequest(f"{where} judges {named}, of which one is missing; fetch the set again")
        judged.setdefault(query, set()).add(rows[passage])
    chunks = Passages(chunk_text(passage.title, passage.text) for passage in corpus)
    chunks.names = tuple(passage.id for passage in corpus)
    return [
        Example(query, folder.name, check_query(queries[query]), chunks, tuple(sorted(support)))
        for query, support in judged.items()
    ]


def _passages(folder: Path, name: str) -> list[_Passage]:
    path = folder / name if (folder / name).exists() else folder / f"{name}.gz"
    passages: list[_Passage] = []
    for where, record in json_lines(path, max_bytes=MAX_FILE_BYTES, max_line_bytes=MAX_LINE_BYTES):
        if len(passages) == MAX_PASSAGES:
            raise BadRequest(f"{path.name} has more than {MAX_PASSAGES:,} passages; take a part of it")
        try:
            passages.append(_Passage.model_validate(record))
        except ValidationError as error:
            raise BadRequest(f"{where}: {first_problem(error)}; put it right") from None
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
