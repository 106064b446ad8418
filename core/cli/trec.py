"""Files of lines that other tools read: TREC runs and qrels.

A file a method or task, since a run has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from core.base.errors import BadRequest
from core.cli.common import writing


def run_path(path: Path | None, name: str, names: Sequence[str]) -> Path | None:
    """One of several runs: FILE-NAME, a path's name without folders and endings; FILE for a single one."""
    if path is None or len(names) == 1:
        return path
    return path.with_name(f"{path.stem}-{Path(name).stem}{path.suffix}")


def chunk_names(document: str, chunk_ids: Iterable[int]) -> list[str]:
    """What the chunks of one document are called in these files."""
    return [f"{document}#{chunk_id}" for chunk_id in chunk_ids]


def found_lines(query_id: str, names: Iterable[str], method: str) -> str:
    """Lines of a TREC run, best first, each name once. Its tools sort by score, and an agent's Q need not
    fall from choice to choice: the score is 1 over the rank.
    """
    ranked = enumerate(dict.fromkeys(map(_word, names)), start=1)
    return "".join(f"{_word(query_id)} Q0 {name} {rank} {1 / rank:.6f} {method}\n" for rank, name in ranked)


def relevant_lines(query_id: str, names: Iterable[str]) -> str:
    """Lines of TREC qrels."""
    return "".join(f"{_word(query_id)} 0 {_word(name)} 1\n" for name in names)


def _word(name: str) -> str:
    """Columns are parted by blanks."""
    return re.sub(r"\s+", "_", name)


@contextmanager
def line_file(path: Path | None) -> Iterator[Callable[[str], object]]:
    """Writes whole lines at once, so that a killed evaluation leaves what it measured. What is in the file
    stays until the first line, or the end without any. Raises BadRequest.
    """
    if path is None:
        yield lambda _: None
        return
    if path.suffix == ".gz":
        raise BadRequest(
            f"{path.name} would be no gzip file: lines are written one by one, so that a killed evaluation"
            " leaves them; leave out .gz, and gzip it then"
        )
    has_begun = False
    with writing(path):
        is_new = not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8", buffering=1)

    def write(line: str) -> None:
        nonlocal has_begun
        if not has_begun and path.is_file():
            file.truncate(0)
        has_begun = True
        file.write(line)

    with file:
        try:
            yield write
            write("")
        finally:
            if is_new and not has_begun:
                path.unlink()
