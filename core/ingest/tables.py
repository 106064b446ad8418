"""Tables of a page: data as plain rows, layout as blocks.

A table holds data when it has two rows of two cells or more and nothing says otherwise: role="presentation",
a table inside it, or, without header cells and caption, a cell as long as an article or with a title, a rule,
code of several lines, or a paragraph and a list. A header cell or caption makes a small one data, too. A cell
that spans rows or columns stands in each of them, so that every value is in its column; a table inside a
table of data becomes words of its cell.
"""

from __future__ import annotations

from collections.abc import Iterator

from bs4 import BeautifulSoup, Tag

from core.ingest.inline import HEADINGS
from core.ingest.limits import MAX_CELL_CHARACTERS, MAX_COLUMNS, MAX_REPEATED_CHARACTERS, MAX_SPANNED_CELLS
from core.ingest.soup import hollow, tags_named

_TABLE_PARTS = frozenset(["caption", "thead", "tbody", "tfoot", "tr", "td", "th", "colgroup", "col"])
_CELLS = frozenset(["td", "th"])
_INNER_CHARACTERS = 300
"""Of a table inside a table of data."""


class _Spans:
    """What the spans of one page may still add."""

    def __init__(self) -> None:
        self._left = MAX_SPANNED_CELLS

    def take(self, n_cells: int) -> int:
        """How many of these cells may be added."""
        taken = min(n_cells, self._left)
        self._left -= taken
        return taken


def unwrap_layout_tables(soup: BeautifulSoup, *, from_office: bool = False) -> None:
    """Turns every layout table into blocks, and data tables into plain rows."""
    spans = _Spans()
    for table in tags_named(soup, ("table",)):
        if table.name != "table":  # it stood in one of data
            continue
        if is_data_table(table, from_office=from_office):
            for inner in tags_named(table, ("table",)):
                _flatten(inner)
            _tidy(soup, table, spans)
        else:
            own = [part for part in tags_named(table, _TABLE_PARTS) if part.find_parent("table") is table]
            for part in [table, *own]:
                part.name = "div"


def _flatten(table: Tag) -> None:
    """A small table as words: cells with commas, rows with semicolons."""
    rows = (
        ", ".join(filter(None, (" ".join(cell.get_text(" ").split()) for cell in tags_named(row, _CELLS))))
        for row in tags_named(table, ("tr",))
    )
    words = "; ".join(filter(None, rows))
    hollow(table)
    table.append(f" {words} ")


def _tidy(soup: BeautifulSoup, table: Tag, spans: _Spans) -> None:
    """Caption first, rows right below, all as wide as the widest: the rule row depends on all three."""
    caption = table.find("caption")
    rows = list(_grid(soup, table, spans))
    width = max(map(len, rows), default=0)
    above = [caption] if isinstance(caption, Tag) else []
    while len(rows) > 1 and width > 1 and len(rows[0]) == 1:
        above += rows.pop(0)
    if rows:
        rows[0].extend(soup.new_tag("td") for _ in range(width - len(rows[0])))
    inner = soup.new_tag("table")
    table.clear()
    table.name = "div"
    for words in above:
        words.name = "p"
        table.append(words)
    for cells in rows:
        row = soup.new_tag("tr")
        row.extend(cells)
        inner.append(row)
    table.append(inner)


def _grid(soup: BeautifulSoup, table: Tag, spans: _Spans) -> Iterator[list[Tag]]:
    """The rows that hold text, a cell a column; one that spans all columns stands alone."""
    in_order = sorted(tags_named(table, ("tr",)), key=_part_of)
    rows = [tags_named(row, _CELLS) for row in in_order]
    widths = (sum(_span(cell, "colspan") for cell in cells) for cells in rows)
    width = min(MAX_COLUMNS, max(widths, default=0))
    from_above: dict[int, tuple[Tag, int]] = {}
    for cells in rows:
        if len(cells) == 1 and not from_above and 1 < width <= _span(cells[0], "colspan"):
            if cells[0].get_text(strip=True):
                yield cells
            continue
        has_text = any(cell.get_text(strip=True) for cell in cells)
        line: list[Tag] = []
        below: dict[int, tuple[Tag, int]] = {}
        waiting = cells[::-1]
        last = max(from_above, default=-1)
        while waiting or len(line) <= last:
            spanning = from_above.get(len(line))
            if spanning is not None and not spans.take(1):
                from_above, last = {}, -1
                continue
            if spanning is not None:
                cell, n_rows = spanning
                if n_rows > 1:
                    below[len(line)] = cell, n_rows - 1
                line.append(_again(soup, cell))
                continue
            if not waiting:
                line.append(soup.new_tag("td"))
                continue
            cell = waiting.pop()
            n_more = min(_span(cell, "colspan"), max(1, MAX_COLUMNS - len(line))) - 1
            n_rows = min(_span(cell, "rowspan"), len(rows)) - 1
            for column in range(spans.take(n_more) + 1):
                if n_rows:
                    below[len(line)] = cell, n_rows
                line.append(_again(soup, cell) if column else cell)
        from_above = below
        if has_text:
            yield line


def _part_of(row: Tag) -> int:
    """Where a row is shown: those of a head first, those of a foot last, wherever the page has them."""
    name = "" if row.parent is None else row.parent.name
    return {"thead": 0, "tfoot": 2}.get(name, 1)


def _span(cell: Tag, attribute: str) -> int:
    value = str(cell.get(attribute, "")).strip()
    if attribute == "rowspan" and value == "0":  # to the end of the table
        return MAX_SPANNED_CELLS
    return max(1, int(value)) if value.isascii() and value.isdigit() and len(value) < 7 else 1


def _again(soup: BeautifulSoup, cell: Tag) -> Tag:
    """A cell where another one goes on."""
    again = soup.new_tag("td")
    words = " ".join(cell.get_text(" ").split())
    if len(words) <= MAX_REPEATED_CHARACTERS:
        again.append(words)
    return again


def _is_section(cell: Tag) -> bool:
    """Whether a cell is a part of a page: a heading and blocks of its own below it."""
    return bool(tags_named(cell, HEADINGS) and tags_named(cell, ("p", "ul", "ol", "dl", "blockquote")))


def _is_laid_out(cell: Tag) -> bool:
    """Whether a cell without header cells beside it holds what stands in pages, not in tables."""
    names = {part.name for part in cell.descendants if isinstance(part, Tag)}
    if not names.isdisjoint(("h1", "h2", "hr")) or ("p" in names and not names.isdisjoint(("ul", "ol"))):
        return True
    return any("\n" in code.get_text().strip() for code in tags_named(cell, ("pre",)))


def is_data_table(table: Tag, *, from_office: bool = False) -> bool:
    """Whether a table holds data, not layout."""
    own = [row for row in tags_named(table, ("tr",)) if row.find_parent("table") is table]
    rows = [
        [cell for cell in tags_named(row, _CELLS) if cell.find_parent("table") is table]
        for row in own
        if row.get_text(strip=True)
    ]
    if table.get("role") in ("presentation", "none"):
        return False
    is_short = all(len(cell.get_text()) <= MAX_CELL_CHARACTERS for row in rows for cell in row)
    if from_office:
        return is_short and any(len(row) > 1 for row in rows)
    has_header = any(cell.name == "th" for row in rows for cell in row)
    inner = table.find_all("table")
    if inner:
        return has_header and all(len(part.get_text()) <= _INNER_CHARACTERS for part in inner)
    if has_header or table.find("caption") is not None:
        return sum(len(row) for row in rows) > 1
    if any(_is_section(cell) or _is_laid_out(cell) for row in rows for cell in row):
        return False
    reaches_down = [any(_span(cell, "rowspan") > 1 for cell in row) for row in rows]
    n_wide = sum(len(row) > 1 or reached for row, reached in zip(rows, [False, *reaches_down], strict=False))
    return is_short and n_wide >= 2
