"""A cleaned tree of HTML -> Markdown, by markdownify.

Asterisks and underscores of the text are not escaped, since people and encoders read it. What would make
another thing of its lines is: a bar in a cell, and at the start of a line what begins a heading, a fence or
raw HTML, or underlines the line above.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement
from markdownify import ATX, MarkdownConverter

from core.ingest.inline import set_apart, set_marks
from core.ingest.limits import MAX_LIST_DEPTH, MAX_ORDERED_ITEMS
from core.ingest.numbering import written
from core.ingest.soup import HEADINGS, elements, tags_named

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
_PLAIN_BLOCKS = frozenset(
    [
        *("html", "body", "details", "dialog", "center", "fieldset", "legend", "hgroup", "address", "form"),
        *("header", "footer", "nav", "aside", "figure", "main", "search", "output", "listing", "xmp"),
    ]
)
"""Blocks that the converter does not know as such."""
_HOLDERS = HEADINGS | {"ul", "ol", "table", "blockquote", "pre"}
_SMALLER = frozenset(["b", "strong", "i", "em", "u", "span", "font", "small", "big", "a", "code", "mark"])
_ITEM_LABELS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
"""Formats of numbers by the type of a list."""
_OWN_LABEL = re.compile(
    r"[(\[]?(?:\d{1,4}(?:\.\d{1,4})*|[a-zA-Z]|[ivxlcIVXLC]{1,7})[.)\]]|\d{1,4}(?:\.\d{1,4})+\b|§+\s?\d"
)
"""What an item begins with that brings its own number."""
_NESTING = frozenset(["ul", "ol", "dl", "blockquote"])
_CODE_LINES = frozenset(["div", "p", "li", "ul", "ol"])
_START = re.compile(r"[0-9]{1,9}")


def simplify(soup: BeautifulSoup) -> None:
    """Removes what would only cost the converter: attributes, links, deep lists, numbers of long lists."""
    for tag in tags_named(soup, ("div", "p", "span")):
        if tag.get("role") == "heading":
            level = str(tag.get("aria-level", "2"))
            tag.name = f"h{level}" if f"h{level}" in HEADINGS else "h2"
    set_apart(soup)
    set_marks(soup)
    for code in tags_named(soup, ("pre",)):
        _break_lines(code)
    for link in tags_named(soup, ("a",)):
        link.name = "span"
    for heading in tags_named(soup, HEADINGS):
        if not heading.get_text(strip=True):
            heading.name = "span"
        elif any(parent.name in ("td", "th") for parent in heading.parents):
            heading.name = "p"
    for ordered in tags_named(soup, ("ol",)):
        _number(ordered)
    for tag in tags_named(soup, _PLAIN_BLOCKS):
        tag.name = "div"
    for tag in tags_named(soup, ("menu", "dir")):
        tag.name = "ul"
    for block in tags_named(soup, _HOLDERS):
        for parent in takewhile(
            lambda parent: parent.name == "div" or parent.name in _SMALLER, block.parents
        ):
            parent.name = "div"
    _cap_lists(soup)
    for tag in elements(soup.descendants):
        if tag.attrs:
            tag.attrs = dict(_kept_attributes(tag))


def _break_lines(code: Tag) -> None:
    """Makes lines of the blocks in code; inner ones first, since those around them end where they do."""
    for line in reversed(tags_named(code, _CODE_LINES)):
        line.name = "span"
        before, behind = line.previous_sibling, line.next_sibling
        if not _ends_line(line) and not (isinstance(behind, NavigableString) and behind.startswith("\n")):
            line.append("\n")
        is_block = isinstance(before, Tag) and before.name in _CODE_LINES
        if before is not None and before.get_text(strip=True) and not is_block and not _ends_line(before):
            before.insert_after("\n")


def _ends_line(node: PageElement) -> bool:
    while isinstance(node, Tag) and node.contents:
        node = node.contents[-1]
    return node.name == "br" if isinstance(node, Tag) else str(node).endswith("\n")


def _kept_attributes(tag: Tag) -> Iterator[tuple[str, str]]:
    """The number at which a list begins, and an item's own label."""
    if LABEL in tag.attrs:
        yield LABEL, str(tag[LABEL])
    start = str(tag.get("start", ""))
    if tag.name == "ol" and _START.fullmatch(start):
        yield "start", start


def _number(ordered: Tag) -> None:
    """Gives items the labels that a page shows where they don't just count up; Markdown has no letters for
    items, so those stand before the words.
    """
    items = [item for item in elements(ordered.contents) if item.name == "li"]
    starts = (next(item.stripped_strings, "") for item in items)
    if ordered.get("type") == "none" and items and all(map(_OWN_LABEL.match, starts)):
        ordered.name = "ul"
        return
    kind, falls = str(ordered.get("type", "1")), ordered.get("reversed") is not None
    if not falls and kind not in _ITEM_LABELS and all(item.get("value") is None for item in items):
        ordered.name = "ul" if len(ordered.contents) > MAX_ORDERED_ITEMS else "ol"
        return
    start = str(ordered.get("start", ""))
    number = int(start) if _START.fullmatch(start) else len(items) if falls else 1
    for item in items:
        value = str(item.get("value", ""))
        number = int(value) if _START.fullmatch(value) else number
        label = f"{written(number, _ITEM_LABELS.get(kind, 'decimal'))}."
        if kind in _ITEM_LABELS:
            item.insert(0, f"{label} ")
            label = "-"
        item[LABEL] = label
        number += -1 if falls else 1


def _cap_lists(soup: BeautifulSoup) -> None:
    """Lists and quotes below MAX_LIST_DEPTH others become plain blocks."""
    for tag in tags_named(soup, _NESTING):
        if sum(parent.name in _NESTING for parent in tag.parents) >= MAX_LIST_DEPTH:
            for part in [tag, *tags_named(tag, ("li", "dt", "dd"))]:
                part.name = "div"


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
