"""Code of a page without the numbers of its lines.

Highlighters put them into the code, beside it, or into a table with a row a line or all lines in one cell.
"""

from __future__ import annotations

import re

from bs4 import BeautifulSoup, Tag

from core.ingest.soup import class_of, elements, hollow, tags_named, whole_words

_NUMBERING = whole_words("linenos?|lnt?|line-?num(?:ber)?s?|gutter|blob-num")
"""Classes of what holds the numbers of lines."""
_LISTING = whole_words("code|blob-code|highlight(?:table)?|hljs|rouge|syntaxhighlighter")
"""Classes of tables of code, and of the cells that hold it."""
_NUMBERS = re.compile(r"[\d\s.:|]*")
_CODE = ["pre", "code"]
_INNER = frozenset(["pre", "code", "table", "tr", "td", "th", "figure"])


def read_listings(soup: BeautifulSoup) -> None:
    """Drops numbers of lines, writes signs of changes, and makes a `pre` of each table of code."""
    for line in tags_named(soup, ("span", "td", "div")):
        marker = str(line.get("data-code-marker", ""))
        if marker in ("+", "-", " ") and line.get_text() != marker:
            line.insert(0, marker)
    for table in tags_named(soup, ("table",)):
        if table.name == "table" and (rows := _lines(table)):
            _write(soup, table, rows)
    for code in tags_named(soup, _CODE):
        if code.find_parent(_CODE) is None:
            beside = code.find_previous_sibling()
            for tag in [*([] if beside is None else [beside]), *code.descendants]:
                if isinstance(tag, Tag) and _is_numbering(tag):
                    hollow(tag)


def _is_numbering(tag: Tag) -> bool:
    """Whether an element holds nothing but numbers of lines."""
    if _NUMBERING.search(class_of(tag)) is not None:
        return _NUMBERS.fullmatch(tag.get_text()) is not None
    return tag.has_attr("data-line-number") and tag.get_text().strip() == tag["data-line-number"]


def _lines(table: Tag) -> list[Tag]:
    """The cells of code of a table that has one a row behind numbers; none where it holds something else."""
    if table.find("table") is not None:
        return []
    rows = [tags_named(row, ("td", "th")) for row in tags_named(table, ("tr",))]
    numbers = [cell for row in rows for cell in row[:-1]]
    if not numbers or not all(_is_gutter(cell) for cell in numbers):
        return []
    lines = [row[-1] for row in rows if row]
    is_code = (
        _LISTING.search(" ".join(map(class_of, [table, lines[0]]))) is not None
        or table.find_parent(_CODE) is not None
        or all(line.find(_CODE) is not None for line in lines)
    )
    return lines if is_code else []


def _is_gutter(cell: Tag) -> bool:
    parts = [cell, *elements(cell.descendants)]
    is_named = any(_NUMBERING.search(class_of(part)) or part.has_attr("data-line-number") for part in parts)
    return is_named and _NUMBERS.fullmatch(cell.get_text()) is not None


def _write(soup: BeautifulSoup, table: Tag, lines: list[Tag]) -> None:
    for line in lines:
        for part in tags_named(line, _INNER):
            part.name = "span"
    table.clear()
    table.name = "pre" if table.find_parent("pre") is None else "span"
    for line in lines:
        line.name, line.attrs = "span", {}
        row = soup.new_tag("div")
        row.append(line)
        table.append(row)
