"""Files and pasted texts -> documents.

A file's first bytes say whether it is a PDF or an archive, and an archive's contents whether it is an office
file, an e-book or a folder of documents; for texts the name decides. PDFs, office files and e-books are
converted in a child process and go the way of Markdown from there.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal

from core.base.errors import BadDocument
from core.base.types import Document, DocumentKind, Notice
from core.ingest.archive import ARCHIVE_STARTS, Archive
from core.ingest.blocks import parse_blocks, without_comments
from core.ingest.converted import Format, moved
from core.ingest.converter import Converter
from core.ingest.decode import decode, normalise
from core.ingest.limits import MAX_FILE_BYTES, MAX_LINE_CHARACTERS, check_bound
from core.ingest.mail import read_mail
from core.ingest.naming import clip, extension, file_name, sane_title
from core.ingest.rows import rows_to_markdown

OnPart = Callable[[int, int], None]
"""Gets (parts done, parts in all) of a file, often enough to cancel by raising `Cancelled`."""

Form = Literal["pdf", "picture", "docx", "epub", "ipynb", "zip", "text"]

_KIND_OF_EXTENSION: dict[str, DocumentKind] = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".md", ".markdown", ".mdx"), "markdown"),
    **dict.fromkeys((".txt", ".text", ".log", ".rst", ".tex", ".csv", ".tsv"), "text"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "text"),
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
    remedy = "split it and paste the parts"
    check_bound("the pasted text has", len(text), MAX_FILE_BYTES, "characters", remedy)
    text = normalise(text, "the pasted text")
    if (kind := _kind_of(text)) == "markdown":
        text = without_comments(text)
    return _document(text, kind, (), _Source("the pasted text", title, converter, on_part))


def form_of(data: bytes, path: str, name: str) -> Form:
    """What it takes to read a file. Raises BadDocument when empty, too large, or not what its name says."""
    if not data:
        raise BadDocument(f"{name} is empty; open a file that has text")
    check_bound(f"{name} has", len(data), MAX_FILE_BYTES, "bytes")
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


@dataclass(frozen=True)
class _Source:
    """What is read, and by what."""

    name: str
    """For sentences."""
    title: str
    """Where it gives itself none."""
    converter: Converter
    on_part: OnPart | None


def read_one(
    data: bytes, path: str, name: str, form: Form, converter: Converter, on_part: OnPart | None
) -> Document:
    """As `read_document`. `name`: for sentences; `path`: the kind of a text, and a title where none is."""
    file = file_name(path)
    source = _Source(name, PurePath(file).stem, converter, on_part)
    if form == "zip":
        raise BadDocument(f"{name} is an archive; unpack it and open a document of it")
    if form != "text":
        document = _converted(data, form, source)
    elif extension(path) in _MAILS and not _begins_as_html(data):
        document = _mail(data, source)
    else:
        document = _text(data, extension(path), source)
    return replace(document, file=file)


def _text(data: bytes, ending: str, source: _Source) -> Document:
    kind = _KIND_OF_EXTENSION.get(ending)
    text, notices = decode(
        data,
        source.name,
        is_html=kind == "html" or (kind is None and _begins_as_html(data)),
        encoding=source.converter.config.encoding,
    )
    if ending in _JSON:
        json, text = text, _unescaped(text)
        notices = moved(notices, lambda at: len(_unescaped(json[:at])))
    if ending in _ROWS and (items := rows_to_markdown(text)) is not None:
        notices = (*notices, Notice("Each row was written as an item, with the names of its columns."))
        return _document(items, "markdown", notices, source)
    kind = kind or _kind_of(text)
    if kind == "markdown":
        markdown, text = text, without_comments(text)
        notices = moved(notices, lambda at: min(len(text), len(without_comments(markdown[:at]))))
    return _document(text, kind, notices, source)


def _mail(data: bytes, source: _Source) -> Document:
    mail = read_mail(data, source.name, source.converter.config.encoding)
    body = _document(mail.text, "html" if mail.is_html else "text", mail.notices, source)
    head = f"{mail.head}\n\n" if mail.head else ""
    notices = moved(body.notices, lambda at: len(head) + at)
    title = sane_title(mail.subject) or body.title
    return replace(body, title=title, text=head + body.text, notices=notices)


def _unescaped(json: str) -> str:
    return _JSON_ESCAPES.sub(
        lambda run: run[1] + bytes.fromhex(run[2].replace("\\u", "")).decode("utf-16-be"), json
    )


def _converted(data: bytes, form: Format, source: _Source) -> Document:
    converted = source.converter.convert(data, form, source.name, source.on_part)
    notices = converted.notices
    markdown = normalise(converted.markdown, source.name)
    if form == "ipynb":
        markdown, told = _without_pictures(without_comments(markdown))
        notices = (*notices, *told)
        if not markdown.strip():
            raise BadDocument(f"{source.name} has no cell with text; open one that has")
    return Document(sane_title(converted.title) or source.title, markdown, "markdown", notices=notices)


def _without_pictures(text: str) -> tuple[str, tuple[Notice, ...]]:
    text, n_pictures = _PICTURE.subn(lambda picture: picture["words"] or "", text)
    return text, (Notice(f"Pictures left out: {n_pictures:,}."),) if n_pictures else ()


def _document(text: str, kind: DocumentKind, notices: tuple[Notice, ...], source: _Source) -> Document:
    if kind == "html":
        page = source.converter.read_page(text, source.name, source.on_part)
        text, title, json_ld, told = page.markdown, clip(page.title), page.json_ld, page.notices
    else:
        text, told = _without_pictures(text)
        title, json_ld = _title(text) if kind == "markdown" else "", ()
        longest = max(map(len, text.split("\n")))
        if longest > MAX_LINE_CHARACTERS:
            told_of_line = f"It has a line of {longest:,} characters, more than {MAX_LINE_CHARACTERS:,}"
            told = (*told, Notice(f"{told_of_line}: is it a text that people wrote?"))
    if not text.strip():
        left = " left once scripts, navigation and hidden parts are dropped" if kind == "html" else ""
        raise BadDocument(f"{source.name} has no text{left}; open one that has")
    return Document(title or source.title, text, kind, json_ld, (*notices, *told))


def _title(markdown: str) -> str:
    """What a text calls itself before its first line, or else its first heading."""
    front = _FRONT_TITLE.match(markdown)
    named = sane_title((front[1] or front[2]).strip().strip("\"'")) if front else ""
    blocks = parse_blocks(markdown) if not named else ()
    return named or next((block.title for block in blocks if block.type == "heading" and block.title), "")


def _kind_of(text: str) -> DocumentKind:
    """What a text of unknown kind is; Markdown where a heading stands alone between blank lines."""
    if _looks_like_html(text):
        return "html"
    return "markdown" if _HEADING.search(text[:_SNIFFED]) else "text"


def _begins_as_html(data: bytes) -> bool:
    return _looks_like_html(data[:_SNIFFED].removeprefix(BOM_UTF8).decode("latin-1"))


def _looks_like_html(text: str) -> bool:
    """Whether a text of unknown kind begins as a page or a piece of one: a tag first, several closed."""
    head = text[:_SNIFFED]
    return _HTML_START.match(head) is not None or (
        head.lstrip().startswith("<") and len(_HTML_TAG.findall(head)) >= _MIN_CLOSING_TAGS
    )
