"""Where the data sets lie, and how their JSON lines are read.

A stranger may have made the file. What is in which folder of the data sets, their own README says.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from core.base.config import check_query
from core.base.errors import BadRequest, UserError

VARIABLE = "QRAG_DATA"
_REMEDY = f"name their folder in {VARIABLE}, or with the command's --data or --data-folder"


def data_folder(named: Path | None = None) -> Path:
    """`named`, else `$QRAG_DATA`. Raises BadRequest where neither is given, or no folder is there."""
    folder = named or os.environ.get(VARIABLE)
    if not folder:
        raise BadRequest(f"no data sets are named; {_REMEDY}")
    if not Path(folder).is_dir():
        raise BadRequest(f"the data sets are not in {folder}; put them there, or {_REMEDY}")
    return Path(folder)


def babi_folder(named: Path | None = None) -> Path:
    """The bAbI files, 10,000 questions a task. Raises BadRequest as `data_folder` does."""
    return data_folder(named) / "babi" / "en-10k"


def chunk_text(title: str, text: str) -> str:
    """How a paragraph is given to an encoder.

    >>> chunk_text("Scheria", "A region in Greek mythology."), chunk_text("", "A region.")
    ('Scheria: A region in Greek mythology.', 'A region.')
    """
    return f"{title.strip()}: {text.strip()}" if title.strip() else text.strip()


UNREADABLE = (OSError, EOFError, zlib.error)
"""What reading a file raises that isn't there, or is packed and damaged."""


def opened(path: Path) -> BufferedIOBase:
    """A file, unpacked as it is read if its name ends in .gz."""
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def read_bytes(path: Path, max_bytes: int, refusal: type[UserError] = BadRequest) -> bytes:
    """All of a file, unpacked. Raises `refusal` for one that can't be read or is larger."""
    try:
        with opened(path) as file:
            data = file.read(max_bytes + 1)
    except UNREADABLE as error:
        raise refusal(f"{path} can't be read ({error}); check its name and fetch it again") from error
    if len(data) > max_bytes:
        raise refusal(f"{path.name} has more than {max_bytes:,} bytes; split it and read the parts")
    return data


def json_lines(path: Path, *, max_bytes: int, max_line_bytes: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """("FILE line N", object) for every line that isn't blank, of a plain or gzipped UTF-8 file. Raises
    BadRequest for one that can't be read, is larger unpacked, has a longer line, or a line that is no object.
    """
    read = 0
    try:
        with opened(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(max_line_bytes + 1), b""), start=1):
                where = f"{path.name} line {number}"
                read += len(line)
                if len(line) > max_line_bytes:
                    raise BadRequest(
                        f"{where} has more than {max_line_bytes:,} bytes; split its text into several records"
                    )
                if read > max_bytes:
                    raise BadRequest(
                        f"{path.name} has more than {max_bytes:,} bytes; split it and read the parts"
                    )
                if line.strip():
                    yield where, _json_object(line, where)
    except UNREADABLE as error:
        raise BadRequest(f"{path} can't be read ({error}); check its name and fetch it again") from error


def _json_object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{where} is no JSON ({error}); write one object a line") from None
    if not isinstance(value, dict):
        raise BadRequest(f"{where} is JSON, but no object; write one object a line")
    return value


def is_text(value: object) -> bool:
    """Whether a record's value is a text to encode: JSON allows halves of characters, tokenizers don't."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def checked_question(question: str, where: str) -> str:
    """See `check_query`, whose sentence stands behind `where`."""
    try:
        return check_query(question)
    except BadRequest as error:
        raise BadRequest(f"{where}: {error}") from None


def plain(text: str) -> str:
    """A text as texts are compared: whatever its case and blanks."""
    return " ".join(text.casefold().split())
