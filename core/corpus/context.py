"""What a chunk stands under, for whoever searches or reads it.

Headings that it doesn't hold, header rows of a table that was cut, the title where several documents are
open. Vectors are those of the chunk alone, as in training.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, repeat

from core.base.types import CHUNK_TYPES, ChunkTable, Document, Workspace

_WORD = re.compile(r"\w+")
_MOST_CHARACTERS = 500
"""Of a header row."""
_TABLE = CHUNK_TYPES.index("table")
_CELL_BORDER = re.compile(r"(?<!\\)\|")


def context(workspace: Workspace, chunk_id: int) -> str:
    """Lines to be read before a chunk; empty where it says everything itself."""
    number, row = workspace.locate(chunk_id)
    document, table = workspace.documents[number], workspace.tables[number]
    first = row
    while _continues(document.text, table, first):
        first -= 1
    return _lines(_title(workspace, document), document.text, table, row, first)


def texts_in_context(workspace: Workspace) -> list[str]:
    """The text of every chunk, the words of its context that it lacks before it: one counted again would
    weigh more. Empty for headings alone, which the chunk below them has before it."""
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
            first = first if _continues(document.text, table, row) else row
            yield _lines(title, document.text, table, row, first)


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


def _header(text: str, start: int) -> list[str]:
    """The first row of a table; also the next, where that names columns of which the first spans several."""
    lines = text[start : start + 3 * _MOST_CHARACTERS].split("\n", 3)
    first, second = lines[0][:_MOST_CHARACTERS], lines[2] if len(lines) > 2 else ""
    return [first, second[:_MOST_CHARACTERS]] if _names_columns(first, second) else [first]


def _names_columns(header: str, row: str) -> bool:
    """Whether a row goes on with the header: parts what a cell of it spans, repeats or names the others."""
    above, below = ([cell.strip() for cell in _CELL_BORDER.split(line)][1:-1] for line in (header, row))
    if len(above) != len(below):
        return False
    pairs = list(zip(above, below, strict=True))
    parts = any(a and a == b and c != d for (a, c), (b, d) in pairwise(pairs))
    repeats = any(a and a == b for a, b in pairs)
    names = any(b and not a for a, b in pairs) and not any(map(str.isdigit, row))
    return parts and (repeats or names)


def _lines(title: str, text: str, table: ChunkTable, row: int, first: int) -> str:
    """`first`: the chunk that begins the table of this one; where it is no part of one, itself."""
    own = text[int(table.start[row]) : int(table.end[row])]
    path = (title, *table.heading_paths[table.heading_code[row]])
    above = [part for at, part in enumerate(path) if part and part not in own and part not in path[:at]]
    header = _header(text, int(table.start[first])) if first < row else []
    header = header[:1] + [line for line in header[1:] if line not in own]
    return "\n".join(filter(None, (" / ".join(above), *header)))
