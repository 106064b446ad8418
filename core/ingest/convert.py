"""Bytes of a PDF, DOCX, EPUB or HTML page -> Markdown.

markitdown's converters do it, but for PDF (core.ingest.pdf); HTML comes as UTF-8. Runs in the child process
of `worker`, under its limits. Office files and e-books are unpacked within the bounds of archives and handed
over as plain archives of their
texts alone, without images, with no XML that declares entities or lies too deep. Links and images lose their
markup, as those of pages do. Importing this module takes most of a second, so only the child does.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from xml.sax.handler import ContentHandler
from zipfile import ZipExtFile

from defusedxml import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml import ElementTree as SafeTree
from defusedxml import sax as safe_sax
from markitdown import DocumentConverterResult, StreamInfo
from markitdown.converters import DocxConverter, EpubConverter, HtmlConverter

from core.base.errors import BadDocument
from core.ingest.archive import Archive, stored
from core.ingest.converted import Converted, Format
from core.ingest.html import read_html
from core.ingest.limits import MAX_CONVERTED_CHARACTERS, MAX_XML_DEPTH, MAX_XML_ELEMENTS
from core.ingest.pdf import OnPage, read_pdf, read_picture

_MARKDOWN: dict[str, Any] = {
    "strip": ["a", "img"],
    "escape_asterisks": False,
    "escape_underscores": False,
    "table_infer_header": True,
    "bullets": "-",
}
_CHAPTERS = (".xhtml", ".html", ".htm", ".xml", ".opf")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n)++")
_LINE_END_BLANKS = re.compile(r"(?<![ \t])[ \t]++$", re.MULTILINE)
_TITLE_TAG = "{http://purl.org/dc/elements/1.1/}title"


def convert(data: bytes, form: Format, name: str, on_page: OnPage | None = None) -> Converted:
    """Markdown of a file. Raises BadDocument when it is damaged, encrypted, too large or without text."""
    if form == "html":
        return read_html(data.decode(), name)
    try:
        converted = {"pdf": read_pdf, "picture": read_picture, "docx": _docx, "epub": _epub}[form](
            data, name, on_page
        )
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
    except Exception:  # the libraries fail on broken files in every way there is
        raise BadDocument(
            f"{name} is damaged or no {form.upper()} file; open it in its program, save it again and open"
            " that"
        ) from None
    return _tidied(converted, name)


def _tidied(converted: Converted, name: str) -> Converted:
    """Without runs of blank lines and form feeds. Raises BadDocument if too much is left."""
    markdown = _tidy(converted.markdown)
    if len(markdown) > MAX_CONVERTED_CHARACTERS:
        raise BadDocument(
            f"{name} has {len(markdown):,} characters of text, more than {MAX_CONVERTED_CHARACTERS:,}; split"
            " it and open the parts"
        )
    notices = tuple(
        notice if notice.at is None else replace(notice, at=len(_tidy(converted.markdown[: notice.at])))
        for notice in converted.notices
    )
    return Converted(markdown, converted.title, notices)


def _tidy(markdown: str) -> str:
    text = markdown.replace("\f", "\n").replace("\0", " ")
    return _BLANK_LINES.sub("\n\n", _LINE_END_BLANKS.sub("", text)).strip()


def _docx(data: bytes, name: str, on_page: OnPage | None) -> Converted:  # noqa: ARG001 - converted at once
    parts = Archive(data, name).repacked(lambda part: part.lower().endswith((".xml", ".rels")))
    check = _XmlCheck(name)
    parts = {part: content for part, content in parts.items() if _is_sound(content, check)}
    converter = _TextDocx()
    markdown = converter.convert(stored(parts), StreamInfo(extension=".docx"), **_MARKDOWN).markdown
    if not markdown.strip():
        raise BadDocument(f"{name} has no text; open one that has")
    properties = parts.get("docProps/core.xml")
    title = SafeTree.fromstring(properties).findtext(f".//{_TITLE_TAG}") if properties else None
    return Converted(markdown, title or "")


class _TextDocx(DocxConverter):  # type: ignore[misc]
    """Images become nothing: they are not handed over."""

    def _image_to_html(self, *_: Any, **__: Any) -> str:
        return "<span></span>"


def _is_sound(xml: bytes, check: _XmlCheck) -> bool:
    """Whether a part can be parsed. Raises DefusedXmlException, BadDocument when too deep or large."""
    check.depth = 0
    try:
        safe_sax.parseString(xml, check, forbid_dtd=True)
    except (BadDocument, DefusedXmlException):
        raise
    except Exception:  # as above
        return False
    return True


class _XmlCheck(ContentHandler):
    """Counts the elements of all parts of a file, and how deep they lie."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.depth = 0
        self.n_elements = 0

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: ARG002 - the interface's
        self.depth += 1
        self.n_elements += 1
        if self.depth > MAX_XML_DEPTH:
            raise BadDocument(
                f"{self.name} is nested more than {MAX_XML_DEPTH} levels deep; save it as PDF, HTML or plain"
                " text and open that"
            )
        if self.n_elements > MAX_XML_ELEMENTS:
            raise BadDocument(
                f"{self.name} has more than {MAX_XML_ELEMENTS:,} XML elements; split it and open the parts,"
                " or save it as plain text"
            )

    def endElement(self, name: str) -> None:  # noqa: ARG002 - the interface's
        self.depth -= 1


def _epub(data: bytes, name: str, on_page: OnPage | None) -> Converted:  # noqa: ARG001 - converted at once
    parts = Archive(data, name).repacked(lambda part: part.lower().endswith(_CHAPTERS))
    rights = parts.get("META-INF/encryption.xml")
    if rights is not None and _hides_text(rights):
        raise BadDocument(
            f"{name} is protected against reading by other programs (DRM); open a copy without protection"
        )
    converter = EpubConverter()
    chapters = converter._html_converter = _EachOnce(HtmlConverter())
    result = converter.convert(stored(parts), StreamInfo(extension=".epub"), **_MARKDOWN)
    if not re.sub(r"^\*\*\w+:\*\*.*$", "", result.markdown, flags=re.MULTILINE).strip():
        raise BadDocument(f"{name} has no text in its chapters; open one that has")
    notices = (
        (f"Its list of chapters names some again, {chapters.n_again:,} times; each was read once.",)
        if chapters.n_again
        else ()
    )
    return Converted(result.markdown, result.title or "", notices)


class _EachOnce:
    """The converter of an e-book's chapters: each is read once, however often the list names it."""

    def __init__(self, chapters: HtmlConverter) -> None:
        self._chapters = chapters
        self._read: set[str] = set()
        self.n_again = 0

    def convert(self, chapter: ZipExtFile, info: StreamInfo, **how: Any) -> DocumentConverterResult:
        """Nothing for a chapter that was read."""
        if chapter.name in self._read:
            self.n_again += 1
            return DocumentConverterResult(markdown="")
        self._read.add(chapter.name)
        return self._chapters.convert(chapter, info, **how)


def _hides_text(rights: bytes) -> bool:
    """Whether chapters are encrypted; fonts often are, and do no harm."""
    references = SafeTree.fromstring(rights).iter("{http://www.w3.org/2001/04/xmlenc#}CipherReference")
    return any(str(reference.get("URI", "")).lower().endswith(_CHAPTERS) for reference in references)
