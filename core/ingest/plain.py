"""A cleaned tree in the few elements that the converter knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement

from core.ingest.inline import HEADINGS, set_apart, set_marks
from core.ingest.limits import MAX_LIST_DEPTH, MAX_ORDERED_ITEMS
from core.ingest.markdown import LABEL
from core.ingest.numbering import written
from core.ingest.soup import tags_named

_PLAIN_BLOCKS = frozenset(
    [
        *("html", "body", "details", "dialog", "center", "fieldset", "legend", "hgroup", "address", "form"),
        *("header", "footer", "nav", "aside", "figure", "main", "search", "output", "listing", "xmp"),
    ]
)
"""Blocks that the converter does not know as such."""
_HOLDERS = HEADINGS | {"ul", "ol", "table", "blockquote", "pre"}
_INLINE = frozenset(["b", "strong", "i", "em", "u", "span", "font", "small", "big", "a", "code", "mark"])
_ITEM_LABELS = {"a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
"""Formats of numbers by the type of a list."""
_OWN_LABEL = re.compile(
    r"[(\[]?(?:\d{1,4}(?:\.\d{1,4})*|[a-zA-Z]|[ivxlcIVXLC]{1,7})[.)\]]|\d{1,4}(?:\.\d{1,4})+\b|§+\s?\d"
)
"""What an item begins with that brings its own number."""
_NESTING = frozenset(["ul", "ol", "dl", "blockquote"])
_LINES = frozenset(["div", "p", "li", "ul", "ol"])
"""Blocks that are lines in code."""
_START = re.compile(r"[0-9]{1,9}")


def simplify(soup: BeautifulSoup) -> None:
    """Removes what would only cost the converter: attributes, links, deep lists, numbers of long lists."""
    for tag in soup.descendants:
        if isinstance(tag, Tag) and tag.get("role") == "heading" and tag.name in ("div", "p", "span"):
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
        for parent in takewhile(lambda parent: parent.name == "div" or parent.name in _INLINE, block.parents):
            parent.name = "div"
    _cap_lists(soup)
    for node in soup.descendants:
        if isinstance(node, Tag) and node.attrs:
            node.attrs = dict(_kept_attributes(node))


def _break_lines(code: Tag) -> None:
    """Makes lines of the blocks in code; inner ones first, since those around them end where they do."""
    for line in reversed(tags_named(code, _LINES)):
        line.name = "span"
        before, behind = line.previous_sibling, line.next_sibling
        if not _ends_line(line) and not (isinstance(behind, NavigableString) and behind.startswith("\n")):
            line.append("\n")
        is_block = isinstance(before, Tag) and before.name in _LINES
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
    items = [item for item in ordered.contents if isinstance(item, Tag) and item.name == "li"]
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
