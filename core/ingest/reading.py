"""How files become text, where a person knows better than the reader."""

from __future__ import annotations

from dataclasses import dataclass

from core.base.errors import BadRequest
from core.ingest.decode import codec_of

ENCODINGS = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "iso8859-2", "koi8-r"),
    *("mac-roman", "cp850", "cp866", "shift_jis", "euc-jp", "gb18030", "big5", "euc-kr"),
)
"""That forms offer; others of their kinds can be named, too."""


@dataclass(frozen=True, kw_only=True)
class ReadingConfig:
    """What is changed about the reading of files."""

    encoding: str = ""
    """Of texts and pages that are not UTF-8, as cp1250. Empty: what they declare, else a guess."""
    keep_side_matter: bool = False
    """True: menus, banners and other side matter of pages stay in the text."""

    def __post_init__(self) -> None:
        if self.encoding and codec_of(self.encoding) is None:
            raise BadRequest(
                f"encoding={self.encoding[:80]!r} is unknown here; choose one such as {', '.join(ENCODINGS)}"
            )
