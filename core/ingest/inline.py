"""What stands higher, lower or beside words in a line.

Kept from running into its words. Powers and indices get a mark: 10^6, H₂O, T_room. References to notes get
brackets: 1200[2]. Fractions get their stroke: 1 1/2. Cents and minutes get their point: $12.99, 9:30. The
reading of a word stands in parentheses: 漢 (kan).
Signs beside a heading that only link to it go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, takewhile

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement

from core.ingest.formulas import raised
from core.ingest.hidden import styled
from core.ingest.soup import HEADINGS, LOOK_AROUND, class_of, elements, hollow, tags_named, whole_words

_LINES = HEADINGS | frozenset(
    [*("p", "div", "li", "td", "th", "dt", "dd", "blockquote", "section", "article", "br", "pre", "table")]
)
_PROSE = HEADINGS | frozenset(["p", "li", "td", "th", "dt", "dd", "blockquote", "figcaption", "caption"])
_BREAKS = frozenset(["br", "hr", "wbr"])
_STRONG = frozenset(["strong", "b", "em"])
_APART = _STRONG | {"span", "time", "mark", "small", "cite", "address", "a"}
_LABEL_END = frozenset(":.)]")
_OPENING = "\"'“‘„«([{"
ITEM_LABEL = re.compile(r"[(\[]?(?:\d+|[a-zA-Z]|[ivxIVX]+)[.)\]]")
_ENDS = frozenset("!?.:;,)]%")
_STYLING_NAME = re.compile(
    r"\d|(?<![a-z])(?:\w{1,2}(?![\w-])|bold|ital|emph|strong|under|colou?r|high|match|mark|font|text|style|span"
    r"|calibre|normal|regular|roman|small|caps|upper|lower|drop|initial|first|letter|char|syll|stem|root|prefix"
    r"|suffix|affix|ending|morph|spell|gram|token|ins|del|add|remove|change|search|find|select|split|part|wrap"
    r"|visible|invisible|hid|show|ellipsis|trunc|more)",
    re.IGNORECASE,
)
"""Classes that may begin or end within a word."""
_HEAD_NAME = whole_words(
    r"badge|pill|label|speaker|qty|quantity|amount|count(?:er)?|num(?:ber)?|lineno"
    r"|(?:verse|line|sec(?:tion)?|para(?:graph)?)-?n(?:o|um(?:ber)?)|time|date"
)
"""Classes of what stands before words without being one of them."""
_TAIL_NAME = whole_words(r"badge|pill|chip|label|count(?:er)?|side-?note|foot-?note(?!-?ref)|unit|time|date")
_LIFTING_STYLE = re.compile(r"vertical-align\s*:\s*(super|sub)\b", re.IGNORECASE)
_WORD_LABEL = re.compile(r"mso-list\s*:\s*Ignore", re.IGNORECASE)
"""What Word writes before an item of a list, with a letter of a font of signs as its bullet."""
_SUPER = re.compile(r"vertical-align\s*:\s*super\b", re.IGNORECASE)
_SUB = re.compile(r"vertical-align\s*:\s*sub\b", re.IGNORECASE)
_LIST_TYPES = {"a": "lower-?(?:alpha|latin)", "A": "upper-?(?:alpha|latin)", "i": "lower-?roman"}
_LIST_TYPES |= {"I": "upper-?roman", "none": "none"}
_LIST_STYLES = {
    kind: re.compile(rf"list-style(?:-type)?\s*:[^;}}]{{0,60}}?(?<![\w-]){named}\b", re.IGNORECASE)
    for kind, named in _LIST_TYPES.items()
}
_LIST_CLASSES = {
    kind: re.compile(r"(?:list-)?(?:unstyled|none)" if kind == "none" else named, re.IGNORECASE)
    for kind, named in _LIST_TYPES.items()
}
"""What those who write style sheets call their lists."""
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
_NOTE_NAME = whole_words("(?:foot|end)-?note(?:-?ref)?|note-?ref|fn-?ref")
_NOTE_NUMBER = re.compile(r"\d{1,3}|[a-z]")
_CURRENCY = re.compile(r"\s*(?:[€$£¥₽₴₺]|(?:kr|zł|Kč|Ft|lei|EUR|USD|GBP|CHF|SEK|NOK|DKK|PLN|CZK|руб|грн)\b)")
_PRICE = re.compile(r"(?:[€$£¥₽₴₺]|\b(?:kr|EUR|USD|GBP|CHF|SEK))\.?\s?\d[\d\s.,']{0,12}\Z")
_SCALE = re.compile(r"\s?[CF]\b")
_HOUR = re.compile(r"(?<![\d.,])(?:[01]?\d|2[0-4])\Z")
_MINUTES = re.compile(r"[0-5]\d")
_OF_CLOCK = re.compile(r"\s?(?:Uhr\b|[ap]\.?m\b)")
_UNTIL = re.compile(r"\s?[–—-]\s?(\d{1,2})")
_FRACTION = re.compile(r"\d{1,3}[/⁄∕]\d{1,3}")
_SMALL = re.compile(r"[0-9+\-−=()]{1,10}")
_SENTENCE_END = re.compile(r"[.!?…:;][)\]\"'”’»]*\s+\Z")
_STROKES = frozenset("/⁄∕")
_MAX_RAISED = 30
"""Characters of a raised text; a longer one is a remark."""
_BEFORE = 20
"""Characters kept of the words beside a raised text."""


def name_lifted(soup: BeautifulSoup) -> None:
    """Makes `sup` and `sub` of what only a style or template lifts, and gives lists their style's type and
    items of Word their marks.
    """
    lifted = {
        "sup": (styled(soup, _SUPER), {"superscript", "sup", "exponent"}),
        "sub": (styled(soup, _SUB), {"subscript"}),
    }
    for tag in tags_named(soup, ("span", "font", "a")):
        if _WORD_LABEL.search(str(tag.get("style", ""))):
            label = tag.get_text().strip()
            tag.string = f"{label} " if len(label) > 1 or label.isdecimal() else "- "
            continue
        style = _LIFTING_STYLE.search(str(tag.get("style", "")))
        classes = class_of(tag)
        part = {"num": "sup", "den": "sub"}.get(classes)
        if style is not None:
            _lift(tag, style[1].lower()[:3])
        elif part is not None and any("frac" in class_of(near) for near in islice(tag.parents, 2)):
            tag.name = part
            if isinstance(stroke := tag.next_sibling, Tag) and stroke.get_text().strip() in _STROKES:
                stroke.attrs = {}  # often for screen readers alone
        else:
            for name, (found, known) in lifted.items():
                if (id(tag) in found or not known.isdisjoint(classes.split())) and _is_little(tag):
                    _lift(tag, name)
                    break
    _type_lists(soup)


def _lift(tag: Tag, name: str) -> None:
    if tag.name == "a" and name == "sup" and "#" in str(tag.get("href", "")):
        tag["role"] = "doc-noteref"
    else:
        tag.name = name


def _is_little(tag: Tag) -> bool:
    """Whether an element is a number or a letter or two right behind a word; others are icons and badges."""
    text = tag.get_text().strip().strip("[]()").lstrip("+-−–")
    before = _before(tag)[-1:]
    is_index = len(text) <= _MAX_RAISED and _REFERENCE.fullmatch(text) is not None
    is_badge = len(text) > 2 and text.isalpha() and not _ORDINAL.fullmatch(text)
    return is_index and not is_badge and (before.isalnum() or before in tuple('.,;:)]"”’'))


def _type_lists(soup: BeautifulSoup) -> None:
    lists = tags_named(soup, ("ol",))
    looked_up = _LIST_STYLES if any(tag.get("class") for tag in lists) else {}
    styles = {kind: styled(soup, style) for kind, style in looked_up.items()}
    for tag in lists:
        style = str(tag.get("style", ""))
        kind = next((kind for kind, shown in _LIST_STYLES.items() if shown.search(style)), None)
        classes = class_of(tag).split()
        if kind is None:
            kind = next((kind for kind, found in styles.items() if id(tag) in found), None)
        if kind is None and tag.get("type") is None:
            named = ((kind, name) for kind in _LIST_CLASSES for name in classes)
            kind = next((kind for kind, name in named if _LIST_CLASSES[kind].fullmatch(name)), None)
        if kind is not None:
            tag["type"] = kind


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
    if "noteref" in kinds:
        return True
    if not str(link.get("href", "")).startswith("#"):
        return False
    if link.find_parent("sup") is not None or link.find("sup") is not None:
        return True
    text = (link.string or "").strip()
    if not _NOTE_NUMBER.fullmatch(text):
        return False
    names = f"{link.get('class', '')} {link.parent.get('class', '') if link.parent else ''}".replace("_", "-")
    return _NOTE_NAME.search(names) is not None or (text.isdigit() and _before(link)[-1:].isdigit())


def _join_fraction(top: Tag) -> None:
    """`<sup>1</sup>/<sub>2</sub>` as 1/2, apart from the whole number before it."""
    stroke = top.next_sibling
    bottom = None if stroke is None else stroke.next_sibling
    texts = (top.get_text().strip(), bottom.get_text().strip()) if isinstance(bottom, Tag) else ("", "")
    if (
        stroke is not None
        and stroke.get_text().strip() in _STROKES
        and isinstance(bottom, Tag)
        and bottom.name == "sub"
        and all(text.isdecimal() for text in texts)
    ):
        whole = " " if _before(top).rstrip("\u2060")[-1:].isdecimal() else ""
        top.name = bottom.name = "span"
        top.string, bottom.string = f"{whole}{texts[0]}/", texts[1]
        if isinstance(stroke, Tag):
            stroke.clear()
        else:
            stroke.replace_with("")


def _before(tag: Tag) -> str:
    """The last characters before an element on its line."""
    before = ""
    for element in islice(tag.previous_elements, LOOK_AROUND):
        if isinstance(element, Tag) and element.name in _LINES:
            break
        if isinstance(element, NavigableString):
            before = element[-_BEFORE:] + before
    return before[-_BEFORE:]


def _behind(tag: Tag) -> str:
    """The first characters behind an element on its line."""
    last = tag
    while last.contents and isinstance(last.contents[-1], Tag):
        last = last.contents[-1]
    after = last.contents[-1] if last.contents else last
    for element in islice(after.next_elements, LOOK_AROUND):
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
        small = _small_part(tag, text, before, behind) if tag.name == "sup" else ""
        tag.string = small or lead + _lifted(tag.name, text, before + lead)
        if ends or (tag.name == "sup" and _numbers_a_line(tag, text, behind)):
            tag.append(" ")


def _numbers_a_line(tag: Tag, text: str, behind: str) -> bool:
    """Whether a raised text is the number of the verse or note that begins behind it; within a line it may be
    one of an isotope.
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
    for element in islice(tag.previous_elements, LOOK_AROUND):
        if isinstance(element, Tag) and element.name in _LINES:
            return True
        if isinstance(element, NavigableString) and element.strip():
            return False
    return False


def _small_part(tag: Tag, text: str, before: str, behind: str) -> str:
    """Cents, minutes and the sign of a degree, which print raises without a power; empty for others."""
    last = before[-1:]
    if text in ("º", "ª") or (text in ("o", "O", "0") and last.isdigit() and _SCALE.match(behind)):
        return "°" if text in ("o", "O", "0") else text
    if len(text) != 2 or not text.isdecimal():
        return ""
    is_power = _POWERED.search(before) is not None and text != "00"
    is_price = _PRICE.search(before) or (not is_power and _CURRENCY.match(behind))
    if last in (".", ","):
        ends_sentence = last == "." and behind[:1].isspace() and behind.lstrip()[:1].isupper()
        return text if is_price and not ends_sentence else ""
    if not last.isdecimal():
        return ""
    is_hour = _HOUR.search(before) is not None and _MINUTES.fullmatch(text) is not None
    if is_hour and not is_price and (_OF_CLOCK.match(behind) or _spans_hours(tag)):
        return f":{text}"
    return f".{text}" if is_price or text == "00" or (is_hour and text[0] == "0" and not is_power) else ""


def _spans_hours(tag: Tag) -> bool:
    """Whether raised minutes stand at an end of a span such as 9^30-17^00; powers of one base are none."""
    for step in (0, 1):
        first: PageElement | None = tag
        if step and tag.previous_sibling is not None:
            first = tag.previous_sibling.previous_sibling
        between = None if first is None else first.next_sibling
        second = None if between is None else between.next_sibling
        until = _UNTIL.fullmatch(between) if isinstance(between, NavigableString) else None
        if not (until and isinstance(first, Tag) and isinstance(second, Tag)):
            continue
        if first.name == second.name == "sup":
            hour = _HOUR.search(_before(first))
            return hour is not None and hour[0] != until[1]
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
    """A blank between neighbours that only styles kept apart: `<time>17:24</time><span>Ann</span>`.

    Parts of one word stay together: in prose a small letter goes on where a letter ended, unless classes name
    what both hold, and scripts that are written without blanks have none.
    """
    for tag in [tag for tag in elements(soup.descendants) if _may_touch(tag)]:
        _set_off(tag)
        neighbour = _nearest(tag.next_siblings)
        if not isinstance(neighbour, Tag) or not _may_touch(neighbour):
            continue
        text, next_text = tag.get_text(), neighbour.get_text()
        before, behind = text[-1:], next_text[:1]
        if before in _LABEL_END and not ITEM_LABEL.fullmatch(next_text):
            next_text = next_text.lstrip(_OPENING)
            behind = next_text[:1]
        are_custom = "-" in tag.name and "-" in neighbour.name
        meets = before.isalnum() or (before in _LABEL_END and _is_label(text, next_text))
        meets = meets or _is_closed(text, behind) or (are_custom and len(text) > 1 and before in _ENDS)
        if not (meets and behind.isalnum()) or tag.find_parent(["pre", "code"]) is not None:
            continue
        if are_custom:
            goes_on = len(text) == len(next_text) == 1 and before.isalpha()
        elif _STRONG.isdisjoint((tag.name, neighbour.name)):
            is_near = neighbour is tag.next_sibling
            is_capital = is_near and behind.isupper() and len(text) == 1  # a large first letter
            goes_on = before.isalpha() and (behind.islower() or is_capital) and _is_prose(tag)
            goes_on = goes_on and tag.name == neighbour.name == "span"
            are_long = len(text) > 1 and len(next_text) > 1
            goes_on = goes_on and not (are_long and _is_field(tag) and _is_field(neighbour))
        else:
            goes_on = before.isalnum() and (len(text) == 1 or behind.islower())
        if not goes_on and not (_is_unspaced(before) and _is_unspaced(behind)):
            tag.append(" ")


def _may_touch(tag: Tag) -> bool:
    return tag.name in _APART or "-" in tag.name  # custom elements have a hyphen


def _nearest(nodes: Iterator[PageElement]) -> PageElement | None:
    """The first of the nodes beside an element that holds anything: pictures and fields have become empty."""
    for node in islice(nodes, LOOK_AROUND):
        parts = list(islice(node.descendants, LOOK_AROUND)) if isinstance(node, Tag) else [node]
        is_full = len(parts) == LOOK_AROUND or any(part for part in parts if not isinstance(part, Tag))
        if is_full or (isinstance(node, Tag) and node.name in _BREAKS):
            return node
    return None


def _is_field(tag: Tag) -> bool:
    """Whether a class names what an element holds, such as `amount`, and no style."""
    names = class_of(tag)
    return len(names) > 2 and _STYLING_NAME.search(names.replace("_", "-")) is None


def _is_closed(text: str, behind: str) -> bool:
    """Whether a text ends a sentence or a price, so that what follows is no part of it."""
    if text[-1:] in ("!", "?"):
        return len(text) > 1 and behind.isupper()
    return text[-1:] in tuple("%€$£") and behind.isalpha() and any(map(str.isdigit, text[-6:-1]))


def _set_off(tag: Tag) -> None:
    """A blank between words and a badge, count, unit or fraction beside them."""
    names = class_of(tag).replace("_", "-")
    is_time = tag.name == "time"
    is_head, is_tail = (is_time or name.search(names) is not None for name in (_HEAD_NAME, _TAIL_NAME))
    is_fraction = tag.name in ("span", "small") and _FRACTION.fullmatch(tag.string or "") is not None
    if not (is_head or is_tail or is_fraction) or tag.find_parent(["pre", "code"]) is not None:
        return
    text, before, behind = tag.get_text(), _nearest(tag.previous_siblings), _nearest(tag.next_siblings)
    if is_head and isinstance(behind, NavigableString) and _divides(text[-_BEFORE:], behind[:_BEFORE]):
        tag.append(" ")
    if isinstance(before, NavigableString) and (
        (is_tail and _divides(before[-_BEFORE:], text[:_BEFORE])) or (is_fraction and before[-1:].isdecimal())
    ):
        tag.insert(0, " ")


def _divides(before: str, behind: str) -> bool:
    """Whether a word or number ends where another begins: no suffix, ordinal, unit of one letter or index."""
    last, first = before[-1:], behind[:1]
    if not (last.isalnum() and first.isalnum()) or (_is_unspaced(last) and _is_unspaced(first)):
        return False
    if last.isalpha():
        n_letters = len(list(takewhile(str.isalpha, reversed(before))))
        return not first.islower() and n_letters > (2 if first.isdigit() else 1)
    word = "".join(takewhile(str.isalpha, behind))
    return first.isdigit() or word in ("I", "A") or (len(word) > 1 and not _ORDINAL.fullmatch(word))


def _is_label(text: str, next_text: str) -> bool:
    """Whether a text that ends in a sign is the name or number of the next one; parts of numbers, names of
    files and words such as (un)happy are none.
    """
    sign, behind = text[-1:], next_text[:1]
    before = text[-2:-1]
    if before.isdigit() and behind.isdigit() and sign in ":.":
        return False
    if sign == ":" or ITEM_LABEL.fullmatch(text):
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
