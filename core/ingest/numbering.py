"""Numbers of clauses and list items, as an office program shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_PLACE = re.compile(r"%([1-9])")
_ROMAN = [
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
]
_DIGITS = "〇一二三四五六七八九"
_COUNTED = ("chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting")
_MOST = 100_000
"""A larger number is written with digits, whatever the format."""
BULLET = "-"


def value_of(parent: Element | None, *path: str) -> str | None:
    """The `val` of an element below another."""
    found = None if parent is None else parent.find("/".join(W + name for name in path))
    return None if found is None else found.get(f"{W}val")


def is_on(parent: Element | None, name: str) -> bool:
    """Whether a property is there and not switched off."""
    found = None if parent is None else parent.find(W + name)
    return found is not None and found.get(f"{W}val") not in ("0", "false", "off", "none")


def whole(text: str | None, default: int) -> int:
    """A number of at most six digits; `default` for anything else."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,6}", text) else default


@dataclass(frozen=True, slots=True)
class _Level:
    start: int
    format: str
    text: str
    restart: int
    """Level at which and above which an item begins this one anew; 0 for never."""
    is_legal: bool
    style: str | None


@dataclass(slots=True)
class _List:
    """A `num`: its levels, where it begins anew, and which counters it shares."""

    levels: dict[int, _Level]
    shared: str
    anew: dict[int, int]
    is_used: bool = False


RUN_MARKS = ("strike", "dstrike", "vanish")
"""What takes a run out of the text: struck once or twice, hidden."""


@dataclass(slots=True)
class Style:
    """A paragraph or character style."""

    name: str
    based_on: str | None
    properties: Element | None
    marks: frozenset[str]


@dataclass
class Styles:
    """The styles of a file, by id."""

    styles: dict[str, Style] = field(default_factory=dict)
    default: str | None = None
    """Id of the style of a paragraph that names none."""

    @classmethod
    def read(cls, root: Element | None) -> Styles:
        found = cls()
        for style in () if root is None else root.iter(f"{W}style"):
            name = style.get(f"{W}styleId")
            if name is None:
                continue
            found.styles[name] = Style(
                value_of(style, "name") or "",
                value_of(style, "basedOn"),
                style.find(f"{W}pPr"),
                frozenset(mark for mark in RUN_MARKS if is_on(style.find(f"{W}rPr"), mark)),
            )
            if style.get(f"{W}default") in ("1", "true") and style.get(f"{W}type") == "paragraph":
                found.default = name
        return found

    def chain(self, name: str | None) -> Iterator[tuple[str, Style]]:
        """A style and those that it is based on."""
        seen: set[str] = set()
        name = name or self.default
        while name is not None and name not in seen and name in self.styles:
            seen.add(name)
            yield name, self.styles[name]
            name = self.styles[name].based_on


class Numbering:
    """Counts the items of a text, in its order."""

    def __init__(self, root: Element | None, styles: Styles) -> None:
        self._styles = styles
        self._counters: dict[str, dict[int, int]] = {}
        self._lists: dict[str, _List] = {}
        if root is not None:
            self._read(root)

    def _read(self, root: Element) -> None:
        shared = {
            str(element.get(f"{W}abstractNumId")): element for element in root.findall(f"{W}abstractNum")
        }
        by_style = {
            name: number for number, element in shared.items() if (name := value_of(element, "styleLink"))
        }
        for element in root.findall(f"{W}num"):
            number = value_of(element, "abstractNumId") or ""
            if number in shared and (link := value_of(shared[number], "numStyleLink")) in by_style:
                number = by_style[str(link)]
            if number not in shared:
                continue
            levels = _levels(shared[number])
            anew = {}
            for override in element.findall(f"{W}lvlOverride"):
                at = whole(override.get(f"{W}ilvl"), 0)
                levels |= _levels(override)
                if (start := value_of(override, "startOverride")) is not None:
                    anew[at] = whole(start, 1)
            self._lists[str(element.get(f"{W}numId"))] = _List(levels, number, anew)

    def label(self, properties: Element | None) -> tuple[int, str] | None:
        """(level from 0, label) of the next paragraph, which it counts; None for one without."""
        number, level = self._place_of(properties)
        found = self._lists.get(number or "")
        if found is None or level not in found.levels:
            return None
        counters = self._counters.setdefault(found.shared, {})
        if not found.is_used:
            found.is_used = True
            for at, start in found.anew.items():
                counters[at] = start - 1
        for above in range(level):
            if above in found.levels:
                counters.setdefault(above, found.levels[above].start)
        counters[level] = counters.get(level, found.levels[level].start - 1) + 1
        for below in [at for at in counters if at > level]:
            restart = found.levels[below].restart if below in found.levels else below
            if level < restart:
                del counters[below]
        return level, self._written(found, level, counters)

    def _place_of(self, properties: Element | None) -> tuple[str | None, int]:
        """(id of the list, level) that a paragraph says or its style."""
        own = None if properties is None else properties.find(f"{W}numPr")
        number, level = value_of(own, "numId"), value_of(own, "ilvl")
        if number is None or level is None:
            for name, style in self._styles.chain(value_of(properties, "pStyle")):
                given = None if style.properties is None else style.properties.find(f"{W}numPr")
                if given is None:
                    continue
                number = number or value_of(given, "numId")
                if level is None and (found := self._lists.get(number or "")) is not None:
                    linked = (at for at, one in found.levels.items() if one.style == name)
                    level = str(next(linked, value_of(given, "ilvl")))
                break
        return number, whole(level, 0)

    @staticmethod
    def _written(found: _List, level: int, counters: dict[int, int]) -> str:
        own = found.levels[level]
        if own.format == "bullet":
            return BULLET

        def number(place: re.Match[str]) -> str:
            at = int(place[1]) - 1
            if at not in counters or at not in found.levels:
                return ""
            return written(counters[at], "decimal" if own.is_legal else found.levels[at].format)

        return " ".join(_PLACE.sub(number, own.text).split())


def _levels(parent: Element) -> dict[int, _Level]:
    found: dict[int, _Level] = {}
    for element in parent.findall(f"{W}lvl"):
        at = whole(element.get(f"{W}ilvl") or "0", 0)
        found[at] = _Level(
            whole(value_of(element, "start"), 1),
            value_of(element, "numFmt") or "decimal",
            value_of(element, "lvlText") or "",
            whole(value_of(element, "lvlRestart"), at),
            is_on(element, "isLgl"),
            value_of(element, "pStyle"),
        )
    return found


def written(n: int, form: str) -> str:
    """A number in a format of office files.

    >>> [written(4, form) for form in ("decimal", "lowerRoman", "upperLetter", "decimalZero", "ordinal")]
    ['4', 'iv', 'D', '04', '4th']
    """
    if form == "none" or not 0 <= n < _MOST:
        return "" if form == "none" else str(n)
    match form:
        case "lowerRoman" | "upperRoman" if n:
            text = _roman(n)
            return text.upper() if form == "upperRoman" else text
        case "lowerLetter" | "upperLetter" if n:
            text = chr(ord("a") + (n - 1) % 26) * min(1 + (n - 1) // 26, 10)
            return text.upper() if form == "upperLetter" else text
        case "decimalZero":
            return f"{n:02}"
        case "ordinal":
            ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
            return f"{n}{ending}"
        case _ if form in _COUNTED and 0 < n < 100:
            tens, ones = divmod(n, 10)
            many = ("" if tens == 1 else _DIGITS[tens]) + "十" if tens else ""
            return many + (_DIGITS[ones] if ones else "")
        case "ideographDigital":
            return "".join(_DIGITS[int(digit)] for digit in str(n))
        case _:
            return str(n)


def _roman(n: int) -> str:
    if n >= 10_000:
        return str(n)
    text = ""
    for value, letters in _ROMAN:
        text += letters * (n // value)
        n %= value
    return text
