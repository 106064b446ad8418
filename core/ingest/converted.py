"""What reading a page or converting a file gives."""

from __future__ import annotations

from dataclasses import dataclass
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
    """Their places are characters of `markdown`."""
    json_ld: tuple[Any, ...] = ()
    """Parsed JSON-LD objects of an HTML page, in page order."""
