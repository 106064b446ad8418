"""Files of lines that other tools read.

TREC runs and qrels, a file a method or task since a run has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from core.base.errors import BadRequest


def run_path(path: Path | None, name: str, names: Sequence[str]) -> Path | None:
    """One of several runs: FILE-NAME, a path's name without folders and endings; FILE for a single one."""
    if path is None or len(names) == 1:
        return path
    return path.with_name(f"{path.stem}-{Path(name).stem}{path.suffix}")


def found_lines(query_id: str, document: str, chunk_ids: Iterable[int], method: str) -> Iterator[str]:
    """Lines of a TREC run over the chunks of one document."""
    return document_lines(query_id, (f"{document}#{chunk_id}" for chunk_id in chunk_ids), method)


def document_lines(query_id: str, names: Iterable[str], method: str) -> Iterator[str]:
    """Lines of a TREC run, best first, each name once. Its tools sort by score, and an agent's Q need not
    fall from choice to choice: the score is 1 over the rank.
    """
    for rank, name in enumerate(dict.fromkeys(map(_word, names)), start=1):
        yield f"{_word(query_id)} Q0 {name} {rank} {1 / rank:.6f} {method}\n"


def relevant_lines(query_id: str, document: str, chunk_ids: Iterable[int]) -> Iterator[str]:
    """Lines of TREC qrels."""
    for chunk_id in chunk_ids:
        yield f"{_word(query_id)} 0 {_word(document)}#{chunk_id} 1\n"


def _word(name: str) -> str:
    """Columns are parted by blanks."""
    return re.sub(r"\s+", "_", name)


@contextmanager
def line_file(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Writes whole lines at once, so that a killed evaluation leaves what it measured. Raises BadRequest."""
    if path is None:
        yield lambda _: None
        return
    if path.suffix == ".gz":
        raise BadRequest(
            f"{path.name} would be no gzip file: lines are written one by one, so that a killed evaluation"
            " leaves them; leave out .gz, and gzip it then"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise BadRequest(f"{path} can't be written ({error.strerror}); name another file") from error
    with file:
        yield file.write
