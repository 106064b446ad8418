"""Zip archives, read within bounds: entries, unpacked bytes, ratio.

The sizes that count are those that decompression gives, never those that headers claim. Nothing is written
anywhere, and names are only told.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.base.errors import BadDocument
from core.ingest.limits import (
    FREE_UNPACKED_BYTES,
    MAX_ARCHIVE_ENTRIES,
    MAX_ARCHIVE_RATIO,
    MAX_FILE_BYTES,
    MAX_UNPACKED_BYTES,
    BeyondBounds,
)
from core.ingest.naming import printable

ARCHIVE_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_DIRECTORY_ENTRY = b"PK\x01\x02"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Others may ask for gigabytes by a header alone, and neither office files nor e-books may use them."""
_ENCRYPTED = 0x1
_PIECE = 1024 * 1024


@dataclass
class UnpackAllowance:
    """What the archives of one file may still unpack, those inside them included."""

    name: str
    """Of the outermost archive."""
    n_packed: int
    n_entries: int = 0
    n_unpacked: int = 0

    def unpack(self, n_bytes: int) -> None:
        """Counts bytes. Raises BeyondBounds."""
        self.n_unpacked += n_bytes
        most = min(MAX_UNPACKED_BYTES, max(FREE_UNPACKED_BYTES, MAX_ARCHIVE_RATIO * self.n_packed))
        if self.n_unpacked > most:
            raise BeyondBounds(
                f"{self.name} unpacks from {self.n_packed:,} bytes to more than {most:,}; split it and open"
                " the parts"
            )

    def enter(self, n_entries: int) -> None:
        """Counts entries. Raises BeyondBounds."""
        self.n_entries += n_entries
        if self.n_entries > MAX_ARCHIVE_ENTRIES:
            raise BeyondBounds(
                f"{self.name} holds more than {MAX_ARCHIVE_ENTRIES:,} files; open fewer at once"
            )


class Archive:
    """The entries of a zip archive. `name` stands in the sentences of refusal."""

    def __init__(self, data: bytes, name: str, allowance: UnpackAllowance | None = None) -> None:
        """Raises BadDocument for a damaged or encrypted archive, BeyondBounds for one of too many entries."""
        self.name = name
        self.allowance = allowance or UnpackAllowance(name, len(data))
        if data.count(_DIRECTORY_ENTRY) > MAX_ARCHIVE_ENTRIES:  # before the directory is read into objects
            self.allowance.enter(MAX_ARCHIVE_ENTRIES + 1)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except Exception as error:  # zipfile fails on damaged bytes in more ways than it names
            raise BadDocument(
                f"{name} is damaged: its list of contents can't be read; make or download it again"
            ) from error
        # damaged ones may have lost their names
        self.entries = [info for info in self._zip.infolist() if info.filename and not info.is_dir()]
        self.allowance.enter(len(self.entries))
        if any(info.flag_bits & _ENCRYPTED for info in self.entries):
            raise BadDocument(f"{name} is encrypted; unpack it with its password and open the files in it")

    @property
    def names(self) -> frozenset[str]:
        return frozenset(info.filename for info in self.entries)

    def read(self, entry: zipfile.ZipInfo) -> bytes:
        """The unpacked bytes of an entry. Raises BadDocument for damaged or too many ones, BeyondBounds."""
        name = f"{printable(entry.filename)} in {self.name}"
        if entry.compress_type not in _METHODS:
            raise BadDocument(
                f"{name} is packed in an unusual way (method {entry.compress_type}); pack it again as an"
                " ordinary zip"
            )
        try:
            return b"".join(self._pieces(entry, name))
        except BadDocument:
            raise
        except Exception as error:  # as above
            raise BadDocument(f"{name} is damaged; make or download it again") from error

    def _pieces(self, entry: zipfile.ZipInfo, name: str) -> Iterator[bytes]:
        size = 0
        with self._zip.open(entry) as stream:
            while piece := stream.read(_PIECE):
                self.allowance.unpack(len(piece))
                size += len(piece)
                if size > MAX_FILE_BYTES:
                    raise BadDocument(
                        f"{name} has more than {MAX_FILE_BYTES:,} bytes; split it and open the parts"
                    )
                yield piece

    def repacked(self, is_wanted: Callable[[str], bool]) -> dict[str, bytes]:
        """The wanted entries by name, the last of equal ones, as libraries read it. Raises as `read` does."""
        return {info.filename: self.read(info) for info in self.entries if is_wanted(info.filename)}


def stored(parts: dict[str, bytes]) -> io.BytesIO:
    """A plain archive of these parts: nothing packed, so whoever reads it gets what was counted."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    packed.seek(0)
    return packed
