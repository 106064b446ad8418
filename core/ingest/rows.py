"""Values between commas, semicolons or tabs -> Markdown, a row an item.

Each value stands with the name of its column, so that no chunk has some without, and none begins in a row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from itertools import islice

from core.ingest.limits import MAX_COLUMNS, MAX_FILE_BYTES

_SEPARATORS = ",;\t|"
_LEAST_ROWS = 2
"""With the one that names the columns."""


def rows_to_markdown(text: str) -> str | None:
    """The items; None where the text is no such table: no separator, rows without a head, or of other widths.

    >>> print(rows_to_markdown('boat,crew,harbour\\nGull,5,"Lund, outer"\\nTern,,Ystad\\n'))
    - boat: Gull; crew: 5; harbour: Lund, outer
    - boat: Tern; harbour: Ystad
    """
    try:
        csv.field_size_limit(MAX_FILE_BYTES)
        head = text.partition("\n")[0]
        separator = max(_SEPARATORS, key=head.count)
        rows = csv.reader(StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
        named = [" ".join(name.split()) for name in next(rows, [])]
        if not _is_head(named):
            return None
        items = list(_items(named, rows))
    except (csv.Error, ValueError):  # not what it seemed to be
        return None
    return "\n".join(items) + "\n" if len(items) >= _LEAST_ROWS - 1 else None


def _is_head(names: list[str]) -> bool:
    """Whether a first row names columns: several, each by a word of its own and none by a number."""
    words = list(filter(None, names))
    are_words = all(any(map(str.isalpha, name)) for name in words)
    return 1 < len(words) == len(set(words)) and len(names) <= MAX_COLUMNS and are_words


def _items(names: list[str], rows: Iterator[list[str]]) -> Iterator[str]:
    """Raises ValueError for a row that has more values than there are names."""
    for row in rows:
        if any(value.strip() for value in islice(row, len(names), None)):
            raise ValueError("a row is longer than the head")
        values = ((name, " ".join(value.split())) for name, value in zip(names, row, strict=False))
        if told := "; ".join(f"{name}: {value}" if name else value for name, value in values if value):
            yield f"- {told}"
