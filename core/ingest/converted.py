"""What reading a page or converting a file gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Format = Literal["pdf", "picture", "docx", "epub", "html"]


@dataclass(frozen=True)
class Converted:
    """What was read of a file."""

    markdown: str
    title: str = ""
    """What the metadata or the title element say, unchecked; may be empty."""
    notices: tuple[str, ...] = ()
    json_ld: tuple[Any, ...] = ()
    """Parsed JSON-LD objects of an HTML page, in page order."""
