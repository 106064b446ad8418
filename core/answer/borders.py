"""Where an answer may begin and end.

Never within a word, a bracket, a quotation, a name or markup. A span that a network points at is moved
outward to whole words, to the sign or currency before a number, to the other bracket or quotation mark where
that is near, to the surname behind an initial, to whole items of a list; where the other half is too far,
what remains on the longer side is kept. What can't be made whole is no answer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

NEAR = 60
"""Characters that a border moves outward, at most."""
LEAST_KEPT = 0.5
"""Least share of a span's letters and digits in its answer: what is left of less was not pointed at."""
_ROUNDS = 6
"""One border's move can break another rule; few spans need more than two rounds."""

_TAGS = (
    "a|abbr|article|aside|b|blockquote|body|br|button|caption|cite|code|dd|del|details|div|dl|dt|em|figcaption|figure|footer|h[1-6]|head|header|hr|html|i|img|"
    "input|ins|kbd|label|li|main|mark|nav|ol|option|p|pre|q|s|samp|script|section|select|small|span|strong|style|summary|svg|table|tbody|td|tfoot|"
    "th|thead|tr|u|ul|var|video"
)
_MARKUP = re.compile(
    rf"</?(?:{_TAGS})(?:\s[^<>\n]*)?/?>"  # a tag
    r"|!?\[(?=[^\]\n]*\]\()"  # [ of a link
    r"|\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)"  # ](address)
    r"|\s*\|\s*(?::?-{2,}:?\s*\|\s*)*"  # borders of cells, and the line below a head
    r"|(?m:^\s{0,3}(?:#{1,6}|[-*+>])\s+)"  # headings, items, quotations
    r"|\s*\n\s*\n\s*"  # paragraphs
    r"|^```.*$"
    r"|(?<![\w~])~~(?=\S)[^~\n]{1,300}(?<=\S)~~",  # what was deleted
    re.MULTILINE,
)
_OPENING, _CLOSING = "([{“«", ")]}”»"
_OTHER = dict(zip(_OPENING + _CLOSING, _CLOSING + _OPENING, strict=True))
_ALIKE = tuple(map(re.compile, ('"', r"\*\*", r"(?<!\*)(?:\*(?=[^\s*])|(?<=[^\s*])\*)(?!\*)", "`")))
"""Marks that open and close alike; a star between blanks is none."""
_LOOSE_LEFT = " \t\r\n\f\v\u00a0*`|>,;:.!?)]}”»–—•·=~’"
_LOOSE_RIGHT = " \t\r\n\f\v\u00a0*`|<,;:.!?([{“«–—•·=~‘"
_SIGN = re.compile(
    r"""(?:\A|(?<=[\s(:=|]))(?<!\d\s)[-−–]\Z   # a minus, not the dash of a range
      | [±≤≥≈][ ]?\Z
      | (?:\A|(?<=[\w( ]))<[ ]?\Z
      | (?<=[\w( ])>[ ]?\Z                      # no quotation of a line
      | (?<![~\w])~[ ]?\Z
      | (?:(?<![A-Za-z])[A-Z]{1,3})?[$€£¥₹]\Z""",
    re.VERBOSE,
)
"""What belongs to the number that follows: a minus, a bound, a currency."""
_COUNTRY = re.compile(r"(?<![A-Za-z])[A-Z]{1,3}\Z")
"""Before the sign of a currency."""
_CURRENCIES = "$€£¥₹"
_SIGN_ROOM = 210
"""Characters before a number in which its sign, or the tag that ends there, is looked for."""
_TAG_END = re.compile(r"<[^<>\n]{0,200}>\Z")
_DOTTED = re.compile(r"(?<!\w)(?:[A-Za-z]\.){2,}\Z|(?<!\w)[A-Z]\.\Z|\b(?:Inc|Ltd|Corp|Jr|Sr|Bros)\.\Z")
"""Ends in a point that is its own."""
_INITIAL = re.compile(r"(?:^|(?<=[^\w]))(?:[A-Z]\.[\s-]?)+$")
_SURNAME = re.compile(r"[ \u00a0]?(?:[A-Z]\.[ \u00a0]?)*[A-Z]\w[\w'’-]*")
_GIVEN = re.compile(r"(?:\b[A-Z][\w'’-]*[ \u00a0])?(?:\b[A-Z]\.[ \u00a0]?)+$")
_NO_INITIAL = re.compile(
    r"""(?:\A|\n)[ \t]*[A-Z]\.[ \u00a0]?\Z              # the label of an item
      | (?<![A-Z]\.)(?<![A-Z]\.[ ])\bI\.[ \u00a0]?\Z     # the first of its name
      | \b(?i:war|vitamin|hepatitis|group|type|class|grade|plan|figure|fig|table|part|section|appendix|block
               |team|category|option|exhibit|point|schedule|annex|level)s?[ ][A-Z]\.[ \u00a0]?\Z""",
    re.VERBOSE,
)
"""A capital letter with the point that ends its sentence."""
_POWER = re.compile(
    r"\w(?:\^(?:\{[^{}\n]{1,20}\}|[-+−]?\w{1,20})|<(?P<script>su[pb])>[^<>\n]{1,20}</(?P=script)>)++"
)
_ITEMS = re.compile(";")
_ITEM_BORDER = re.compile(r"[;\n(:]|(?<![A-Z])[.!?]\s")
_ITEM_END = re.compile(r"[;\n)]|(?<![A-Z])[.!?](?=\s|$)|$")


def whole(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The place of the answer that a span of a text stands for; None where there is none.

    >>> text = "the weight p_{ii} (see Linderman, George C.; Steinerberger, Stefan)"
    >>> [
    ...     text[slice(*whole(text, text.index(said), text.index(said) + len(said)))]
    ...     for said in ("p_{ii", "weight p", "eight")
    ... ]
    ['p_{ii}', 'weight p_{ii}', 'weight']
    """
    place = _without_markup(text, start, end)
    for _ in range(_ROUNDS):
        before = place
        for rule in (
            _trimmed,
            _whole_words,
            _whole_numbers,
            _whole_powers,
            _whole_pairs,
            _whole_marks,
            _whole_names,
            _whole_items,
            _without_markup,
        ):
            place = rule(text, *place)
            if place[0] >= place[1]:
                return None
        # a list's end may bring half a bracket or quotation back
        if place == before and _lonely(text, *place) is None and _whole_marks(text, *place) == place:
            break
    else:
        return None
    n_inside = _n_letters(text, max(start, place[0]), min(end, place[1]))
    return place if n_inside and n_inside >= LEAST_KEPT * _n_letters(text, start, end) else None


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Without loose marks at the ends; a point stays that belongs to a number, file name or initial."""
    while start < end and text[start] in _LOOSE_LEFT:
        number = start + 1 + (text[start + 1 : start + 2] == " ")
        if text[start] in "~>–" and _whole_numbers(text, number, end)[0] <= start:
            break
        is_behind_word = text[max(0, start - 1) : start].isalnum()
        if text[start] == "." and text[start + 1 : min(start + 2, end)].isalnum() and not is_behind_word:
            break
        start += 1
    while start < end and text[end - 1] in _LOOSE_RIGHT:
        if text[end - 1] == "." and _DOTTED.search(text[max(start, end - 10) : end]):
            break
        end -= 1
    opens = start < end and text[start] in _OPENING
    if opens and _partner(text[start + 1 : end], text[start]) == end - start - 2:
        return start + 1, end - 1
    return start, end


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and _joined(text, start):
        start -= 1
    while end < len(text) and _joined(text, end):
        end += 1
    if text[end : end + 1] == "." and _DOTTED.search(text[max(start, end - 9) : end + 1]):
        end += 1
    return start, end


def in_word(character: str) -> bool:
    """Whether a character is of a word or number: also a vowel sign, an accent, an unseen hyphen."""
    return (
        character.isalnum()
        or character in "\u00ad\u200c\u200d⁻⁺₋₊"
        or unicodedata.category(character)[0] == "M"
    )


def _joined(text: str, at: int) -> bool:
    """Whether the characters before and at a place belong to one word, number or identifier."""
    left, right = text[at - 1], text[at]
    if left.isspace() or right.isspace():
        return False
    if (in_word(left) or left == "_") and (in_word(right) or right == "_"):
        return True
    if right in "{" and left in "_^":
        return True
    return _joins(text, at) or _joins(text, at - 1)


def _joins(text: str, at: int) -> bool:
    """Whether the mark at a place joins what is before and behind it to one word: well-known, don't,
    COVID-19, 3.5, 1/2, 9:30, 2023-05-17, os.path, AT&T, a@b.
    """
    before, mark, after = text[at - 1 : at] or " ", text[at], text[at + 1 : at + 2] or " "
    if not (in_word(before) and in_word(after)):
        return False
    digits = before.isdigit() and after.isdigit()
    letters = not before.isdigit() and not after.isdigit()
    if mark in ".,":
        return digits or (mark == "." and after.islower() and before.islower())
    if mark in "-\u2010\u2011":
        return not digits or _is_code(text, at)
    return (mark in "/:" and digits) or (mark in "'’&" and letters) or mark in "@_"


def _is_code(text: str, at: int) -> bool:
    """Whether a hyphen between digits is one of several, as in a date or an ISBN; alone it is a range."""
    before = re.search(r"[\w\u2010\u2011-]*\Z", text[max(0, at - NEAR) : at])
    behind = re.match(r"[\w\u2010\u2011-]*", text[at : at + NEAR])
    assert before is not None
    assert behind is not None
    return (before[0] + behind[0]).count(text[at]) > 1


def _whole_numbers(text: str, start: int, end: int) -> tuple[int, int]:
    """A number with its sign and currency: -0.7%, ≥5 mg, US$450."""
    while start < end and (text[start].isdigit() or text[start] in _CURRENCIES):
        before = text[max(0, start - _SIGN_ROOM) : start]
        sign = _SIGN.search(before) or (_COUNTRY.search(before) if text[start] in _CURRENCIES else None)
        if sign is None or _TAG_END.search(before):
            break
        start -= len(sign[0])
    return start, end


def _whole_powers(text: str, start: int, end: int) -> tuple[int, int]:
    """A number or sign with what stands above or below it: 10^6, 10<sup>6</sup>."""
    for power in _POWER.finditer(text, max(0, start - NEAR), end + NEAR):
        if power.start() < end and power.end() > start:
            start, end = min(start, power.start()), max(end, power.end())
    return start, end


def _whole_pairs(text: str, start: int, end: int) -> tuple[int, int]:
    """Half a bracket is completed where its other half is near, and cut off where it isn't."""
    lonely = _lonely(text, start, end)
    if lonely is None:
        return start, end
    at, mark = lonely
    if mark in _OPENING:
        other = _partner(text[end : end + NEAR], mark)
        return (start, end + other + 1) if other is not None else _longer(text, start, at, end)
    other = _partner(text[max(0, start - NEAR) : start][::-1], mark)
    return (start - other - 1, end) if other is not None else _longer(text, start, at, end)


def _lonely(text: str, start: int, end: int) -> tuple[int, str] | None:
    """The first bracket of a span without its other half in it."""
    open_at: list[int] = []
    for at in range(start, end):
        if text[at] in _OPENING:
            open_at.append(at)
        elif text[at] in _CLOSING:
            if not open_at or text[open_at[-1]] != _OTHER[text[at]]:
                return at, text[at]
            open_at.pop()
    return (open_at[0], text[open_at[0]]) if open_at else None


def _partner(text: str, mark: str) -> int | None:
    """Where the other half of a bracket follows, or precedes read backward; not behind the end of a line."""
    depth = 1
    for at, character in enumerate(text):
        if character == "\n":
            return None
        depth += (character == mark) - (character == _OTHER[mark])
        if depth == 0:
            return at
    return None


def _whole_marks(text: str, start: int, end: int) -> tuple[int, int]:
    """The same for marks that open and close alike: one more of them is needed where their number is odd."""
    for mark in _ALIKE:
        places = [match.span() for match in mark.finditer(text, start, end)]
        if len(places) % 2 == 0:
            continue
        first, last = places[len(places) // 2]
        is_behind_word = first > 0 and text[first - 1].isalnum()
        if last < len(text) and not text[last].isspace() and not is_behind_word:  # opens
            other = mark.search(text, end, end + NEAR)
            if other is not None and "\n" not in text[end : other.start()]:
                return start, other.end()
        else:
            before = list(mark.finditer(text, max(0, start - NEAR), start))
            if before and "\n" not in text[before[-1].end() : start]:
                return before[-1].start(), end
        return _longer(text, start, first, end, last - first)
    return start, end


def _whole_names(text: str, start: int, end: int) -> tuple[int, int]:
    """A surname behind an initial, and initials with a given name before a surname."""
    if _INITIAL.search(text[start:end]) and not _NO_INITIAL.search(text[max(0, end - NEAR) : end]):
        behind = _SURNAME.match(text, end)
        if behind is not None and behind.end() - end <= NEAR:
            end = behind.end()
    before = text[max(0, start - NEAR) : start]
    given = _GIVEN.search(before) if text[start].isupper() and not _NO_INITIAL.search(before) else None
    if given is not None:
        start -= len(before) - given.start()
    return start, end


def _whole_items(text: str, start: int, end: int) -> tuple[int, int]:
    """Items of a list parted by semicolons: whole ones, or the longest that the span has of one."""
    if ";" not in text[start:end]:
        return start, end
    before, behind = text[max(0, start - NEAR) : start], text[end : end + NEAR]
    firsts = [0] if start <= NEAR else []
    firsts += [start - len(before) + border.end() for border in _ITEM_BORDER.finditer(before)]
    last = _ITEM_END.search(behind)
    if firsts and last is not None:
        return _trimmed(text, firsts[-1], end + last.start())
    return max(_parts(text, start, end, _ITEMS), key=lambda part: part[1] - part[0])


def _without_markup(text: str, start: int, end: int) -> tuple[int, int]:
    """The longest piece without markup."""
    return max(_parts(text, start, end, _MARKUP), key=lambda part: part[1] - part[0])


def _parts(text: str, start: int, end: int, border: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """What lies between the borders in a span; a border that begins before the span counts too."""
    at = start
    for match in border.finditer(text, max(0, start - 4 * NEAR), end + 4 * NEAR):
        if match.end() <= start:
            continue
        if match.start() >= end:
            break
        yield at, max(at, match.start())
        at = min(end, match.end())
    yield at, end


def _longer(text: str, start: int, at: int, end: int, width: int = 1) -> tuple[int, int]:
    """What is longer of a span, before or behind a mark."""
    sides = ((start, at), (at + width, end))
    return max(sides, key=lambda side: len(text[side[0] : side[1]].strip()))


def _n_letters(text: str, start: int, end: int) -> int:
    return sum(character.isalnum() for character in text[start:end])
