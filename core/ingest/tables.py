"""Which tables of a page hold data; layout tables become plain blocks.

A table holds data when it has two rows of two cells or more and nothing says otherwise: role="presentation",
a table inside it, or, without header cells and caption, a cell as long as an article. A header cell or
caption makes a small one data, too.
"""

from __future__ import annotations

from bs4 import BeautifulSoup, Tag

from core.ingest.limits import MAX_CELL_CHARACTERS, MAX_COLUMNS
from core.ingest.soup import tags_named

_TABLE_PARTS = frozenset(["caption", "thead", "tbody", "tfoot", "tr", "td", "th", "colgroup", "col"])
_CELLS = frozenset(["td", "th"])


def unwrap_layout_tables(soup: BeautifulSoup) -> None:
    """Turns every layout table into blocks, and data tables into plain rows."""
    for table in tags_named(soup, ("table",)):
        if is_data_table(table):
            _tidy(soup, table)
        else:
            own = [part for part in tags_named(table, _TABLE_PARTS) if part.find_parent("table") is table]
            for part in [table, *own]:
                part.name = "div"


def _tidy(soup: BeautifulSoup, table: Tag) -> None:
    """Caption first, rows right below, the first as wide as the widest: the rule row depends on all three."""
    caption = table.find("caption")
    rows = [row for row in tags_named(table, ("tr",)) if row.get_text(strip=True)]
    width = min(max(_width(row) for row in rows), MAX_COLUMNS)
    rows[0].extend([soup.new_tag("td") for _ in range(width - _width(rows[0]))])
    inner = soup.new_tag("table")
    table.clear()
    table.name = "div"
    if caption is not None:
        caption.name = "p"
        table.append(caption)
    inner.extend(rows)
    table.append(inner)


def _width(row: Tag) -> int:
    return len(tags_named(row, _CELLS))


def is_data_table(table: Tag) -> bool:
    """Whether a table holds data, not layout."""
    rows = [tags_named(row, _CELLS) for row in tags_named(table, ("tr",)) if row.get_text(strip=True)]
    if table.get("role") in ("presentation", "none") or table.find("table") is not None:
        return False
    if table.find(["th", "caption"]) is not None:
        return sum(len(row) for row in rows) > 1
    if sum(len(row) > 1 for row in rows) < 2:
        return False
    return all(len(cell.get_text()) <= MAX_CELL_CHARACTERS for row in rows for cell in row)
