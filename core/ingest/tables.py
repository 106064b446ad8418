"""Tables of a page: data as plain rows, layout as blocks.

A table holds data when it has two rows of two cells or more and nothing says otherwise: role="presentation",
a table inside it, or, without header cells and caption, a cell as long as an article, or most of its text in
cells such as pages have, with a title above words, code of several lines, or a paragraph and a list, and no
labels before them. A header cell or caption makes a small one data, too. A cell that spans rows or columns
stands in each of them, so that every value is in its column; a table inside a table of data becomes words of
its cell.
"""

from __future__ import annotations

from collections.abc import Iterator

from bs4 import BeautifulSoup, Tag

from core.ingest.inline import HEADINGS
from core.ingest.limits import MAX_CELL_CHARACTERS, MAX_COLUMNS, MAX_REPEATED_CHARACTERS, MAX_SPANNED_CELLS
from core.ingest.listings import read_listings
from core.ingest.soup import hollow, tags_named

_TABLE_PARTS = frozenset(["caption", "thead", "tbody", "tfoot", "tr", "td", "th", "colgroup", "col"])
_CELLS = frozenset(["td", "th"])
_TOLD = frozenset(
    [
        *("img", "svg", "math", "script", "style", "link", "meta", "template"),
        *("input", "select", "textarea", "button", "iframe", "video", "audio"),
    ]
)
"""What is described otherwise, or says what a person may do."""
_TEXT_BLOCKS = frozenset(["p", "ul", "ol", "dl", "blockquote"])
_BLOCKS = frozenset(["ul", "ol", "dl", "pre", "blockquote"])
_LABEL_CHARACTERS = 40
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
    """Turns every layout table into blocks, listings into code, and data tables into plain rows."""
    read_listings(soup)
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


def name_signs(soup: BeautifulSoup) -> None:
    """Gives cells without words what their signs are called, and a mark for a box that is ticked or not. In
    tables where none is ticked or fixed, boxes are only there to be ticked.
    """
    boxes = [box for box in tags_named(soup, ("input",)) if _is_checkbox(box)]
    fixed = {
        id(box.find_parent("table")) for box in boxes if box.has_attr("checked") or box.has_attr("disabled")
    }
    for cell in reversed(tags_named(soup, _CELLS)):
        if cell.get_text(strip=True) or cell.find("table") is not None:
            continue
        for sign in [*(part for part in cell.descendants if isinstance(part, Tag)), cell]:
            words = str(sign.get("aria-label") or sign.get("title") or "")
            if _is_checkbox(sign) and id(sign.find_parent("table")) in fixed:
                sign.string = "✓" if sign.has_attr("checked") else "✗"
                sign.name, sign.attrs = "span", {}
            elif (
                words
                and sign.name not in _TOLD
                and not any(isinstance(part, Tag) and part.name in _TOLD for part in sign.descendants)
                and not sign.get_text(strip=True)
            ):
                sign.name = sign.name if sign is cell else "span"
                sign.string = words


def _is_checkbox(tag: Tag) -> bool:
    return tag.name == "input" and str(tag.get("type", "")).lower() == "checkbox"


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
    for rule in tags_named(table, ("hr",)):
        rule.name = "br"
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


def _names_in(cell: Tag) -> set[str]:
    return {part.name for part in cell.descendants if isinstance(part, Tag)}


def _is_laid_out(cell: Tag) -> bool:
    """Whether a cell without header cells beside it holds what stands in pages, not in tables."""
    names = _names_in(cell)
    if not HEADINGS.isdisjoint(names) and not _TEXT_BLOCKS.isdisjoint(names):
        return True
    titles = "".join(title.get_text() for title in tags_named(cell, ("h1", "h2")))
    if titles and titles.split() != cell.get_text().split():
        return True
    if "p" in names and not names.isdisjoint(("ul", "ol")):
        return True
    return any("\n" in code.get_text().strip() for code in tags_named(cell, ("pre",)))


def _is_label(cell: Tag) -> bool:
    """Whether a cell names its row: a few words, and no menu."""
    is_short = 0 < len(cell.get_text(strip=True)) <= _LABEL_CHARACTERS
    is_inline = is_short and _BLOCKS.isdisjoint(_names_in(cell)) and not _is_laid_out(cell)
    return is_inline and len(tags_named(cell, ("a",))) < 2


def _is_page(table: Tag, rows: list[list[Tag]]) -> bool:
    """Whether a table without header cells is the layout of a page. One that says that it has no border may
    well be: then one part of a page is enough.
    """
    if table.get("border") == "0":
        return any(_is_laid_out(cell) or tags_named(cell, ("h1", "h2", "hr")) for row in rows for cell in row)
    n_all = n_laid_out = n_labelled = n_unlabelled = 0
    for row in rows:
        laid_out = [cell for cell in row if _is_laid_out(cell)]
        n_all += sum(len(cell.get_text(strip=True)) for cell in row)
        n_laid_out += sum(len(cell.get_text(strip=True)) for cell in laid_out)
        if laid_out:
            is_titled = any(tags_named(cell, ("h1",)) for cell in laid_out)
            is_labelled = not is_titled and _is_label(row[0])
            n_labelled += is_labelled
            n_unlabelled += not is_labelled
    return 2 * n_laid_out > n_all and n_unlabelled >= n_labelled


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
    if _is_page(table, rows):
        return False
    reaches_down = [any(_span(cell, "rowspan") > 1 for cell in row) for row in rows]
    n_wide = sum(len(row) > 1 or reached for row, reached in zip(rows, [False, *reaches_down], strict=False))
    return is_short and n_wide >= 2
