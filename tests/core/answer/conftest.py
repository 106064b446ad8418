"""A task that a tiny encoder learns in seconds, one training of it that several tests look at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from core.answer.checkpoint import LARGE, SMALL
from core.answer.reader import ExtractiveReader, load_reader
from core.lab.reader.course import SETS
from core.lab.reader.lesson import Lesson
from core.lab.reader.training import ReaderConfig, ReaderTrainer
from core.lab.tasks.qa_sets import FOLDERS
from core.lab.train.sitting import TrainEvent
from tests.core.lab.tasks.conftest import data, qa_record, write_gzip  # noqa: F401
from tests.core.lab.train.conftest import NOISE

NAMES, PLACES = (
    ("mary", "john", "sandra", "daniel"),
    ("kitchen", "garden", "office", "hallway", "bedroom", "bathroom"),
)
TINY: dict[str, Any] = {"updates": 60, "lessons": 16, "learning_rate": 1e-2, "warmup": 5, "rank": 8}
TINY |= {"window": 96, "longest_answer": 4, "validate_every": 30, "n_validation": 60}


DOCUMENTS = tuple(f"harbour{i}" for i in range(20))
"""Of the generated questions about documents; two of them are held out."""
N_RECORDS = 24
"""Questions of each generated set."""
SHORT: dict[str, Any] = TINY | {"updates": 3, "lessons": 4, "validate_every": 2, "n_validation": 6}
"""Settings of trainings that only have to run."""


@dataclass
class WhereCourse:
    """Where somebody went, among sentences about nothing; or only those. A `Course`."""

    name: str = "where"
    seed: int = 0
    facts: list[str] = field(
        default_factory=lambda: [f"{name} went to the {place}." for name in NAMES for place in PLACES]
    )

    def draw(self, rng: Random, n: int) -> list[Lesson]:
        return [self._lesson(rng) for _ in range(n)]

    def validation(self, n: int) -> list[Lesson]:
        return self.draw(Random("validation"), n)

    def describe(self) -> dict[str, Any]:
        return {"questions": len(self.facts)}

    def _lesson(self, rng: Random) -> Lesson:
        fact = rng.choice(self.facts)
        question = f"Where is {fact.split()[0]}?"
        if rng.random() < 0.3:
            return Lesson("where", question, tuple(rng.sample(NOISE, 2)), ())
        told = [fact, rng.choice(NOISE)]
        rng.shuffle(told)
        return Lesson("where", question, tuple(told), (fact.rstrip(".").split()[-1],), (told.index(fact),))


@dataclass(frozen=True)
class TrainedReader:
    """A finished training."""

    folder: Path
    events: list[TrainEvent]
    reader: ExtractiveReader


@pytest.fixture(scope="session")
def base(reference: Path) -> Path:
    """An encoder of two layers and 32 dimensions, untrained."""
    return reference / "tiny-bert"


def trainer(folder: Path, base: Path, **settings: Any) -> ReaderTrainer:
    return ReaderTrainer(
        ReaderConfig(**(SHORT | settings)), WhereCourse(), folder, name="tiny", base=str(base), device="cpu"
    )


@pytest.fixture(scope="session")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedReader:
    """The training of TINY, uninterrupted. Not to be written to."""
    folder = tmp_path_factory.mktemp("readers") / "tiny"
    events = list(trainer(folder, base, **TINY).run())
    return TrainedReader(folder, events, ExtractiveReader(folder, "cpu"))


@pytest.fixture(scope="session")
def course_data(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """Training parts of generated sets whose answers stand in their support, no other part; bAbI and books
    are those of the task tests.
    """
    folder, rng = tmp_path_factory.mktemp("course"), Random(4)
    for number, (name, part, _) in enumerate(SETS.values()):
        records: list[Any] = [qa_record(rng, 100 * number + i) for i in range(N_RECORDS)]
        for record in records:
            record["chunks"][record["support"][0]]["text"] += f" The Answer {record['id']} came."
            record["answer"] = [f"answer {record['id']}"]
        write_gzip(folder / FOLDERS[name] / f"{part}.jsonl.gz", lines_of(records))
    write_natural(folder)
    for shared in ("babi", "books"):
        (folder / shared).symlink_to(data / shared)
    return folder


def lines_of(records: Sequence[object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def write_natural(folder: Path) -> None:
    """Four questions about each of DOCUMENTS: with an answer in other words, yes, with a quote that says
    nothing of the answer, without an answer.
    """
    records = []
    for name in DOCUMENTS:
        filler = [
            f"Nobody at {name} spoke of the {i}th lantern, for they had many and little oil."
            for i in range(30)
        ]
        said = f"In the end the keeper of {name} walked two hundred steps down to the old pier."
        (folder / f"{name}.txt").write_text("\n\n".join([*filler[:15], said, *filler[15:]]))
        asked = [
            ("single", f"How far did {name}'s keeper go?", ["about two hundred steps", "200"], [said]),
            ("single", f"Was there a pier at {name}?", ["yes"], [said]),
            ("single", f"What did the man of {name} think?", ["nobody can tell"], [said]),
            ("unanswerable", f"Who sank the boat of {name}?", [], []),
        ]
        names = ("kind", "question", "answer", "support")
        records += [
            {"id": f"{name}-{i}", "document": f"{name}.txt"} | dict(zip(names, values, strict=True))
            for i, values in enumerate(asked)
        ]
    write_gzip(folder / "natural" / "train.jsonl.gz", lines_of(records))


@pytest.fixture(
    scope="session", params=[SMALL, pytest.param(LARGE, marks=pytest.mark.campaign)], ids=["small", "large"]
)
def shipped(request: pytest.FixtureRequest) -> ExtractiveReader:
    return load_reader(request.param, "cpu")
