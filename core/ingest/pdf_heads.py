"""Running heads, footers and page numbers of a PDF.

A line counts where the same one, the number of its page aside, stands at the same height of pages near by. It
must stand apart from the text and be no larger, so that a heading that begins a page stays; and so do names
of columns, which have other rows below them on each page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.ingest.pdf_layout import SURE_GAP, Piece, lines_of, overlap, usual_size
from core.ingest.pdf_page import Page, Word

_EDGE = 0.16
"""Of a page's height, at either end."""
_MOST_LINES = 4
_SAME_HEIGHT = 4.0
_NEARBY = 2
"""Pages: left and right ones may differ."""
_FEW_PAGES = 8
_APART = 1.6
"""Ems to the next line."""
_MOST_WORDS = 5
"""Of a usual cell; columns of text have more."""
_TOLD = 4
_TOLD_CHARACTERS = 60
_NUMBER = re.compile(r"\d+|(?<![^\W_])[ivxlcdm]+(?![^\W_])", re.IGNORECASE)
_DIGITS = re.compile(r"\d{1,12}")
_PAGE_NUMBER = re.compile(
    r"[\W_]*(?:(?:page|p|seite|s|página|pagina|str|strona|sida|side)\b\W*)?#[\W_]*(?:(?:of|von|de|di|z|af|av|/)\W*#)?[\W_]*",
    re.IGNORECASE,
)


@dataclass
class _Line:
    page: int
    words: list[Word]
    height: float
    """From the edge that it stands at."""
    shape: str
    """Its text, numbers as #."""
    row: _Line | None = None
    """The line below, where both it and the next one stand in the columns that this one may name."""


def drop_running(pages: Sequence[Page]) -> list[str]:
    """Takes running lines out of pages, and says which."""
    if len(pages) < 2:
        return []
    body = usual_size(word for page in pages for word in page.words)
    dropped: Counter[str] = Counter()
    for at_top in (True, False):
        lines = [_edge_lines(page, i, body, at_top=at_top) for i, page in enumerate(pages)]
        for depth in range(_MOST_LINES):
            layer = [found[depth] for found in lines if len(found) > depth]
            for line in _repeated(layer, lines, len(pages)):
                dropped[_text(line.words)] += 1
                gone = set(map(id, line.words))
                page = pages[line.page]
                page.words = [word for word in page.words if id(word) not in gone]
                line.shape = ""
            # What lies behind a line that stays is text.
            lines = [f if len(f) > depth and not f[depth].shape else f[: depth + 1] for f in lines]
    _drop_sideways(pages, dropped)
    return [_told(dropped)] if dropped else []


def _edge_lines(page: Page, number: int, body: float, *, at_top: bool) -> list[_Line]:
    """Lines at an edge of the page, from the outermost, as far as they stand apart from the text."""
    lines = lines_of(page.words)
    if not at_top:
        lines.reverse()
    edge = page.top if at_top else page.bottom
    reach = _EDGE * (page.bottom - page.top)
    found: list[_Line] = []
    for line in lines[:_MOST_LINES]:
        height = abs(line[0].base - edge)
        if height > reach or max(word.size for word in line) > 1.15 * body or _in_grid(page, line):
            break
        found.append(_Line(number, line, height, _shape(line)))
    if at_top:
        for i in reversed(range(len(found))):
            below = lines[i + 1 : i + 3]
            if len(below) == 2 and _stand_in_columns(lines[i], *below):
                words = below[0]
                row = _Line(number, words, abs(words[0].base - edge), _shape(words))
                found[i].row = found[i + 1] if i + 1 < len(found) else row
    return found if _stands_apart(lines, found, body) else []


def _in_grid(page: Page, line: list[Word]) -> bool:
    """Whether the border of two columns runs through a line: it is a row, or the header of a table."""
    first, last = min(word.x0 for word in line), max(word.x1 for word in line)
    middle = line[0].base - 0.3 * line[0].size
    upright = [rule for rule in page.rules if not (rule.level or rule.ends_panel)]
    return any(first < rule.x0 < last and rule.y0 <= middle <= rule.y1 for rule in upright)


def _stand_in_columns(names: list[Word], first: list[Word], second: list[Word]) -> bool:
    """Whether lines at much the same distance have short parts far from each other, in common columns."""
    pitch = second[0].base - first[0].base
    if first[0].base - names[0].base > 1.5 * pitch or pitch > 4 * names[0].size:
        return False
    for row in (first, second):
        few, many = sorted((_parts(names), _parts(row)), key=len)
        if (
            len(few) < 2
            or len(row) > _MOST_WORDS * len(many)
            or any(sum(overlap(*one, *other) > 0 for other in many) != 1 for one in few)
        ):
            return False
    return True


def _parts(line: list[Word]) -> list[tuple[float, float]]:
    """From where to where words stand that gaps as between columns part."""
    gaps = [i for i in range(1, len(line)) if line[i].x0 - line[i - 1].x1 >= SURE_GAP * line[i].size]
    return [(line[begun].x0, line[end - 1].x1) for begun, end in pairwise([0, *gaps, len(line)])]


def _stands_apart(lines: list[list[Word]], found: list[_Line], body: float) -> bool:
    """Whether a gap wider than the one from line to line follows some of these lines."""
    while found:
        n = len(found)
        if n < len(lines):  # what stands alone on a page is its text
            gap = abs(lines[n][0].base - lines[n - 1][0].base)
            if gap >= _APART * max(body, lines[n - 1][0].size):
                return True
        found.pop()
    return False


def _repeated(layer: list[_Line], lines: list[list[_Line]], n_pages: int) -> list[_Line]:
    """Lines of a layer with others of their shape near by, or where most pages have a running line."""
    by_shape: dict[str, list[_Line]] = {}
    for found in lines:
        for line in found:
            if line.shape:
                by_shape.setdefault(line.shape, []).append(line)
    running: list[_Line] = []
    doubtful: list[_Line] = []
    for line in layer:
        alike = [
            other
            for other in by_shape.get(line.shape, [])
            if other.page != line.page
            and abs(other.height - line.height) <= _SAME_HEIGHT
            and (_counts_pages(line, other) or _PAGE_NUMBER.fullmatch(line.shape))
        ]
        if alike and _names_columns(line, alike):
            continue
        is_near = any(abs(other.page - line.page) <= _NEARBY for other in alike)
        is_number = _PAGE_NUMBER.fullmatch(line.shape) is not None
        needed = 1 if n_pages <= _FEW_PAGES or is_number else 2
        (running if len(alike) >= needed and (is_near or is_number) else doubtful).append(line)
    for line in doubtful:
        others = {
            other.page
            for other in running
            if abs(other.height - line.height) <= 1 and abs(other.words[0].size - line.words[0].size) <= 0.3
        }
        if line.shape and len(others) >= max(2, n_pages / 2):
            running.append(line)
    return [line for line in running if line.shape]


def _names_columns(line: _Line, alike: list[_Line]) -> bool:
    """Whether the row below a line is none that all pages have, or names columns itself."""
    rows = [other.row for other in alike if other.row is not None]
    if line.row is None or 2 * len(rows) < len(alike):
        return False
    same = [row for row in rows if row.shape == line.row.shape and _counts_pages(line.row, row)]
    return not same or _names_columns(line.row, same)


def _counts_pages(line: _Line, other: _Line) -> bool:
    """Whether numbers in two lines are the same, or further on by as much as their pages; those of rows and
    invoices are neither.
    """
    numbers = (map(int, _DIGITS.findall(_text(one.words))) for one in (line, other))
    return all(ours - theirs in (0, line.page - other.page) for ours, theirs in zip(*numbers, strict=False))


def _drop_sideways(pages: Sequence[Page], dropped: Counter[str]) -> None:
    """Text in another direction that each page repeats, as a stamp does."""
    shapes = Counter(shape for page in pages for shape in set(map(_shape, page.others)))
    for page in pages:
        stamps = [w for w in page.others if shapes[_shape(w)] >= max(2, len(pages) / 2)]
        for words in stamps:
            dropped[_text(words)] += 1
        page.others = [words for words in page.others if words not in stamps]


def _text(words: list[Word]) -> str:
    return Piece(words).text


def _shape(words: list[Word]) -> str:
    return _NUMBER.sub("#", _text(words))


def _told(dropped: Counter[str]) -> str:
    shapes: dict[str, list[str]] = {}
    for text in dropped:
        shapes.setdefault(_NUMBER.sub("#", text), []).append(text)
    n = sum(dropped.values())
    named = [f"“{_clipped(texts[0])}”" for texts in shapes.values()]
    more = f" and {len(named) - _TOLD:,} more" if len(named) > _TOLD else ""
    return f"{n:,} running heads, footers and page numbers were left out: {', '.join(named[:_TOLD])}{more}."


def _clipped(text: str) -> str:
    return text if len(text) <= _TOLD_CHARACTERS else text[: _TOLD_CHARACTERS - 1].rstrip() + "…"
