"""Code in a PDF: lines in a fixed pitch, with their blanks.

Where nearly all of a document is in a fixed pitch it was typed, and is read as any other text; so are names
of the code in a sentence, values beside their names, tables, and sentences.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from statistics import median

from core.ingest.pdf_layout import Piece, Region, lines_of, overlap, stacks_of
from core.ingest.pdf_page import Page, Word
from core.ingest.pdf_tables import unruled

_BESIDE = 2.0
"""Ems within which a word of another font is in the same sentence."""
_SAME_LINE = 0.1
"""Ems: lines of two columns seldom are as level as words of one line."""
_LINES_APART = 4.0
"""Ems: code has empty lines."""
_CELL_GAP = 1.5
_MOST_BLANKS = 120
_USUAL_SHARE = 0.2
"""Of letters in other fonts to those of a fixed pitch, from which these are what differs."""


def is_typed(pages: Iterable[Page]) -> bool:
    """Whether a document has few letters but those of a fixed pitch."""
    n_fixed = n_other = 0
    for word in (word for page in pages for word in page.words):
        n_fixed += len(word.text) * word.fixed
        n_other += len(word.text) * (not word.fixed)
    return n_other < _USUAL_SHARE * n_fixed


def listings(words: list[Word]) -> tuple[list[Region], list[Word]]:
    """Code, a piece a line, and the words that are in none."""
    if not any(word.fixed for word in words):
        return [], words
    lines = [_parted(line) for line in lines_of(words)]
    bases = sorted({word.base for word in words if not word.fixed})
    found = [
        run
        for run in _runs(lines)
        if len(run) > 1 and not (_is_beside(run, bases) or _is_prose(run) or _is_table(run))
    ]
    regions = [replace(Region.of(run), kind="code") for run in found]
    taken = {id(word) for run in found for line in run for word in line.words}
    return regions, [word for word in words if id(word) not in taken]


def _parted(line: list[Word]) -> tuple[list[Piece], list[Word]]:
    """Of a line, what may be lines of code, and the other words."""
    groups = [list(group) for _, group in groupby(line, key=lambda word: word.fixed)]
    code: list[Piece] = []
    rest: list[Word] = []
    for i, group in enumerate(groups):
        is_beside = (i > 0 and _are_near(groups[i - 1][-1], group[0])) or (
            i + 1 < len(groups) and _are_near(group[-1], groups[i + 1][0])
        )
        if group[0].fixed and not is_beside:
            code.append(Piece(group))
        else:
            rest += group
    return code, rest


def _are_near(word: Word, after: Word) -> bool:
    return after.x0 - word.x1 < _BESIDE * word.size and abs(after.base - word.base) <= _SAME_LINE * word.size


def _runs(lines: list[tuple[list[Piece], list[Word]]]) -> list[list[Piece]]:
    """Lines of code below each other with nothing between; none that go on with a line of a sentence."""
    runs: list[list[Piece]] = []
    open_runs: list[list[Piece]] = []
    in_sentence: set[int] = set()
    above: list[Piece] = []
    for code, rest in lines:
        for piece in code:
            open_runs = [run for run in open_runs if piece.base - run[-1].base <= _LINES_APART * piece.size]
            run = next((run for run in open_runs if _follows(run, piece)), None)
            if run is not None:
                run.append(piece)
                continue
            runs.append([piece])
            open_runs.append(runs[-1])
            if any(
                piece.base - other.base <= 1.3 * piece.size
                and overlap(piece.x0, piece.x1, other.x0, other.x1) > 0
                and not other.ends
                for other in above
            ):
                in_sentence.add(id(runs[-1]))
        if rest:
            open_runs = [run for run in open_runs if not _crosses(rest, run)]
            above = [Piece(rest)]
    return [run for run in runs if id(run) not in in_sentence]


def _follows(run: list[Piece], piece: Piece) -> bool:
    held = Region.of(run)
    return (
        piece.base > run[-1].base
        and abs(piece.size - run[-1].size) <= 0.1 * piece.size
        and overlap(piece.x0, piece.x1, held.x0, held.x1) > -_LINES_APART * piece.size
    )


def _crosses(words: list[Word], run: list[Piece]) -> bool:
    x0, x1 = min(p.x0 for p in run), max(p.x1 for p in run)
    return any(
        word.base > run[-1].base + 0.1 * word.size and overlap(word.x0, word.x1, x0, x1) > 0 for word in words
    )


def _is_beside(run: list[Piece], bases: list[float]) -> bool:
    """Whether most lines have words of other fonts on the same line, as values have their names."""
    beside = 0
    for piece in run:
        i = bisect_left(bases, piece.base - _SAME_LINE * piece.size)
        beside += i < len(bases) and bases[i] <= piece.base + _SAME_LINE * piece.size
    return 2 * beside > len(run)


def _is_prose(run: list[Piece]) -> bool:
    text = " ".join(piece.text for piece in run)
    widths = [piece.x1 - piece.x0 for piece in run]
    return (
        text.count(" ") >= 5 * len(run)
        and median(widths) >= 0.8 * max(widths)
        and sum(letter.isalpha() or letter == " " for letter in text) >= 0.9 * len(text)
    )


def _is_table(run: list[Piece]) -> bool:
    cells: list[Piece] = []
    for piece in run:
        gaps = [after.x0 - before.x1 for before, after in pairwise(piece.words)]
        cuts = [i for i, gap in enumerate(gaps, 1) if gap >= _CELL_GAP * piece.size]
        borders = pairwise([0, *cuts, len(piece.words)])
        cells += [Piece(piece.words[begun:end]) for begun, end in borders]
    if len(cells) < 1.5 * len(run):
        return False
    tables, _ = unruled(stacks_of(cells))
    return 2 * sum(t.top < piece.base < t.bottom for piece in run for t in tables) > len(run)


def code_of(lines: Sequence[Piece]) -> str:
    """Lines of code with the blanks that stand in them and before them, and empty lines."""
    words = [word for line in lines for word in line.words]
    width = median((word.x1 - word.x0) / len(word.text) for word in words) or 1.0
    left = min(word.x0 for word in words)
    pitch = min((after.base - before.base for before, after in pairwise(lines)), default=0.0)
    text, before = "", lines[0].base
    for line in lines:
        written = ""
        for word in line.words:
            n_blanks = min(round((word.x0 - left) / width) - len(written), _MOST_BLANKS)
            is_apart = written and not word.glued
            written += " " * max(n_blanks, 1 if is_apart else 0) + word.text
        text += "\n" * (1 + (line.base - before > 1.6 * pitch)) + written if text else written
        before = line.base
    return text
