"""PDF -> Markdown, in reading order.

A first look over the pages finds running heads, which repeat; a second one lays out each page
(core.ingest.pdf_layout). Then sentences are put together again that columns, pages, figures or notes
interrupt, and words that a line's end broke.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from core.base.errors import BadDocument
from core.base.types import Notice
from core.ingest.converted import Converted
from core.ingest.limits import MAX_CONVERTED_CHARACTERS, OCR_SHARE, seconds_for
from core.ingest.pdf_code import code_of, is_typed, listings
from core.ingest.pdf_heads import drop_running
from core.ingest.pdf_layout import (
    Piece,
    Region,
    ends_sentence,
    flows,
    glue,
    in_order,
    joined,
    pieces_of,
    runs_leftward,
    stacks_of,
    starts_item,
    usual_size,
)
from core.ingest.pdf_page import Page, PageReader, Rule, Word
from core.ingest.pdf_scan import HOW, Recogniser, can_recognise, opened
from core.ingest.pdf_tables import grids_of, has_header, markdown_table, ruled_cells, ruled_rows, unruled

OnPage = Callable[[int, int], None]
"""Gets (pages done, pages in all)."""

_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|tab(?:le|\.|elle|leau)?|abb(?:\.|ildung)?|photo|plate|chart|map|listing|box|exhibit|"
    r"figura|tabla|tabella|rys\.|图|表|図)\s*[\dIVX]+",
    re.IGNORECASE,
)
_NOTE = re.compile(r"(?:\^?\d{1,3}(?:\s|(?=[A-Z]))|[*†‡§¶])")
_NUMBERED = re.compile(r"(?:\d{1,2}(?:\.\d{1,2}){0,4}\.?|[A-Z]\.|\([a-z]\)) ")
_NOTE_SIZE = 0.92
_HEADING_SIZE = 1.13
_MOST_HEADING = 150
_BULLET = re.compile(r"\A[•◦○◯●▪■□►➢‣·*–—]\s+")
_MARKUP = re.compile(r"(?m)^(#{1,6}\s|>|```|~~~|={3,}$|-{2,}$)")
_MOST_PANELS = 4
_NAMED = 8
"""Pages and names that a notice lists."""


@dataclass
class _Item:
    """A paragraph, heading, row of items, code, table, or comment, as it will stand in the text."""

    kind: str
    text: str
    size: float = 0.0
    bold: bool = False
    is_full: bool = True
    """Whether its last line ends where the column does, so that a sentence may go on."""
    page: int = 0
    rows: list[list[str]] = field(default_factory=list)
    has_header: bool = False
    span: tuple[float, float] = (0.0, 0.0)
    is_indented: bool = False
    n_lines: int = 1
    short_lines: bool = False


def read_pdf(data: bytes, name: str, on_page: OnPage | None = None) -> Converted:
    """Markdown of a PDF. Raises BadDocument when it is damaged, encrypted, or has no pages or text."""
    try:
        pdf = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower() or "security" in str(error).lower():
            raise BadDocument(f"{name} is encrypted; save it without a password and open that") from None
        raise
    with closing(pdf):
        recogniser = Recogniser(OCR_SHARE * seconds_for(len(data)))
        return _read(pdf, name, recogniser, on_page or (lambda *_: None))


def _read(pdf: pdfium.PdfDocument, name: str, recogniser: Recogniser, on_page: OnPage) -> Converted:
    if not len(pdf):
        raise BadDocument(f"{name} has no pages; open it in its program, save it again and open that")
    reader = PageReader(pdf, name)
    pages = []
    for i in range(len(pdf)):
        pages.append(_page(reader, pdf, i))
        on_page(i, len(pdf))
    silent = [i for i, page in enumerate(pages) if page.is_empty]
    recognised: list[int] = []
    if silent and can_recognise():
        recognised = _recognise(pdf, pages, silent, recogniser, on_page)
        silent = [i for i in silent if i not in recognised]
    if all(page.is_empty for page in pages):
        counted = f"{len(pages):,} pages" if len(pages) > 1 else "one page"
        raise BadDocument(f"{name} has {counted} but no text, as scans have; {_remedy()}")
    notices = [*_notices(pdf, pages, silent, recognised), *drop_running(pages)]
    title = pdf.get_metadata_dict().get("Title", "")
    markdown = _markdown(pages, name, typed=is_typed(pages))
    on_page(len(pdf), len(pdf))
    return Converted(markdown, title, tuple(map(Notice, notices)))


def _page(reader: PageReader, pdf: pdfium.PdfDocument, i: int) -> Page:
    """A page that can't be read holds nothing."""
    try:
        page = pdf[i]
    except pdfium.PdfiumError:
        return Page()
    with closing(page):
        return reader.read(page)


def _recognise(
    pdf: pdfium.PdfDocument, pages: list[Page], silent: list[int], recogniser: Recogniser, on_page: OnPage
) -> list[int]:
    """Reads pages without text by their picture; those that showed some."""
    found = []
    for done, i in enumerate(silent):
        if not recogniser.has_time:
            break
        if not pages[i].is_drawn:
            continue
        try:
            with closing(pdf[i]) as page:
                read = recogniser.read_page(page)
        except Exception:  # as of memory; the page is named then
            break
        if read.words:
            pages[i] = read
            found.append(i)
        on_page(done, len(silent))
    return found


def _remedy() -> str:
    return "text recognition (OCR) found none either; open a sharper scan" if can_recognise() else HOW


def read_picture(data: bytes, name: str, on_page: OnPage | None = None) -> Converted:
    """Markdown of a picture's text. Raises BadDocument when it is damaged, too large, or shows none."""
    if not can_recognise():
        raise BadDocument(f"{name} is a picture; {HOW}")
    picture = opened(data, name)
    if on_page is not None:
        on_page(0, 1)
    pages = [Recogniser(OCR_SHARE * seconds_for(len(data))).read(picture)]
    if pages[0].is_empty:
        raise BadDocument(f"{name} is a picture in which no text was found; open a sharper one")
    return Converted(_markdown(pages, name, typed=False), notices=(Notice(_guessed("Its text")),))


def _guessed(subject: str) -> str:
    return f"{subject} was read by text recognition (OCR), which makes mistakes."


def _notices(
    pdf: pdfium.PdfDocument, pages: list[Page], silent: list[int], recognised: list[int]
) -> Iterator[str]:
    if recognised:
        yield _guessed(f"Text of {_pages(recognised)}")
    if silent:
        hold = "holds" if len(silent) == 1 else "hold"
        yield f"{_pages(silent).capitalize()} {hold} no text, as scans do: {_remedy()}."
    pictured = [i for i, page in enumerate(pages) if page.pictures and i not in silent]
    if pictured:
        yield f"Pictures on {_pages(pictured)} were not read."
    unknown = sum(page.unknown for page in pages)
    if unknown:
        unread = f"{unknown:,} characters of the PDF have no known meaning (its fonts name none)"
        yield f"{unread} and became \ufffd."
    cut = [i for i, page in enumerate(pages) if page.is_cut]
    if cut:
        yield f"{_pages(cut).capitalize()} had too many letters: only the first were read."
    unseen = [i for i, page in enumerate(pages) if page.has_unseen]
    if unseen:
        yield f"Invisible text on {_pages(unseen)} was left out."
    n_files = raw.FPDFDoc_GetAttachmentCount(pdf)
    if n_files > 0:
        were = "files embedded in the PDF were" if n_files > 1 else "file embedded in the PDF was"
        yield f"{n_files:,} {were} not read."


def _pages(numbers: Sequence[int]) -> str:
    """`page 4`, `pages 4, 5 and 9`, and so on, counted from 1."""
    if len(numbers) == 1:
        return f"page {numbers[0] + 1}"
    named = [str(number + 1) for number in numbers[:_NAMED]]
    if len(numbers) > _NAMED:
        return f"pages {', '.join(named)} and {len(numbers) - _NAMED:,} more"
    return f"pages {', '.join(named[:-1])} and {named[-1]}"


# A page


def _items(page: Page, number: int, usual: float, *, typed: bool) -> list[_Item]:
    blocks = in_order(_blocks(page.words, page.rules, typed=typed))
    for words in page.others:
        blocks += in_order(_blocks(words, [], typed=typed))
    items = [replace(item, page=number) for block in blocks for item in _of_block(block)]
    for item in items:
        if item.kind in ("text", "list") and item.size <= _NOTE_SIZE * usual and _NOTE.match(item.text):
            item.kind = "note"
    notes = [item for item in items if item.kind == "note"]
    remarks = [_Item("remark", comment, page=number) for comment in page.comments]
    return [*(item for item in items if item.kind != "note"), *notes, *remarks]


def _blocks(words: list[Word], rules: Sequence[Rule], *, typed: bool) -> list[Region]:
    """Ruled tables and boxes, code, tables without rules, and stacks of text; panels as boxes of them."""
    edges = [rule for rule in rules if rule.ends_panel][:_MOST_PANELS]
    rules = [rule for rule in rules if not rule.ends_panel]
    for i, edge in enumerate(edges, 1):
        sides = [[word for word in words if (word.x0 < edge.x0) is is_left] for is_left in (True, False)]
        if all(sides) and not any(word.x0 < edge.x0 < word.x1 for word in words):
            return [_side(side, [*rules, *edges[i:]], typed=typed) for side in sides]
    blocks: list[Region] = []
    left = words
    for grid in grids_of(rules):
        inside = [word for word in left if grid.holds(word)]
        if not inside:
            continue
        rows = ruled_rows(grid, inside)
        x0, top, x1, bottom = grid.box
        if rows is not None:
            parts = [Region("table", x0, top, x1, bottom, rows=rows, has_header=has_header(rows))]
        elif len(inside) > 0.8 * len(words):  # a frame around the page
            continue
        else:
            parts = [
                Region("box", *box, inside=in_order(_blocks(held, [], typed=typed)))
                for box, held in ruled_cells(grid, inside)
            ]
        blocks += parts
        taken = set(map(id, inside))
        left = [word for word in left if id(word) not in taken]
    code, left = ([], left) if typed else listings(left)
    tables, stacks = unruled(stacks_of(pieces_of(left, rules)))
    return [*blocks, *code, *tables, *map(Region.of, stacks)]


def _side(words: list[Word], rules: Sequence[Rule], *, typed: bool) -> Region:
    """What stands in a panel or beside it."""
    top, bottom = min(w.base - w.size for w in words), max(w.base for w in words)
    inside = in_order(_blocks(words, rules, typed=typed))
    return Region("box", min(w.x0 for w in words), top, max(w.x1 for w in words), bottom, inside=inside)


def _of_block(block: Region) -> Iterator[_Item]:
    span = (block.x0, block.x1)
    if block.kind == "table":
        rows = block.rows
        if runs_leftward(word for row in rows for cell in row for word in cell.split()):
            rows = [row[::-1] for row in rows]
        yield _Item("table", "", rows=rows, has_header=block.has_header, span=span)
    elif block.kind == "code":
        yield _Item("code", code_of(block.pieces), span=span)
    elif block.kind == "box":
        for inner in block.inside:
            yield from _of_block(inner)
    else:
        yield from _paragraphs(block)


def _paragraphs(block: Region) -> Iterator[_Item]:
    """A stack cut where a paragraph, an item of a list or a note begins."""
    pieces = block.pieces
    reads_on = flows(pieces)
    is_turned = runs_leftward(word.text for piece in pieces for word in piece.words)
    edges = [(-piece.x1, -piece.x0) if is_turned else (piece.x0, piece.x1) for piece in pieces]
    left, right = min(begin for begin, _ in edges), max(end for _, end in edges)
    indented = [begin >= left + 0.8 * piece.size for piece, (begin, _) in zip(pieces, edges, strict=True)]
    shows_indents = 0 < sum(indented) <= len(pieces) / 2
    begun = 0
    for i in range(1, len(pieces) + 1):
        if i < len(pieces) and not _begins(pieces, edges, begun, i, right, shows_indents=shows_indents):
            continue
        part = pieces[begun:i]
        yield _paragraph(part, block, reads_on=reads_on or (len(part) < len(pieces) and flows(part)))
        begun = i


def _begins(
    pieces: list[Piece],
    edges: list[tuple[float, float]],
    begun: int,
    i: int,
    right: float,
    *,
    shows_indents: bool,
) -> bool:
    """Whether a paragraph begins at a line. `edges`: where lines begin and end, as one reads; `right`: the
    farthest end.
    """
    piece, last, first = pieces[i], pieces[i - 1], pieces[begun]
    begin, begin_before, first_begin = edges[i][0], edges[i - 1][0], edges[begun][0]
    if starts_item(piece.text) and begin <= first_begin + 4 * piece.size:
        return not piece.goes_on or starts_item(first.text) or last.ends
    if _NOTE.match(piece.text) and _NOTE.match(first.text) and last.ends:
        return True
    if last.text.endswith("...") or re.search(r"\.\.\. ?[\divxlc]+$", last.text):
        return True
    if starts_item(first.text):
        return begin < first_begin + 0.3 * piece.size and last.ends and not piece.goes_on
    if shows_indents and begin > begin_before + 0.8 * piece.size and not piece.goes_on:
        return True
    word = piece.words[0 if begin == piece.x0 else -1]
    had_room = edges[i - 1][1] + word.x1 - word.x0 + 0.6 * piece.size < right
    return had_room and last.ends and not piece.goes_on


def _paragraph(pieces: list[Piece], block: Region, *, reads_on: bool) -> _Item:
    first = pieces[0]
    is_note = first.text[:1] in "^†‡" and _NOTE.match(first.text) is not None
    kind = "note" if is_note else "list" if starts_item(first.text) else "text"
    is_listing = not reads_on and kind == "text" and len(pieces) > 1
    text = ""
    for piece in pieces:
        is_broken = text.endswith(("-", "\u00ad")) and piece.goes_on
        text = f"{text}\n{piece.text}" if is_listing and text and not is_broken else glue(text, piece.text)
    width = block.x1 - block.x0
    return _Item(
        kind,
        text,
        max(piece.size for piece in pieces),
        all(piece.bold for piece in pieces),
        len(pieces) == 1 or pieces[-1].x1 >= block.x1 - 0.15 * width,
        span=(block.x0, block.x1),
        is_indented=first.x0 > block.x0 + 0.8 * first.size,
        n_lines=len(pieces),
        short_lines=is_listing,
    )


# The document


def _markdown(pages: Sequence[Page], name: str, *, typed: bool) -> str:
    usual = _usual(pages, typed=typed)
    items = [item for i, page in enumerate(pages) for item in _items(page, i, usual[0], typed=typed)]
    return _written(_mended(items), usual, _known(pages), name)


def _known(pages: Sequence[Page]) -> Counter[str]:
    """Words of the document in lower case, without signs around them."""
    words = (word.text.strip(".,;:!?()[]“”\"'’").lower() for page in pages for word in page.words)
    return Counter(word for word in words if len(word) > 3)


def _usual(pages: Sequence[Page], *, typed: bool) -> tuple[float, bool]:
    """Size of most letters, and whether most are bold; of code only where all was typed."""
    words = [word for page in pages for word in page.words if typed or not word.fixed]
    n_bold = sum(len(word.text) for word in words if word.bold)
    return usual_size(words), 2 * n_bold > sum(len(word.text) for word in words)


def _mended(items: list[_Item]) -> list[_Item]:
    """Sentences and tables put together again across what interrupts them."""
    done: list[_Item] = []
    used: set[int] = set()
    for i, item in enumerate(items):
        if i in used:
            continue
        at = i
        while (after := _continuation(items, item, at, used)) is not None:
            more = items[after]
            used.add(after)
            if item.kind == "table":
                rows = more.rows[1:] if more.rows[0] == item.rows[0] else more.rows
                item = replace(item, rows=[*item.rows, *rows], page=more.page)
            else:
                item = replace(
                    item,
                    text=glue(item.text, more.text),
                    is_full=more.is_full,
                    n_lines=item.n_lines + more.n_lines,
                    page=more.page,
                )
            at = after
        done.append(item)
    return done


def _continuation(items: list[_Item], item: _Item, at: int, used: set[int]) -> int | None:
    """Where it goes on, behind figures, notes and side matter; None where it is whole."""
    if item.kind == "table":
        return _table_goes_on(items, item, at)
    is_verse = item.short_lines and item.text.count(" ") < 5 * item.n_lines
    if item.kind not in ("text", "list") or is_verse or ends_sentence(item.text):
        return None
    is_broken = item.text.endswith(("-", "\u00ad"))
    is_prose = item.n_lines > 1 or item.text.count(" ") >= 5
    if not (is_broken or is_prose) or _CAPTION.match(item.text):
        return None
    for k in range(at + 1, min(at + 12, len(items))):
        other = items[k]
        if other.page > item.page + 1 or other.kind == "code":
            return None
        is_like = other.kind == "text" and abs(other.size - item.size) <= 0.04 * item.size
        if k in used or not is_like or other.bold != item.bold or _CAPTION.match(other.text):
            continue
        first = other.text[:1]
        if first.islower() or (first.isalpha() and not first.isupper()):
            return k
        if item.short_lines:
            return None
        is_next = all(items[m].kind in ("note", "remark") for m in range(at + 1, k))
        is_moved = other.page != item.page or (item.is_full and other.span[0] > item.span[1])
        may_go_on = item.n_lines > 1 and other.n_lines > 1 and not other.is_indented and first.isalnum()
        return k if is_next and is_moved and may_go_on else None
    return None


def _table_goes_on(items: list[_Item], item: _Item, at: int) -> int | None:
    """The first thing of the next page, where it is a table of the same columns."""
    behind = (k for k in range(at + 1, len(items)) if items[k].kind not in ("note", "remark"))
    after = next(behind, None)
    if after is None:
        return None
    other = items[after]
    is_same = (
        other.kind == "table"
        and other.page == item.page + 1
        and len(other.rows[0]) == len(item.rows[0])
        and (other.rows[0] == item.rows[0] or not other.has_header)
        and max(abs(a - b) for a, b in zip(item.span, other.span, strict=True)) < 15
    )
    return after if is_same else None


def _written(items: list[_Item], usual: tuple[float, bool], known: Counter[str], name: str) -> str:
    """Markdown. Raises BadDocument where it becomes too long."""
    sizes = sorted({round(i.size) for i in items if _is_large(i, usual[0])}, reverse=True)
    parts: list[str] = []
    n_characters, before = 0, ""
    for item in items:
        if item.kind == "table":
            text = markdown_table(item.rows, item.has_header)
        elif item.kind == "code":
            text = "```\n" + item.text.replace("```", "` ` `") + "\n```"
        elif _is_large(item, usual[0]):
            text = "#" * min(1 + sizes.index(round(item.size)), 4) + " " + " ".join(item.text.split())
        elif _is_bold_heading(item, usual[1]):
            text = "#" * min(1 + len(sizes), 5) + " " + " ".join(item.text.split())
        elif item.kind == "list":
            text = _BULLET.sub("- ", item.text)
        else:
            text = _MARKUP.sub(r"\\\1", item.text)
        text = text.replace("\u00ad", "")
        parts.append("\n" if before == item.kind == "list" else "\n\n" if parts else "")
        parts.append(text)
        before = item.kind
        n_characters += len(text)
        if n_characters > MAX_CONVERTED_CHARACTERS:
            raise BadDocument(
                f"{name} has more than {MAX_CONVERTED_CHARACTERS:,} characters of text; split it and open the"
                " parts"
            )
    return joined("".join(parts), known)


def _may_be_heading(item: _Item, most_lines: int) -> bool:
    """Whether an item is short, no table, and no list but by its own number: 1.1 Scope, A. Fees."""
    return (
        (item.kind == "text" or _NUMBERED.match(item.text) is not None)
        and len(item.text) <= _MOST_HEADING
        and item.n_lines <= most_lines
        and any(map(str.isalpha, item.text))
    )


def _is_large(item: _Item, usual: float) -> bool:
    return _may_be_heading(item, 3) and item.size >= _HEADING_SIZE * usual


def _is_bold_heading(item: _Item, is_usual: bool) -> bool:
    is_bold = item.bold and not is_usual and not item.text.endswith((".", ",", ";", ":"))
    return is_bold and _may_be_heading(item, 2)
