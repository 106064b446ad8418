"""Training of an agent by Q-RAG algorithm 1."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import torch

from core.base.errors import BadCheckpoint
from core.base.rows import grouped
from core.base.statistics import mean
from core.encode.checkpoint import (
    SPEC_FILE,
    CheckpointSpec,
    find_checkpoint,
    read_spec,
    sha256_of,
    write_spec,
)
from core.encode.encoder import DualEncoder, find_device
from core.encode.familiarity import Familiarity
from core.encode.tokens import FastTokenizer
from core.lab.evaluate.summary import METRICS
from core.lab.tasks.example import Example
from core.lab.train.contests import oracle_f1, validation_rows
from core.lab.train.descent import Descent, diverged
from core.lab.train.episodes import Played, play
from core.lab.train.mixtures import Mixture
from core.lab.train.recipes import Plan
from core.lab.train.sitting import Sitting, TrainEvent, Validation
from core.lab.train.towers import TrainableTowers

WORD_SAMPLE = 120
"""Draws of the mixture, of 16 examples each, whose words are counted."""
_MEASURED = ("fact_f1_oracle_stop", "fact_em_no_stop")
"""What a validation tells of each task."""


class Trainer(Sitting):
    """One training."""

    kind, last_file = "training", SPEC_FILE

    def __init__(self, plan: Plan, folder: Path, device: str | None = None) -> None:
        """Raises BadCheckpoint, and BadRequest when `folder` holds another training."""
        self.config, self.mixture = plan.config, plan.mixture
        self.device = find_device(device)
        weights = plan.base / "model.safetensors"
        if not weights.is_file():
            raise BadCheckpoint(
                f"the base encoder {plan.base.name} has no {weights.name}; choose one that has"
            )
        self.spec = plan.spec.model_copy(update={"base_sha256": sha256_of(weights)})
        self._base = plan.base
        config = plan.config
        self.towers = TrainableTowers(self.spec, plan.base, config, self.device)
        if config.start_from is not None:
            self.towers.start_from(_adapters_of(config.start_from, self.spec), config.start_from)
        self.descent = Descent(self.towers.parameters, config.weight_decay, self.towers.online.values())
        wanted = {"config": config.to_json(), "spec": self.spec.model_dump(mode="json")}
        super().__init__(folder, wanted | {"data": self.mixture.name})

    def begin(self) -> TrainEvent:
        self._validation = self.mixture.validation(self.config.n_validation)
        self._familiarity = familiarity_with(self.mixture, self._validation, self.towers.tokenizer)
        return {"data": self.mixture.describe(), "device": str(self.device)}

    def step(self, update: int, rng: Random) -> TrainEvent:
        """Algorithm 1, lines 15 to 31."""
        config, alpha = self.config, self.config.temperature(update)
        seed = int.from_bytes(hashlib.sha256(f"{config.seed} {update}".encode()).digest()[:7], "big")
        generator = torch.Generator(self.device).manual_seed(seed)
        torch.manual_seed(seed + 1)  # what dropout draws from
        examples = self.mixture.draw(rng, config.episodes)
        played: list[Played] = []

        def loss_of(examples: Sequence[Example]) -> torch.Tensor:
            played.append(play(self.towers, examples, config, alpha, generator))
            return played[0].loss

        _, norm = self.descent.step(config.rate(update), config.clip, [examples], loss_of)
        if config.target_towers:
            self.towers.follow(config.ema)
        figures = {"rate": config.rate(update), "alpha": alpha, "gradient_norm": round(norm, 4)}
        return figures | _measure(played[0])

    def validate(self, candidate: Path, record: TrainEvent) -> Validation:
        if self.spec.base == ".":
            shutil.copytree(self._base, candidate / "base")
        self.towers.save(candidate)
        training = {"data": self.mixture.name, **record, "config": self.config.to_json()}
        training["examples"] = self.mixture.describe()
        spec = self.spec.model_copy(update={"training": training})
        write_spec(candidate, spec)
        self._familiarity.save(candidate)
        encoder = DualEncoder(candidate, str(self.device))
        config = spec.episode_config(step_budget=self.config.steps, stop_threshold=None, temperature=0.0)
        with tempfile.TemporaryDirectory() as scratch:
            try:
                rows = validation_rows(self._validation, encoder, config, Path(scratch))
            except BadCheckpoint as no_numbers:
                raise diverged() from no_numbers
        values = oracle_f1(rows)
        score = round(float(np.mean(values)), 5)
        error = float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
        by_task = sorted(grouped(rows, lambda row: row.task), key=lambda group: group[0].task)
        tasks = {
            group[0].task: {"n": len(group)} | {name: mean(map(METRICS[name], group)) for name in _MEASURED}
            for group in by_task
        }
        return Validation({"tasks": tasks, "score": score}, score, error)

    def state(self) -> dict[str, torch.Tensor]:
        return self.towers.state_dict()


def _adapters_of(agent: str, spec: CheckpointSpec) -> Path:
    """Folder of a trained agent's adapters. Raises BadCheckpoint without any, or for another encoder's."""
    folder = find_checkpoint(agent)
    start = read_spec(folder)
    if start.weights != "adapters" or start.base_sha256 != spec.base_sha256:
        raise BadCheckpoint(
            f"{agent} has no adapters of {spec.base}; start from an agent that was trained with a rank on the"
            " same encoder"
        )
    return folder


def familiarity_with(
    mixture: Mixture, validation: Sequence[Example], tokenizer: FastTokenizer
) -> Familiarity:
    """What an agent trained on the mixture will have read, by a sample of it."""
    rng = Random("words of training")
    texts = dict.fromkeys(
        text for _ in range(WORD_SAMPLE) for example in mixture.draw(rng, 16) for text in example.chunks
    )
    return Familiarity.of(list(texts), [text for example in validation for text in example.chunks], tokenizer)


def _measure(played: Played) -> TrainEvent:
    """The figures of one update, means over its episodes; `returns`, `q` and others step by step."""
    rollout = played.rollout
    n_taken = rollout.taken.sum(1).clamp_min(1)
    by_step = {"q": played.q_values, "v": played.values, "reward": rollout.rewards}
    by_step |= {"returns": played.returns, "entropy": rollout.entropy}
    means = {name: (values * rollout.taken).sum(1) / n_taken for name, values in by_step.items()}
    return {
        "td_loss": round(played.td_loss, 5),
        "ranking_loss": round(played.ranking_loss, 5),
        "success": round(sum(rollout.completed) / len(rollout.completed), 4),
        **{name: [round(value, 4) for value in values.tolist()] for name, values in means.items()},
        "tokens": rollout.n_tokens,
    }
