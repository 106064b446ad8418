"""Equations of office files (OMML) -> a line of text."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree.ElementTree import Element

M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_SIMPLE = re.compile(r"\w+(?:\.\d+)?|[^\w\s]")
_INTEGRAL = "∫"
"""Of a large operator that names none."""


def equation_line(equation: Element) -> str:
    """The line of an `oMath` or of a part of one; empty where it holds nothing."""
    return " ".join(_all(equation).split())


def _all(element: Element | None) -> str:
    return "" if element is None else "".join(_of(child) for child in element)


def _of(element: Element) -> str:
    name = element.tag.removeprefix(M)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):  # settings
        return ""
    reader = _READERS.get(name)
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


def _fraction(element: Element) -> str:
    between = "; " if _set(element, "type", "bar") == "noBar" else "/"
    top, bottom = grouped(_part(element, "num")), grouped(_part(element, "den"))
    return f"({top}{between}{bottom})" if between == "; " else f"{top}{between}{bottom}"


def _script(element: Element) -> str:
    base = grouped(_part(element, "e"))
    return base + raised("_", _part(element, "sub")) + raised("^", _part(element, "sup"))


def _prescript(element: Element) -> str:
    return raised("_", _part(element, "sub")) + raised("^", _part(element, "sup")) + _part(element, "e")


def _root(element: Element) -> str:
    degree = "" if _set(element, "degHide", "0") in ("1", "on", "true") else _part(element, "deg")
    return f"{f'root {degree} of ' if degree else '√'}({_part(element, 'e')})"


def _operator(element: Element) -> str:
    limits = raised("_", _part(element, "sub")) + raised("^", _part(element, "sup"))
    return f"{_set(element, 'chr', _INTEGRAL)}{limits} {_part(element, 'e')}"


def _delimited(element: Element) -> str:
    parts = [_all(part).strip() for part in element.findall(f"{M}e")]
    between = _set(element, "sepChr", "|")
    return _set(element, "begChr", "(") + between.join(parts) + _set(element, "endChr", ")")


def _function(element: Element) -> str:
    return f"{_part(element, 'fName')} {_part(element, 'e')}"


def _limit(element: Element) -> str:
    mark = "_" if element.tag == f"{M}limLow" else "^"
    return _part(element, "e") + raised(mark, _part(element, "lim"))


def _matrix(element: Element) -> str:
    rows = ([_all(cell).strip() for cell in row.findall(f"{M}e")] for row in element.findall(f"{M}mr"))
    return "; ".join(", ".join(row) for row in rows)


def _lines(element: Element) -> str:
    return "; ".join(_all(part).strip().replace("&", "") for part in element.findall(f"{M}e"))


def _marked(element: Element) -> str:
    return _part(element, "e") + _set(element, "chr", "\u0302")


def _overlined(element: Element) -> str:
    return _part(element, "e") + "\u0305"


_READERS: dict[str, Callable[[Element], str]] = {
    "f": _fraction,
    **dict.fromkeys(("sSup", "sSub", "sSubSup"), _script),
    "sPre": _prescript,
    "rad": _root,
    "nary": _operator,
    "d": _delimited,
    "func": _function,
    **dict.fromkeys(("limLow", "limUpp"), _limit),
    "m": _matrix,
    "eqArr": _lines,
    "acc": _marked,
    "bar": _overlined,
}
