"""What a chunk stands under, for whoever searches or reads it.

Headings that the chunk itself doesn't hold, the header row of a table that was cut, and the document's title
where several documents are open. Chunks stay slices; vectors are those of the chunk alone, as in training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import repeat

from core.base.types import CHUNK_TYPES, ChunkTable, Document, Workspace

_WORD = re.compile(r"\w+")
_MOST_CHARACTERS = 500
"""Of a header row."""
_TABLE = CHUNK_TYPES.index("table")


def context(workspace: Workspace, chunk_id: int) -> str:
    """Lines to be read before a chunk; empty where it says everything itself."""
    number, row = workspace.locate(chunk_id)
    document, table = workspace.documents[number], workspace.tables[number]
    first = row
    while _continues(document.text, table, first):
        first -= 1
    header = _first_line(document.text, int(table.start[first])) if first < row else ""
    return _lines(_title(workspace, document), document.text, table, row, header)


def texts_in_context(workspace: Workspace) -> list[str]:
    """The text of every chunk, by chunk id, with the words of its context that it doesn't hold before it: a
    word that is counted again would weigh more than one that stands below. Empty for headings alone, which
    the chunk below them has before it.
    """
    bare = (
        row + 1 < len(table)
        and table.heading_code[row] == table.heading_code[row + 1]
        and _is_bare(document.text, table, row)
        for document, table in zip(workspace.documents, workspace.tables, strict=True)
        for row in range(len(table))
    )
    whole = zip(_contexts(workspace), workspace.texts(), bare, strict=True)
    return ["" if is_bare else with_new_words(before, text) for before, text, is_bare in whole]


def with_new_words(before: str, text: str) -> str:
    """A text with the words of its context that it doesn't hold.

    >>> with_new_words("Lamps / Kestrel", "The kestrel weighs 305 g.")
    'Lamps\\nThe kestrel weighs 305 g.'
    """
    if not before:
        return text
    own = set(_WORD.findall(text.casefold()))
    new = (word for word in dict.fromkeys(_WORD.findall(before)) if word.casefold() not in own)
    return below(" ".join(new), text)


def _is_bare(text: str, table: ChunkTable, row: int) -> bool:
    """Whether a chunk is headings alone."""
    start, end = int(table.start[row]), int(table.end[row])
    return text[start] == "#" and all(line[:1] in ("", "#") for line in text[start:end].split("\n"))


def below(before: str, text: str) -> str:
    """A text with its context before it.

    >>> below("Lamps / Kestrel", "It weighs 305 g.")
    'Lamps / Kestrel\\nIt weighs 305 g.'
    """
    return f"{before}\n{text}" if before else text


def _contexts(workspace: Workspace) -> Iterator[str]:
    for document, table in zip(workspace.documents, workspace.tables, strict=True):
        title = _title(workspace, document)
        if not title and not any(table.heading_paths) and not (table.type_code == _TABLE).any():
            yield from repeat("", len(table))
            continue
        first = 0
        for row in range(len(table)):
            cut = _continues(document.text, table, row)
            first = first if cut else row
            header = _first_line(document.text, int(table.start[first])) if cut else ""
            yield _lines(title, document.text, table, row, header)


def _title(workspace: Workspace, document: Document) -> str:
    return document.title if len(workspace.documents) > 1 and document.kind != "chunks" else ""


def _continues(text: str, table: ChunkTable, row: int) -> bool:
    """Whether a chunk goes on with the table that the chunk before it is of."""
    return bool(
        row
        and table.type_code[row] == table.type_code[row - 1] == _TABLE
        and table.heading_code[row] == table.heading_code[row - 1]
        and text.count("\n", int(table.end[row - 1]), int(table.start[row])) < 2
    )


def _first_line(text: str, start: int) -> str:
    end = text.find("\n", start, start + _MOST_CHARACTERS)
    return text[start : end if end >= 0 else start + _MOST_CHARACTERS]


def _lines(title: str, text: str, table: ChunkTable, row: int, header: str) -> str:
    own = text[int(table.start[row]) : int(table.end[row])]
    path = (title, *table.heading_paths[table.heading_code[row]])
    above = [part for at, part in enumerate(path) if part and part not in own and part not in path[:at]]
    return "\n".join(filter(None, (" / ".join(above), header)))
