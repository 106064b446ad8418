"""Bytes of a PDF, DOCX, EPUB or HTML page -> Markdown.

HTML comes as UTF-8. Runs in the child process of `worker`, under its limits. Office files and e-books are
unpacked within the bounds of archives, without images, with no XML that declares entities or lies too deep.
Links and images lose their markup, as those of pages do. Importing this module takes most of a second, so
only the child does.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pdfplumber
from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from markitdown import StreamInfo
from markitdown.converters import PdfConverter
from pdfminer.pdfdocument import PDFEncryptionError
from pdfminer.pdfinterp import PDFPageInterpreter
from pdfplumber.utils.exceptions import PdfminerException

from core.base.errors import BadDocument
from core.ingest.converted import Converted, Format
from core.ingest.docx import read_docx
from core.ingest.epub import read_epub
from core.ingest.html import read_html
from core.ingest.limits import MAX_CONVERTED_CHARACTERS, MAX_PDF_FORMS

OnPage = Callable[[int, int], None]
"""Gets (pages done, pages in all)."""

_UNKNOWN_GLYPH = re.compile(r"\(cid:\d+\)")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n)++")
_LINE_END_BLANKS = re.compile(r"(?<![ \t])[ \t]++$", re.MULTILINE)
_MANY_GLYPHS = 20


def convert(data: bytes, form: Format, name: str, on_page: OnPage | None = None) -> Converted:
    """Markdown of a file. Raises BadDocument when it is damaged, encrypted, too large or without text."""
    if form == "html":
        return read_html(data.decode(), name)
    try:
        if form == "pdf":
            converted = _pdf(data, name, on_page)
        else:
            converted = {"docx": read_docx, "epub": read_epub}[form](data, name)
    except (BadDocument, MemoryError):
        raise
    except DefusedXmlException:
        raise BadDocument(
            f"{name} declares XML entities, which are never expanded here; save it again from an office or"
            " e-book program"
        ) from None
    except RecursionError:
        raise BadDocument(
            f"{name} is nested too deeply to be converted; save it as PDF, HTML or plain text and open that"
        ) from None
    except Exception as error:  # the libraries fail on broken files in every way there is
        if (
            isinstance(error, PdfminerException)
            and error.args
            and isinstance(error.args[0], PDFEncryptionError)
        ):
            raise BadDocument(f"{name} is encrypted; save it without a password and open that") from None
        raise BadDocument(
            f"{name} is damaged or no {form.upper()} file; open it in its program, save it again and open"
            " that"
        ) from None
    return _tidied(converted, name)


def _tidied(converted: Converted, name: str) -> Converted:
    """Without runs of blank lines, form feeds, meaningless glyphs. Raises BadDocument if too much is left."""
    markdown, n_unknown = _UNKNOWN_GLYPH.subn(
        "\ufffd", converted.markdown.replace("\f", "\n").replace("\0", " ")
    )
    markdown = _BLANK_LINES.sub("\n\n", _LINE_END_BLANKS.sub("", markdown)).strip()
    if len(markdown) > MAX_CONVERTED_CHARACTERS:
        raise BadDocument(
            f"{name} has {len(markdown):,} characters of text, more than {MAX_CONVERTED_CHARACTERS:,}; split"
            " it and open the parts"
        )
    notices = converted.notices
    if n_unknown > _MANY_GLYPHS:
        notices = (
            *notices,
            (
                f"{n_unknown:,} characters of the PDF have no known meaning (its fonts name none) and became"
                " \ufffd."
            ),
        )
    return Converted(markdown, converted.title, notices)


def _pdf(data: bytes, name: str, on_page: OnPage | None) -> Converted:
    with pdfplumber.open(io.BytesIO(data)) as pdf:
        n_pages, title = len(pdf.pages), pdf.metadata.get("Title")
    if not n_pages:
        raise BadDocument(f"{name} has no pages; open it in its program, save it again and open that")
    with _pages_told(n_pages, on_page), _forms_bounded(name):
        markdown = PdfConverter().convert(io.BytesIO(data), StreamInfo(extension=".pdf")).markdown
    if not markdown.strip():
        pages = f"{n_pages:,} pages" if n_pages > 1 else "one page"
        raise BadDocument(
            f"{name} has {pages} but no text, as scans have; run text recognition (OCR) on it and open the"
            " result"
        )
    return Converted(markdown, title if isinstance(title, str) else "")


@contextmanager
def _pages_told(n_pages: int, on_page: OnPage | None) -> Iterator[None]:
    """Reports pages while the converter goes over a PDF, first for tables, then, without any, for text."""
    plain = PDFPageInterpreter.process_page
    n_read = 0

    def process_page(self: PDFPageInterpreter, page: Any) -> None:
        nonlocal n_read
        n_read += 1
        if on_page is not None:
            on_page(min(n_read // 2, n_pages), n_pages)
        plain(self, page)

    PDFPageInterpreter.process_page = process_page  # type: ignore[method-assign]
    try:
        yield
    finally:
        PDFPageInterpreter.process_page = plain  # type: ignore[method-assign]


@contextmanager
def _forms_bounded(name: str) -> Iterator[None]:
    """Raises BadDocument behind MAX_PDF_FORMS executions of drawings within drawings."""
    plain = PDFPageInterpreter.render_contents
    n_drawn = 0

    def render_contents(self: PDFPageInterpreter, *contents: Any, **how: Any) -> None:
        nonlocal n_drawn
        n_drawn += 1
        if n_drawn > MAX_PDF_FORMS:
            raise BadDocument(
                f"{name} draws more than {MAX_PDF_FORMS:,} pages and forms; print the pages with text to a"
                " new PDF and open that"
            )
        plain(self, *contents, **how)

    PDFPageInterpreter.render_contents = render_contents  # type: ignore[method-assign]
    try:
        yield
    finally:
        PDFPageInterpreter.render_contents = plain  # type: ignore[method-assign]
