"""Words of a PDF page -> regions in reading order.

Words become pieces: what stands on one line of one column. Pieces right below each other are a stack: a
paragraph, or the cells of a column. Stacks of short cells in common rows are a table
(core.ingest.pdf_tables). Blocks are put in order by two rules: what is above comes first where two overlap
from left to right, and of columns side by side the left one comes first unless something as wide as both lies
between.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise
from statistics import median
from typing import Literal

from core.ingest.limits import MAX_COLUMNS
from core.ingest.pdf_page import Rule, Word, is_leftward

SURE_GAP = 2.2
"""Ems between words from which they are in two columns; narrower ones need other lines that show a gutter."""
_MAYBE_GAP = 0.55
_GUTTER = 0.5
_MOST_BETWEEN = 4
"""Lines of other columns between two lines of one."""
_PITCH = 1.75
"""Ems from line to line of a stack, where the page's own lines don't lie farther apart."""
_MOST_ORDERED = 150
"""Blocks put in order by the rules; more are labels of a drawing, read from the top."""
_SHARE_BESIDE = 0.4
"""Of a column, above which it stands beside another."""
_MARKER = re.compile(r"[•◦○◯●▪■□►➢·*‣]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)]|\[[ x]\]")
_LEADING_MARKER = re.compile(r"[–—-]|\d{1,2}(?:\.\d{1,3}){1,4}\.?|§+ ?\d+\.?")
_STARTS_ITEM = re.compile(
    r"(?:[•◦○◯●▪■□►➢‣]|[–—*·-](?= )|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,5})[.)](?= )"
    r"|\d{1,2}(?:\.\d{1,2}){1,4}\.? (?=\D)|\[[ x]\] )"
)
_ENDS = re.compile(r"[.!?:;。！？؟։।][\"'”’»)\]]*(?:\^\d+)?$")
_LEADERS = re.compile(r"(?: ?[.·…_]){5,}")
BROKEN = "\ufdd0"
"""In the place of a hyphen at a line's end, until the whole document says whether the word has it."""
_HYPHENED = re.compile(r"[^\W\d_](?:[^\W_]|-)*-$")
_SIGNS = ".,:;!?()[]{}«»…–—-"
_MIRRORED = str.maketrans("()[]{}«»<>", ")(][}{»«><")
_NO_BLANK = 0.13
"""Ems between two words that no blank parts."""
_SUSPENDED = re.compile(r"(?:and|und|oder|bzw|och|eller)\b")
"""Behind the first half of "two- and three-year" the hyphen is the word's own."""


@dataclass
class Piece:
    """Words of one line of one column, from left to right."""

    words: list[Word]

    @cached_property
    def x0(self) -> float:
        return min(word.x0 for word in self.words)

    @cached_property
    def x1(self) -> float:
        return max(word.x1 for word in self.words)

    @cached_property
    def base(self) -> float:
        return max(self.words, key=lambda word: len(word.text)).base

    @cached_property
    def size(self) -> float:
        by_size = sorted((word.size, len(word.text)) for word in self.words)
        half = sum(n for _, n in by_size) / 2
        for size, n in by_size:
            half -= n
            if half <= 0:
                return size
        return by_size[-1][0]

    @property
    def top(self) -> float:
        return self.base - 0.8 * self.size

    @property
    def bottom(self) -> float:
        return self.base + 0.25 * self.size

    @cached_property
    def bold(self) -> bool:
        return all(word.bold for word in self.words if any(map(str.isalnum, word.text)))

    @cached_property
    def text(self) -> str:
        if runs_leftward(word.text for word in self.words):
            return _LEADERS.sub(" ...", _read_leftward(self.words))
        parts = (word.text if i == 0 or word.glued else f" {word.text}" for i, word in enumerate(self.words))
        return _LEADERS.sub(" ...", "".join(parts))

    @property
    def is_numeric(self) -> bool:
        return any(map(str.isdigit, self.text)) and sum(map(str.isalpha, self.text)) <= 3

    @property
    def goes_on(self) -> bool:
        """Whether it begins as a line within a sentence does."""
        first = self.text[:1]
        return first.islower() or (first.isalpha() and not first.isupper())

    @property
    def ends(self) -> bool:
        return _ENDS.search(self.text) is not None


RegionKind = Literal["text", "code", "table", "box"]


@dataclass
class Region:
    """A stack of pieces, lines of code, a table's rows, or a box with blocks inside."""

    kind: RegionKind
    x0: float
    top: float
    x1: float
    bottom: float
    pieces: list[Piece] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    has_header: bool = True
    inside: list[Region] = field(default_factory=list)

    @classmethod
    def of(cls, pieces: list[Piece]) -> Region:
        return cls(
            "text",
            min(p.x0 for p in pieces),
            min(p.top for p in pieces),
            max(p.x1 for p in pieces),
            max(p.bottom for p in pieces),
            pieces,
        )


def runs_leftward(words: Iterable[str]) -> bool:
    """Whether most words with letters are of scripts that are written from right to left."""
    worded = [word for word in words if any(map(str.isalpha, word))]
    return 2 * sum(not word.isascii() and any(map(is_leftward, word)) for word in worded) > len(worded)


def _read_leftward(words: Sequence[Word]) -> str:
    """A line from right to left, but for the Latin in it. Blanks are where gaps are: signs and numbers within
    it are words of their own, whatever stands beside them.
    """
    parts: list[tuple[str, Word]] = []
    is_arabic = any(unicodedata.bidirectional(letter) == "AL" for word in words for letter in word.text)
    for _, group in groupby(reversed(words), key=lambda word: any(map(is_leftward, word.text))):
        run = list(group)
        text = "".join(word.text for word in run)
        if any(map(is_leftward, text)) or not any(map(str.isalpha, text)):
            parts += [(_turned(word.text, is_arabic=is_arabic), word) for word in run]
        else:
            latin = _with_gaps([(word.text, word) for word in reversed(run)])
            parts.append((latin, replace(run[-1], x1=run[0].x1)))
    return _with_gaps(parts)


def _with_gaps(parts: Sequence[tuple[str, Word]]) -> str:
    text = ""
    for i, (part, word) in enumerate(parts):
        near = parts[i - 1][1]
        gap = max(word.x0, near.x0) - min(word.x1, near.x1)
        text += part if i == 0 or gap < _NO_BLANK * word.size else f" {part}"
    return text


def _turned(text: str, *, is_arabic: bool) -> str:
    """A word of a line that is read from the right, with the brackets that a page draws turned about; of a
    number the signs around it trade places, and in Arabic those that hyphens join do.
    """
    if any(map(is_leftward, text)):
        return text.translate(_MIRRORED)
    number = text.strip(_SIGNS)
    before, _, behind = text.partition(number) if number else (text, "", "")
    number = "".join(reversed(re.split("([–—-])" if is_arabic else "([–—])", number)))
    return behind[::-1].translate(_MIRRORED) + number + before[::-1].translate(_MIRRORED)


def usual_size(words: Iterable[Word]) -> float:
    """Size of most letters."""
    sizes: Counter[float] = Counter()
    for word in words:
        sizes[round(word.size * 2) / 2] += len(word.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0


def lines_of(words: Iterable[Word]) -> list[list[Word]]:
    """Words by the line they stand on, from the top, each from left to right."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda w: (w.base, w.x0)):
        for line in reversed(lines[-3:]):
            if abs(word.base - line[0].base) <= 0.3 * min(word.size, line[0].size):
                line.append(word)
                break
        else:
            lines.append([word])
    for line in lines:
        line.sort(key=lambda w: w.x0)
    return lines


def pieces_of(words: Iterable[Word], rules: Sequence[Rule]) -> list[Piece]:
    """Lines cut at the gaps between columns and cells."""
    lines = lines_of(words)
    upright = [rule for rule in rules if not rule.level]
    rows: list[list[Piece]] = []
    for i, line in enumerate(lines):
        cuts = [k for k in range(1, len(line)) if _is_cut(lines, i, k, upright)]
        borders = pairwise([0, *cuts, len(line)])
        rows.append(_with_markers([Piece(line[begun:end]) for begun, end in borders]))
    for in_turn in (rows, rows[::-1]):
        for i, row in enumerate(in_turn):
            for near in in_turn[max(0, i - _MOST_BETWEEN) : i]:
                _join_justified(row, near)
    return [piece for row in rows for piece in row]


def _is_cut(lines: list[list[Word]], i: int, k: int, upright: Sequence[Rule]) -> bool:
    line = lines[i]
    word, em = line[k], min(line[k - 1].size, line[k].size)
    x0 = max(w.x1 for w in line[:k])
    gap = word.x0 - x0
    if word.glued or gap < 0.1 * em:
        return False
    if gap >= SURE_GAP * em:
        return True
    if any(x0 - 1 <= rule.x0 <= word.x0 + 1 and rule.y0 < word.base - 0.3 * em < rule.y1 for rule in upright):
        return True
    if gap < _MAYBE_GAP * em or (gap < 1.2 * em and _is_spread(line, gap)):
        return False
    return _shows_gutter(lines, i, x0, word.x0, em, 2 if gap >= 1.2 * em else 4)


def _is_spread(line: list[Word], gap: float, least: int = 3) -> bool:
    """Whether a line has such gaps everywhere, as justified ones have."""
    gaps = [after.x0 - before.x1 for before, after in pairwise(line) if not after.glued]
    return len(gaps) > least and gap < 1.5 * min(gaps)


def _join_justified(row: list[Piece], near: list[Piece]) -> None:
    """Makes one of pieces that together are as wide as a line of the same sentence right above or below."""
    for line in near if 1 < len(row) <= MAX_COLUMNS else ():
        if len(line.words) < 2:
            continue
        begun = bisect_left(row, line.x0 - 1, key=lambda piece: piece.x0)
        end = bisect_right(row, line.x1 + 1, begun, key=lambda piece: piece.x1)
        if end - begun < 2:
            continue
        words = [word for piece in row[begun:end] for word in piece.words]
        pitch = words[0].base - line.base
        upper = line if pitch > 0 else row[end - 1]
        if (
            0.9 * line.size < abs(pitch) < 1.5 * line.size
            and not upper.ends
            and abs(words[0].x0 - line.x0) <= 1
            and abs(words[-1].x1 - line.x1) <= 1
            and _is_spread(words, max(b.x0 - a.x1 for a, b in pairwise(words)), 0)
        ):
            row[begun:end] = [Piece(words)]


def _shows_gutter(lines: list[list[Word]], i: int, x0: float, x1: float, em: float, needed: int) -> bool:
    """Whether lines around this one have a gap at the same place."""
    for step in (-1, 1):
        before, k = lines[i][0].base, i + step
        while 0 <= k < len(lines) and abs(lines[k][0].base - before) <= 2.5 * em:
            narrowed = _gap_in(lines[k], x0, x1)
            if narrowed is None or narrowed[1] - narrowed[0] < _GUTTER * em:
                break
            x0, x1, on_both_sides = narrowed
            needed -= on_both_sides
            if needed <= 1:
                return True
            before, k = lines[k][0].base, k + step
    return False


def _gap_in(line: list[Word], x0: float, x1: float) -> tuple[float, float, bool] | None:
    """What of a gap stays free in a line, and whether words stand on both sides of it."""
    left = right = False
    for word in line:
        if word.x1 <= x0 + 0.01:
            left = True
        elif word.x0 >= x1 - 0.01:
            right = True
        elif (word.x0 + word.x1) / 2 < (x0 + x1) / 2:
            x0, left = word.x1, True
        else:
            x1, right = word.x0, True
        if x1 <= x0:
            return None
    return x0, x1, left and right


def _with_markers(row: list[Piece]) -> list[Piece]:
    """Bullets and numbers of items with the words behind them."""
    joined: list[Piece] = []
    for piece in row:
        if joined and piece.x0 - joined[-1].x1 <= 4 * piece.size:
            text = joined[-1].text
            leads = len(joined) == 1 and _LEADING_MARKER.fullmatch(text) and piece.text[:1].isalpha()
            if leads or _MARKER.fullmatch(text):
                joined[-1] = Piece([*joined[-1].words, *piece.words])
                continue
        joined.append(piece)
    return joined


def overlap(x0: float, x1: float, y0: float, y1: float) -> float:
    """How much two spans have in common."""
    return min(x1, y1) - max(x0, y0)


def _stand_over(one: Piece, other: Piece) -> bool:
    narrow = min(one.x1 - one.x0, other.x1 - other.x0)
    return overlap(one.x0, one.x1, other.x0, other.x1) > min(0.2 * narrow, one.size)


def stacks_of(pieces: list[Piece]) -> list[list[Piece]]:
    """Pieces that follow each other downwards, each with no other one above or below it."""
    pieces = sorted(pieces, key=lambda p: (p.base, p.x0))
    reach = _pitch_of(pieces)
    below: dict[int, list[Piece]] = {}
    above: dict[int, list[Piece]] = {}
    for i, piece in enumerate(pieces):
        found: list[Piece] = []
        for other in pieces[i + 1 :]:
            if other.base - piece.base > 4 * piece.size or (
                found and other.base > found[0].base + 0.5 * found[0].size
            ):
                break
            if other.base > piece.base + 0.3 * piece.size and _stand_over(piece, other):
                found.append(other)
        below[id(piece)] = found
        for other in found:
            above.setdefault(id(other), []).append(piece)
    stacks: list[list[Piece]] = []
    stack_of: dict[int, list[Piece]] = {}
    at = {id(piece): i for i, piece in enumerate(pieces)}
    for piece in pieces:
        over = above.get(id(piece), [])
        if len(over) == 1 and below[id(over[0])] == [piece]:
            stack = stack_of[id(over[0])]
            between = pieces[at[id(over[0])] + 1 : at[id(piece)]]
            is_apart = _part(between, over[0], piece)
            if stack[-1] is over[0] and not is_apart and _continues(stack, piece, reach):
                stack.append(piece)
                stack_of[id(piece)] = stack
                continue
        stack_of[id(piece)] = [piece]
        stacks.append(stack_of[id(piece)])
    return stacks


def _part(between: list[Piece], upper: Piece, lower: Piece) -> bool:
    """Whether a line of its own lies between two that are far apart: a text set in below its name, over the
    next name.
    """
    half = 0.5 * upper.size
    return lower.base - upper.base > _PITCH * upper.size and any(
        upper.base + half < piece.base < lower.base - half for piece in between
    )


def _pitch_of(pieces: list[Piece]) -> float:
    """Ems from line to line that still are one stack, on this page."""
    gaps = []
    for i, piece in enumerate(pieces):
        for other in pieces[i + 1 : i + 12]:
            if other.base > piece.base + 0.5 * piece.size and _stand_over(piece, other):
                gaps.append((other.base - piece.base) / max(piece.size, 1.0))
                break
    usual = median(gaps) if len(gaps) >= 4 else 0.0
    return max(_PITCH, 1.15 * usual if usual <= 2.6 else 0.0)


def _continues(stack: list[Piece], piece: Piece, reach: float) -> bool:
    last = stack[-1]
    pitch = piece.base - last.base
    if max(piece.size, last.size) > 1.12 * min(piece.size, last.size) or piece.bold != last.bold:
        return False
    if len(stack) > 1:
        usual = (last.base - stack[0].base) / (len(stack) - 1)
        return 0.75 * usual - 0.5 <= pitch <= 1.2 * usual + 0.5
    return pitch <= reach * last.size


def flows(stack: Sequence[Piece]) -> bool:
    """Whether a stack reads as prose: its lines go on in the next, or are long and nearly as long."""
    if len(stack) < 2:
        return False
    goes_on = sum(
        (after.goes_on and not before.ends) or before.text.endswith("-") for before, after in pairwise(stack)
    ) / (len(stack) - 1)
    n_words = sum(_n_words(piece.text) for piece in stack) / len(stack)
    widths = [piece.x1 - piece.x0 for piece in stack]
    is_full = median(widths[:-1]) >= 0.8 * max(widths)
    if n_words < 2.5:
        return goes_on >= 0.6 and n_words >= 1.3 and stack[-1].ends
    return goes_on >= 0.75 or (is_full and (goes_on >= 0.5 or (n_words >= 4.5 and goes_on >= 0.2)))


def _n_words(text: str) -> float:
    """Blanks and one; of scripts without blanks, two letters a word."""
    return max(text.count(" ") + 1, sum(letter > "\u2e7f" for letter in text) / 2)


def in_order(blocks: list[Region]) -> list[Region]:
    """As people read them."""
    if len(blocks) > _MOST_ORDERED:
        return sorted(blocks, key=lambda b: (b.top, b.x0))
    n = len(blocks)
    _widen_centred(blocks)
    blocks = sorted(blocks, key=lambda b: (b.top + b.bottom, b.x0))
    places = _Places(blocks)
    after: list[set[int]] = [set() for _ in range(n)]
    n_before = [0] * n
    for i in range(n):
        for k in range(n):
            if i != k and places.comes_first(i, k):
                after[i].add(k)
                n_before[k] += 1
    done: list[Region] = []
    left = set(range(n))
    while left:
        free = [i for i in left if n_before[i] == 0] or [min(left, key=lambda i: n_before[i])]
        chosen = min(free, key=lambda i: (blocks[i].top, blocks[i].x0))
        left.remove(chosen)
        done.append(blocks[chosen])
        for k in after[chosen]:
            n_before[k] -= 1
        n_before[chosen] = -1
    return done


def _widen_centred(blocks: list[Region]) -> None:
    """Headings in the middle, with nothing beside them, lie between columns as one as wide as both does."""
    left, right = min((b.x0 for b in blocks), default=0.0), max((b.x1 for b in blocks), default=0.0)
    for block in blocks:
        is_centred = abs(block.x0 + block.x1 - left - right) < 0.16 * (right - left)
        others = (other for other in blocks if other is not block)
        if (
            is_centred
            and len(block.pieces) in (1, 2, 3)
            and all(overlap(block.top, block.bottom, other.top, other.bottom) <= 0 for other in others)
        ):
            block.x0, block.x1 = left, right


class _Places:
    """Which blocks stand over, beside and between which, as bits of whole numbers; `blocks` from the top."""

    def __init__(self, blocks: Sequence[Region]) -> None:
        self._blocks = blocks
        self._over = [
            sum(1 << k for k, other in enumerate(blocks) if overlap(one.x0, one.x1, other.x0, other.x1) > 0)
            for one in blocks
        ]
        self._beside = [
            sum(1 << k for k, other in enumerate(blocks) if _stand_beside(one, other)) for one in blocks
        ]

    def comes_first(self, i: int, k: int) -> bool:
        one, other = self._blocks[i], self._blocks[k]
        narrow = min(one.x1 - one.x0, other.x1 - other.x0)
        if overlap(one.x0, one.x1, other.x0, other.x1) > 0.1 * narrow:
            return i < k
        return one.x0 + one.x1 < other.x0 + other.x1 and self._are_columns(i, k)

    def _are_columns(self, i: int, k: int) -> bool:
        """Whether nothing as wide as both lies between two blocks, and much of what stands over and under
        one of them has something of the other's beside it, which names in the margin have not.
        """
        low, high = sorted((i, k))
        crossing = self._over[i] & self._over[k] & ~(1 << i | 1 << k)
        if crossing >> low & (1 << high - low) - 1:
            return False
        if self._beside[i] >> k & 1:
            return True
        begin = (crossing & (1 << low) - 1).bit_length()
        below = crossing >> high
        end = high + ((below & -below).bit_length() - 1 if below else len(self._blocks) - high)
        reach = (1 << end) - (1 << begin)
        lefts, rights = self._over[i] & ~self._over[k] & reach, self._over[k] & ~self._over[i] & reach
        return self._has_beside(lefts, rights) or self._has_beside(rights, lefts)

    def _has_beside(self, column: int, other: int) -> bool:
        total = beside = 0.0
        for i, block in enumerate(self._blocks):
            if column >> i & 1:
                total += block.bottom - block.top
                beside += (block.bottom - block.top) * bool(self._beside[i] & other)
        return beside > _SHARE_BESIDE * total


def _stand_beside(one: Region, other: Region) -> bool:
    low = min(one.bottom - one.top, other.bottom - other.top)
    return (
        overlap(one.x0, one.x1, other.x0, other.x1) <= 0
        and overlap(one.top, one.bottom, other.top, other.bottom) > 0.25 * low
    )


def starts_item(text: str) -> bool:
    """Whether a line begins as an item of a list."""
    return _STARTS_ITEM.match(text) is not None


def ends_sentence(text: str) -> bool:
    return _ENDS.search(text) is not None


def glue(text: str, more: str) -> str:
    """A line and the next; BROKEN is where a line's end broke a word."""
    if not text or not more:
        return text + more
    if text.endswith("\u00ad"):
        return text[:-1] + more
    if text.endswith("-") and more[0].isalnum() and _HYPHENED.search(text) and not _SUSPENDED.match(more):
        return f"{text[:-1]}{BROKEN}{more}" if more[0].islower() else text + more
    if text.endswith("-") and text[-2:-1].isdigit() and more[0].isdigit():
        return text + more
    is_solid = "\u2e80" <= text[-1] <= "\uffef" and "\u2e80" <= more[0] <= "\uffef"
    return f"{text}{more}" if is_solid and not "\uac00" <= text[-1] <= "\ud7a3" else f"{text} {more}"


_BROKEN_WORD = re.compile(rf"(?:[^\W_]|-)+(?:{BROKEN}[^\W_]+)+")
_HYPHEN_KEPT = frozenset(["self", "well", "half", "all", "cross", "quasi", "so", "vice"])
"""First parts of words that are nearly always written with a hyphen."""


def joined(text: str, known: Counter[str]) -> str:
    """A text whose broken words are whole: with the hyphen where the document writes them so elsewhere, or
    knows both parts and not the whole. `known`: how often it has a word, in lower case.
    """
    words = _BROKEN_WORD.findall(text)
    ends = Counter(end.lower() for word in words for end in word.split(BROKEN)[1:])

    def whole(word: re.Match[str]) -> str:
        first, *rest = word[0].split(BROKEN)
        for end in rest:
            a, b = first.lower(), end.lower()
            are_words = known[a] > 0 and known[b] > ends[b]
            keeps = known[f"{a}-{b}"] or (not known[a + b] and ("-" in a or a in _HYPHEN_KEPT or are_words))
            first = f"{first}-{end}" if keeps else first + end
        return first

    return _BROKEN_WORD.sub(whole, text).replace(BROKEN, "")
