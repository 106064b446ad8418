"""Formulas of a page (MathML, MathJax, KaTeX) -> a line of text."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from core.ingest.equations import grouped, raised
from core.ingest.soup import hollow, tags_named

_TEX_WRAPPING = re.compile(r"^\{\\displaystyle (.*)\}$", re.DOTALL)
_TEX_SCRIPT = re.compile(r"\s*math/tex", re.IGNORECASE)
_DRAWN = re.compile(r"(?:MathJax|MJX|mjx)")
"""In the classes of what MathJax draws before the script that it drew."""
_PICTURE = re.compile(
    r"(?<![a-z])(?:la)?tex(?![a-z])|(?<![a-z])(?:math|formula|equation)(?![a-z])", re.IGNORECASE
)
"""Classes of pictures of formulas."""
_STACKED = re.compile(r"vlist|sqrt|accent")
"""Classes of what KaTeX draws in another order than it is read."""
_MAX_DRAWN = 500
"""Nodes of a formula that may be plain enough."""
_SPACED = frozenset("=≠<>≤≥≈≡∼+−-±×÷⋅·→←↔⇒⇔∈∉⊂⊆∪∩∧∨,;")
_UNSEEN = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064\u200b"))
"""Signs that only programs read: function application, invisible times, comma and plus."""


def write_formulas(soup: BeautifulSoup, is_hidden: Callable[[Tag], bool]) -> None:
    """Puts each formula in its place as text: its TeX where the page has it, hidden behind a picture."""
    for script in tags_named(soup, ("script",)):
        if _TEX_SCRIPT.match(str(script.get("type", ""))):
            tex = str(script.string or "").strip()
            for drawn in islice(script.previous_siblings, 3):
                if isinstance(drawn, Tag) and _DRAWN.search(str(drawn.get("class", ""))):
                    hollow(drawn)
            hollow(script)
            script.append(tex)
    pictures = [picture for picture in tags_named(soup, ("img",)) if _is_formula(picture)]
    for formula in tags_named(soup, ("math",)):
        hidden = formula.parent if formula.parent is not None and is_hidden(formula.parent) else formula
        text = formula_line(formula)
        hollow(hidden)
        hidden.append(text)
    for picture in pictures:
        tex = _TEX_WRAPPING.sub(r"\1", str(picture["alt"]).strip())
        hollow(picture)
        picture.append(tex)
    for drawn in tags_named(soup, ("span",)):
        if "katex-html" in drawn.get_attribute_list("class") and drawn.find_previous_sibling() is None:
            parts = list(islice(drawn.descendants, _MAX_DRAWN))
            classes = (str(part.get("class", "")) for part in parts if isinstance(part, Tag))
            if len(parts) < _MAX_DRAWN and not any(map(_STACKED.search, classes)):
                drawn.attrs = {}


def _is_formula(picture: Tag) -> bool:
    """Whether a picture is a formula that the page has in no other form."""
    if not (_PICTURE.search(str(picture.get("class", ""))) and str(picture.get("alt", "")).strip()):
        return False
    beside = picture.find_previous_sibling()
    return not isinstance(beside, Tag) or (beside.name != "math" and beside.find("math") is None)


def formula_line(formula: Tag) -> str:
    """What a formula says: its TeX where it has one, else its parts."""
    tex = str(formula.get("alttext", "")) or next(
        (
            note.get_text()
            for note in tags_named(formula, ("annotation",))
            if "tex" in str(note.get("encoding", "")).lower()
        ),
        "",
    )
    tex = _TEX_WRAPPING.sub(r"\1", tex.strip())
    return " ".join((tex or _row(formula)).translate(_UNSEEN).split())


def _row(element: Tag) -> str:
    """All children, one behind the other."""
    text, last = "", ""
    for child in element.children:
        if isinstance(child, NavigableString):
            text += child.strip()
        elif isinstance(child, Tag):
            part = _of(child, is_first=not text)
            text += f" {part}" if child.name == "mfrac" and last == "mn" else part
            last = child.name
    return text


def _of(element: Tag, *, is_first: bool) -> str:
    name = element.name
    if name == "mo":
        sign = element.get_text(strip=True)
        return f" {sign} " if sign in _SPACED and not is_first else sign
    if name == "mi":
        word = element.get_text(strip=True)
        return f" {word} " if len(word) > 1 else word
    if name == "mtext":
        return f" {' '.join(element.get_text().split())} "
    if name == "msqrt":
        return f"√({_row(element).strip()})"
    reader = _READERS.get(name)
    return _row(element) if reader is None else reader(_parts(element))


def _parts(element: Tag) -> list[str]:
    """The text of each child element, and three empty ones behind them: a formula may lack parts."""
    children = [child for child in element.children if isinstance(child, Tag)]
    return [*(_of(child, is_first=True).strip() for child in children), "", "", ""]


def _both(parts: list[str]) -> str:
    return grouped(parts[0]) + raised("_", parts[1]) + raised("^", parts[2])


_READERS: dict[str, Callable[[list[str]], str]] = {
    **dict.fromkeys(("msup", "mover"), lambda parts: grouped(parts[0]) + raised("^", parts[1])),
    "msub": lambda parts: _both([*parts[:2], ""]),
    "munder": lambda parts: f" {_both([*parts[:2], ''])} ",
    "msubsup": _both,
    "munderover": lambda parts: f" {_both(parts)} ",
    "mfrac": lambda parts: f"{grouped(parts[0])}/{grouped(parts[1])}",
    "mroot": lambda parts: f"root {parts[1]} of ({parts[0]})",
    "mfenced": lambda parts: f"({', '.join(filter(None, parts))})",
    "mtable": lambda parts: "; ".join(filter(None, parts)),
    "mtr": lambda parts: ", ".join(filter(None, parts)),
    **dict.fromkeys(("annotation", "annotation-xml", "mphantom", "none"), lambda _: ""),
}
