"""A document's text as one reads it.

Marks of Markdown drawn, hard line breaks joined. Only what is shown changes. Every piece stands for a slice
of the text, so that chunks and answers can be marked in it. Addresses of links are told and can't be clicked:
the document is somebody else's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
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
_BORDER = re.compile(r"[ \t]{0,200}(?<!\\)\|[ \t]*")
"""Of cells in a row of a table. None lies in the address of a link, where it has to be written otherwise."""
_MARKS = re.compile(
    r"""(?P<escape>\\)(?=[!-/:-@\[-`{-~])
      | (?P<ticks>(?<!`)`{1,2}(?!`))(?P<code>[^`\n]{1,300})(?P=ticks)(?!`)
      | !?\[(?P<label>[^\[\]\n]{0,300})\]\((?P<address>[^()\s|]{0,1000})(?:[ ]"[^"\n|]{0,200}")?\)
      | (?P<stars>\*\*|(?<!\w)__)(?=[^\s*_])(?P<strong>(?:[^\n]|\n(?!\s)){1,600}?)(?<=\S)(?P=stars)
      | (?<![\w~])~~(?=\S)(?P<deleted>[^~\n]{1,300}?)(?<=\S)~~
      | <(?P<script>su[pb])>(?P<raised>[^<>\n]{1,20})</(?P=script)>
      | \$(?=\S)(?P<math>[^$\n]{0,200}?[\\^_{][^$\n]{0,200}?)(?<=\S)\$(?![\w$])
      | (?<![\w*])\*(?=[^\s*])(?P<em>[^\n*]{1,400}?)(?<=\S)\*(?![\w*])
      | (?<!\w)_(?=[^\s_])(?P<leaning>(?:[^\n_]|\n(?!\s)){1,400}?)(?<=\S)_(?!\w)""",
    re.VERBOSE,
)
_LEANING = re.compile(r"(?<!\w)_(?=[^\s_])(?P<leaning>(?:[^\n_]|\n(?!\s)){1,400}?)(?<=\S)_(?!\w)")
"""All that plain text has of marks."""
_TAGS = {
    "strong": "strong",
    "em": "em",
    "leaning": "em",
    "code": "code",
    "math": "code",
    "label": "span",
    "deleted": "del",
}
_VERBATIM = {"code", "math"}
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
        text = self._text
        if kind in ("markdown", "html"):
            for line in _LINES.finditer(text, start, end):
                if line["title"]:
                    self._instead[line.start()] = (line.start("title"), "")
                    self._styled.append((line.start("title"), line.end(), Element("strong")))
                elif line["rule"] or line["quote"]:
                    self._instead[line.start()] = (line.end(), "")
                elif line["row"]:
                    row, row_end = line.span("row")
                    for border in _BORDER.finditer(text, row, row_end):
                        is_outer = border.start() == row or border.end() == row_end
                        self._instead[border.start()] = (border.end(), "" if is_outer else " · ")
                else:
                    self._instead[line.start("item")] = (line.end("item"), "•")
        at, marks = start, _MARKS if kind in ("markdown", "html") else _LEANING
        while (match := marks.search(text, at, end)) is not None:
            at = match.start()
            if at in self._instead:  # the mark that closes another, or a list's
                at = self._instead[at][0]
                continue
            name = "label" if match.lastgroup == "address" else str(match.lastgroup)
            if name == "escape":
                self._instead[at] = (match.end(), "")
                at = match.end() + 1
                continue
            first, last = match.span(name)
            self._instead[at] = (first, "^" if name == "raised" and match["script"] == "sup" else "")
            self._instead[last] = (match.end(), "")
            if name == "raised":
                at = first
                continue
            self._styled.append(
                (first, last, Element(_TAGS[name], match["address"] if name == "label" else ""))
            )
            at = match.end() if name in _VERBATIM else first
        if kind in ("markdown", "text"):
            for line_end in _BREAK.finditer(text, start, end):
                before = text[text.rfind("\n", 0, line_end.start()) + 1 : line_end.start()]
                if len(before) < _LEAST_LINE if kind == "text" else _ALONE.match(before):
                    continue
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
    kept = re.sub(r"(?m)^#{1,6} .*\n?", "", text).strip() or text
    return (
        "".join(
            words.text
            for words in Prose(kept, 0, len(kept), "markdown").words(0, len(kept))
            if not any(element.tag == "del" for element in words.elements)
        ).strip()
        or text
    )
