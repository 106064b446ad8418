"""What a page hides, and what of it says something.

Words for screen readers (`sr-only`) and words hidden from them (`aria-hidden`) often say one thing twice: the
former stay. Alone they are no content, except in a cell or heading that would be left without words. There, a
tick or a picture's description is the datum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from core.ingest.inline import HEADINGS
from core.ingest.soup import hollow, tags_named

_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SHOWING_STYLE = re.compile(r"display\s*+:\s*+(?!none)|visibility\s*:\s*visible", re.IGNORECASE)
_HIDDEN = "\ue000hidden"
"""Attribute of an element that a style sheet of the page hides."""
_CLASS = re.compile(r"\.(-?[_a-z][\w-]*)", re.IGNORECASE)
_CSS_PART = re.compile(r"([^{}]*+)([{}])")
_SIMPLE_CLASS = re.compile(r"[a-z]*\d?\.(-?[_a-z][\w-]*)", re.IGNORECASE)
_SPOKEN_CLASS = re.compile(r"visually-?hidden|(?<![a-z])sr-only|screen-?reader-text", re.IGNORECASE)
_DOTS = frozenset(["...", "…", "[...]", "[…]"])
_WORDLESS = frozenset(["svg", "script", "style", "template", "noscript"])


def _rules(soup: BeautifulSoup) -> Iterator[tuple[str, str, bool]]:
    """(selectors, what they are styled like, whether always) of all rules in the style sheets of a page."""
    for sheet in tags_named(soup, ("style",)):
        opened: list[str] = []
        code, *commented = sheet.get_text().split("/*")
        code += "".join(comment.partition("*/")[2] for comment in commented)
        last = max(code.rfind("{"), code.rfind("}"))  # behind it, each character would be a start to try
        for part in _CSS_PART.finditer(code, 0, last + 1):
            if part[2] == "{":
                opened.append(part[1].strip())
            elif opened and not (selectors := opened.pop()).startswith("@"):
                yield selectors, part[1], not any(outer.startswith("@") for outer in opened)


def styled_classes(soup: BeautifulSoup, style: re.Pattern[str]) -> frozenset[str]:
    """Names of classes whose elements a page styles so, in print and on all screens."""
    return frozenset(
        match[1]
        for selectors, body, always in _rules(soup)
        if always and style.search(body)
        for selector in selectors.split(",")
        if (match := _SIMPLE_CLASS.fullmatch(selector.strip()))
    )


def mark_hidden(soup: BeautifulSoup) -> None:
    """Marks elements of classes that a page hides and nowhere shows, as on wide screens or once opened."""
    hidden = styled_classes(soup, _HIDING_STYLE)
    if not hidden:
        return
    hidden -= {
        name
        for selectors, body, _ in _rules(soup)
        if _SHOWING_STYLE.search(body)
        for name in _CLASS.findall(selectors)
    }
    for tag in soup.descendants:
        if isinstance(tag, Tag) and not hidden.isdisjoint(tag.get_attribute_list("class")):
            tag[_HIDDEN] = ""


def is_hidden(tag: Tag) -> bool:
    hidden = tag.get("hidden")
    return (
        (hidden is not None and hidden != "until-found")
        or _HIDDEN in tag.attrs
        or tag.get("aria-hidden") == "true"
        or bool(_HIDING_STYLE.search(str(tag.get("style", ""))))
    )


def join_cut_off(soup: BeautifulSoup) -> None:
    """Puts the end of a sentence in place of the dots beside it, as a click does."""
    for tag in tags_named(soup, ("span",)):
        dots = next((part for part in _beside(tag) if part.get_text().strip() in _DOTS), None)
        if dots is not None and is_hidden(tag):
            hollow(dots)
            tag.attrs = {}


def keep_only_words(soup: BeautifulSoup) -> None:
    """Shows one of what is said twice, and what alone says anything in a cell or heading."""
    for tag in [tag for tag in soup.descendants if isinstance(tag, Tag) and tag.get("aria-hidden") == "true"]:
        spoken = next(filter(_is_spoken, (part for near in _beside(tag) for part in _ends(near))), None)
        if spoken is not None and _says(spoken) and _says(tag):
            spoken.attrs = {}
    holders = tags_named(soup, {"td", "th"} | HEADINGS)
    outer: set[int] = set()
    for holder in holders:
        outer.update(map(id, takewhile(lambda parent: id(parent) not in outer, holder.parents)))
    for holder in holders:
        if id(holder) in outer or _has_words(holder):
            continue
        parts = [tag for tag in holder.descendants if isinstance(tag, Tag)]
        label = str(holder.get("aria-label", "")) if holder.name in HEADINGS else ""
        if spoken_parts := [tag for tag in parts if _is_spoken(tag) and _says(tag)]:
            for tag in spoken_parts:
                tag.attrs = {}
        elif label:
            holder.string = label
        elif not _describe_pictures(parts, in_heading=holder.name in HEADINGS):
            for tag in parts:
                if tag.get("aria-hidden") == "true":
                    del tag["aria-hidden"]


def _describe_pictures(parts: list[Tag], *, in_heading: bool) -> bool:
    """Whether there are pictures with a description, which is now their text."""
    described = False
    for picture in parts:
        words = str(picture.get("alt" if picture.name == "img" else "aria-label", ""))
        is_icon = picture.name in ("img", "svg", "i") or picture.get("role") == "img"
        if is_icon and words and not (in_heading and picture.find_parent("a") is not None):
            picture.string = words
            picture.name, picture.attrs = "span", {}
            described = True
    return described


def _beside(tag: Tag) -> Iterator[Tag]:
    """The elements right before and behind one."""
    for near in (tag.previous_sibling, tag.next_sibling):
        node = near
        if isinstance(node, NavigableString) and not node.strip():
            node = node.previous_sibling if near is tag.previous_sibling else node.next_sibling
        if isinstance(node, Tag):
            yield node


def _ends(tag: Tag) -> Iterator[Tag]:
    """An element, and those that it begins or ends with."""
    yield tag
    yield from (part for part in (*tag.contents[:1], *tag.contents[-1:]) if isinstance(part, Tag))


def _is_spoken(tag: Tag) -> bool:
    """Whether an element is for screen readers alone."""
    return any(_SPOKEN_CLASS.search(str(name)) for name in tag.get_attribute_list("class") if name)


def _says(tag: Tag) -> bool:
    return any(map(str.isalnum, tag.get_text()))


def _has_words(holder: Tag) -> bool:
    """Whether an element has words that people see."""
    stack = [holder]
    while stack:
        for node in stack.pop().contents:
            if isinstance(node, NavigableString):
                if node.strip():
                    return True
            elif isinstance(node, Tag) and not (
                node.name in _WORDLESS or is_hidden(node) or _is_spoken(node)
            ):
                stack.append(node)
    return False
