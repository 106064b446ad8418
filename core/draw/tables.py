"""Tables, and the way through long ones."""

from __future__ import annotations

from collections.abc import Sequence

from core.draw.nodes import Node, act, h
from core.studies.report import Table, cell_text

PAGE = 20
"""Rows of a table shown at once."""


def table(head: Sequence[str | tuple[str, str]], rows: Sequence[Node], label: str) -> Node:
    """A table that scrolls sideways where it is too wide. A heading may be (words, sentence)."""
    cells = [
        h("th", {"scope": "col", "title": cell[1], "tabindex": "0"}, cell[0])
        if isinstance(cell, tuple)
        else h("th", {"scope": "col"}, cell)
        for cell in head
    ]
    whole = h("table.qx-table", h("thead", h("tr", *cells)), h("tbody", *rows))
    return h("div.qx-scroll", {"role": "region", "aria-label": label, "tabindex": "0"}, whole)


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
    rows = [h("tr", *(h("td", cell_text(cell)) for cell in row)) for row in report.rows]
    return [table(report.columns, rows, report.title)]
