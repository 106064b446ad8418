"""Tables of a PDF's page, with rules and without.

Rules that cross make a grid, whose cells take the words inside; a cell over several columns or rows is
repeated in each, so that every row can be read alone. Without rules, short pieces that stand in common rows
and columns are a table. One cell is a box: what it holds is read together.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from core.ingest.limits import MAX_CELL_CHARACTERS, MAX_COLUMNS
from core.ingest.pdf_layout import Piece, Region, flows, glue, lines_of, overlap
from core.ingest.pdf_page import Box, Rule, Word

_NEAR = 3.0
"""Points within which rules meet."""
_MOST_RULES = 1_500
"""Of a page; more draw a picture."""
_ROW_GAP = 4.2
"""Ems between rows of a table without rules."""
_MOST_WORDS = 6
"""Of a usual cell; longer ones are prose side by side."""
_DIGITS = re.compile(r"\d")


class _Stroke(NamedTuple):
    """A level or upright rule: how high or how far to the right it is, and from where to where."""

    at: float
    begin: float
    end: float

    def reaches(self, along: float) -> bool:
        return self.begin - _NEAR <= along <= self.end + _NEAR


@dataclass
class Grid:
    """Where rules cross: columns between `xs`, rows between `ys`, and which borders of cells are drawn."""

    xs: list[float]
    ys: list[float]
    level: list[_Stroke]
    upright: list[_Stroke]

    @property
    def box(self) -> Box:
        return self.xs[0], self.ys[0], self.xs[-1], self.ys[-1]

    def holds(self, word: Word) -> bool:
        x, y = (word.x0 + word.x1) / 2, word.base - 0.3 * word.size
        return self.xs[0] - 1 <= x <= self.xs[-1] + 1 and self.ys[0] - 1 <= y <= self.ys[-1] + 1

    def cells(self) -> list[list[int]]:
        """By row and column, the number of the cell that stands there: the same where no rule parts them."""
        n_columns, n_rows = len(self.xs) - 1, len(self.ys) - 1
        own = [[row * n_columns + column for column in range(n_columns)] for row in range(n_rows)]
        for row in range(n_rows):
            for column in range(n_columns):
                middle_y = (self.ys[row] + self.ys[row + 1]) / 2
                middle_x = (self.xs[column] + self.xs[column + 1]) / 2
                if column and not _drawn(self.upright, self.xs[column], middle_y):
                    own[row][column] = own[row][column - 1]
                if row and not _drawn(self.level, self.ys[row], middle_x):
                    own[row][column] = own[row - 1][column]
        return own

    def place_of(self, word: Word) -> tuple[int, int]:
        """Row and column of a word."""
        x, y = (word.x0 + word.x1) / 2, word.base - 0.3 * word.size
        return _index(self.ys, y), _index(self.xs, x)


def _index(borders: list[float], at: float) -> int:
    """Between which borders a place is; what lies outside counts to the first or last."""
    return bisect_right(borders, at, 1, len(borders) - 1) - 1


def _drawn(strokes: list[_Stroke], at: float, along: float) -> bool:
    return any(abs(stroke.at - at) <= _NEAR and stroke.reaches(along) for stroke in strokes)


def grids_of(rules: Sequence[Rule]) -> list[Grid]:
    """Grids and boxes that rules draw, the smallest first."""
    level = _merged(_Stroke(r.y0, r.x0, r.x1) for r in rules if r.level and r.x1 - r.x0 > 8)
    upright = _merged(_Stroke(r.x0, r.y0, r.y1) for r in rules if not r.level and r.y1 - r.y0 > 5)
    if len(level) + len(upright) > _MOST_RULES:
        return []
    groups: list[tuple[list[_Stroke], list[_Stroke]]] = []
    for stroke in level:
        crossing = [other for other in upright if stroke.reaches(other.at) and other.reaches(stroke.at)]
        touched = [group for group in groups if any(other in group[1] for other in crossing)]
        merged = ([stroke], crossing)
        for group in touched:
            groups.remove(group)
            merged = (merged[0] + group[0], merged[1] + [v for v in group[1] if v not in merged[1]])
        groups.append(merged)
    grids = (
        Grid(_apart(sorted(v.at for v in uprights)), _apart(sorted(h.at for h in levels)), levels, uprights)
        for levels, uprights in groups
    )
    found = [grid for grid in grids if len(grid.xs) > 1 and len(grid.ys) > 1]
    return sorted(found, key=lambda g: (g.xs[-1] - g.xs[0]) * (g.ys[-1] - g.ys[0]))


def _merged(strokes: Iterable[_Stroke]) -> list[_Stroke]:
    """Those that continue each other as one."""
    done: list[_Stroke] = []
    for stroke in sorted(strokes, key=lambda one: (round(one.at), one.begin)):
        last = done[-1] if done else None
        if last is not None and abs(last.at - stroke.at) <= 1.5 and stroke.begin <= last.end + _NEAR:
            done[-1] = last._replace(end=max(last.end, stroke.end))
        else:
            done.append(stroke)
    return done


def _apart(values: list[float]) -> list[float]:
    apart: list[float] = []
    for value in values:
        if not apart or value - apart[-1] > _NEAR:
            apart.append(value)
    return apart


def ruled_rows(grid: Grid, words: list[Word]) -> list[list[str]] | None:
    """Texts of a grid's cells; None where it is a box, or parts of the page, and no table."""
    n_columns = len(grid.xs) - 1
    if not 2 <= n_columns <= MAX_COLUMNS:
        return None
    own = grid.cells()
    held = _held(grid, own, words)
    texts = {cell: _cell_text(found) for cell, found in held.items()}
    if not texts or max(map(len, texts.values())) > MAX_CELL_CHARACTERS:
        return None
    rows = [row for row in _split_rows(own, held, texts) if any(row)]
    filled = [column for column in range(n_columns) if any(row[column] for row in rows)]
    rows = [[row[column] for column in filled] for row in rows]
    is_box = len(filled) < 2 or not rows or (len(rows) == 1 and max(map(len, rows[0])) > 80)
    return None if is_box else rows


def ruled_cells(grid: Grid, words: list[Word]) -> Iterator[tuple[Box, list[Word]]]:
    """Where the cells of a grid that is no table lie, with their words."""
    for found in _held(grid, grid.cells(), words).values():
        row, column = grid.place_of(found[-1])
        yield (grid.xs[column], grid.ys[row], grid.xs[column + 1], grid.ys[row + 1]), found


def _held(grid: Grid, own: list[list[int]], words: list[Word]) -> dict[int, list[Word]]:
    """Words by the number of their cell."""
    held: dict[int, list[Word]] = {}
    for word in words:
        row, column = grid.place_of(word)
        held.setdefault(own[row][column], []).append(word)
    return held


def _split_rows(own: list[list[int]], held: dict[int, list[Word]], texts: dict[int, str]) -> list[list[str]]:
    """A row of the grid as several of the table, where only columns are ruled and lines stand in step."""
    rows: list[list[str]] = []
    for cells in own:
        lines = [lines_of(held.get(cell, [])) for cell in cells]
        n_lines = len(lines[0])
        is_in_step = (
            n_lines > 2
            and len(set(cells)) == len(cells)
            and all(len(column) in (n_lines, 0) for column in lines)
            and sum(len(column) == n_lines for column in lines) > 1
            and all(
                abs(column[i][0].base - lines[0][i][0].base) <= 0.5 * lines[0][i][0].size
                for column in lines
                if column
                for i in range(n_lines)
            )
            and not any(flows([Piece(line) for line in column]) for column in lines if column)
        )
        if is_in_step:
            rows += [[Piece(column[i]).text if column else "" for column in lines] for i in range(n_lines)]
        else:
            rows.append([texts.get(cell, "") for cell in cells])
    return rows


def _cell_text(words: list[Word]) -> str:
    """Lines of a cell as one, broken words joined."""
    text = ""
    for line in lines_of(words):
        text = glue(text, Piece(line).text)
    return text


# Without rules


def unruled(stacks: list[list[Piece]]) -> tuple[list[Region], list[list[Piece]]]:
    """Tables among stacks, and the stacks that are in none."""
    prose = {id(stack): flows(stack) for stack in stacks}
    short = [piece for stack in stacks if not prose[id(stack)] for piece in stack]
    long_stacks = [stack for stack in stacks if prose[id(stack)]]
    values, long_stacks = _long_cells(short, long_stacks)
    lines = _with_middles(_rows_of(short + values))
    _widen_groups(lines)
    found = [(run, table) for run in _runs(lines, long_stacks) if (table := _table(run)) is not None]
    used = {id(word) for run, _ in found for line in run for piece in line for word in piece.words}
    rest = [*long_stacks]
    for stack in stacks:
        if stack not in long_stacks:
            parts = groupby(stack, key=lambda piece: id(piece.words[0]) in used)
            rest += [list(part) for is_used, part in parts if not is_used]
    return [table for _, table in found], rest


def _long_cells(short: list[Piece], stacks: list[list[Piece]]) -> tuple[list[Piece], list[list[Piece]]]:
    """Lines of prose beside short cells that begin a row with each of them; and the other stacks."""
    cells: list[Piece] = []
    rest: list[list[Piece]] = []
    for stack in stacks:
        starts = [
            i
            for i, piece in enumerate(stack)
            if any(
                abs(key.base - piece.base) <= 0.4 * piece.size
                and overlap(key.x0, key.x1, piece.x0, piece.x1) <= 0
                for key in short
            )
        ]
        width = max(piece.x1 - piece.x0 for piece in stack)
        pitch = (stack[-1].base - stack[0].base) / (len(stack) - 1)
        is_cells = (len(starts) == len(stack) and pitch >= 1.6 * stack[0].size) or (
            bool(starts)
            and starts[0] == 0
            and len(starts) <= max(1, len(stack) * 2 // 3)
            and len(stack) / len(starts) <= 12
            and all(
                not stack[i].goes_on
                and (stack[i - 1].ends or stack[i - 1].x1 - stack[i - 1].x0 < 0.8 * width)
                for i in starts[1:]
            )
        )
        if is_cells:
            cells += stack
        else:
            rest.append(stack)
    return cells, rest


def _rows_of(pieces: list[Piece]) -> list[list[Piece]]:
    lines: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda p: (p.base, p.x0)):
        if lines and abs(piece.base - lines[-1][0].base) <= 0.4 * min(piece.size, lines[-1][0].size):
            lines[-1].append(piece)
        else:
            lines.append([piece])
    return [sorted(line, key=lambda p: p.x0) for line in lines]


def _with_middles(lines: list[list[Piece]]) -> list[list[Piece]]:
    """What stands midway between two lines joined with them: names of columns between other names as the last
    of the upper line, cells beside the middle of a cell with several lines as the row of that cell.
    """
    done, at = lines[:1], 1
    while at < len(lines):
        line, below = lines[at], lines[at + 1] if at + 1 < len(lines) else []
        if below and _are_midway(line, done[-1], below):
            done[-1] += line
        elif (within := _are_beside(line, done, below)) is not None:
            cell = [*done[-1], *within, *below]
            whole = Piece([word for piece in cell for word in piece.words])
            whole.text = reduce(glue, (piece.text for piece in cell))
            done[-1] = sorted([whole, *(p for p in line if p not in within)], key=lambda p: p.x0)
            at += 1
        else:
            done.append(line)
        at += 1
    return done


def _are_midway(names: list[Piece], above: list[Piece], below: list[Piece]) -> bool:
    size, top, bottom = names[0].size, above[0].base, below[0].base
    return (
        all(piece.bold for line in (names, above, below) for piece in line)
        and bottom - top <= _ROW_GAP * size
        and abs(2 * names[0].base - top - bottom) <= 0.3 * size
        and not any(overlap(p.x0, p.x1, q.x0, q.x1) > 0 for p in names for q in (*above, *below))
    )


def _are_beside(cells: list[Piece], lines: list[list[Piece]], below: list[Piece]) -> list[Piece] | None:
    """None unless a cell, apart from what stands over it, begins as the last of `lines` and ends as the line
    below; of the cells beside its middle what belongs to it, too.
    """
    if len(lines[-1]) != 1 or len(below) != 1:
        return None
    (first,), (last,), size = lines[-1], below, cells[0].size
    over = lines[-2] if len(lines) > 1 else []
    is_named = all(any(abs(p.x0 - q.x0) <= 1 for q in over) for p in (first, cells[0]))
    gap, gap_below = cells[0].base - first.base, last.base - cells[0].base
    within = [p for p in cells if overlap(p.x0, p.x1, first.x0, first.x1) > 0]
    is_apart = not over or first.base - over[0].base >= 1.25 * (2 - len(within)) * gap
    is_one = (
        is_apart
        and len(within) < 2
        and len(cells) > len(within)
        and (len(cells) > 1 or is_named)
        and gap <= (1.4 if within else 0.8) * size
        and abs(gap - gap_below) <= 0.3 * size
        and all(abs(first.x0 - piece.x0) <= 1 for piece in (last, *within))
    )
    return within if is_one else None


def _widen_groups(lines: list[list[Piece]]) -> None:
    """Names that all stand midway over two columns, close above the names of those, over both of them."""
    for names, below in pairwise(lines):
        size = names[0].size
        pairs = [
            [(a, b) for a, b in pairwise(below) if a.x1 <= name.x0 and name.x1 <= b.x0 + size]
            for name in names
        ]
        if (
            1 < len(names) < len(below) - 1
            and below[0].base - names[0].base <= 2 * size
            and all(
                len(found) == 1 and abs(name.x0 + name.x1 - found[0][0].x0 - found[0][1].x1) <= 2 * size
                for name, found in zip(names, pairs, strict=True)
            )
        ):
            for name, ((a, b),) in zip(names, pairs, strict=True):
                name.x0, name.x1 = a.x0, b.x1


def _runs(lines: list[list[Piece]], prose: list[list[Piece]]) -> list[list[list[Piece]]]:
    """Lines that may be one table: near each other, in common columns, with at least two of several cells."""
    runs: list[list[list[Piece]]] = []
    run: list[list[Piece]] = []
    for line in lines:
        if run and not _belongs(run, line, prose):
            runs.append(run)
            run = []
        if run or len(line) > 1:
            run.append(line)
    runs.append(run)
    trimmed = []
    for run in runs:
        n_rows = max((i for i, line in enumerate(run, 1) if len(line) > 1), default=0)
        while len(run) > n_rows and not (
            _is_wrapped(run, run[-1]) or _is_list_end(run[:n_rows], run[n_rows:])
        ):
            run.pop()
        if sum(len(line) > 1 for line in run) >= 2:
            trimmed.append(run)
    return trimmed


def _is_list_end(rows: list[list[Piece]], ends: list[list[Piece]]) -> bool:
    """Whether cells alone on their lines go on with the longest column just as the rows before."""
    if len(rows) < 3 or len(ends) >= len(rows) or len(ends[0]) != 1 or _table(rows) is None:
        return False
    pitch = rows[-1][0].base - rows[-2][0].base
    for before, line in pairwise([rows[-1], *ends]):
        above = next((piece for piece in rows[-1] if abs(piece.x0 - line[0].x0) <= 1), None)
        if (
            above is None
            or abs(line[0].base - before[0].base - pitch) > 0.05 * pitch
            or (line[0].bold, line[0].size) != (above.bold, above.size)
            or line[0].x1
            > max(p.x1 for row in rows for p in row if abs(p.x0 - above.x0) <= 1) + 2 * above.size
            or line[0].ends
        ):
            return False
    return True


def _belongs(run: list[list[Piece]], line: list[Piece], prose: list[list[Piece]]) -> bool:
    size = line[0].size
    gap = line[0].base - run[-1][0].base
    x0 = min(p.x0 for row in run for p in row)
    x1 = max(p.x1 for row in run for p in row)
    gaps = [b[0].base - a[0].base for a, b in pairwise(run)]
    if gap > _ROW_GAP * size or (gaps and gap > 2.2 * max(gaps)):
        return False
    if len(line) == 1:
        return (
            line[0].x0 > x0 - size
            and line[0].x1 < x1 + 2 * size
            and (_is_wrapped(run, line) or (gap <= 1.3 * min(gaps, default=gap) and _in_columns(run, line)))
        )
    lies_between = any(
        run[-1][0].base < piece.base < line[0].base and overlap(piece.x0, piece.x1, x0, x1) > size
        for stack in prose
        for piece in stack
    )
    return not lies_between and _in_columns(run, line)


def _in_columns(run: list[list[Piece]], line: list[Piece]) -> bool:
    """Whether most of its cells stand under one column of the lines before."""
    columns = _columns(run)
    fits = sum(sum(overlap(p.x0, p.x1, *column) > 0 for column in columns) == 1 for p in line)
    return 2 * fits >= len(line) and (len(line) > 1 or fits == 1)


def _is_wrapped(run: list[list[Piece]], line: list[Piece]) -> bool:
    """Whether a line goes on with cells of the row above it."""
    above = next((row for row in reversed(run) if row is not line), None)
    if above is None or line[0].base - above[0].base > 1.6 * line[0].size:
        return False
    over = [[q for q in above if overlap(p.x0, p.x1, q.x0, q.x1) > 0] for p in line]
    return all(len(found) == 1 for found in over) and all(
        (p.goes_on and not found[0].ends)
        or found[0].text.endswith(("-", ",", "("))
        or len(found[0].text) > 25
        for p, found in zip(line, over, strict=True)
    )


def _columns(run: list[list[Piece]]) -> list[tuple[float, float]]:
    """Spans of columns: of the fullest line, widened by cells that stand in just one of them."""
    ordered = sorted(run, key=len, reverse=True)
    columns = [(p.x0, p.x1) for p in ordered[0]]
    for line in ordered[1:]:
        for piece in line:
            under = [i for i, c in enumerate(columns) if overlap(piece.x0, piece.x1, *c) > 0]
            if len(under) == 1:
                x0, x1 = columns[under[0]]
                columns[under[0]] = (min(x0, piece.x0), max(x1, piece.x1))
            elif not under and len(line) > 1:
                columns.append((piece.x0, piece.x1))
    return sorted(columns)


def _whole(columns: list[tuple[float, float]], run: list[list[Piece]]) -> list[tuple[float, float]]:
    """Neighbours as one column where a piece stands under both and no line fills them apart: a name stands in
    the middle over cells that begin at the left.
    """
    whole = columns[:1]
    for column in columns[1:]:
        last = whole[-1]
        held = [
            (
                [p for p in line if overlap(p.x0, p.x1, *last) > 0],
                [p for p in line if overlap(p.x0, p.x1, *column) > 0],
            )
            for line in run
        ]
        is_one = any(p in right for left, right in held for p in left) and all(
            left == right for left, right in held if left and right
        )
        if is_one:
            whole[-1] = (last[0], max(last[1], column[1]))
        else:
            whole.append(column)
    return whole


def _table(run: list[list[Piece]]) -> Region | None:
    """None where the columns read as prose side by side."""
    columns = _whole(_columns(run), run)
    if not 2 <= len(columns) <= MAX_COLUMNS:
        return None
    pieces = [piece for line in run for piece in line]
    starts = [line for k, line in enumerate(run) if not (k and _goes_on(run[:k], line, columns))]
    if len(starts) < 2:
        return None
    usual = median(piece.text.count(" ") + 1 for line in starts for piece in line)
    n_long = sum(min(p.text.count(" ") for p in line) >= 2 for line in starts if len(line) > 1)
    are_prose = len(columns) == 2 and not any(p.is_numeric for p in pieces) and 2 * n_long > len(starts)
    if usual > _MOST_WORDS or (usual > 3.5 and are_prose):
        return None
    rows: list[list[str]] = []
    for line in run:
        begins = line in starts
        if begins:
            rows.append([""] * len(columns))
        for piece in line:
            under = [i for i, c in enumerate(columns) if overlap(piece.x0, piece.x1, *c) > 0] or [
                min(range(len(columns)), key=lambda i: abs(columns[i][0] - piece.x0))
            ]
            for i in under:
                rows[-1][i] = glue(rows[-1][i], piece.text)
    block, names = Region.of(pieces), _names_above(run, rows)
    block.kind, block.rows = "table", names or rows
    block.has_header = not names and has_header(rows, starts)
    return block


def _names_above(run: list[list[Piece]], rows: list[list[str]]) -> list[list[str]]:
    """The rows of a form with small names above its values, each name with its value; else none."""
    if len(run) != len(rows) or len(run) % 2:
        return []
    pairs = list(zip(run[::2], run[1::2], strict=True))
    if any(max(n.size for n in names) > 0.9 * min(v.size for v in values) for names, values in pairs):
        return []
    return [
        [": ".join(filter(None, (name.rstrip(": "), value))) for name, value in zip(*pair, strict=True)]
        for pair in zip(rows[::2], rows[1::2], strict=True)
    ]


def _goes_on(run: list[list[Piece]], line: list[Piece], columns: list[tuple[float, float]]) -> bool:
    """Whether a line is a further line of the row before."""
    if len(line) == len(columns) and not all(piece.text[:1].islower() for piece in line):
        return False
    size, gap = line[0].size, line[0].base - run[-1][0].base
    if gap > 1.6 * size or (len(line) > 1 and any(piece.is_numeric for piece in line)):
        return False
    first_is_empty = overlap(line[0].x0, line[0].x1, *columns[0]) <= 0
    gaps = [b[0].base - a[0].base for a, b in pairwise([*run, line])]
    stands_close = gap <= 1.1 * min(gaps) and max(gaps) > 1.2 * gap
    return all(piece.goes_on for piece in line) or (
        (first_is_empty or stands_close) and len(line) < len(columns)
    )


def has_header(rows: list[list[str]], lines: Sequence[Sequence[Piece]] = ()) -> bool:
    """Whether the first row names the columns: bold, or without figures above a column of them; always where
    there are three columns or more and the first row has no figures.
    """
    first, rest = rows[0], rows[1:]
    if not rest or any(cell.endswith(":") for cell in first):
        return False
    if lines and all(p.bold for p in lines[0]) and not all(p.bold for line in lines[1:] for p in line):
        return True
    figures = [bool(_DIGITS.search(cell)) for cell in first]
    if len(first) > 2:
        return not all(figures[1:])
    below = [row[1] for row in rest if row[1]]
    return not figures[1] and len(below) > 1 and all(_DIGITS.search(cell) for cell in below)


def markdown_table(rows: list[list[str]], header: bool) -> str:
    """A pipe table; without header cells the row of them is empty."""
    n = max(map(len, rows))
    lines = [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in [*row, *[""] * (n - len(row))]) + " |"
        for row in ([] if header else [[""] * n]) + rows
    ]
    return "\n".join([lines[0], "|" + "---|" * n, *lines[1:]])
