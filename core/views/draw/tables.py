"""Tables, and the way through long ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from core.views.charts import Table, cell_text
from core.views.draw.nodes import Node, act, h, sends

T = TypeVar("T")
PAGE = 20
"""Rows of a table shown at once."""


def table(head: Sequence[Node | tuple[str, str]], rows: Sequence[Node], label: str) -> Node:
    """A table that scrolls sideways where it is too wide. A heading may be (words, sentence), or a cell."""
    cells = [
        h("th", {"scope": "col", "title": cell[1], "tabindex": "0"}, cell[0])
        if isinstance(cell, tuple)
        else h("th", {"scope": "col"}, cell)
        if isinstance(cell, str)
        else cell
        for cell in head
    ]
    whole = h("table.qx-table", h("thead", h("tr", *cells)), h("tbody", *rows))
    return h("div.qx-scroll", {"role": "region", "aria-label": label, "tabindex": "0"}, whole)


def sorted_by(name: str, sentence: str, sort: str, descends: bool) -> Node:
    """A heading that sorts by its column. `sort`: the column that the rows are sorted by."""
    words, own = name, {"scope": "col"}
    if name == sort:
        words += " ↓" if descends else " ↑"
        own["aria-sort"] = "descending" if descends else "ascending"
    return h("th", own, sends("qx-link.qx-sort", "sort", name, words, title=sentence))


def table_row(*cells: Node, on: bool = False) -> Node:
    """A row of a table. on: it is the one that is shown elsewhere."""
    return h("tr", {"class": "qx-on"} if on else None, *(h("td", cell) for cell in cells))


def fields(pairs: Mapping[str, str]) -> list[Node]:
    """What a `dl` holds: names and what they are."""
    return [h(tag, words) for pair in pairs.items() for tag, words in zip(("dt", "dd"), pair, strict=True)]


def on_page(rows: Sequence[T], page: int) -> Sequence[T]:
    """Those that a page shows. page: from 0."""
    return rows[page * PAGE : (page + 1) * PAGE]


def pager(action: str, page: int, total: int) -> list[Node]:
    """Buttons to turn pages; nothing where one page holds all."""
    last = (total - 1) // PAGE
    if last <= 0:
        return []
    cell_text = f"{page * PAGE + 1:,} to {min(total, (page + 1) * PAGE):,} of {total:,}"
    before = act(action, page - 1, "‹ before", disabled=page <= 0)
    after = act(action, page + 1, "after ›", disabled=page >= last)
    return [h("div.qx-row.qx-sm.qx-pager", before, h("span.qx-mut", cell_text), after)]


def report_table(report: Table) -> list[Node]:
    """A study's table."""
    rows = [table_row(*map(cell_text, cells)) for cells in report.rows]
    return [table(report.columns, rows, report.title)]
