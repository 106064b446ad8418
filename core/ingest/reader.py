"""Files and pasted texts -> documents.

A file's first bytes say whether it is a PDF or an archive, and an archive's contents whether it is an office
file, an e-book or a folder of documents; for texts the name decides. PDFs, office files and e-books are
converted in a child process and go the way of Markdown from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Literal

from core.base.errors import BadDocument
from core.base.types import Document, DocumentKind, Notice
from core.ingest.archive import ARCHIVE_STARTS, Archive
from core.ingest.blocks import parse_blocks
from core.ingest.converted import Format
from core.ingest.converter import Converter
from core.ingest.decode import decode, normalise
from core.ingest.limits import MAX_FILE_BYTES, MAX_LINE_CHARACTERS
from core.ingest.mail import read_mail
from core.ingest.naming import clip, extension, file_name, sane_title
from core.ingest.rows import rows_to_markdown

OnPart = Callable[[int, int], None]
"""Gets (parts done, parts in all) of a file, often enough to cancel by raising `Cancelled`."""

Form = Literal["pdf", "picture", "docx", "epub", "ipynb", "zip", "text"]

_KIND_OF_EXTENSION: dict[str, DocumentKind] = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".md", ".markdown", ".mdx"), "markdown"),
    **dict.fromkeys(
        (".txt", ".text", ".log", ".rst", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".tex"), "text"
    ),
}
_MAILS = frozenset([".eml", ".mht", ".mhtml"])
_ROWS = frozenset([".csv", ".tsv"])
_JSON = frozenset([".json", ".jsonl", ".ndjson"])
_JSON_ESCAPES = re.compile(
    r"""(?<!\\)((?:\\\\)*+)  # each of these pairs is a backslash
        ((?:\\u(?i:(?!00(?:[0189].|22|5c|7f)|d[89a-f])[0-9a-f]{4})
          |\\u(?i:d[89ab][0-9a-f]{2})\\u(?i:d[c-f][0-9a-f]{2}))++)""",
    re.VERBOSE,
)
"""Characters but quotes, backslashes and controls, without which the text would be no JSON."""
_HTML_START = re.compile(
    r"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,2000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_HTML_TAG = re.compile(r"</(?:p|div|h[1-6]|ul|ol|table|section|article|span|a)\s*>", re.IGNORECASE)
_HEADING = re.compile(r"(?:\A|\n\n)#{1,6} +\S[^\n]*(?:\n\n|\Z)")
_FRONT_TITLE = re.compile(
    r"\A\n{0,3}---\n(?:(?!---\n|\.\.\.\n)[^\n]{0,500}\n){0,100}?title:[ \t]*([^\n]{1,300})\n"
    r"|\A\n{0,3}\+\+\+\n(?:(?!\+\+\+\n)[^\n]{0,500}\n){0,100}?title[ \t]*=[ \t]*([^\n]{1,300})\n"
)
_PICTURE = re.compile(
    r"""!\[(?P<words>[^\[\]\n]{0,300})\]\(\s*<?data:[^\s()<>]{200,}+>?[^()\n]{0,300}\)
      | ^[ ]{0,3}\[[^\[\]\n]{1,100}\]:[ \t]*<?data:[^\s<>]{200,}+>?[^\n]{0,300}$
      | \bdata:[\w.+-]{1,50}/[\w.+-]{1,50}(?:;[\w=-]{1,50}){0,5},[\w%+/=-]{200,}+""",
    re.VERBOSE | re.MULTILINE,
)
"""What holds a picture, not words."""
_SNIFFED = 4_000
_MIN_CLOSING_TAGS = 3
_PDF_START = b"%PDF-"
_PDF_SNIFFED = 1024
"""Bytes that may stand before the start of a PDF."""
_PICTURE_STARTS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"


def read_document(
    data: bytes, filename: str, converter: Converter | None = None, on_part: OnPart | None = None
) -> Document:
    """The document that the bytes of a file are. `converter` converts what is no text yet; without one a
    child serves this file alone.

    Raises BadDocument when it is empty, too large, binary, damaged, encrypted, an archive of documents, or
    has no text.
    """
    if converter is None:
        with Converter() as own:
            return read_document(data, filename, own, on_part)
    name = file_name(filename)
    return read_one(data, filename, name, form_of(data, filename, name), converter, on_part)


def read_pasted(
    text: str, title: str = "Pasted text", converter: Converter | None = None, on_part: OnPart | None = None
) -> Document:
    """A document from pasted text, HTML or Markdown when it clearly is. Raises BadDocument."""
    if converter is None:
        with Converter() as own:
            return read_pasted(text, title, own, on_part)
    if len(text) > MAX_FILE_BYTES:
        raise BadDocument(
            f"the pasted text has {len(text):,} characters, more than {MAX_FILE_BYTES:,}; split it and paste"
            " the parts"
        )
    text = normalise(text, "the pasted text")
    return _document(text, "the pasted text", _kind_of(text), title, (), converter, on_part)


def form_of(data: bytes, path: str, name: str) -> Form:
    """What it takes to read a file. Raises BadDocument when empty, too large, or not what its name says."""
    if not data:
        raise BadDocument(f"{name} is empty; open a file that has text")
    if len(data) > MAX_FILE_BYTES:
        raise BadDocument(
            f"{name} has {len(data):,} bytes, more than {MAX_FILE_BYTES:,}; split it and open the parts"
        )
    named = extension(path).removeprefix(".")
    if data.startswith(_PDF_START) or (named == "pdf" and _PDF_START in data[:_PDF_SNIFFED]):
        return "pdf"
    if data.startswith(_PICTURE_STARTS):
        return "picture"
    if data.startswith(ARCHIVE_STARTS):
        return _form_of_archive(Archive(data, name).names, named, name)
    if named == "ipynb":
        return "ipynb"
    if named == "docx" and data.startswith(_OLD_OFFICE):
        raise BadDocument(
            f"{name} is encrypted or of an old office format; save it as DOCX without a password and open"
            " that"
        )
    if named in ("pdf", "docx", "epub", "zip"):
        raise BadDocument(
            f"{name} is damaged or no {named.upper()} file: it does not begin as one; open it in its program,"
            " save it again and open that"
        )
    return "text"


def _form_of_archive(entries: frozenset[str], named: str, name: str) -> Form:
    if any(entry.startswith("word/") for entry in entries) and "[Content_Types].xml" in entries:
        return "docx"
    if "META-INF/container.xml" in entries:
        return "epub"
    if named in ("docx", "epub"):
        raise BadDocument(
            f"{name} is damaged or no {named.upper()} file: what makes one is not in it; open it in its"
            " program, save it again and open that"
        )
    if "[Content_Types].xml" in entries or {"content.xml", "META-INF/manifest.xml"} <= entries:
        raise BadDocument(
            f"{name} is an office file of another kind than DOCX; save it as DOCX or PDF and open that"
        )
    return "zip"


def read_one(
    data: bytes, path: str, name: str, form: Form, converter: Converter, on_part: OnPart | None
) -> Document:
    """As `read_document`. `name`: for sentences; `path`: the kind of a text, and a title where none is."""
    return replace(_read(data, path, name, form, converter, on_part), file=file_name(path))


def _read(
    data: bytes, path: str, name: str, form: Form, converter: Converter, on_part: OnPart | None
) -> Document:
    stem = PurePath(file_name(path)).stem
    if form == "zip":
        raise BadDocument(f"{name} is an archive; unpack it and open a document of it")
    if form != "text":
        return _converted(data, name, stem, form, converter, on_part)
    if extension(path) in _MAILS:
        return _read_mail(data, name, stem, converter, on_part)
    kind = _KIND_OF_EXTENSION.get(extension(path))
    text, notices = decode(
        data,
        name,
        is_html=kind == "html" or (kind is None and _looks_like_html(data[:_SNIFFED].decode("latin-1"))),
        encoding=converter.config.encoding,
    )
    if extension(path) in _JSON:
        notices = tuple(
            notice if notice.at is None else replace(notice, at=len(_unescaped(text[: notice.at])))
            for notice in notices
        )
        text = _unescaped(text)
    if extension(path) in _ROWS and (items := rows_to_markdown(text)) is not None:
        notices = (*notices, Notice("Each row was written as an item, with the names of its columns."))
        return _document(items, name, "markdown", stem, notices, converter, on_part)
    return _document(text, name, kind or _kind_of(text), stem, notices, converter, on_part)


def _read_mail(data: bytes, name: str, stem: str, converter: Converter, on_part: OnPart | None) -> Document:
    mail = read_mail(data, name, converter.config.encoding)
    kind: DocumentKind = "html" if mail.is_html else "text"
    body = _document(mail.text, name, kind, stem, mail.notices, converter, on_part)
    head = f"{mail.head}\n\n" if mail.head else ""
    notices = tuple(
        notice if notice.at is None else replace(notice, at=len(head) + notice.at) for notice in body.notices
    )
    title = sane_title(mail.subject) or body.title
    return replace(body, title=title, text=head + body.text, notices=notices)


def _unescaped(json: str) -> str:
    return _JSON_ESCAPES.sub(
        lambda run: run[1] + bytes.fromhex(run[2].replace("\\u", "")).decode("utf-16-be"), json
    )


def _converted(
    data: bytes, name: str, stem: str, form: Format, converter: Converter, on_part: OnPart | None
) -> Document:
    converted = converter.convert(data, form, name, on_part)
    notices = converted.notices
    markdown = normalise(converted.markdown, name)
    if form == "ipynb":
        markdown, told = _without_pictures(markdown)
        notices = (*notices, *told)
        if not markdown.strip():
            raise BadDocument(f"{name} has no cell with text; open one that has")
    return Document(sane_title(converted.title) or stem, markdown, "markdown", notices=notices)


def _without_pictures(text: str) -> tuple[str, tuple[Notice, ...]]:
    text, n_pictures = _PICTURE.subn(lambda picture: picture["words"] or "", text)
    return text, (Notice(f"Pictures left out: {n_pictures:,}."),) if n_pictures else ()


def _document(
    text: str,
    name: str,
    kind: DocumentKind,
    fallback_title: str,
    notices: tuple[Notice, ...],
    converter: Converter,
    on_part: OnPart | None,
) -> Document:
    if kind == "html":
        page = converter.read_page(text, name, on_part)
        document = Document(
            clip(page.title) or fallback_title, page.markdown, kind, page.json_ld, (*notices, *page.notices)
        )
    else:
        text, told = _without_pictures(text)
        notices = (*notices, *told)
        longest = max(map(len, text.split("\n")))
        if longest > MAX_LINE_CHARACTERS:
            notices = (
                *notices,
                Notice(
                    f"It has a line of {longest:,} characters, more than {MAX_LINE_CHARACTERS:,}: is it a"
                    " text that people wrote?"
                ),
            )
        front = _FRONT_TITLE.match(text) if kind == "markdown" else None
        named = sane_title((front[1] or front[2]).strip().strip("\"'")) if front else ""
        title = named or (next(_titles(text), "") if kind == "markdown" else "")
        document = Document(title or fallback_title, text, kind, notices=notices)
    if not document.text.strip():
        left = " left once scripts, navigation and hidden parts are dropped" if kind == "html" else ""
        raise BadDocument(f"{name} has no text{left}; open one that has")
    return document


def _titles(markdown: str) -> Iterator[str]:
    return (block.title for block in parse_blocks(markdown) if block.type == "heading" and block.title)


def _kind_of(text: str) -> DocumentKind:
    """What a text of unknown kind is; Markdown where a heading stands alone between blank lines."""
    if _looks_like_html(text):
        return "html"
    return "markdown" if _HEADING.search(text[:_SNIFFED]) else "text"


def _looks_like_html(text: str) -> bool:
    """Whether a text of unknown kind begins as a page or a piece of one: a tag first, several closed."""
    head = text[:_SNIFFED]
    return _HTML_START.match(head) is not None or (
        head.lstrip().startswith("<") and len(_HTML_TAG.findall(head)) >= _MIN_CLOSING_TAGS
    )
