"""What stands higher, lower or beside words in a line.

Kept from running into its words. Powers and indices get a mark: 10^6, H₂O, T_room. References to notes get
brackets: 1200[2]. Fractions get their stroke: 1 1/2. The reading of a word stands in parentheses: 漢 (kan).
Signs beside a heading that only link to it go.
"""

from __future__ import annotations

import re
from itertools import islice, takewhile

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from core.ingest.equations import raised
from core.ingest.soup import hollow, tags_named

HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_LINES = HEADINGS | frozenset(
    [*("p", "div", "li", "td", "th", "dt", "dd", "blockquote", "section", "article", "br", "pre", "table")]
)
"""Elements that begin a line."""
_PROSE = HEADINGS | frozenset(["p", "li", "td", "th", "dt", "dd", "blockquote", "figcaption", "caption"])
_STRONG = frozenset(["strong", "b", "em"])
_APART = _STRONG | {"span", "time", "mark", "small", "cite", "address", "a"}
_LABEL_END = frozenset(":.)]")
_OPENING = "\"'“‘„«([{"
_ITEM_LABEL = re.compile(r"[(\[]?(?:\d+|[a-zA-Z]|[ivxIVX]+)[.)\]]")
_LIFTING_STYLE = re.compile(r"vertical-align\s*:\s*(super|sub)\b", re.IGNORECASE)
_ORDINAL = re.compile(
    r"st|nd|rd|th|ers?|[èe]re|i?[èe]mes?|re|es?|de|ste|te|tm|sm|mes?|lles?|c?ie|gr", re.IGNORECASE
)
"""Ends of words that print raises: 1st, 2nde, Mme, Cie."""
_SHORT = re.compile(r"[+\-−–]?\w{1,3}")
_NUMBERS = re.compile(r"\d{1,4}(?:\s*[,–—-]\s*\d{1,4})+")
_POWERED = re.compile(r"(?:\A|\D)(?:10|2|e)\Z")
"""Bases whose raised range is one of powers; behind anything else it is one of notes."""
_REFERENCE = re.compile(r"\w{1,5}(?:\s*[,–—-]\s*\w{1,5})*")
_SUBSCRIPTS = str.maketrans("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
_SMALL = re.compile(r"[0-9+\-−=()]{1,10}")
_SENTENCE_END = re.compile(r"[.!?…:;][)\]\"'”’»]*\s+\Z")
_STROKES = frozenset("/⁄∕")
_MAX_RAISED = 30
"""Characters of a raised text; a longer one is a remark."""
_LOOK_BACK = 12
"""Elements looked at for the words before a raised text."""
_BEFORE = 20
"""Characters kept of them."""


def name_lifted(soup: BeautifulSoup) -> None:
    """Makes `sup` and `sub` of what only a style or a template lifts: those go with the attributes."""
    for tag in tags_named(soup, ("span", "font", "a")):
        style = _LIFTING_STYLE.search(str(tag.get("style", "")))
        part = {"num": "sup", "den": "sub"}.get(" ".join(map(str, tag.get_attribute_list("class"))))
        if style is not None:
            tag.name = style[1].lower()[:3]
        elif part is not None and isinstance(tag.parent, Tag) and "frac" in str(tag.parent.get("class", "")):
            tag.name = part


def set_marks(soup: BeautifulSoup) -> None:
    """Marks what is raised, lowered or refers to a note, and drops signs that link to their own heading."""
    for link in tags_named(soup, ("a",)):
        text = link.get_text().strip()
        if not any(map(str.isalnum, text)):
            if text and "#" in str(link.get("href", "")) and _is_titling(link):
                hollow(link)
        elif is_note(link) and _REFERENCE.fullmatch(text):
            link.string = f"[{text}]"
    for tag in tags_named(soup, ("sup",)):
        _join_fraction(tag)
    for tag in reversed(tags_named(soup, ("sup", "sub", "rt", "rp"))):  # those within others come first
        _mark(tag)


def _is_titling(link: Tag) -> bool:
    return any(parent.name in HEADINGS or parent.name == "dt" for parent in link.parents)


def is_note(link: Tag) -> bool:
    """Whether a link leads to a note or back from it."""
    kinds = f"{link.get('role', '')} {link.get('epub:type', '')}"
    is_raised = link.find_parent("sup") is not None or link.find("sup") is not None
    return "noteref" in kinds or (is_raised and str(link.get("href", "")).startswith("#"))


def _join_fraction(top: Tag) -> None:
    """`<sup>1</sup>/<sub>2</sub>` as 1/2, apart from the whole number before it."""
    stroke = top.next_sibling
    bottom = None if stroke is None else stroke.next_sibling
    texts = (top.get_text().strip(), bottom.get_text().strip()) if isinstance(bottom, Tag) else ("", "")
    if (
        isinstance(stroke, NavigableString)
        and stroke.strip() in _STROKES
        and isinstance(bottom, Tag)
        and bottom.name == "sub"
        and all(text.isdecimal() for text in texts)
    ):
        whole = " " if _before(top)[-1:].isdecimal() else ""
        top.name = bottom.name = "span"
        top.string, bottom.string = f"{whole}{texts[0]}/", texts[1]
        stroke.replace_with("")


def _before(tag: Tag) -> str:
    """The last characters before an element on its line."""
    for element in islice(tag.previous_elements, _LOOK_BACK):
        if isinstance(element, Tag) and element.name in _LINES:
            break
        if isinstance(element, NavigableString) and element:
            return element[-_BEFORE:]
    return ""


def _behind(tag: Tag) -> str:
    """The first characters behind an element on its line."""
    last = tag
    while last.contents and isinstance(last.contents[-1], Tag):
        last = last.contents[-1]
    after = last.contents[-1] if last.contents else last
    for element in islice(after.next_elements, _LOOK_BACK):
        if isinstance(element, Tag) and element.name in _LINES:
            break
        if isinstance(element, NavigableString) and element:
            return element[:_BEFORE]
    return ""


def _mark(tag: Tag) -> None:
    whole = tag.get_text()
    text = whole.strip()
    if tag.name == "rp":
        hollow(tag)
    elif tag.name == "rt" and text:
        tag.string = f" ({text})"
    elif text:
        lead = " " if whole[0].isspace() and not _SHORT.fullmatch(text) else ""
        before, behind = _before(tag), _behind(tag)
        ends = whole[-1].isspace() and behind[:1].isalnum()
        tag.string = lead + _lifted(tag.name, text, before + lead)
        if ends or (tag.name == "sup" and _numbers_a_line(tag, text, behind)):
            tag.append(" ")


def _numbers_a_line(tag: Tag, text: str, behind: str) -> bool:
    """Whether a raised text is the number of the verse or note that begins behind it; within a line it may
    be one of an isotope.
    """
    if not text.strip("[]").isdecimal() or not behind[:1].isalpha():
        return False
    before = _before(tag)
    if before and not before[-1].isspace():
        return False
    word = "".join(takewhile(str.isalpha, behind[:3]))
    is_word = word[1:].islower() or word in ("I", "A")
    is_clear = len(word) == 3 or _SENTENCE_END.search(before) is not None
    return (is_word and is_clear) or _begins_line(tag)


def _begins_line(tag: Tag) -> bool:
    for element in islice(tag.previous_elements, _LOOK_BACK):
        if isinstance(element, Tag) and element.name in _LINES:
            return True
        if isinstance(element, NavigableString) and element.strip():
            return False
    return False


def _lifted(name: str, text: str, before: str) -> str:
    """A raised (`sup`) or lowered text as it stands in the line behind `before`."""
    if name == "sub" and _SMALL.fullmatch(text):
        return text.translate(_SUBSCRIPTS)
    if not any(map(str.isalnum, text)) or not (text[0].isalnum() or text[0] in "+-−–("):
        return text
    if name == "sup" and _ORDINAL.fullmatch(text):
        return text
    if name == "sup" and _NUMBERS.fullmatch(text) and not _POWERED.search(before):
        return f"[{text}]"
    if len(text) > _MAX_RAISED:
        return f" {text}"
    mark = "^" if name == "sup" else "_"
    if _SHORT.fullmatch(text):
        return mark + text
    return raised(mark, text) if before[-1:].isalnum() or before[-1:] in (")", "]") else text


def set_apart(soup: BeautifulSoup) -> None:
    """A blank between neighbours that only styles kept apart: `<time>17:24</time><span>Ann</span>`. Parts of
    one word stay together: in prose a small letter goes on where a letter ended, and scripts that are
    written without blanks have none.
    """
    for tag in tags_named(soup, _APART):
        neighbour = tag.next_sibling
        if not isinstance(neighbour, Tag) or neighbour.name not in _APART:
            continue
        text, next_text = tag.get_text(), neighbour.get_text()
        before, behind = text[-1:], next_text[:1]
        if before in _LABEL_END and not _ITEM_LABEL.fullmatch(next_text):
            next_text = next_text.lstrip(_OPENING)
            behind = next_text[:1]
        meets = before.isalnum() or (before in _LABEL_END and _is_label(text, next_text))
        if not (meets and behind.isalnum()) or tag.find_parent(["pre", "code"]) is not None:
            continue
        if _STRONG.isdisjoint((tag.name, neighbour.name)):
            is_capital = behind.isupper() and len(text) == 1  # a large first letter
            goes_on = before.isalpha() and (behind.islower() or is_capital) and _is_prose(tag)
            goes_on = goes_on and tag.name == neighbour.name == "span"
        else:
            goes_on = before.isalnum() and (len(text) == 1 or behind.islower())
        if not goes_on and not (_is_unspaced(before) and _is_unspaced(behind)):
            tag.append(" ")


def _is_label(text: str, next_text: str) -> bool:
    """Whether a text that ends in a sign is the name or number of the next one; parts of numbers, names of
    files and words such as (un)happy are none.
    """
    sign, behind = text[-1:], next_text[:1]
    before = text[-2:-1]
    if before.isdigit() and behind.isdigit() and sign in ":.":
        return False
    if sign == ":" or _ITEM_LABEL.fullmatch(text):
        return behind.isdigit() or sign != "." or before.isdigit() or next_text[1:2].islower()
    return behind.isdigit() or (behind.isupper() and (sign != "." or len(text) > 2))


def _is_prose(tag: Tag) -> bool:
    line = next((parent for parent in tag.parents if parent.name in _LINES), None)
    return line is not None and line.name in _PROSE


def _is_unspaced(character: str) -> bool:
    """Whether a script has no blanks between words: Han, kana, Thai, Lao, Khmer, Burmese."""
    return (
        "\u3040" <= character <= "\u9fff"
        or "\u0e00" <= character <= "\u0eff"
        or "\u1000" <= character <= "\u109f"
        or "\u1780" <= character <= "\u17ff"
    )
