"""A cleaned tree of HTML -> Markdown, by markdownify.

Asterisks and underscores of the text are not escaped, since people and encoders read it; a bar in a cell is,
or what follows would slip into the next column.
"""

from __future__ import annotations

import re
from typing import Any

from bs4 import BeautifulSoup
from markdownify import ATX, MarkdownConverter

LABEL = "\ue000label"
"""Attribute of a list item that bears a label of its own, such as 1.2 or (a)."""
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n)++")
_BAR = re.compile(r"(?<!\\)\|")
_LINE = re.compile(r"^(?=.)", re.MULTILINE)


class _Markdown(MarkdownConverter):
    """Headings with hashes, lists with dashes or labels of their own."""

    def convert_li(self, el: Any, text: str, parent_tags: set[str]) -> str:
        label = el.get(LABEL)
        text = text.strip()
        if label is None or not text:
            item: str = super().convert_li(el, text, parent_tags)  # type: ignore[misc]  # stubs lack it
            return item
        indented = _LINE.sub(" " * (len(label) + 1), text)
        return f"{label} {indented.lstrip()}\n"

    def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:
        cell: str = super().convert_td(el, _BAR.sub(r"\\|", text), parent_tags)  # type: ignore[misc]
        return cell

    convert_th = convert_td


def markdown_of(soup: BeautifulSoup) -> str:
    """The Markdown of a tree that `clean` has seen. Raises RecursionError never: it is flat enough."""
    soup.smooth()
    converter = _Markdown(
        heading_style=ATX,
        escape_asterisks=False,
        escape_underscores=False,
        table_infer_header=True,
        bullets="-",
    )
    markdown = converter.convert_soup(soup).replace("\r\n", "\n")
    lines = "\n".join(line.rstrip() for line in markdown.split("\n"))
    return _BLANK_LINES.sub("\n\n", lines).strip()
