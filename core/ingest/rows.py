"""Values between commas, semicolons or tabs -> Markdown, a row an item.

Each value stands with the name of its column, so that no chunk has some without, and none begins in a row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from itertools import islice

from core.ingest.limits import MAX_COLUMNS, MAX_TITLE_CHARACTERS

_SEPARATORS = ",;\t|"
_MOST_CHARACTERS = 2_000_000
"""Of a text that is read so: three seconds of work."""
_MOST_GROWTH = 20
"""Times as long as the text the items may be, which repeat the names of columns."""


def rows_to_markdown(text: str) -> str | None:
    """The items. None where the text is no such table (no separator, rows without a head, or longer than it),
    and where it or the names of its columns are too long.

    >>> print(rows_to_markdown('boat,crew,harbour\\nGull,5,"Lund, outer"\\nTern,,Ystad\\n'), end="")
    - boat: Gull; crew: 5; harbour: Lund, outer
    - boat: Tern; harbour: Ystad
    """
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        csv.field_size_limit(_MOST_CHARACTERS)
        head = text.partition("\n")[0]
        separator = max(_SEPARATORS, key=head.count)
        rows = csv.reader(StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
        named = [" ".join(name.split()) for name in next(rows, [])]
        if not _is_head(named):
            return None
        items = list(_bounded(_items(named, rows), _MOST_GROWTH * len(text)))
    except (csv.Error, ValueError):  # not what it seemed to be
        return None
    return "\n".join(items) + "\n" if items else None


def _is_head(names: list[str]) -> bool:
    """Whether a first row names columns: several, each by a word of its own and none by a number."""
    words = list(filter(None, names))
    are_words = all(any(map(str.isalpha, name)) for name in words)
    are_short = len(names) <= MAX_COLUMNS and max(map(len, names)) <= MAX_TITLE_CHARACTERS
    return 1 < len(words) == len(set(words)) and are_words and are_short


def _bounded(items: Iterator[str], most: int) -> Iterator[str]:
    """Raises ValueError beyond so many characters."""
    for item in items:
        most -= len(item)
        if most < 0:
            raise ValueError("the names of the columns are most of the items")
        yield item


def _items(names: list[str], rows: Iterator[list[str]]) -> Iterator[str]:
    """Raises ValueError for a row that has more values than there are names."""
    for row in rows:
        if any(value.strip() for value in islice(row, len(names), None)):
            raise ValueError("a row is longer than the head")
        values = ((name, " ".join(value.split())) for name, value in zip(names, row, strict=False))
        if told := "; ".join(f"{name}: {value}" if name else value for name, value in values if value):
            yield f"- {told}"
