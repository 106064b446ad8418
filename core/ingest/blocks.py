"""The blocks of a Markdown text that chunking cares about.

One pass over the lines, linear in time and without a syntax tree, for which a general parser needs some
hundred times the memory of a long list. Follows CommonMark and the pipe tables of GitHub for top-level
blocks, but: a list of another bullet right below a list is a list of its own even inside an item's lazy
lines, and HTML blocks other than comments, scripts and preformatted text are text, but for headings on a line
of their own. Fenced code, comments, quotes, and code that Jekyll and Hugo highlight are text whatever they
contain. Checked in the tests against markdown-it on real documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Literal

from core.base.errors import BadDocument
from core.ingest.limits import MAX_BLOCKS, MAX_LINE_CHARACTERS, MAX_TITLE_CHARACTERS
from core.ingest.naming import clip

BlockType = Literal["heading", "table", "list"]

_LINE = re.compile(
    r"""(?P<indent>[ ]{0,3})(?:
          (?P<fence>`{3,}+(?=[^`]*+$)|~{3,}+)
        | (?P<hashes>\#{1,6})(?=[ \t]|$)
        | (?P<rule>([-*_])[ \t]*+(?:\5[ \t]*+){2,}+$)
        | (?P<underline>=++[ \t]*+$|--?[ \t]*+$)
        | (?P<marker>[-+*]|\d{1,9}[.)])(?:[ \t]++(?P<content>\S)?|$)
        | (?P<quote>>)
        | (?P<raw><!--|<(?:script|pre|style|textarea)\b)
        | <h(?P<level>[1-6])(?:[ ][^<>]*+)?>(?=(?:(?!</h[1-6]>).)*+</h[1-6]>[ \t]*+$)
        | \{(?:%-?|\{[<%])[ ]*+(?P<shown>highlight)\b
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_ANY_FENCE = re.compile(r"[ \t]*+(?:[-+*][ \t]++|\d{1,9}[.)][ \t]++)*+(`{3,}+(?=[^`]*+$)|~{3,}+)")
_CODE_OR_COMMENT = re.compile(
    r"""^[ \t>]*+(?:(?:[-+*]|\d{1,9}[.)])[ \t]++)*+(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+)
      | ^(?:[ ]{4}|\t)[^\n]*+
      | \\[\\`<]
      | (?<!`)(?P<ticks>`++)(?:[^\n]|\n(?![ \t]*+\n)){1,300}?(?<!`)(?P=ticks)(?!`)
      | ^[ ]{0,3}\{(?:%-?|\{[<%])[ ]*+(?P<shown>highlight)\b
      | (?P<comment><!--)""",
    re.VERBOSE | re.MULTILINE,
)
_RAW_END = re.compile(r"-->|</(?:script|pre|style|textarea)>", re.IGNORECASE)
_SHOWN_END = re.compile(r"^ {0,3}\{(?:%-? *+end|\{[<%] *+/ *+)highlight\b.*$", re.MULTILINE)
"""Ends code as Jekyll and Hugo write it."""
_FRONT = re.compile(r"---\n|\n{0,3}(?:---|(\+\+\+))\n(?=\s*+(?:#|[\w.-]++\s*+[:=]))")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?: \"[^\"]*\")?\)")
_MARKUP = re.compile(
    r"""(?<!\\)(?:`+|\*+(?=\S)|(?<=\S)\*+|(?<!\w)_+|_+(?!\w))|\{\#[^{}]*\}|</?\w[^<>]*>""", re.VERBOSE
)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_MARKED = re.compile(r"[*`_{<\[\\&]")
_MARKING = frozenset(" `~#-*_=+><{")
"""First characters of the lines that may be more than text; digits are others."""


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, table or list: `text[start:end]`, whole lines without the last line break."""

    type: BlockType
    start: int
    end: int
    level: int = 0
    """1 to 6 for headings."""
    title: str = ""
    """A heading's text without its markup, shortened."""
    parts: tuple[int, ...] = ()
    """Where the rows of a table (the header with its rule is one) or top-level items of a list begin."""


def parse_blocks(text: str) -> Iterator[Block]:
    """Headings, tables and lists of a Markdown text, in order. Raises BadDocument beyond MAX_BLOCKS."""
    scanner = _Scanner(text)
    n_blocks = 0
    while scanner.position < len(text):
        block = scanner.next_block()
        if block is None:
            continue
        n_blocks += 1
        if n_blocks > MAX_BLOCKS:
            raise BadDocument(
                f"the document has more than {MAX_BLOCKS:,} headings, tables and lists; split it, or open it"
                " as plain text (.txt)"
            )
        yield block


def without_comments(text: str) -> str:
    """A Markdown text without the comments of HTML, which no page shows; in code they are words.

    >>> without_comments("One <!-- two -->and `<!-- three -->`")
    'One and `<!-- three -->`'
    """
    kept, after, at = list[str](), 0, 0
    final = text.rfind("<!--")  # most texts have none, and looking for code takes longer
    while at <= final and (match := _CODE_OR_COMMENT.search(text, at)):
        at = match.end()
        if match["fence"] or match["shown"]:
            closing = _SHOWN_END
            if fence := match["fence"]:
                closing = re.compile(rf"^[ \t>]*+{fence[0]}{{{len(fence)},}}[ \t]*+$", re.MULTILINE)
            end = closing.search(text, at)
            at = len(text) if end is None else end.end()
        elif match["comment"]:
            last = text.find("-->", match.start() + 2)  # one of <!--> ends where it begins
            if last < 0:
                break
            kept.append(text[after : match.start()])
            after = at = last + 3
    return "".join([*kept, text[after:]])


class _Scanner:
    """Walks the lines. `paragraph` is where the open paragraph began, or -1."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.paragraph = -1
        self.previous = (0, 0)
        """The line before, as a span: the header row when a table's rule follows."""
        self.may_end_shown = True
        """Whether code of Jekyll or Hugo ends below."""
        self._skip_front_matter()

    def line(self) -> tuple[str, int]:
        """The line at the position, and where it ends."""
        end = self.text.find("\n", self.position)
        end = len(self.text) if end < 0 else end
        return self.text[self.position : end], end

    def next_block(self) -> Block | None:
        """Consumes at least one line; the block it begins or completes, if any."""
        line, end = self.line()
        start = self.position
        # The header of a table is the line before its rule, which passed for a paragraph until now.
        if self._is_table_rule(line):
            return self._table()
        self.position = end + 1
        match = _mark(line)
        if match is None or (match["indent"] == "" and line.startswith(("    ", "\t"))):
            self._text_line(line, start, end)
            return None
        # "===" or "--" below a paragraph makes a heading of it; so may "---", see `_rule`.
        if match["underline"] and self.paragraph >= 0:
            return self._underlined(start, end, 1 if "=" in line else 2)
        if match["hashes"]:
            return self._heading(
                start, end, len(match["hashes"]), line[match.end("hashes") :].rstrip().rstrip("#")
            )
        if match["level"] and self.paragraph < 0:
            return self._heading(start, end, int(match["level"]), line[match.end() :])
        if match["rule"]:
            return self._rule(match, start, end)
        if match["marker"] and self._may_begin_list(match):
            self.position = start
            return self._list(match)
        # What follows is no structure inside: fences and raw HTML are passed over whole.
        if match["fence"]:
            self._skip_fence(match["fence"])
        elif match["shown"] and self.may_end_shown:
            end_shown = _SHOWN_END.search(self.text, self.position)
            self.may_end_shown = end_shown is not None
            self._skip_behind(end_shown, self.position)
        elif match["raw"] and (match["raw"] == "<!--" or self.paragraph < 0):
            self._skip_behind(_RAW_END.search(self.text, start + match.end()), len(self.text))
        elif match["quote"]:
            self.paragraph = -1
        else:
            self._text_line(line, start, end)
        return None

    def _text_line(self, line: str, start: int, end: int) -> None:
        if not line.strip():
            self.paragraph = -1
        elif self.paragraph < 0 and not line.startswith(("    ", "\t")):
            self.paragraph = start
        self.previous = (start, end)

    def _heading(self, start: int, end: int, level: int, markdown: str) -> Block | None:
        """None for a heading without words: it opens nothing."""
        self.paragraph = -1
        title = plain_title(markdown)
        return Block("heading", start, end, level, title) if title else None

    def _underlined(self, start: int, end: int, level: int) -> Block | None:
        title = self.text[self.paragraph : min(start, self.paragraph + 2 * MAX_TITLE_CHARACTERS)]
        return self._heading(self.paragraph, end, level, title)

    def _rule(self, match: re.Match[str], start: int, end: int) -> Block | None:
        if self.paragraph >= 0 and set(match["rule"].strip()) == {"-"}:
            return self._underlined(start, end, 2)
        self.paragraph = -1
        return None

    def _is_table_rule(self, line: str) -> bool:
        """Whether `line` is the rule below a header row of as many cells."""
        if self.paragraph < 0 or "|" not in line or "-" not in line or line.strip("|:- \t"):
            return False
        start, end = self.previous
        header = self.text[start:end]
        return "|" in header and _n_cells(header) == _n_cells(line)

    def _table(self) -> Block:
        start = self.previous[0]
        _, end = self.line()
        parts = [start]
        self.position = end + 1
        while self.position < len(self.text):
            line, line_end = self.line()
            match = _mark(line)
            if not line.strip() or _ends_paragraph(match) or (match is not None and match["marker"]):
                break
            parts.append(self.position)
            end, self.position = line_end, line_end + 1
        self.paragraph = -1
        return Block("table", start, end, parts=tuple(parts))

    def _may_begin_list(self, match: re.Match[str]) -> bool:
        """No empty item, and inside a paragraph only a bullet or a 1: hard-wrapped numbers stay text."""
        return match["content"] is not None and (self.paragraph < 0 or match["marker"][:-1] in ("", "1"))

    def _list(self, first: re.Match[str]) -> Block:
        start = end = self.position
        items = _Items(first["marker"][-1])
        while self.position < len(self.text):
            line, line_end = self.line()
            if not items.take(line, self.position):
                break
            end = line_end if line.strip() else end
            self.position = line_end + 1
        self.paragraph = -1
        self.position = end + 1
        return Block("list", start, end, parts=tuple(items.starts))

    def _skip_fence(self, fence: str) -> None:
        closing = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$", re.MULTILINE)
        self._skip_behind(closing.search(self.text, self.position), len(self.text))

    def _skip_front_matter(self) -> None:
        """Keys and values in YAML or TOML, as generators of sites write them."""
        if front := _FRONT.match(self.text):
            ends = re.compile(r"^\+{3}$" if front[1] else r"^(?:-{3}|\.{3})$", re.MULTILINE)
            self._skip_behind(ends.search(self.text, front.end(), 20_000), 0)

    def _skip_behind(self, end: re.Match[str] | None, otherwise: int) -> None:
        """Passes over the line in which something ends; where nothing does, goes on at `otherwise`."""
        self.paragraph = -1
        if end is None:
            self.position = otherwise
            return
        line_end = self.text.find("\n", end.end())
        self.position = line_end + 1 if line_end >= 0 else len(self.text)


class _Items:
    """The items of one list: takes line after line until one does not belong."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        """Last character of the markers: another begins another list."""
        self.starts: list[int] = []
        self.inner = 0
        """Column where the text of the current item begins."""
        self.after_blank = False
        self.lazy = False
        """Whether an unindented line may continue the paragraph before it."""
        self.fence = ""

    def take(self, line: str, position: int) -> bool:
        """Whether the line at `position` is part of the list."""
        content = line.lstrip(" \t")
        if not content:
            self.after_blank = True
            return True
        indent = len(line[: -len(content)].expandtabs(4))
        if self.fence and indent >= self.inner:
            if content.startswith(self.fence) and not content.strip(self.fence[0] + " \t"):
                self.fence = ""
            return True
        match = _mark(line) if indent < self.inner or not self.starts else None
        if match is not None and match["marker"] and not match["rule"]:
            if match["marker"][-1] != self.kind:
                return False
            self._begin_item(match, position)
        elif indent < self.inner and (self.after_blank or not self.lazy or _ends_paragraph(match)):
            return False
        self.after_blank = False
        opened = _ANY_FENCE.match(line)
        self.fence = opened[1] if opened and (indent >= self.inner or self.starts[-1] == position) else ""
        self.lazy = not opened and not content.startswith("#")
        return True

    def _begin_item(self, match: re.Match[str], position: int) -> None:
        self.starts.append(position)
        after = match.end("marker")
        blanks = match.start("content") - after if match["content"] else 1
        self.inner = after + (blanks if blanks <= 4 else 1)


def _mark(line: str) -> re.Match[str] | None:
    """What a line begins with; None where it is text, as one too long for anything else is."""
    may_be_marked = line[:1] in _MARKING or line[:1].isdecimal()
    return _LINE.match(line) if may_be_marked and len(line) <= MAX_LINE_CHARACTERS else None


def _ends_paragraph(match: re.Match[str] | None) -> bool:
    """Whether an unindented line is a heading, rule, fence or quote, which continue no paragraph."""
    return match is not None and bool(match["hashes"] or match["rule"] or match["fence"] or match["quote"])


def _n_cells(row: str) -> int:
    """Cells of a table row; an escaped bar is none."""
    row = row.strip().removeprefix("|")
    row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
    return row.count("|") - row.count("\\|") + 1


def plain_title(markdown: str) -> str:
    """A heading's words without links, emphasis and line breaks, at most MAX_TITLE_CHARACTERS of them."""
    clipped = markdown[: 4 * MAX_TITLE_CHARACTERS]
    if _MARKED.search(clipped):
        clipped = unescape(_ESCAPE.sub(r"\1", _MARKUP.sub("", _LINK.sub(r"\1", clipped))))
    return clip(" ".join(clipped.split()))
