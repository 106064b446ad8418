"""A cleaned tree of HTML -> Markdown, by markdownify.

Asterisks and underscores of the text are not escaped, since people and encoders read it. What would make
another thing of its lines is: a bar in a cell, and at the start of a line what begins a heading, a fence or
raw HTML, or underlines the line above.
"""

from __future__ import annotations

import re
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement
from markdownify import ATX, MarkdownConverter

from core.ingest.soup import tags_named

LABEL = "\ue000label"
"""Attribute of a list item that bears a label of its own, such as 1.2 or (a)."""
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n)++")
_BAR = re.compile(r"(?<!\\)\|")
_LINE = re.compile(r"^(?=.)", re.MULTILINE)
_OPENS = re.compile(
    r"^(?=#{1,6}(?:[ \t]|$)|~{3,}|<!--|<(?:script|pre|style|textarea)\b)", re.MULTILINE | re.IGNORECASE
)
_UNDERLINES = re.compile(r"^(?=(?:=+|-+)[ \t]*$)", re.MULTILINE)
_BLOCKS = frozenset(
    ["[document]", "p", "div", "li", "dt", "dd", "blockquote", "figcaption", "section", "article"]
)

_INLINE = frozenset(["span", "a", "b", "strong", "i", "em", "u", "small", "code", "font", "mark"])


class _Markdown(MarkdownConverter):
    """Headings with hashes, lists with dashes or labels of their own."""

    def process_text(self, el: Any, parent_tags: set[str] | None = None) -> str:
        """A text, with what would be taken for structure escaped."""
        text: str = super().process_text(el, parent_tags)  # type: ignore[misc]
        if not {"_noformat", "_inline", "pre"}.isdisjoint(parent_tags or ()):
            return text
        head, line_end, rest = text.partition("\n")
        opens = _OPENS.match(head) and _begins_line(el)
        if opens or (_UNDERLINES.match(head) and _is_break(el.previous_sibling)):
            head = f"\\{head}"
        return head + line_end + _UNDERLINES.sub(r"\\", _OPENS.sub(r"\\", rest))

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


def _is_break(node: Any) -> bool:
    return isinstance(node, Tag) and node.name == "br"


def _begins_line(text: NavigableString) -> bool:
    """Whether nothing stands before a text on its line."""
    node: Any = text
    while node.name not in _BLOCKS:
        before = node.previous_sibling
        if before is None:
            node = node.parent
        elif _is_break(before) or before.name in _BLOCKS:
            return True
        elif before.get_text(strip=True):
            return False
        else:
            node = before
    return True


def _wrap_stray(soup: BeautifulSoup) -> None:
    """Words of a list outside of its items become paragraphs, or they would run into the item behind them."""
    for tag in tags_named(soup, ("ul", "ol")):
        nodes = list(tag.contents)
        if any(_is_stray(node) for node in nodes):
            tag.clear()
            for node in nodes:
                inner = tag
                if _is_stray(node):
                    inner = soup.new_tag("p")
                    tag.append(inner)
                inner.append(node)


def _is_stray(node: PageElement) -> bool:
    is_inline = not isinstance(node, Tag) or (node.name in _INLINE and node.find("li") is None)
    return is_inline and bool(node.get_text(strip=True))


def markdown_of(soup: BeautifulSoup) -> str:
    """The Markdown of a tree that `clean` has seen. Raises RecursionError never: it is flat enough."""
    _wrap_stray(soup)
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
