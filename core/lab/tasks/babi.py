"""Reads the bAbI tasks in their published format.

Stories line by line, with questions between the facts. A question sees the facts above it and nothing else.
Its support is given as line numbers, which count question lines too and come in the order of the reasoning;
here they become ascending indices into the facts.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.base.errors import BadRequest

Part = Literal["train", "test"]


@dataclass(frozen=True, slots=True)
class BabiQuestion:
    """One question and the facts told before it."""

    question: str
    facts: tuple[str, ...]
    support: tuple[int, ...]
    """Ascending indices into `facts`."""
    answer: str
    story: str = ""
    """Which story it belongs to; questions of one story share their first facts."""


def read_babi(folder: Path, task: str, part: Part) -> list[BabiQuestion]:
    """All questions of one file `<task>_<name>_<part>.txt` or `.txt.gz` in `folder`, in file order.

    Raises BadRequest when there isn't exactly one such file, or a line isn't in the format.
    """
    paths = sorted([*folder.glob(f"{task}_*_{part}.txt.gz"), *folder.glob(f"{task}_*_{part}.txt")])
    if len(paths) != 1:
        raise BadRequest(
            f"{folder} has {len(paths)} files {task}_*_{part}.txt.gz, there must be one; unpack bAbI's en-10k"
            " there"
        )
    with (
        gzip.open(paths[0], "rt", encoding="utf-8")
        if paths[0].suffix == ".gz"
        else paths[0].open(encoding="utf-8")
    ) as lines:
        try:
            return list(_questions(lines, paths[0].name, f"{task}-{part}"))
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise BadRequest(f"{paths[0].name} can't be read ({error}); fetch it again") from error


def _questions(lines: Iterable[str], file: str, prefix: str) -> Iterator[BabiQuestion]:
    facts: list[str] = []
    row_of_line: dict[str, int] = {}
    story = 0
    for at, line in enumerate(lines, start=1):
        number, _, rest = line.strip().partition(" ")
        if not rest:
            continue
        if number == "1":
            story, facts, row_of_line = story + 1, [], {}
        if "\t" not in rest:
            row_of_line[number] = len(facts)
            facts.append(rest.strip())
            continue
        try:
            question, answer, support = (field.strip() for field in rest.split("\t"))
            rows = tuple(sorted({row_of_line[named] for named in support.split()}))
        except (ValueError, KeyError):
            raise BadRequest(
                f"{file} line {at}: a question must be followed by answer and numbers of earlier facts, split"
                " by tabs; put it right"
            ) from None
        yield BabiQuestion(question, tuple(facts), rows, answer, f"{prefix}-{story}")
