"""Conversions in a child process.

One child serves the files of one opening, since starting it takes longer than most conversions; no child ever
serves two people. Nothing is written to disk: files and results go through pipes (core.base.child). The first
small pages of an opening are read without a child.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from core.base.child import ChildEnded, Spend, Waiting, ask, end_child, start_child
from core.base.errors import BadDocument, BadRequest
from core.base.types import Notice
from core.ingest.converted import Converted, Format
from core.ingest.decode import codec_of
from core.ingest.limits import (
    MAX_CONVERSION_BYTES,
    MAX_CONVERTED_CHARACTERS,
    MAX_OWN_CHARACTERS,
    MAX_OWN_TAGS,
    MAX_READING_SECONDS,
    BeyondBounds,
    seconds_for,
)

_REMEDY = "open a part of it, or save its text and open that"


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


class Converter:
    """Converts one opening's files one by one; close it to end its child, which starts when first needed."""

    def __init__(self, spend: Spend = lambda _: None, config: ReadingConfig | None = None) -> None:
        """`spend` hears of all time that goes by while files are read here."""
        self.config = config or ReadingConfig()
        self._child: subprocess.Popen[bytes] | None = None
        self._deadline = time.monotonic() + MAX_READING_SECONDS
        self._spend = spend
        self._tags_left, self._characters_left = MAX_OWN_TAGS, MAX_OWN_CHARACTERS

    def __enter__(self) -> Converter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is none."""
        return None if self._child is None else self._child.pid

    def close(self) -> None:
        """Ends the child, at once."""
        child, self._child = self._child, None
        if child is not None:
            end_child(child)

    def check_time(self, name: str) -> None:
        """Raises BeyondBounds when this opening has read for too long, and what `spend` raises."""
        self._spend(0.0)
        if time.monotonic() > self._deadline:
            raise BeyondBounds(
                f"reading took longer than {MAX_READING_SECONDS:,} s when it came to {name}; open fewer files"
                " at once"
            )

    def read_page(self, html: str, name: str, waiting: Waiting | None = None) -> Converted:
        """Markdown of a page, read in this process while that stays short. Raises as `convert` does."""
        # when the first page is read, as its libraries take a moment
        from core.ingest.html import check_size, read_html

        self.check_time(name)
        n_tags = check_size(html, name)
        if self._child is not None or n_tags > self._tags_left or len(html) > self._characters_left:
            return self.convert(html.encode(), "html", name, waiting)
        self._tags_left, self._characters_left = self._tags_left - n_tags, self._characters_left - len(html)
        began = time.monotonic()
        try:
            return read_html(html, name, keep_side_matter=self.config.keep_side_matter)
        finally:
            self._spend(time.monotonic() - began)

    def convert(self, data: bytes, form: Format, name: str, waiting: Waiting | None = None) -> Converted:
        """Markdown of a file. Raises BadDocument; what `waiting` or `spend` raises ends the child, too."""
        self.check_time(name)
        try:
            head, payload = self._answer(data, form, name, waiting or (lambda *_: None))
        except BaseException:
            self.close()
            raise
        if "refused" in head:
            raise BadDocument(head["refused"])
        markdown, json_ld = payload[: head["markdown"]], payload[head["markdown"] :]
        return Converted(
            markdown.decode("utf-8", "surrogatepass"),
            head["title"],
            tuple(Notice(*notice) for notice in head["notices"]),
            tuple(json.loads(json_ld)),
        )

    def _answer(self, data: bytes, form: Format, name: str, waiting: Waiting) -> tuple[dict[str, Any], bytes]:
        if self._child is None:
            try:
                self._child = start_child("core.ingest.worker")
            except OSError as error:
                raise BadDocument(
                    f"no converter could be started ({error.strerror}); save the file as HTML, Markdown or"
                    " plain text and open that"
                ) from error
        seconds = seconds_for(len(data))
        try:
            return ask(
                self._child,
                {"form": form, "name": name, "keep_side_matter": self.config.keep_side_matter},
                data,
                waiting,
                seconds=seconds,
                most_bytes=4 * MAX_CONVERTED_CHARACTERS,
                spend=self._spend,
            )
        except ChildEnded as end:
            raise BadDocument(_why_ended(end, name, seconds)) from None


def _why_ended(end: ChildEnded, name: str, seconds: float) -> str:
    if end.by_memory:
        return f"{name} needs more than {MAX_CONVERSION_BYTES:,} bytes of memory to be converted; {_REMEDY}"
    if end.by_time:
        return f"{name} takes longer to convert than {seconds:,} s; {_REMEDY}"
    return (
        f"{name} could not be converted (the converter ended with status {end.status}); save it again from"
        " its program and open that"
    )
