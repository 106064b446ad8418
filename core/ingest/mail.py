"""A mail, or a page saved as one -> headers and text.

By the parser of the standard library, below bounds on what takes it long: many levels and long headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message

from core.base.errors import BadDocument
from core.base.types import Notice
from core.ingest.decode import codec_of, decode

_MOST_BYTES = 32 * 1024 * 1024
_MOST_LINES = 500_000
_MOST_LEVELS = 30
"""Boundaries that are named: each may be a level, on which each line is compared with it."""
_MOST_PARTS = 5_000
_MOST_OF_HEADER = 2_000
"""Characters: a longer one is cut where it is shown, and refused where the parser reads into it."""
_BOUNDARY = re.compile(rb"boundary[*\d]*+\s*+=", re.IGNORECASE)
_TYPE = re.compile(
    rb"^content-(?:type|disposition|transfer-encoding):[^\n]*+(?:\n[ \t][^\n]*+)*+",
    re.IGNORECASE | re.MULTILINE,
)
_SHOWN = ("Subject", "From", "To", "Cc", "Date")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_READ = ("text/plain", "text/html", "text/css")


@dataclass(frozen=True)
class Mail:
    """What was read of a mail."""

    subject: str
    head: str
    """What it is about, who wrote it to whom and when, a line each."""
    text: str
    is_html: bool
    notices: tuple[Notice, ...]


def read_mail(data: bytes, name: str, encoding: str) -> Mail:
    """`encoding`: of what is not UTF-8 and says none. Raises BadDocument where it is too large or damaged."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (
        len(data) > _MOST_BYTES
        or data.count(b"\n") > _MOST_LINES
        or data.count(b"\n--") > _MOST_PARTS
        or sum(1 for _ in _BOUNDARY.finditer(data)) > _MOST_LEVELS
        or any(len(header[0]) > _MOST_OF_HEADER for header in _TYPE.finditer(data))
    ):
        raise BadDocument(
            f"{name} is too large or too nested to be read as mail; save its text and open that"
        )
    try:
        mail = message_from_bytes(data)
        parts = list(_parts(mail))
        types = ["file" if part.get_filename() else part.get_content_type() for part in parts]
        texts = [part for part, one in zip(parts, types, strict=True) if one == "text/plain"]
        pages = [part for part, one in zip(parts, types, strict=True) if one == "text/html"]
        read = [_text(part, name, encoding) for part in texts]
        is_html = bool(pages) and not any(text.strip() for text, _ in read)
        if is_html:
            read = [_text(pages[0], name, encoding, is_html=True)]
        head = {key: told for key in _SHOWN if (told := _header(mail, key))}
    except (RecursionError, LookupError, ValueError, TypeError):
        raise BadDocument(f"{name} is damaged or no mail; save its text and open that") from None
    notices = [Notice(notice.sentence) for _, told in read for notice in told]
    n_left = sum(one not in _READ for one in types) + max(0, len(pages) - 1)
    if n_left:
        notices.append(Notice(f"Attachments, pictures and further pages left out: {n_left:,}."))
    text = "\n\n".join(text.strip("\n") for text, _ in read if text.strip())
    shown = "\n".join(f"{key}: {told}" for key, told in head.items())
    return Mail(head.get("Subject", ""), shown, text, is_html, tuple(notices))


def _parts(mail: Message) -> Iterator[Message]:
    """The parts of a mail, one that is attached to it as a whole."""
    left = [mail]
    while left:
        part = left.pop()
        if part.get_content_maintype() != "multipart":
            yield part
        elif isinstance(payload := part.get_payload(), list):
            left.extend(inner for inner in reversed(payload) if isinstance(inner, Message))


def _text(
    part: Message, name: str, encoding: str, *, is_html: bool = False
) -> tuple[str, tuple[Notice, ...]]:
    body = part.get_payload(decode=True)
    charset = codec_of(str(part.get_param("charset") or "")) or encoding
    return decode(body if isinstance(body, bytes) else b"", name, is_html=is_html, encoding=charset)


def _header(mail: Message, key: str) -> str:
    given = str(mail.get(key, ""))[:_MOST_OF_HEADER]
    try:
        words = decode_header(given)
    except HeaderParseError:
        words = [(given, None)]
    told = "".join(
        word if isinstance(word, str) else word.decode(codec_of(charset or "") or "utf-8", "replace")
        for word, charset in words
    )
    return " ".join(_CONTROLS.sub(" ", told).split())
