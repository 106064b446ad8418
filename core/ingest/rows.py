"""Values between commas, semicolons or tabs -> Markdown, a row an item.

Each value stands with the name of its column, so that no chunk has some without, and none begins in a row.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import groupby, islice, zip_longest

from core.ingest.limits import MAX_COLUMNS, MAX_TITLE_CHARACTERS

_SEPARATORS = "\t;|,"
"""Of two that fit alike the first; a comma stands in values, too."""
_NAMED_SEPARATOR = re.compile(r'"?sep=(.)"?\n')
_MOST_TITLES = 3
_SIGN = re.compile("[#%‰№°$£€¥]+")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d(?:[/–-]\d{2,4})?|\d{1,4}([/.-])\d{1,2}\1\d{1,4}")
"""A year, a span of some, or a day, which may name a column of figures."""
_MOST_CHARACTERS = 2_000_000
"""Of a text that is read so: three seconds of work."""
_MOST_GROWTH = 20
"""Times as long as the text the items may be, which repeat the names of columns."""


def rows_to_markdown(text: str) -> str | None:
    """The items, below what stands alone above the head. None where the text is no such table (no separator,
    rows without a head, or longer than it), and where it or the names of its columns are too long.

    >>> print(rows_to_markdown('boat,crew,harbour\\nGull,5,"Lund, outer"\\nTern,,Ystad\\n'), end="")
    - boat: Gull; crew: 5; harbour: Lund, outer
    - boat: Tern; harbour: Ystad
    """
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        csv.field_size_limit(_MOST_CHARACTERS)
        text = text.lstrip("\n")
        if told := _NAMED_SEPARATOR.match(text):
            text = text[told.end() :]
        separator = told[1] if told else max(_SEPARATORS, key=lambda one: _fit(text, one))
        rows: Iterator[list[str]] = filter(any, _lines(text, separator))
        titles, head = _top(rows)
        head = [" ".join(name.split()) for name in head]
        if not _is_head(head) or not _names_what_follows(head, rows, is_titled=bool(titles)):
            return None
        rows = _lines(text, separator)
        _top(filter(any, rows))
        items = list(_bounded(_items(head, rows), _MOST_GROWTH * len(text)))
    except (csv.Error, ValueError):  # not what it seemed to be
        return None
    above = "".join(" ".join("".join(row).split()).lstrip("# ") + "\n\n" for row in titles)
    return above + "\n".join(items) + "\n" if items else None


def _lines(text: str, separator: str) -> Iterator[list[str]]:
    """The values of each line. Raises csv.Error."""
    return iter(
        csv.reader(StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    )


def _top(rows: Iterator[list[str]]) -> tuple[list[list[str]], list[str]]:
    """The rows of a single value above the head, and the head, which may be none."""
    titles: list[list[str]] = []
    for row in rows:
        if sum(map(bool, row)) > 1 or len(titles) == _MOST_TITLES:
            return titles, row
        titles.append(row)
    return [], []


def _fit(text: str, separator: str) -> tuple[bool, bool, int, int]:
    """How well values are separated so, to be compared: whether each row is, below no title; whether all have
    as many as the head; how few titles stand above it; how many values it has.
    """
    if separator not in text:
        return False, False, 0, 0
    try:
        titles, head = _top(rows := filter(any, _lines(text, separator)))
        lengths = set(map(len, rows))
    except csv.Error:
        return False, False, 0, 0
    n_columns = len(head)
    is_parted, is_even = min(lengths, default=0) > 1, n_columns > 1 and lengths <= {n_columns}
    return is_parted and not titles, is_even, -len(titles), n_columns


def _is_head(names: list[str]) -> bool:
    """Whether a row names columns: several, each by a word, a sign or, behind such a name, a year."""
    words = list(filter(None, names))
    if len(set(words)) < 2 or len(names) > MAX_COLUMNS or max(map(len, names)) > MAX_TITLE_CHARACTERS:
        return False
    are_names = all(any(map(str.isalpha, name)) or _SIGN.fullmatch(name) or _is_year(name) for name in words)
    return are_names and not _is_year(names[0])


def _is_year(value: str) -> bool:
    return _YEAR.fullmatch(value) is not None


def _names_what_follows(head: list[str], rows: Iterator[list[str]], *, is_titled: bool) -> bool:
    """Whether a head with years, with a name twice or below titles is none of the rows that follow it."""
    times = Counter(filter(None, head))
    doubtful = [i for i, name in enumerate(head) if times[name] > 1 or _is_year(name)]
    if not doubtful and not is_titled:
        return True
    alike, unlike, has_figures = set[int](), set[int](), False
    for row in rows:
        if is_titled and len(row) != len(head):
            return False
        has_figures = has_figures or any(map(str.isdigit, "".join(row)))
        for i in doubtful:
            if value := "".join(row[i : i + 1]).strip():
                is_alike = _is_year(value) if _is_year(head[i]) else value == head[i]
                (alike if is_alike else unlike).add(i)
    return alike <= unlike and (has_figures or not is_titled)


def _bounded(items: Iterator[str], most: int) -> Iterator[str]:
    """Raises ValueError beyond so many characters."""
    for item in items:
        most -= len(item)
        if most < 0:
            raise ValueError("the names of the columns are most of the items")
        yield item


def _items(names: list[str], rows: Iterator[list[str]]) -> Iterator[str]:
    """Raises ValueError for a row that has more values than there are names."""
    has_rows = False
    for is_told, group in groupby(rows, any):
        lines = list(group) if is_told else []
        if lines and not has_rows and (grouped := _grouped(names, lines)):
            names = grouped
            del lines[0]
        elif lines and _is_head_of_another(names, lines):
            if not has_rows:
                yield f"- {'; '.join(filter(None, names))}"
            names = [" ".join(name.split()) for name in lines.pop(0)]
        for row in lines:
            has_rows = True
            if any(value.strip() for value in islice(row, len(names), None)):
                raise ValueError("a row is longer than the head")
            values = ((name, " ".join(value.split())) for name, value in zip(names, row, strict=False))
            if told := "; ".join(f"{name}: {value}" if name else value for name, value in values if value):
                yield f"- {told}"


def _grouped(groups: list[str], rows: list[list[str]]) -> list[str] | None:
    """The names in the first row, each behind that of its group, which stands over several columns; None
    unless two groups at least stand over the same names, which are no values of other rows.
    """
    names = [" ".join(name.split()) for name in rows[0]]
    below, whole, group = dict[str, list[str]](), list[str](), ""
    for over, name in zip_longest(groups, names, fillvalue=""):
        group = over or group
        below.setdefault(group, []).append(name)
        whole.append(f"{group} {name}".strip())
    wide = [tuple(some) for group, some in below.items() if group and len(some) > 1]
    if len(wide) < 2 or len({*wide}) > 1 or len({*wide[0]}) < len(wide[0]) or not all(wide[0]):
        return None
    values = {value.strip() for row in rows[1:] for value in row}
    if not _is_head(names) or not values.isdisjoint(wide[0]) or not any(map(str.isdigit, "".join(values))):
        return None
    return whole


def _is_head_of_another(names: list[str], rows: list[list[str]]) -> bool:
    """Whether rows behind an empty one are a table of another width, with figures below a name."""
    n_columns, *widths = (max(i for i, value in enumerate(row, 1) if value) for row in rows)
    return (
        n_columns != max(i for i, name in enumerate(names, 1) if name)
        and max(widths, default=0) == n_columns
        and _is_head(rows[0][:n_columns])
        and not any(map(str.isdigit, "".join(rows[0])))
        and any(
            all(any(map(str.isdigit, "".join(row[i : i + 1]))) for row in rows[1:]) for i in range(n_columns)
        )
    )
