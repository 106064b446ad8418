"""Files and pasted texts -> documents. Decides what kind a file is; every refusal is one sentence with the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from core.errors import BadDocument
from core.ingest.blocks import parse_blocks
from core.ingest.decode import decode, normalise
from core.ingest.html import read_html
from core.ingest.limits import MAX_FILE_BYTES, MAX_TITLE_CHARACTERS
from core.types import Document, DocumentKind

_KIND_OF_EXTENSION: dict[str, DocumentKind] = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".md", ".markdown"), "markdown"),
    **dict.fromkeys((".txt", ".text", ".log", ".rst", ".csv", ".tsv", ".json", ".jsonl", ".tex"), "text"),
}
_HTML_START = re.compile(r"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,2000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL)
_HTML_TAG = re.compile(r"</(?:p|div|h[1-6]|ul|ol|table|section|article|span|a)\s*>", re.IGNORECASE)
_SNIFFED = 4_000
_MIN_CLOSING_TAGS = 3


def read_document(data: bytes, filename: str) -> Document:
    """A document from the bytes of a file.

    Raises BadDocument when it is empty, too large, binary, or has no text.
    """
    name = PurePath(filename.replace("\\", "/")).name or "the file"
    if not data:
        raise BadDocument(f"{name} is empty; open a file that has text")
    if len(data) > MAX_FILE_BYTES:
        raise BadDocument(f"{name} has {len(data):,} bytes, more than {MAX_FILE_BYTES:,}; split it and open the parts")
    kind = _KIND_OF_EXTENSION.get(PurePath(name).suffix.lower())
    text, notices = decode(data, name, is_html=kind == "html" or (kind is None and _looks_like_html(data[:_SNIFFED].decode("latin-1"))))
    return _document(text, name, kind or ("html" if _looks_like_html(text) else "text"), PurePath(name).stem, notices)


def read_pasted(text: str, title: str = "Pasted text") -> Document:
    """A document from pasted text, HTML when it clearly is. Raises BadDocument as `read_document` does."""
    if len(text) > MAX_FILE_BYTES:
        raise BadDocument(f"the pasted text has {len(text):,} characters, more than {MAX_FILE_BYTES:,}; split it and paste the parts")
    text = normalise(text, "the pasted text")
    return _document(text, "the pasted text", "html" if _looks_like_html(text) else "text", title, ())


def _document(text: str, name: str, kind: DocumentKind, fallback_title: str, notices: tuple[str, ...]) -> Document:
    if kind == "html":
        page = read_html(text, name)
        document = Document(_clip(page.title) or fallback_title, page.markdown, kind, page.json_ld, (*notices, *page.notices))
    else:
        title = next(_titles(text), "") if kind == "markdown" else ""
        document = Document(title or fallback_title, text, kind, notices=notices)
    if not document.text.strip():
        left = " left once scripts, navigation and hidden parts are dropped" if kind == "html" else ""
        raise BadDocument(f"{name} has no text{left}; open one that has")
    return document


def _titles(markdown: str) -> Iterator[str]:
    return (block.title for block in parse_blocks(markdown) if block.type == "heading" and block.title)


def _clip(title: str) -> str:
    return title if len(title) <= MAX_TITLE_CHARACTERS else title[: MAX_TITLE_CHARACTERS - 1].rstrip() + "…"


def _looks_like_html(text: str) -> bool:
    """Whether a text of unknown kind begins as a page does, or as a piece of one: a tag first and several closed."""
    head = text[:_SNIFFED]
    return _HTML_START.match(head) is not None or (head.lstrip().startswith("<") and len(_HTML_TAG.findall(head)) >= _MIN_CLOSING_TAGS)
