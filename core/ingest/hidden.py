"""What a page hides, and what of it says something.

Words for screen readers (`sr-only`) and words hidden from them (`aria-hidden`) often say one thing twice: the
former stay. Where they say two things, the latter do: those are what people see. Alone they are no content,
except in a cell or heading that would be left without words. There, a tick or a picture's description is the
datum.
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
_MAX_ABBREVIATION = 6
_PHRASES = frozenset(["span", "a", "b", "strong", "i", "em", "small", "time"])
_RATING = re.compile(r"[★☆⭐✓✔✗✘●○]")
"""Signs that stand for a value."""
_ICON_CLASS = re.compile(r"icon|material|symbol", re.IGNORECASE)
_ICON_NAME = re.compile(r"\s*[a-z]+(?:_[a-z]+)*\s*")
"""Text that a font draws as a picture."""
_NO_TITLE = re.compile(
    r"\b(?:icon|logo|image|img|arrow|bullet|divider|separator|spacer)s?\b|\.(?:png|jpe?g|gif|svg|webp)\Z",
    re.IGNORECASE,
)
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
        dots = next((part for part in beside(tag) if part.get_text().strip() in _DOTS), None)
        if dots is not None and is_hidden(tag):
            hollow(dots)
            tag.attrs = {}


def keep_only_words(soup: BeautifulSoup) -> None:
    """Shows one of what is said twice, and what alone says anything in a cell or heading."""
    for tag in [tag for tag in soup.descendants if isinstance(tag, Tag) and tag.get("aria-hidden") == "true"]:
        spoken = next(filter(is_spoken, (part for near in beside(tag) for part in _ends(near))), None)
        if spoken is None or not _says(spoken) or _is_icon(tag):
            continue
        if _tells(spoken.get_text(), tag.get_text()):
            spoken.attrs = {}
        elif _says(tag) and (tag.name in _PHRASES or tag.name == spoken.name):
            del tag["aria-hidden"]
    _show_labelled(soup)
    holders = tags_named(soup, {"td", "th"} | HEADINGS)
    outer: set[int] = set()
    for holder in holders:
        outer.update(map(id, takewhile(lambda parent: id(parent) not in outer, holder.parents)))
    for holder in holders:
        if id(holder) in outer or _has_words(holder):
            continue
        parts = [tag for tag in holder.descendants if isinstance(tag, Tag)]
        is_heading = holder.name in HEADINGS
        is_labelled = is_heading and (_says(holder) or holder.find("a") is None)
        if spoken_parts := [tag for tag in parts if is_spoken(tag) and _says(tag)]:
            if is_heading:
                holder["class"] = spoken_parts[0]["class"]
            for tag in spoken_parts:
                tag.attrs = {}
        elif is_labelled and (label := holder.get("aria-label")):
            holder.string = str(label)
        elif not _describe_pictures(parts, in_heading=is_heading):
            for tag in parts:
                if tag.get("aria-hidden") == "true" and not (is_heading and _is_icon(tag)):
                    del tag["aria-hidden"]


def _tells(spoken: str, shown: str) -> bool:
    """Whether spoken words say what is shown as well: its digits, or its letters or an abbreviation of them,
    or what its stars stand for.
    """
    kind = str.isdigit if any(map(str.isdigit, shown)) else str.isalpha
    long, short = ("".join(filter(kind, text)).casefold() for text in (spoken, shown))
    if not short:
        return _RATING.search(shown) is not None
    letters = iter(long)
    is_abbreviation = len(short) <= _MAX_ABBREVIATION and long[:1] == short[0]
    return short in long or (is_abbreviation and all(letter in letters for letter in short))


def _show_labelled(soup: BeautifulSoup) -> None:
    """Shows what only a label says beside it; the label itself where that is stars."""
    for holder in [tag for tag in soup.descendants if isinstance(tag, Tag) and tag.get("aria-label")]:
        if holder.name in HEADINGS or holder.name in ("td", "th") or is_hidden(holder) or _has_words(holder):
            continue
        parts = [
            part for part in holder.contents if isinstance(part, Tag) and part.get("aria-hidden") == "true"
        ]
        if parts and not _says(holder) and _RATING.search(holder.get_text()):
            holder.string = str(holder["aria-label"])
            continue
        for part in parts:
            if part.name in _PHRASES and _says(part) and not _is_icon(part):
                del part["aria-hidden"]


def _is_icon(tag: Tag) -> bool:
    named = _ICON_CLASS.search(str(tag.get("class", ""))) is not None
    return named and _ICON_NAME.fullmatch(tag.get_text()) is not None


def _describe_pictures(parts: list[Tag], *, in_heading: bool) -> bool:
    """Whether there are pictures with a description, which is now their text."""
    described = False
    for picture in parts:
        words = str(picture.get("alt" if picture.name == "img" else "aria-label", ""))
        is_icon = picture.name in ("img", "svg", "i") or picture.get("role") == "img"
        is_side = in_heading and (picture.find_parent("a") is not None or _NO_TITLE.search(words) is not None)
        if is_icon and words and not is_side:
            picture.string = words
            picture.name, picture.attrs = "span", {}
            described = True
    return described


def beside(tag: Tag) -> Iterator[Tag]:
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


def is_spoken(tag: Tag) -> bool:
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
            elif isinstance(node, Tag) and not (node.name in _WORDLESS or is_hidden(node) or is_spoken(node)):
                stack.append(node)
    return False
