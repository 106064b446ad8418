"""Formulas of office files and of pages -> a line of text."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from xml.etree.ElementTree import Element

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from core.ingest.hidden import is_hidden
from core.ingest.soup import class_of, elements, hollow, tags_named, whole_words

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_SIMPLE = re.compile(r"\w+(?:\.\d+)?|[^\w\s]")
_INTEGRAL = "∫"
"""Of a large operator that names none."""
_TEX_WRAPPING = re.compile(r"^\{\\displaystyle (.*)\}$", re.DOTALL)
_TEX_SCRIPT = re.compile(r"\s*math/tex", re.IGNORECASE)
_DRAWN = re.compile(r"(?:MathJax|MJX|mjx)")
"""In the classes of what MathJax draws before the script that it drew."""
_PICTURE = whole_words("(?:la)?tex|math|formula|equation")
_STACKED = re.compile(r"vlist|sqrt|accent")
"""Classes of what KaTeX draws in another order than it is read."""
_MAX_DRAWN = 500
"""Nodes of a formula that may be plain enough."""
_SPACED = frozenset("=≠<>≤≥≈≡∼+−-±×÷⋅·→←↔⇒⇔∈∉⊂⊆∪∩∧∨,;")
_UNSEEN = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064\u200b"))
"""Signs that only programs read: function application, invisible times, comma and plus."""


# Of office files: OMML


def equation_line(equation: Element) -> str:
    """The line of an `oMath` or of a part of one; empty where it holds nothing."""
    return " ".join(_all(equation).split())


def _all(element: Element | None) -> str:
    return "" if element is None else "".join(_of_office(child) for child in element)


def _of_office(element: Element) -> str:
    name = element.tag.removeprefix(M)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):  # settings
        return ""
    reader = _OFFICE_READERS.get(name)
    return _all(element) if reader is None else reader(element)


def _part(element: Element, name: str) -> str:
    return _all(element.find(M + name)).strip()


def _set(element: Element, name: str, default: str) -> str:
    """A setting of an element: `default` where it says nothing, empty where it says so."""
    found = element.find(f"{M}{element.tag.removeprefix(M)}Pr/{M}{name}")
    return default if found is None else found.get(f"{M}val", default)


def grouped(text: str) -> str:
    """In parentheses unless it is one word, number or sign, or already stands in some."""
    is_closed = text[:1] == "(" and text[-1:] == ")" and text.count("(") == 1
    return text if not text or is_closed or _SIMPLE.fullmatch(text) else f"({text})"


def raised(mark: str, text: str) -> str:
    """What stands higher (^) or lower (_); nothing where nothing does."""
    return mark + grouped(text) if text else ""


def _each(element: Element) -> list[str]:
    return [_all(part).strip() for part in element.findall(f"{M}e")]


def _scripts(element: Element) -> str:
    return raised("_", _part(element, "sub")) + raised("^", _part(element, "sup"))


def _fraction(element: Element) -> str:
    between = "; " if _set(element, "type", "bar") == "noBar" else "/"
    top, bottom = grouped(_part(element, "num")), grouped(_part(element, "den"))
    return f"({top}{between}{bottom})" if between == "; " else f"{top}{between}{bottom}"


def _root(element: Element) -> str:
    degree = "" if _set(element, "degHide", "0") in ("1", "on", "true") else _part(element, "deg")
    return f"{f'root {degree} of ' if degree else '√'}({_part(element, 'e')})"


_OFFICE_READERS: dict[str, Callable[[Element], str]] = {
    "f": _fraction,
    **dict.fromkeys(("sSup", "sSub", "sSubSup"), lambda e: grouped(_part(e, "e")) + _scripts(e)),
    "sPre": lambda e: _scripts(e) + _part(e, "e"),
    "rad": _root,
    "nary": lambda e: f"{_set(e, 'chr', _INTEGRAL)}{_scripts(e)} {_part(e, 'e')}",
    "d": lambda e: _set(e, "begChr", "(") + _set(e, "sepChr", "|").join(_each(e)) + _set(e, "endChr", ")"),
    "func": lambda e: f"{_part(e, 'fName')} {_part(e, 'e')}",
    "limLow": lambda e: _part(e, "e") + raised("_", _part(e, "lim")),
    "limUpp": lambda e: _part(e, "e") + raised("^", _part(e, "lim")),
    "m": lambda e: "; ".join(", ".join(_each(row)) for row in e.findall(f"{M}mr")),
    "eqArr": lambda e: "; ".join(_each(e)).replace("&", ""),
    "acc": lambda e: _part(e, "e") + _set(e, "chr", "\u0302"),
    "bar": lambda e: _part(e, "e") + "\u0305",
}


# Of pages: MathML, MathJax, KaTeX


def write_formulas(soup: BeautifulSoup) -> None:
    """Puts each formula in its place as text: its TeX where the page has it, hidden behind a picture."""
    for script in tags_named(soup, ("script",)):
        if _TEX_SCRIPT.match(str(script.get("type", ""))):
            tex = str(script.string or "").strip()
            for drawn in islice(script.previous_siblings, 3):
                if isinstance(drawn, Tag) and _DRAWN.search(class_of(drawn)):
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
            classes = map(class_of, elements(parts))
            if len(parts) < _MAX_DRAWN and not any(map(_STACKED.search, classes)):
                drawn.attrs = {}


def _is_formula(picture: Tag) -> bool:
    """Whether a picture is a formula that the page has in no other form."""
    if not (_PICTURE.search(class_of(picture)) and str(picture.get("alt", "")).strip()):
        return False
    beside = picture.find_previous_sibling()
    return not isinstance(beside, Tag) or (beside.name != "math" and beside.find("math") is None)


def formula_line(formula: Tag) -> str:
    """What a formula says: its TeX where it has one, else its parts."""
    notes = tags_named(formula, ("annotation",))
    noted = (note.get_text() for note in notes if "tex" in str(note.get("encoding", "")).lower())
    tex = str(formula.get("alttext", "")) or next(noted, "")
    tex = _TEX_WRAPPING.sub(r"\1", tex.strip())
    return " ".join((tex or _row(formula)).translate(_UNSEEN).split())


def _row(element: Tag) -> str:
    """All children, one behind the other."""
    text, last = "", ""
    for child in element.children:
        if isinstance(child, NavigableString):
            text += child.strip()
        elif isinstance(child, Tag):
            part = _of_page(child, is_first=not text)
            text += f" {part}" if child.name == "mfrac" and last == "mn" else part
            last = child.name
    return text


def _of_page(element: Tag, *, is_first: bool) -> str:
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
    reader = _PAGE_READERS.get(name)
    return _row(element) if reader is None else reader(_parts(element))


def _parts(element: Tag) -> list[str]:
    """The text of each child element, and three empty ones behind them: a formula may lack parts."""
    return [*(_of_page(child, is_first=True).strip() for child in elements(element.children)), "", "", ""]


def _both(parts: list[str]) -> str:
    return grouped(parts[0]) + raised("_", parts[1]) + raised("^", parts[2])


_PAGE_READERS: dict[str, Callable[[list[str]], str]] = {
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
