"""Names that are safe to show, none of them a path."""

from __future__ import annotations

import re
from pathlib import PurePath

from core.ingest.limits import MAX_TITLE_CHARACTERS

_NO_TITLE = re.compile(
    r"""untitled\b.*|no title|title|unknown|none|null|unnamed|anonymous|microsoft (word|powerpoint|excel)\b.*|powerpoint presentation
        |(document|presentation)\s*\d*|(book|draft|layout|slide)\s*\d+|.*\.(docx?|dotx?|pdf|epub|indd|tex|dvi|qxp|qxd|pptx?|rtf|odt|txt|xml|xhtml|html?|pages|wpd)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Titles that programs put in by themselves."""
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a title may pass for another with; right-to-left scripts need none of it."""


def clip(title: str) -> str:
    """At most MAX_TITLE_CHARACTERS of a title, without characters that turn the direction of writing."""
    title = _TURNING.sub("", title)
    return title if len(title) <= MAX_TITLE_CHARACTERS else title[: MAX_TITLE_CHARACTERS - 1].rstrip() + "…"


def printable(name: str) -> str:
    """A name on one line; characters that control a terminal or the writing direction are escaped."""
    escaped = "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in name[: 4 * MAX_TITLE_CHARACTERS]
    )
    return clip(escaped)


def file_name(path: str) -> str:
    """The last part of a path of any system, safe to show."""
    return printable(path.replace("\\", "/").rstrip("/").rpartition("/")[2]) or "the file"


def extension(path: str) -> str:
    """Extension of a path in lower case, with its dot."""
    return PurePath(path.replace("\\", "/")).suffix.lower()


def sane_title(title: str | None) -> str:
    """A title from metadata as one line; empty when there is none, or a program made it up."""
    plain = printable(
        _TURNING.sub("", " ".join((title or "")[: 4 * MAX_TITLE_CHARACTERS].replace("\0", " ").split()))
    )
    return "" if not any(map(str.isalnum, plain)) or _NO_TITLE.fullmatch(plain) else plain
