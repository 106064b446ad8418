"""What reading a page or converting a file gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.base.types import Notice

Format = Literal["pdf", "picture", "docx", "epub", "html", "ipynb"]


@dataclass(frozen=True)
class Converted:
    """What was read of a file."""

    markdown: str
    title: str = ""
    """What the metadata or the title element say, unchecked; may be empty."""
    notices: tuple[Notice, ...] = ()
    """On all of it: none has a place."""
    json_ld: tuple[Any, ...] = ()
    """Parsed JSON-LD objects of an HTML page, in page order."""


def moved(notices: tuple[Notice, ...], place: Callable[[int], int]) -> tuple[Notice, ...]:
    """Notices on a text that was changed; `place`: where a character of it stands now."""
    return tuple(notice if notice.at is None else replace(notice, at=place(notice.at)) for notice in notices)
