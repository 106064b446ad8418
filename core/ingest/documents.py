"""A file -> its documents.

One, or all those of a zip archive and of the archives in it. Those that can't be read are left out and told
about, a bound that is passed refuses everything. Names in an archive are only shown. What is not being read
is still packed, so memory holds one file and the texts so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from zipfile import ZipInfo

from core.base.errors import BadDocument
from core.base.types import Document, Notice
from core.ingest.archive import Archive
from core.ingest.converter import Converter
from core.ingest.limits import MAX_ARCHIVE_DEPTH, BeyondBounds
from core.ingest.naming import file_name, printable
from core.ingest.reader import OnPart, form_of, read_one

_CLUTTER = re.compile(r"(?:^|/)(?:__MACOSX/|\.(?!\.)|Thumbs\.db$|desktop\.ini$)", re.IGNORECASE)
"""Entries that no person put into an archive."""
_TOLD = 3


def read_documents(
    data: bytes, filename: str, converter: Converter | None = None, on_part: OnPart | None = None
) -> dict[str, Document]:
    """The documents in the bytes of a file, by names to show: one, or those of a zip archive in its order.

    `converter` is the child to use for PDF, DOCX and EPUB; without one a child serves this file alone. What
    can't be read in an archive is left out, and its first document says so. Raises BadDocument as
    `read_document` does, when an archive has nothing to read, and when a bound of it is passed.
    """
    if converter is None:
        with Converter() as own:
            return read_documents(data, filename, own, on_part)
    name = file_name(filename)
    form = form_of(data, filename, name)
    if form != "zip":
        return {name: read_one(data, filename, name, form, converter, on_part)}
    return _Unpacking(converter, on_part or (lambda *_: None)).read(Archive(data, name))


class _Unpacking:
    """What was read of an archive so far, and sentences about what had to be left out."""

    def __init__(self, converter: Converter, on_part: OnPart) -> None:
        self._converter = converter
        self._on_part = on_part
        self._documents: dict[str, Document] = {}
        self._left_out: list[str] = []

    def read(self, archive: Archive) -> dict[str, Document]:
        """Raises BadDocument when nothing can be read, BeyondBounds."""
        entries = list(_worth_reading(archive))
        for done, entry in enumerate(entries):
            self._read_entry(
                archive, entry, archive.name, 1, lambda *_, done=done: self._on_part(done, len(entries))
            )
        if not self._documents:
            why = f": {self._left_out[0]}" if self._left_out else "; put documents into it"
            raise BadDocument(f"{archive.name} holds no document that can be read{why}")
        if self._left_out:
            self._tell(archive.name)
        return self._documents

    def _read_entry(self, archive: Archive, entry: ZipInfo, folder: str, depth: int, on_part: OnPart) -> None:
        name, path = f"{file_name(entry.filename)} in {archive.name}", f"{folder}/{printable(entry.filename)}"
        on_part(0, 1)
        self._converter.check_time(name)
        try:
            data = archive.read(entry)
            form = form_of(data, entry.filename, name)
            if form == "zip":
                self._read_inner(Archive(data, name, archive.allowance), path, depth + 1, on_part)
                return
            document = read_one(data, entry.filename, name, form, self._converter, on_part)
        except BeyondBounds:
            raise
        except BadDocument as error:
            self._left_out.append(str(error))
            return
        if form != "text":
            archive.allowance.unpack(len(document.text))  # converting is unpacking, too
        self._documents[self._free_name(path)] = document

    def _read_inner(self, archive: Archive, folder: str, depth: int, on_part: OnPart) -> None:
        if depth > MAX_ARCHIVE_DEPTH:
            raise BadDocument(
                f"{archive.name} is an archive more than {MAX_ARCHIVE_DEPTH} levels deep; unpack it and open"
                " what it holds"
            )
        for entry in _worth_reading(archive):
            self._read_entry(archive, entry, folder, depth, on_part)

    def _free_name(self, name: str) -> str:
        number, free = 1, name
        while free in self._documents:
            number += 1
            free = f"{name} ({number})"
        return free

    def _tell(self, name: str) -> None:
        reasons = [sentence.partition(";")[0] for sentence in self._left_out[:_TOLD]]
        more = len(self._left_out) - len(reasons)
        count = f"{len(self._left_out):,} files were" if len(self._left_out) > 1 else "One file was"
        notice = Notice(
            f"{count} left out of {name}: {'; '.join(reasons)}{f'; and {more:,} more' if more else ''}."
        )
        first, document = next(iter(self._documents.items()))
        self._documents[first] = replace(document, notices=(*document.notices, notice))


def _worth_reading(archive: Archive) -> Iterator[ZipInfo]:
    return (entry for entry in archive.entries if not _CLUTTER.search(entry.filename.replace("\\", "/")))
