"""What stands on a PDF page: words, rules, fields, comments.

PDFium reads it; layout is left to others. Positions are points, turned so that text of each direction reads
from left to right and downwards.
"""

from __future__ import annotations

import ctypes
import math
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from core.base.errors import BadDocument
from core.ingest.limits import MAX_PDF_FORMS, MAX_PDF_GLYPHS, MAX_PDF_RULES

_WORD_GAP = 0.3
"""Ems between letters that no font sets closer and no word has inside."""
_SAME_LINE = 0.15
_SCRIPT_SIZE = 0.86
"""A raised or lowered letter is at most this much of its neighbour; browsers make it 0.83."""
_DROP_CAP = 1.7
_THIN = 2.5
"""Points: a drawing no thicker is a rule."""
_PANEL = 0.6
"""Of the page's height, from which a filled box along its side is a column of its own."""
_DOT = (1.5, 14.0)
"""Points: a drawing as high as wide, of such a width, may be the sign of a list."""
_SMALL_DOT, _DOT_SIZE = 7.0, 0.45
"""Points up to which it is one beside letters of any size, and ems up to which a larger one is."""
_MOST_LEVEL = 4
"""Such signs on one level: more are a dotted line."""
_BAND = 4.0
"""Points in which words are sorted by their height."""
_PICTURE_SHARE = 0.03
"""Of the page, from which a picture is told about."""
_HIDDEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW | raw.FPDF_ANNOT_FLAG_INVISIBLE
_PASSWORD = 1 << 13
_FIXED_PITCH = 1
_FIXED_NAMES = (b"courier", b"mono", b"nimbusmon", b"cmtt", b"sftt", b"consol", b"menlo", b"typewriter")
"""Parts of the names of fonts of which many files don't say that their pitch is fixed."""
_PLAIN_STATES = frozenset(["on", "off", "1", "0", "true", "x"])
_REMARKS = {
    getattr(raw, f"FPDF_ANNOT_{kind}")
    for kind in (
        *("TEXT", "FREETEXT", "HIGHLIGHT", "UNDERLINE", "SQUIGGLY", "STRIKEOUT", "STAMP", "CARET", "INK"),
        *("LINE", "SQUARE", "CIRCLE", "POLYGON", "POLYLINE", "FILEATTACHMENT"),
    )
}
_SYMBOLS = str.maketrans(
    {
        **dict.fromkeys("\uf0b7\uf0a7\uf0d8\uf076\uf0fc\uf0a8\uf06e\uf071\uf0b0\u25cf\u25aa\u2023", "•"),
        **dict.fromkeys("\u200b\u2060\ufeff", ""),
        **dict.fromkeys("\u2010\u2011", "-"),
        "\u00a0": " ",
    }
)


@dataclass(slots=True)
class Word:
    """Letters without a blank, or the value of a field. `base` is the line that they stand on."""

    text: str
    x0: float
    x1: float
    base: float
    size: float
    bold: bool = False
    fixed: bool = False
    glued: bool = False
    """Whether no blank stands before it: a power, an index, what follows a large first letter."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line: from (x0, y0) to (x1, y1), level or upright."""

    x0: float
    y0: float
    x1: float
    y1: float
    ends_panel: bool = False
    """Whether it is the edge of a coloured column along a side of the page."""

    @property
    def level(self) -> bool:
        return self.x1 - self.x0 >= self.y1 - self.y0


@dataclass
class Page:
    """Of the text that reads as most of the page does; `others` has what reads in other directions."""

    words: list[Word] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    others: list[list[Word]] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    top: float = 0.0
    bottom: float = 0.0
    pictures: int = 0
    is_drawn: bool = False
    unknown: int = 0
    """Letters of which the font doesn't say what they are."""
    is_cut: bool = False
    has_unseen: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.others or self.comments)


class PageReader:
    """Reads the pages of one PDF; counts its drawings within drawings."""

    def __init__(self, pdf: pdfium.PdfDocument, name: str) -> None:
        self._name = name
        self._forms = 0
        pdf.init_forms()
        self._form = pdf.formenv

    def read(self, page: pdfium.PdfPage) -> Page:
        """Raises BadDocument behind MAX_PDF_FORMS drawings within drawings."""
        seen = left, bottom, right, top = page.get_bbox()
        rules, dots, pictures, has_image = self._drawn(page, max(1.0, (right - left) * (top - bottom)))
        with closing(page.get_textpage()) as text:
            by_angle, unknown, is_cut, unseen = _words(text, seen, keeps_unseen=has_image)
        fields, comments = self._annotations(page)
        turned = (-page.get_rotation() // 90) % 4
        angle = max(by_angle, key=lambda a: sum(len(w.text) for w in by_angle[a]), default=turned)
        angle = turned if angle == _SLANTED else angle
        words = by_angle.pop(angle, [])
        words += _bullets(words, [_turned_box(dot, angle) for dot in dots])
        for box, value, label in fields:
            words.append(_with_field(words, _turned_box(box, angle), value, label))
        _, y0, _, y1 = _turned_box(seen, angle)
        return Page(
            words,
            [Rule(*_turned_box((r.x0, r.y0, r.x1, r.y1), angle), r.ends_panel) for r in rules],
            [by_angle[other] for other in sorted(by_angle) if by_angle[other]],
            comments,
            y0,
            y1,
            pictures,
            raw.FPDFPage_CountObjects(page) > 0,
            unknown,
            is_cut,
            unseen,
        )

    def _drawn(self, page: pdfium.PdfPage, area: float) -> tuple[list[Rule], list[Box], int, bool]:
        """Rules and dots in the page's own coordinates, how many pictures are worth a word, and whether there
        is any.
        """
        rules: list[Rule] = []
        dots: list[Box] = []
        pictures, has_image = 0, False
        todo: list[tuple[Any, pdfium.PdfMatrix]] = [
            (raw.FPDFPage_GetObject(page, i), pdfium.PdfMatrix())
            for i in range(raw.FPDFPage_CountObjects(page))
        ]
        for item, matrix in _unfolded(todo, self._count_form):
            kind = raw.FPDFPageObj_GetType(item)
            is_path = kind == raw.FPDF_PAGEOBJ_PATH and len(rules) + len(dots) < MAX_PDF_RULES
            if not is_path and kind != raw.FPDF_PAGEOBJ_IMAGE:
                continue
            has_image = has_image or not is_path
            if box := _bounds_of(item, matrix):
                width, height = box[2] - box[0], box[3] - box[1]
                pictures += not is_path and width * height >= _PICTURE_SHARE * area
                if is_path and _DOT[0] <= width <= _DOT[1] and 0.8 < height / width < 1.25:
                    dots.append(box)
            if is_path:
                rules += _rules_of(item, matrix, page.get_bbox())
        return rules, dots, pictures, has_image

    def _count_form(self) -> None:
        self._forms += 1
        if self._forms > MAX_PDF_FORMS:
            raise BadDocument(
                f"{self._name} draws more than {MAX_PDF_FORMS:,} forms; print the pages with text to a new"
                " PDF and open that"
            )

    def _annotations(self, page: pdfium.PdfPage) -> tuple[list[tuple[Box, str, str]], list[str]]:
        """Fields as (where, value, label), and comments."""
        fields: list[tuple[Box, str, str]] = []
        comments: list[str] = []
        for i in range(min(raw.FPDFPage_GetAnnotCount(page), MAX_PDF_RULES)):
            item = raw.FPDFPage_GetAnnot(page, i)
            if not item:
                continue
            try:
                if raw.FPDFAnnot_GetFlags(item) & _HIDDEN:
                    continue
                kind = raw.FPDFAnnot_GetSubtype(item)
                if kind == raw.FPDF_ANNOT_WIDGET:
                    if (value := self._value(item)) and (box := _rectangle(item)):
                        label = self._of_field(raw.FPDFAnnot_GetFormFieldAlternateName, item)
                        fields.append(
                            (box, value, label or self._of_field(raw.FPDFAnnot_GetFormFieldName, item))
                        )
                elif kind in _REMARKS and (said := _clean(_string(item, b"Contents"))):
                    author = _clean(_string(item, b"T"))
                    comments.append(f"Comment by {author}: {said}" if author else f"Comment: {said}")
            finally:
                raw.FPDFPage_CloseAnnot(item)
        return fields, comments

    def _value(self, item: Any) -> str:
        """What a person sees in a field; boxes as [x] and [ ]."""
        if self._form is None:
            return ""
        kind = raw.FPDFAnnot_GetFormFieldType(self._form, item)
        value = _clean(self._of_field(raw.FPDFAnnot_GetFormFieldValue, item))
        if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
            state = _string(item, b"AS")
            on = state.lower() != "off" if state else kind == raw.FPDF_FORMFIELD_CHECKBOX and bool(value)
            on = (on and value.lower() != "off") or bool(raw.FPDFAnnot_IsChecked(self._form, item))
            if not on:
                return "[ ]"
            named = state or self._of_field(raw.FPDFAnnot_GetFormFieldExportValue, item) or value
            return "[x]" if named.lower() in _PLAIN_STATES else f"[x] {named}"
        if kind in (raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX):
            chosen = [
                _clean(_utf16(raw.FPDFAnnot_GetOptionLabel, self._form, item, i))
                for i in range(min(raw.FPDFAnnot_GetOptionCount(self._form, item), 1_000))
                if raw.FPDFAnnot_IsOptionSelected(self._form, item, i)
            ]
            return ", ".join(filter(None, chosen)) or value
        is_secret = bool(raw.FPDFAnnot_GetFormFieldFlags(self._form, item) & _PASSWORD)
        return value if kind == raw.FPDF_FORMFIELD_TEXTFIELD and not is_secret else ""

    def _of_field(self, call: Any, item: Any) -> str:
        return "" if self._form is None else _utf16(call, self._form, item)


Box = tuple[float, float, float, float]
_SLANTED = 4
"""Where directions are quarters of a turn, counterclockwise: all those between."""


def _matrix_of(item: Any) -> pdfium.PdfMatrix:
    found = raw.FS_MATRIX()
    is_set = raw.FPDFPageObj_GetMatrix(item, found)
    return pdfium.PdfMatrix.from_raw(found) if is_set else pdfium.PdfMatrix()


def _bounds_of(item: Any, matrix: pdfium.PdfMatrix) -> Box | None:
    sides = [ctypes.c_float() for _ in range(4)]
    is_set = raw.FPDFPageObj_GetBounds(item, *sides)
    return matrix.on_rect(*(side.value for side in sides)) if is_set else None


def _unfolded(
    todo: list[tuple[Any, pdfium.PdfMatrix]], count_form: Callable[[], None]
) -> Iterator[tuple[Any, pdfium.PdfMatrix]]:
    """Objects of a page and of the forms on it."""
    while todo:
        item, matrix = todo.pop()
        if raw.FPDFPageObj_GetType(item) != raw.FPDF_PAGEOBJ_FORM:
            yield item, matrix
            continue
        count_form()
        inner = _matrix_of(item).multiply(matrix)
        todo += [
            (raw.FPDFFormObj_GetObject(item, i), inner) for i in range(raw.FPDFFormObj_CountObjects(item))
        ]


def _rules_of(item: Any, matrix: pdfium.PdfMatrix, seen: Box) -> Iterator[Rule]:
    """The straight lines of a path, thin filled boxes and the inner edges of panels among them."""
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(item, mode, stroke)
    n_segments = raw.FPDFPath_CountSegments(item)
    if not (stroke.value or mode.value) or n_segments > MAX_PDF_RULES:
        return
    own = _matrix_of(item).multiply(matrix)
    if not stroke.value:
        box = _bounds_of(item, matrix)
        if box and min(box[2] - box[0], box[3] - box[1]) <= _THIN:
            yield Rule(*box)
        elif box and box[3] - box[1] >= _PANEL * (seen[3] - seen[1]):
            is_left, is_right = box[0] <= seen[0] + _THIN, box[2] >= seen[2] - _THIN
            if is_left != is_right:
                inner = box[2] if is_left else box[0]
                yield Rule(inner, box[1], inner, box[3], ends_panel=True)
        return
    x, y = ctypes.c_float(), ctypes.c_float()
    start = last = (0.0, 0.0)
    for i in range(n_segments):
        segment = raw.FPDFPath_GetPathSegment(item, i)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = own.on_point(x.value, y.value)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield from _rule_between(last, point)
        if raw.FPDFPathSegment_GetClose(segment):
            yield from _rule_between(point, start)
        last = point


def _rule_between(one: tuple[float, float], other: tuple[float, float]) -> Iterator[Rule]:
    x0, x1 = sorted((one[0], other[0]))
    y0, y1 = sorted((one[1], other[1]))
    if min(x1 - x0, y1 - y0) <= 1.0 and max(x1 - x0, y1 - y0) > 3.0:
        yield Rule(x0, y0, x1, y1)


def _turned(x: float, y: float, angle: int) -> tuple[float, float]:
    """A point of the page, for text that runs in this direction."""
    return ((x, -y), (y, x), (-x, y), (-y, -x))[angle % 4]


def _turned_box(box: Box, angle: int) -> Box:
    (ax, ay), (bx, by) = _turned(box[0], box[1], angle), _turned(box[2], box[3], angle)
    return min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)


@dataclass(slots=True)
class _Style:
    """What the letters of one text object share."""

    angle: int
    size: float
    bold: bool
    fixed: bool
    unseen: bool = False


def _style_of(text: Any, i: int) -> _Style:
    matrix = raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(text, i, matrix)
    scale = math.hypot(matrix.c, matrix.d) or 1.0
    quarters = math.atan2(matrix.b, matrix.a) / (math.pi / 2)
    angle = round(quarters) % 4 if abs(quarters - round(quarters)) < 0.1 else _SLANTED
    flags = ctypes.c_int()
    name = ctypes.create_string_buffer(128)
    raw.FPDFText_GetFontInfo(text, i, name, 128, flags)
    font = name.value.lower()
    bold = any(part in font for part in (b"bold", b"black", b"heavy", b"semibold", b"cmbx")) or bool(
        raw.FPDFText_GetFontWeight(text, i) >= 600
    )
    fixed = bool(flags.value & _FIXED_PITCH) or any(
        part in font.replace(b"monotype", b"") for part in _FIXED_NAMES
    )
    shown = raw.FPDFText_GetTextObject(text, i)
    unseen = bool(shown) and raw.FPDFTextObj_GetTextRenderMode(shown) == raw.FPDF_TEXTRENDERMODE_INVISIBLE
    return _Style(angle, abs(raw.FPDFText_GetFontSize(text, i)) * scale, bold, fixed, unseen)


def _words(text: Any, seen: Box, *, keeps_unseen: bool) -> tuple[dict[int, list[Word]], int, bool, bool]:
    """Words by direction, how many letters are unknown, and whether there are too many, or invisible ones
    that were left out. Those are kept where a picture may show them, as on scans, and where most are.
    """
    by_angle: dict[int, list[Word]] = {}
    n_glyphs = raw.FPDFText_CountChars(text)
    box, x, y = raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    style, shown, object_before = _Style(0, 10.0, False, False), None, None
    word: Word | None = None
    unknown = n_seen = n_unseen = 0
    for i in range(min(n_glyphs, MAX_PDF_GLYPHS)):
        code = raw.FPDFText_GetUnicode(text, i)
        if code in (0x20, 0x0A, 0x0D, 0x09, 0xA0, 0x3000) or (code < 0x20 and code not in (0, 2)):
            word = None
            continue
        if 0xDC00 <= code < 0xE000:  # the second half of a letter beyond 16 bits
            continue
        letter = _letter(text, i, code)
        if letter == "\ufffd":
            unknown += 1
        raw.FPDFText_GetLooseCharBox(text, i, box)
        raw.FPDFText_GetCharOrigin(text, i, x, y)
        if not (seen[0] - 2 <= x.value <= seen[2] + 2 and seen[1] - 2 <= y.value <= seen[3] + 2):
            continue
        shown = ctypes.cast(raw.FPDFText_GetTextObject(text, i), ctypes.c_void_p).value
        if shown != object_before or shown is None:
            style, object_before = _style_of(text, i), shown
        n_seen, n_unseen = n_seen + (not style.unseen), n_unseen + style.unseen
        if style.unseen and not keeps_unseen:
            word = None
            continue
        if style.angle == _SLANTED:
            word = _slanted(by_angle.setdefault(_SLANTED, []), word, letter, style)
            continue
        x0, _, x1, _ = _turned_box((box.left, box.bottom, box.right, box.top), style.angle)
        base = _turned(x.value, y.value, style.angle)[1]
        size = style.size or 1.0
        if (
            word is not None
            and abs(word.base - base) <= _SAME_LINE * size
            and abs(word.size - size) <= 0.1 * size
            and (
                -size < x0 - word.x1 <= _WORD_GAP * size
                or (
                    any(map(is_leftward, word.text[-1:] + letter))
                    and -size < word.x0 - x1 <= _WORD_GAP * size
                )
            )
            and by_angle.get(style.angle, [None])[-1] is word
        ):
            is_behind = x0 >= word.x1 - _SAME_LINE * word.size
            is_backward = is_behind and all(map(is_leftward, letter + word.text[-1:]))
            word.text = letter + word.text if is_backward else word.text + letter
            word.x0, word.x1 = min(word.x0, x0), max(word.x1, x1)
            word.bold, word.fixed = word.bold and style.bold, word.fixed and style.fixed
            continue
        word = Word(letter, x0, x1, base, size, style.bold, style.fixed)
        by_angle.setdefault(style.angle, []).append(word)
    if n_unseen >= n_seen and n_unseen and not keeps_unseen:
        return _words(text, seen, keeps_unseen=True)
    for words in by_angle.values():
        words[:] = _joined(words)
    return by_angle, unknown, n_glyphs > MAX_PDF_GLYPHS, n_unseen > 0 and not keeps_unseen


def _bullets(words: list[Word], dots: list[Box]) -> list[Word]:
    """Signs of lists that are drawn: what stands alone before a line, at the height of its small letters."""
    bands: dict[int, list[Word]] = {}
    for word in sorted(words, key=lambda word: word.x0):
        bands.setdefault(int(word.base // _BAND), []).append(word)
    level = Counter(round(y1) for *_, y1 in dots)
    found = []
    for x0, y0, x1, y1 in dots:
        beside: list[Word] = []
        for k in range(3):
            band = bands.get(int(y1 // _BAND) + k, [])
            at = bisect_left(band, x1, key=lambda word: word.x0)
            beside += band[max(at - 1, 0) : at + 1]
        beside = [w for w in beside if 0.1 <= (w.base - (y0 + y1) / 2) / w.size <= 0.6]
        after = min((word for word in beside if word.x0 >= x1), key=lambda word: word.x0, default=None)
        if after is None or not 0.3 <= (after.x0 - x1) / after.size <= 2 or level[round(y1)] > _MOST_LEVEL:
            continue
        if x1 - x0 > max(_SMALL_DOT, _DOT_SIZE * after.size):
            continue
        if all(word is after or word.x1 < x0 - 2 * word.size for word in beside):
            found.append(Word("•", x0, x1, after.base, after.size, after.bold, after.fixed))
    return found


def is_leftward(letter: str) -> bool:
    """Whether a letter belongs to a script that is written from right to left."""
    return unicodedata.bidirectional(letter) in ("R", "AL")


def _letter(text: Any, i: int, code: int) -> str:
    if code == 2:  # PDFium's sign for a hyphen where a word is broken
        return "-"
    if 0xD800 <= code < 0xDC00:
        low = raw.FPDFText_GetUnicode(text, i + 1)
        return chr(0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)) if 0xDC00 <= low < 0xE000 else "\ufffd"
    if code in (0, 0xFFFE, 0xFFFF) or code > 0x10FFFF:
        return "\ufffd"
    return chr(code)


def _slanted(words: list[Word], word: Word | None, letter: str, style: _Style) -> Word:
    """Slanted text in the order it is written in, in one line."""
    if word is not None and words and words[-1] is word:
        word.text += letter
        word.x1 += style.size
        return word
    x = words[-1].x1 + style.size / 2 if words else 0.0
    words.append(Word(letter, x, x + style.size, 0.0, style.size))
    return words[-1]


def _joined(words: list[Word]) -> list[Word]:
    """With powers, indices and large first letters on the line of their neighbour; letters normalised."""
    done: list[Word] = []
    for word in words:
        word.text = normal(word.text)
        if not word.text:
            continue
        before = done[-1] if done else None
        if before is not None and _is_drop_cap(before, word):  # else its line would be raised letters to it
            before.base, before.size, before.bold = word.base, word.size, word.bold
            word.glued = word.text[0].islower() or before.text not in ("A", "I")
            before.x0, before.x1 = word.x0 - 0.7 * word.size, word.x0 - 0.05 * word.size
        elif before is not None and -0.5 * before.size <= word.x0 - before.x1 <= _reach(before, word):
            _attach(before, word)
        done.append(word)
    return done


def _reach(before: Word, word: Word) -> float:
    """How far apart two words may be to belong together; a blank may stand behind the number of a note."""
    is_number = before.text.isdecimal() and before.size <= _SCRIPT_SIZE * word.size
    return 0.6 * word.size if is_number else 0.4 * before.size


def _attach(before: Word, word: Word) -> None:
    raised = (before.base - word.base) / before.size
    if before.size <= _SCRIPT_SIZE * word.size and 0.12 < (word.base - before.base) / word.size < 0.7:
        before.base, before.text = word.base, before.text if before.glued else f"^{before.text}"
        return
    if word.size > _SCRIPT_SIZE * before.size or not 0.12 < abs(raised) < 0.7:
        word.glued = abs(raised) <= _SAME_LINE and word.x0 - before.x1 <= 0.1 * before.size
        return
    if raised > 0 and any(map(str.isdigit, word.text)):
        word.text = f"^{word.text}"
    word.base, word.size, word.glued = before.base, before.size, True


def _is_drop_cap(before: Word, word: Word) -> bool:
    return (
        len(before.text) == 1
        and before.text.isalpha()
        and before.size > _DROP_CAP * word.size
        and 0 < before.base - word.base < 1.2 * before.size
        and -0.2 * before.size <= word.x0 - before.x1 < 0.5 * before.size
    )


def normal(text: str) -> str:
    """Ligatures and presentation forms as letters, accents on their letters, signs of lists as bullets."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", "".join(map(_normal_letter, text.translate(_SYMBOLS))))


def _normal_letter(letter: str) -> str:
    is_form = (
        "\ufb00" <= letter <= "\ufdff" or "\ufe70" <= letter <= "\ufefc" or "\u2e80" <= letter <= "\u2fdf"
    )
    return unicodedata.normalize("NFKC", letter) if is_form else letter


def _clean(text: str) -> str:
    return " ".join(normal(text.replace("\u00ad", "")).split())


def _rectangle(item: Any) -> Box | None:
    box = raw.FS_RECTF()
    return (box.left, box.bottom, box.right, box.top) if raw.FPDFAnnot_GetRect(item, box) else None


def _utf16(call: Any, *arguments: Any) -> str:
    """What PDFium writes into a buffer of a length that it names first."""
    n_bytes = min(call(*arguments, None, 0), 1_000_000)
    if n_bytes <= 2:
        return ""
    buffer = ctypes.create_string_buffer(n_bytes)
    call(*arguments, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), n_bytes)
    return buffer.raw[: n_bytes - 2].decode("utf-16-le", "replace")


def _string(item: Any, key: bytes) -> str:
    return _utf16(raw.FPDFAnnot_GetStringValue, item, key)


def _with_field(words: list[Word], box: Box, value: str, label: str) -> Word:
    """A field's value as a word on the line of what stands beside it, with its name where nothing does."""
    x0, y0, x1, y1 = box
    beside = [w for w in words if y0 - 2 <= w.base - 0.275 * w.size <= y1 + 2]  # by their middles
    size = min(max(y1 - y0, 6.0) * 0.7, 11.0)
    is_box = value.startswith("[")
    if beside:
        near = min(beside, key=lambda w: min(abs(w.x0 - x1), abs(w.x1 - x0)))
        base, size = near.base, near.size
        if is_box and any(value[4:].lower() == w.text.lower() for w in beside):
            value = value[:3]
    else:
        base = (y0 + y1) / 2 + 0.3 * size
        above = any(0 <= y0 - w.base < 2 * w.size and w.x0 < x1 and w.x1 > x0 for w in words)
        if label and not above:
            value = f"{_clean(label)}: {value}"
    if is_box:
        x1 = max(x1, x0 + size)
    return Word(value, x0, x1, base, size)
