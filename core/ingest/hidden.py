"""What a page hides, and what of it says something.

Words for screen readers (`sr-only`) and words hidden from them (`aria-hidden`) often say one thing twice: the
former stay. Where they say two things, the latter do: those are what people see. Alone they are no content,
except in a cell or heading that would be left without words. There, a tick or a picture's description is the
datum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from itertools import takewhile

from bs4 import BeautifulSoup, Tag
from bs4.element import AttributeValueList, NavigableString

from core.ingest.soup import HEADINGS, class_of, elements, hollow, tags_named

_HIDING_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SHOWING_STYLE = re.compile(r"display\s*+:\s*+(?!none)|visibility\s*:\s*visible", re.IGNORECASE)
_HIDDEN = "\ue000hidden"
"""Attribute of an element that a style sheet of the page hides."""
_UNSEEN = re.compile(
    r"(?:left|top|right)\s*:\s*-\d{4,6}px|clip\s*:\s*rect\(\s*[01](?:px)?[\s,]", re.IGNORECASE
)
_PLACED = re.compile(r"position\s*:\s*(?:absolute|fixed)", re.IGNORECASE)
_SIZELESS = re.compile(r"font-size\s*:\s*0(?:px)?\s*(?:[;!]|\Z)", re.IGNORECASE)
STRIKING_STYLE = re.compile(r"text-decoration[\w-]{0,20}\s{0,20}:[^;]{0,100}?line-through", re.IGNORECASE)
STRUCK_CLASS = "line-through"
_MARK = re.compile(r"[.#]-?[_a-z][\w-]*+", re.IGNORECASE)
_PART = re.compile(r"([a-z][a-z0-9]*+)?((?:[.#]-?[_a-z][\w-]*+)*+)", re.IGNORECASE)
_MAX_SELECTOR = 200
_MAX_SELECTORS = 20_000
"""Kept of a style."""
_MAX_STEPS = 500_000
"""Elements held against the selectors of a style; none matches behind them."""
_CSS_PART = re.compile(r"([^{}]*+)([{}])")
_SPOKEN_CLASS = re.compile(r"visually-?hidden|(?<![a-z])sr-only|screen-?reader-text", re.IGNORECASE)
_DOTS = frozenset(["...", "…", "[...]", "[…]"])
_MAX_ABBREVIATION = 6
_MAX_RATING = 60
"""Characters of a label that says no more than a rating."""
_PHRASES = frozenset(["span", "a", "b", "strong", "i", "em", "small", "time"])
_RATING = re.compile(r"[★☆⭐✓✔✗✘●○]")
"""Signs that stand for a value."""
_RATED = re.compile(
    r"\d(?:[.,]\d{1,2})?(?: ?(?:/|out of|of|von|sur|su|de|van|av|af) ?\d{1,2})?"
    r"[ -]?(?:stars?|sternen?|étoiles?|estrellas?|stelle|stjärnor|stjerner|sterren)\b"
    r"|\brat(?:ed|ing):? \d|\d out of (?:5|10)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\s*(?:(?:step|part|chapter|section|rule|no\.?|§|art\.)\s?)?"
    r"(?:\d{1,3}(?:\.\d{1,3}){0,4}[.):]?|[(\[]?(?:[a-z]|[ivx]{1,5})[.)\]])\s*|\s*[(\[]\d{1,3}[)\]]\s*",
    re.IGNORECASE,
)
"""What numbers a heading, a step or a clause."""
_NUMBERED = HEADINGS | {"li", "p", "dt", "summary"}
_ICON_CLASS = re.compile(r"icon|material|symbol", re.IGNORECASE)
_ICON_NAME = re.compile(r"\s*[a-z]+(?:_[a-z]+)*\s*")
"""Text that a font draws as a picture."""
_NO_TITLE = re.compile(
    r"\b(?:icon|logo|image|img|arrow|bullet|divider|separator|spacer)s?\b|\.(?:png|jpe?g|gif|svg|webp)\Z",
    re.IGNORECASE,
)
_WORDLESS = frozenset(["svg", "script", "style", "template", "noscript"])
_Part = tuple[str, frozenset[str], bool]
"""Of a selector: the name of an element, its classes and ids, and whether the next one stands right in it."""
_Rule = tuple[str, str, bool]
"""Of a style sheet: selectors, what they are styled like, whether always."""


def _rules(soup: BeautifulSoup) -> Iterator[_Rule]:
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


def _parts(selector: str) -> tuple[_Part, ...]:
    """What a selector asks for, the innermost first; nothing where it is more than names, classes and ids."""
    parts: list[_Part] = []
    is_right_around = False
    for word in reversed(selector[: _MAX_SELECTOR + 1].replace(">", " > ").split()):
        part = _PART.fullmatch(word)
        if word != ">" and (part is None or len(selector) > _MAX_SELECTOR):
            return ()
        if part is not None:
            parts.append(((part[1] or "").lower(), frozenset(_MARK.findall(part[2])), is_right_around))
        is_right_around = word == ">"
    return tuple(parts)


class _Styles:
    """The elements that rules of a page style so, in print and on all screens, and nowhere otherwise."""

    def __init__(
        self, soup: BeautifulSoup, rules: list[_Rule], style: Callable[[str], object], shown: Set[str]
    ) -> None:
        self._by_mark: dict[str, dict[tuple[_Part, ...], None]] = {}
        self._marks: dict[int, frozenset[str]] = {}
        self._n_left = _MAX_STEPS
        self._n_selectors = 0
        for selectors, body, always in rules:
            for selector in selectors.split(",") if always and style(body) else ():
                parts = _parts(selector) if self._n_selectors < _MAX_SELECTORS else ()
                if not parts or "no-js" in selector:
                    continue
                self._n_selectors += 1
                name, marks, _ = parts[0]
                named = marks or {mark for _, around, _ in parts for mark in around}
                if named and shown.isdisjoint(named):
                    self._by_mark.setdefault(min(marks, default=name), {})[parts] = None
        tags = elements(soup.descendants if self._by_mark else ())
        self.found = {id(tag) for tag in tags if self._is_styled(tag)}

    def _is_styled(self, tag: Tag) -> bool:
        marks = _marks_of(tag)
        return any(
            self._fits(tag, marks, parts)
            for mark in (tag.name, *marks)
            for parts in (self._by_mark.get(mark, ()) if self._n_left > 0 else ())
            if self._n_left > 0
        )

    def _fits(self, tag: Tag, marks: frozenset[str], parts: tuple[_Part, ...]) -> bool:
        self._n_left -= 1
        if parts[0][0] not in ("", tag.name) or not parts[0][1] <= marks:
            return False
        waiting = list(reversed(parts[1:]))
        for near in tag.parents if waiting else ():
            self._n_left -= 1
            name, marks, is_right_around = waiting[-1]
            if id(near) not in self._marks:
                self._marks[id(near)] = _marks_of(near)
            if name in ("", near.name) and marks <= self._marks[id(near)]:
                waiting.pop()
                if not waiting:
                    break
            elif is_right_around:
                break
        return not waiting


def styled(soup: BeautifulSoup, style: re.Pattern[str]) -> set[int]:
    """Ids of the elements that a page styles so, in print and on all screens."""
    return _Styles(soup, list(_rules(soup)), style.search, frozenset()).found


def _marks_of(tag: Tag) -> frozenset[str]:
    classes = (f".{name}" for name in tag.get_attribute_list("class") if name)
    return frozenset([*classes, f"#{tag.get('id', '')}"])


def mark_hidden(soup: BeautifulSoup) -> None:
    """Marks elements that a page hides and nowhere shows, as on wide screens or once opened; those that it
    puts where only screen readers find them; and those that it strikes out.
    """
    rules = list(_rules(soup))
    showing = (selectors for selectors, body, _ in rules if _SHOWING_STYLE.search(body))
    shown = {mark for selectors in showing for mark in _MARK.findall(selectors)}
    hidden = _Styles(soup, rules, _HIDING_STYLE.search, shown).found
    struck, unseen, sizeless = (
        _Styles(soup, rules, style, frozenset()).found
        for style in (STRIKING_STYLE.search, _is_unseen, _SIZELESS.search)
    )
    for tag in elements(soup.descendants):
        style, classes = str(tag.get("style", "")), tag.get_attribute_list("class")
        is_sizeless = id(tag) in sizeless or _SIZELESS.search(style) is not None
        if id(tag) in hidden or (is_sizeless and tag.find(True) is None):
            tag[_HIDDEN] = ""
        elif (id(tag) in unseen or _is_unseen(style)) and not is_spoken(tag):
            tag["class"] = AttributeValueList([*classes, "sr-only"])
            if tag.name not in HEADINGS:
                tag[_HIDDEN] = ""
        elif id(tag) in struck:
            tag["class"] = AttributeValueList([*classes, STRUCK_CLASS])


def _is_unseen(style: str) -> bool:
    return _UNSEEN.search(style) is not None and _PLACED.search(style) is not None


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
    for tag in [tag for tag in elements(soup.descendants) if tag.get("aria-hidden") == "true"]:
        spoken = next(filter(is_spoken, (part for near in beside(tag) for part in _ends(near))), None)
        if spoken is None or not _says(spoken) or _is_icon(tag):
            continue
        if _tells(spoken.get_text(), tag.get_text()):
            spoken.attrs = {}
        elif _says(tag) and (tag.name in _PHRASES or tag.name == spoken.name):
            del tag["aria-hidden"]
    _show_labelled(soup)
    _show_ratings(soup)
    _show_numbers(soup)
    holders = tags_named(soup, {"td", "th"} | HEADINGS)
    outer: set[int] = set()
    for holder in holders:
        outer.update(map(id, takewhile(lambda parent: id(parent) not in outer, holder.parents)))
    for holder in holders:
        if id(holder) in outer or _has_words(holder):
            continue
        parts = list(elements(holder.descendants))
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
    """Whether spoken words say what is shown: its digits, letters or their abbreviation, or its stars."""
    kind = str.isdigit if any(map(str.isdigit, shown)) else str.isalpha
    long, short = ("".join(filter(kind, text)).casefold() for text in (spoken, shown))
    if not short:
        return _RATING.search(shown) is not None
    letters = iter(long)
    is_abbreviation = len(short) <= _MAX_ABBREVIATION and long[:1] == short[0]
    return short in long or (is_abbreviation and all(letter in letters for letter in short))


def _show_labelled(soup: BeautifulSoup) -> None:
    """Shows what only a label says beside it; the label itself where that is stars."""
    for holder in [tag for tag in elements(soup.descendants) if tag.get("aria-label")]:
        if holder.name in HEADINGS or holder.name in ("td", "th") or is_hidden(holder) or _has_words(holder):
            continue
        parts = [part for part in elements(holder.contents) if part.get("aria-hidden") == "true"]
        if parts and not _says(holder) and _RATING.search(holder.get_text()):
            holder.string = str(holder["aria-label"])
            continue
        for part in parts:
            if part.name in _PHRASES and _says(part) and not _is_icon(part):
                del part["aria-hidden"]


def _show_ratings(soup: BeautifulSoup) -> None:
    """Shows the rating that only the label of a picture says. Several side by side are to be clicked."""
    for tag in tags_named(soup, ("img", "span", "div", "i", "svg", "p")):
        words = described(tag) or str(tag.get("title", ""))
        if not _RATED.search(words[:_MAX_RATING]) or len(words) > _MAX_RATING or is_hidden(tag):
            continue
        near = (str(part.get("aria-label") or part.get("title") or part.get("alt")) for part in beside(tag))
        is_control = tag.get("role", "img") != "img" or tag.find_parent(["a", "button", "label"]) is not None
        if not is_control and tag.get_text().strip() in ("", words) and not any(map(_RATED.search, near)):
            tag.name, tag.attrs = "p" if tag.name == "div" else "span", {}
            tag.string = words
            _set_apart(tag)


def _show_numbers(soup: BeautifulSoup) -> None:
    """Shows the hidden number that a heading, a step or a clause begins with."""
    for holder in tags_named(soup, _NUMBERED):
        nodes = (node for node in holder.contents if isinstance(node, Tag) or node.get_text().strip())
        node = next(nodes, None)
        if not isinstance(node, Tag) or node.name not in _PHRASES or node.get("aria-hidden") != "true":
            continue
        is_told = any(is_spoken(part) for near in beside(node) for part in _ends(near))
        is_listed = holder.parent is not None and holder.parent.name == "ol"
        is_counted = is_listed and node.get_text().strip(" .").isdecimal()
        if not (is_told or is_counted) and _NUMBER.fullmatch(node.get_text()) and _has_words(holder):
            del node["aria-hidden"]
            _set_apart(node)


def _set_apart(tag: Tag) -> None:
    """Blanks between an element and words right beside it."""
    before, behind = tag.previous_sibling, tag.next_sibling
    if isinstance(before, NavigableString) and before[-1:].isalnum():
        tag.insert(0, " ")
    if isinstance(behind, NavigableString) and behind[:1].isalnum():
        tag.append(" ")


def _is_icon(tag: Tag) -> bool:
    return _ICON_CLASS.search(class_of(tag)) is not None and _ICON_NAME.fullmatch(tag.get_text()) is not None


def _describe_pictures(parts: list[Tag], *, in_heading: bool) -> bool:
    """Whether there are pictures with a description, which is now their text."""
    is_described = False
    for picture in parts:
        words = described(picture)
        is_icon = picture.name in ("img", "svg", "i") or picture.get("role") == "img"
        is_side = in_heading and (picture.find_parent("a") is not None or _NO_TITLE.search(words) is not None)
        if is_icon and words and not is_side:
            picture.string = words
            picture.name, picture.attrs = "span", {}
            is_described = True
    return is_described


def described(picture: Tag) -> str:
    """What a picture says that it shows."""
    words = str(picture.get("alt" if picture.name == "img" else "aria-label", ""))
    if picture.name == "svg" and not words and (title := picture.find("title")) is not None:
        inner = picture.get_text().strip()
        words = inner if inner == title.get_text().strip() else ""
    return words


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
    yield from elements([*tag.contents[:1], *tag.contents[-1:]])


def is_spoken(tag: Tag) -> bool:
    """Whether an element is for screen readers alone."""
    return _SPOKEN_CLASS.search(class_of(tag)) is not None


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
