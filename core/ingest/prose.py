"""A document's text as one reads it.

Marks of Markdown drawn, hard line breaks joined. Only what is shown changes. Every piece stands for a slice
of the text, so that chunks and answers can be marked in it. Addresses of links are told and can't be clicked:
the document is somebody else's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from html import unescape
from html.entities import html5
from itertools import pairwise
from typing import NamedTuple

from core.base.types import DocumentKind

MAX_PARSED = 24_000
"""Characters whose marks are read; what follows is shown as it is."""
_BEFORE = 50_000
"""Characters before the start that are searched for a fence left open."""
_LEAST_LINE = 40
"""Characters of a line of plain text from which on its break is one of the page and not of the writer."""

_FENCE = re.compile(r"(?m)^(?:```|~~~)[^\n]*\n?")
_LINES = re.compile(
    r"(?m)^(?:(?P<level>#{1,6}[ \t]+)(?P<title>\S[^\n]*)|(?P<rule>\|[-:| ]+\|(?:\n|\Z))|(?P<row>\|[^"
    r"\n]*\|)[ \t]*$|(?P<quote>>(?:[ \t]?>)*[ \t]?)|(?P<indent>[ \t]*)(?P<item>[-*+])(?=[ \t]+\S))"
)
_TABLE = re.compile(
    r"(?m)^[^\n|]{0,2000}\|[^\n]{0,4000}\n(?P<rule>[ ]{0,3}\|?(?:[ ]{0,99}:?-{1,200}:?[ ]{0,99}\|){1,99}"
    r"(?:[ ]{0,99}:?-{1,200}:?)?[ ]{0,99}(?:\n|\Z))(?P<rows>(?:[^\n|]{0,2000}\|[^\n]{0,4000}(?:\n|\Z))*)"
)
"""With bars around its rows or without: the rule below its head shows that it is one."""
_UNDERLINED = re.compile(
    r"(?m)^(?<![^\n]\n)(?![-*+][ ]|[#>|]|--|==)(?P<title>\S[^\n]{0,300})"
    r"(?P<line>\n(?:={2,200}|-{2,200})[ ]{0,99})$"
)
_BORDER = re.compile(r"[ \t]{0,200}(?<!\\)\|[ \t]*")
"""Of cells in a row of a table. None lies in the address of a link, where it has to be written otherwise."""
_MARKS = re.compile(
    r"""(?P<escape>\\)(?=[!-/:-@\[-`{-~])
      | (?P<ticks>(?<!`)`{1,2}(?!`))(?P<code>[^`\n]{1,300})(?P=ticks)(?!`)
      | (?P<comment><!--(?:[^-]|-(?!->)){0,1000}-->)
      | \[!\[(?P<picture>[^\[\]\n]{0,300})\]\(TO\)\]\((?P<target>TO)\)
      | !?\[(?P<label>[^\[\]\n]{0,300})\]\((?P<address>TO)(?:[ ]"[^"\n|]{0,200}")?\)
      | !?\[(?P<named>[^\[\]\n]{1,300})\]\[(?P<name>[^\[\]\n]{0,100})\]
      | (?<=\[)(?P<note>\^)(?=[\w-]{1,40}\])
      | (?P<bars>(?<!\w)_{2,3})(?=[^\s*_])(?P<strong>(?:[^\n]|\n(?!\s)){1,600}?)(?<=\S)(?P=bars)
      | (?<![\w~])~~(?=\S)(?P<deleted>[^~\n]{1,300}?)(?<=\S)~~
      | <(?P<script>su[pb])>(?P<raised>[^<>\n]{1,20})</(?P=script)>
      | (?P<gap><[bB][rR][ ]?/?>)
      | (?P<entity>&(?:\#\d{1,7}|\#[xX][\da-fA-F]{1,6}|[A-Za-z][A-Za-z\d]{1,31});)
      | \$(?=\S)(?P<math>[^$\n]{0,200}?[\\^_{][^$\n]{0,200}?)(?<=\S)\$(?![\w$])
      | (?<!\*)(?P<stars>\*{1,3})(?!\*)
      | (?<!\w)_(?=[^\s_])(?P<leaning>(?:[^\n_]|\n(?!\s)){1,400}?)(?<=\S)_(?!\w)""".replace(
        "TO", r"(?:[^()\s|]|\([^()\s|]{0,200}\)){0,1000}"
    ),
    re.VERBOSE,
)
_LEANING = re.compile(r"(?<!\w)_(?=[^\s_])(?P<leaning>(?:[^\n_]|\n(?!\s)){1,400}?)(?<=\S)_(?!\w)")
"""All that plain text has of marks."""
_TAGS = {"strong": "strong", "leaning": "em", "code": "code", "math": "code", "deleted": "del"}
_WRITTEN_OUT = frozenset(["comment", "gap", "entity", "raised"])
"""Marks of HTML: in the text of a page they are words that it shows."""
_VERBATIM = {"code", "math"}
_LABEL = {"address": "label", "target": "picture", "name": "named"}
"""By the last group of a link's pattern, the one that holds its words."""
_DEFINED_WITHIN = 50_000
"""Characters around what is shown in which a link's address may stand by itself."""
_LONGEST_STRONG, _LONGEST_EM = 600, 400
_MOST_OPEN = 8
"""Runs of stars that may stand open at once."""
_ALONE = re.compile(r"#{1,6} |\|| {4}")
"""How lines of Markdown begin whose break is one."""
_BREAK = re.compile(r"(?<=\S)\n(?![ \t\n]|[-*+>|#]|\d{1,3}[.)][ \t]|```|~~~)(?=\S)")


class Element(NamedTuple):
    """What words stand in: strong, em, code, del, or a link's span with its address."""

    tag: str
    address: str = ""


class Words(NamedTuple):
    """Words to be shown, and the elements around them from outside to inside."""

    text: str
    elements: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class _TextPiece:
    """text[start:end], shown as `replacement` where that is not None."""

    start: int
    end: int
    replacement: str | None
    elements: tuple[Element, ...]


class Prose:
    """text[start:end] of a document, to be shown slice by slice."""

    def __init__(self, text: str, start: int, end: int, kind: DocumentKind) -> None:
        self._text = text
        self._instead: dict[int, tuple[int, str]] = {}
        """By first character, slices shown otherwise or not at all: (behind the last, what is shown)."""
        self._styled: list[tuple[int, int, Element]] = []
        parsed = min(end, start + MAX_PARSED)
        if kind in ("markdown", "html"):
            at, inside = start, len(_FENCE.findall(text[max(0, start - _BEFORE) : start])) % 2 == 1
            for match in [*_FENCE.finditer(text, start, parsed), None]:
                stop = parsed if match is None else match.start()
                if inside:
                    self._styled.append((at, stop, Element("code")))
                else:
                    self._read(at, stop, kind)
                if match is not None:
                    self._instead[stop] = (match.end(), "")
                    at, inside = match.end(), not inside
        else:
            self._read(start, parsed, kind)
        self._pieces = self._cut(start, end)
        self._starts = [piece.start for piece in self._pieces]

    def words(self, start: int, end: int) -> list[Words]:
        """What text[start:end] reads as."""
        pieces = self._pieces[
            max(0, bisect_right(self._starts, start) - 1) : bisect_right(self._starts, end - 1)
        ]
        return [Words(shown, piece.elements) for piece in pieces if (shown := self._shown(piece, start, end))]

    def _read(self, start: int, end: int, kind: DocumentKind) -> None:
        """Marks and breaks of a stretch without fences."""
        kept: set[int] = set()
        if kind in ("markdown", "html"):
            self._read_lines(start, end)
            kept = self._read_tables(start, end) | self._read_underlined(start, end)
            self._read_marks(start, end, kind)
        else:
            for match in _LEANING.finditer(self._text, start, end):
                self._enclose(match, "leaning", Element("em"))
        if kind in ("markdown", "text"):
            self._join_lines(start, end, kind, kept)

    def _read_lines(self, start: int, end: int) -> None:
        """Headings, rows, quotations and items."""
        for line in _LINES.finditer(self._text, start, end):
            if line["title"]:
                self._instead[line.start()] = (line.start("title"), "")
                self._styled.append((line.start("title"), line.end(), Element("strong")))
            elif line["rule"] or line["quote"]:
                self._instead[line.start()] = (line.end(), "")
            elif line["row"]:
                self._read_row(*line.span("row"))
            else:
                self._instead[line.start("item")] = (line.end("item"), "•")

    def _read_row(self, row: int, row_end: int) -> None:
        for border in _BORDER.finditer(self._text, row, row_end):
            is_outer = border.start() == row or border.end() == row_end
            self._instead[border.start()] = (border.end(), "" if is_outer else " · ")

    def _read_tables(self, start: int, end: int) -> set[int]:
        """Gives the ends of their lines, which stay."""
        text, kept = self._text, set[int]()
        for table in _TABLE.finditer(text, start, end):
            rule, rule_end = table.span("rule")
            self._instead[rule] = (rule_end, "")
            for first, last in ((table.start(), rule), table.span("rows")):
                for line in re.finditer(r"[^\n]+", text[first:last]):
                    self._read_row(first + line.start(), first + line.end())
                    kept.add(first + line.end())
        return kept

    def _read_underlined(self, start: int, end: int) -> set[int]:
        """Headings with a line of = or - below. Gives the ends of these, which stay."""
        kept = set[int]()
        for heading in _UNDERLINED.finditer(self._text, start, end):
            self._styled.append((*heading.span("title"), Element("strong")))
            self._instead[heading.start("line")] = (heading.end(), "")
            kept.add(heading.end())
        return kept

    def _enclose(self, match: re.Match[str], name: str, *elements: Element) -> None:
        """Hides what a match has around a group, which stands in the elements."""
        first, last = match.span(name)
        self._instead[match.start()] = (first, "")
        self._instead[last] = (match.end(), "")
        self._styled += [(first, last, element) for element in elements]

    def _read_marks(self, start: int, end: int, kind: DocumentKind) -> None:
        text, at = self._text, start
        opened: list[tuple[int, int]] = []
        address = (start, start)
        while (match := _MARKS.search(text, at, end)) is not None:
            at, name = match.start(), str(match.lastgroup)
            if at in self._instead:  # the mark that closes another, or a list's
                at = self._instead[at][0]
            elif address[0] <= at < address[1]:
                at = address[1]
            elif kind == "html" and name in _WRITTEN_OUT:
                at += 1
            elif name == "escape":
                self._instead[at] = (match.end(), "")
                at = match.end() + 1
            elif name == "stars":
                self._read_stars(opened, *match.span())
                at = match.end()
            elif name in ("comment", "note", "gap", "entity"):
                self._instead[at] = (match.end(), self._instead_of(name, match))
                at = match.end()
            elif name == "raised":
                self._enclose(match, name)
                self._instead[at] = (match.start(name), "^" if match["script"] == "sup" else "")
                at = match.start(name)
            elif name in _LABEL:
                if name == "name" and not self._is_defined(match["name"] or match["named"], start, end):
                    at += 1
                    continue
                words = _LABEL[name]
                self._enclose(match, words, Element("span", "" if name == "name" else match[name]))
                at, address = match.start(words), (match.end(words), match.end())
            else:
                self._enclose(match, name, Element(_TAGS[name]))
                at = match.end() if name in _VERBATIM else match.start(name)

    def _instead_of(self, name: str, match: re.Match[str]) -> str:
        if name == "entity":
            entity = match.group()
            return (
                unescape(entity).replace("\xa0", " ") if entity[1] == "#" or entity[1:] in html5 else entity
            )
        return " " if name == "gap" and self._text[match.end() : match.end() + 1] != "\n" else ""

    def _is_defined(self, name: str, start: int, end: int) -> bool:
        """Whether a link's name has an address of its own line: a[i][j] has none."""
        around = max(0, start - _DEFINED_WITHIN), end + _DEFINED_WITHIN
        return self._text.find(f"\n[{name}]:", *around) >= 0

    def _read_stars(self, opened: list[tuple[int, int]], start: int, end: int) -> None:
        """Closes what a run of stars closes, opens what is left. `opened`: (begin, stars left) of runs."""
        text, n = self._text, end - start
        before, after = text[max(0, start - 1) : start], text[end : end + 1]
        closes = bool(before.strip()) and (n > 1 or not _is_of_word(after))
        opens = bool(after.strip()) and (n > 1 or not _is_of_word(before))
        while closes and n and (pair := self._opener(opened, start, n)) is not None:
            at, left = opened[pair]
            del opened[pair:]
            width = min(2, n, left)
            self._instead[at + left - width] = (at + left, "")
            self._instead[start] = (start + width, "")
            self._styled.append((at + left, start, Element("strong" if width == 2 else "em")))
            start, n, left = start + width, n - width, left - width
            if left:
                opened.append((at, left))
        if opens and n:
            opened.append((start, n))
            del opened[:-_MOST_OPEN]

    def _opener(self, opened: list[tuple[int, int]], start: int, n: int) -> int | None:
        """Which open run `n` stars close: as many, or three of which some close or open another."""
        for i in reversed(range(len(opened))):
            at, left = opened[i]
            if left != n and 3 not in (left, n):
                continue
            is_strong = min(left, n) > 1
            if start - at - left <= (_LONGEST_STRONG if is_strong else _LONGEST_EM):
                said = self._text[at + left : start]
                if re.search(r"\n\s" if is_strong else r"\n", said) is None:
                    return i
        return None

    def _join_lines(self, start: int, end: int, kind: DocumentKind, kept: set[int]) -> None:
        text = self._text
        for line_end in _BREAK.finditer(text, start, end):
            before = text[text.rfind("\n", 0, line_end.start()) + 1 : line_end.start()]
            if len(before) < _LEAST_LINE if kind == "text" else _ALONE.match(before):
                continue
            if line_end.start() not in kept:
                self._instead.setdefault(line_end.start(), (line_end.end(), " "))

    def _cut(self, start: int, end: int) -> list[_TextPiece]:
        """The pieces between all borders, in order."""
        hidden = sorted((first, last, shown) for first, (last, shown) in self._instead.items())
        borders = sorted(
            {start, end, *(place for first, last, *_ in (*hidden, *self._styled) for place in (first, last))}
        )
        opened = sorted(self._styled, key=lambda one: (one[0], -one[1]))
        pieces: list[_TextPiece] = []
        around: list[tuple[int, int, Element]] = []
        n_hidden = n_opened = 0
        for first, last in pairwise(borders):
            around = [one for one in around if one[1] > first]
            while n_opened < len(opened) and opened[n_opened][0] <= first:
                around += [opened[n_opened]] if opened[n_opened][1] > first else []
                n_opened += 1
            while n_hidden < len(hidden) and hidden[n_hidden][1] <= first:
                n_hidden += 1
            is_hidden = n_hidden < len(hidden) and hidden[n_hidden][0] <= first
            shown = None if not is_hidden else hidden[n_hidden][2] if hidden[n_hidden][0] == first else ""
            pieces.append(_TextPiece(first, last, shown, tuple(element for _, _, element in around)))
        return pieces

    def _shown(self, piece: _TextPiece, start: int, end: int) -> str:
        if piece.replacement is None:
            return self._text[max(start, piece.start) : min(end, piece.end)]
        return piece.replacement if start <= piece.start < end else ""


def plain(text: str) -> str:
    """A passage without headings and marks: what a card shows of it, which has the path of the headings
    beside it.

    >>> plain("## Crew\\n\\nThe **principal keeper** (see [the log](log.md)) trims the `lamp`.")
    'The principal keeper (see the log) trims the lamp.'
    """
    return unmarked(re.sub(r"(?m)^#{1,6} .*\n?", "", text).strip() or text)


def unmarked(text: str) -> str:
    """A passage without marks, the words of its headings kept.

    >>> unmarked("## Crew\\n\\n**Anna** and ~~Bo~~")
    'Crew\\n\\nAnna and'
    """
    pieces = Prose(text, 0, len(text), "markdown").words(0, len(text))
    kept = (piece.text for piece in pieces if not any(one.tag == "del" for one in piece.elements))
    return "".join(kept).strip() or text


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"
