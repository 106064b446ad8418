"""A task that a tiny encoder learns in seconds, and one training of it that several tests look at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from core.encode.checkpoint import CheckpointSpec
from core.lab.train.config import TrainConfig
from core.lab.train.recipes import Plan, plan_training
from core.lab.train.sitting import TrainEvent
from core.lab.train.towers import TrainableTowers
from core.lab.train.trainer import Trainer

NAMES, PLACES, THINGS = (
    ("Mary", "John", "Sandra", "Daniel"),
    ("kitchen", "garden", "office", "hallway", "bedroom", "bathroom"),
    ("milk", "football", "apple"),
)
NOISE = [
    f"The {what} came upon the {where}."
    for what in ("night", "rain", "wind", "king")
    for where in ("hill", "city", "road", "war")
]

TINY: dict[str, Any] = {
    "updates": 16,
    "episodes": 16,
    "steps": 3,
    "learning_rate": 1e-2,
    "warmup": 4,
    "rank": 8,
    "validate_every": 8,
    "n_validation": 18,
}
"""Settings of the training that is looked at."""
SHORT: dict[str, Any] = TINY | {"updates": 2, "episodes": 4, "validate_every": 1, "n_validation": 2}
"""Settings of trainings that only have to run."""

PlanOf = Callable[..., Plan]
TowersOf = Callable[..., TrainableTowers]


def where_questions(n: int) -> Iterator[dict[str, Any]]:
    """Who has the thing, and where that person went: two facts among three other moves and four sentences of
    noise.
    """
    rng = Random(0)
    for _ in range(n):
        names, thing = rng.sample(NAMES, len(NAMES)), rng.choice(THINGS)
        told = [
            f"{names[0]} got the {thing}.",
            *(f"{name} went to the {rng.choice(PLACES)}." for name in names),
            *rng.sample(NOISE, 4),
        ]
        order = rng.sample(range(len(told)), len(told))
        yield {
            "question": f"Where is the {thing}?",
            "chunks": [told[row] for row in order],
            "support": sorted((order.index(0), order.index(1))),
        }


@pytest.fixture(scope="session")
def base(reference: Path) -> Path:
    """An encoder of two layers and 32 dimensions, untrained."""
    return reference / "tiny-bert"


@pytest.fixture(scope="session")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("questions") / "where.jsonl"
    path.write_text(
        "".join(json.dumps(question) + "\n" for question in where_questions(120)), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="session")
def plan_of(questions: Path, base: Path) -> PlanOf:
    """`plan_of(**settings)`: a training on those questions; short unless told otherwise."""

    def plan(**settings: Any) -> Plan:
        return plan_training("own", agent="tiny", source=questions, base=str(base), **(SHORT | settings))

    return plan


@dataclass(frozen=True)
class Trained:
    """A finished training."""

    plan: Plan
    folder: Path
    events: list[TrainEvent]

    def validated(self) -> list[TrainEvent]:
        return [event for event in self.events if event["event"] == "validated"]


@pytest.fixture(scope="session")
def trained(plan_of: PlanOf, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The training of TINY, uninterrupted. Not to be written to."""
    plan, folder = plan_of(**TINY), tmp_path_factory.mktemp("trained") / "tiny"
    return Trained(plan, folder, list(Trainer(plan, folder, "cpu").run()))


@pytest.fixture(scope="session")
def towers_of(base: Path) -> TowersOf:
    """`towers_of(kind=TrainableTowers, with_targets=True, seed=0, dropout=0.0, **spec)`: towers on the tiny
    encoder, in float32 unless told otherwise.
    """

    def build(
        kind: type[TrainableTowers] = TrainableTowers,
        *,
        with_targets: bool = True,
        seed: int = 0,
        dropout: float = 0.0,
        **fields: Any,
    ) -> TrainableTowers:
        served = {"vectors": "float32", "position_kind": "relative", "position_resolution": 1 / 64}
        served |= {"base": ".", "weights": "adapters", "halves": 1, "scale": 1 / 3} | fields
        spec = CheckpointSpec(name="tiny", trained=True, **served)
        config = TrainConfig(rank=4, target_towers=with_targets, seed=seed, dropout=dropout)
        return kind(spec, base, config, torch.device("cpu"))

    return build
