"""The training of an agent.

Updates by Q-RAG algorithm 1, and validation of the towers as a checkpoint, as it would be served. Its folder,
its loop and what is kept are those of `core.lab.train.sitting`. Randomness of update u derives from (seed, u)
alone.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from random import Random

import numpy as np
import torch

from core.answer.protocol import Reader
from core.answer.reader import load_reader
from core.base.batches import batches
from core.base.errors import BadCheckpoint
from core.base.metrics import fact_f1
from core.base.rows import EpisodeRow
from core.encode.cache import VectorStore
from core.encode.checkpoint import (
    SPEC_FILE,
    CheckpointSpec,
    find_checkpoint,
    read_spec,
    sha256_of,
    write_spec,
)
from core.encode.device import find_device
from core.encode.encoder import DualEncoder
from core.encode.familiarity import Familiarity
from core.encode.tokens import FastTokenizer
from core.lab.evaluate.outcomes import oracle_steps
from core.lab.evaluate.run import Setting, evaluate
from core.lab.evaluate.summary import summarise
from core.lab.tasks.example import Example
from core.lab.train.descent import Descent
from core.lab.train.episodes import Played, play
from core.lab.train.mixtures import Mixture
from core.lab.train.payment import PaidByAnswers
from core.lab.train.recipes import Plan
from core.lab.train.sitting import Sitting, TrainEvent
from core.lab.train.towers import TrainableTowers
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import AgentRetriever

WORD_SAMPLE = 120
"""Draws of the mixture, of 16 examples each, whose words are counted."""


class Trainer:
    """One training run. `run` is a generator of its events; closing it stops between two updates."""

    def __init__(
        self, plan: Plan, folder: Path, device: str | None = None, reader: Reader | None = None
    ) -> None:
        """reader: whose answers pay for choices where the objective is `answers`; the one that
        ships by default. Raises BadCheckpoint, and BadRequest when `folder` holds another training.
        """
        self.config, self.mixture, self.folder = plan.config, plan.mixture, folder
        self.device = find_device(device)
        weights = plan.base / "model.safetensors"
        if not weights.is_file():
            raise BadCheckpoint(
                f"the base encoder {plan.base.name} has no {weights.name}; choose one that has"
            )
        self.spec = plan.spec.model_copy(update={"base_sha256": sha256_of(weights)})
        self._base = plan.base
        config = plan.config
        self.towers = TrainableTowers(
            self.spec,
            plan.base,
            rank=config.rank,
            with_targets=config.target_towers,
            device=self.device,
            seed=config.seed,
            dropout=config.dropout,
        )
        if config.start_from is not None:
            self.towers.start_from(_adapters_of(config.start_from, self.spec), config.start_from)
        self._pay = (
            PaidByAnswers(reader or load_reader(device=device), self.towers.count_tokens, config.token_cost)
            if config.objective == "answers"
            else None
        )
        self.sitting = Sitting(
            folder,
            {
                "config": config.to_json(),
                "spec": self.spec.model_dump(mode="json"),
                "data": self.mixture.name,
            },
        )
        self.descent = Descent(self.towers.parameters, config.learning_rate, config.weight_decay)
        self.sitting.resume(self._restore)

    def run(self) -> Generator[TrainEvent]:
        """Trains to the end, or until closed; yields each event after it was written."""
        self._validation = self.mixture.validation(self.config.n_validation)
        self._familiarity = familiarity_with(self.mixture, self._validation, self.towers.tokenizer)
        started = {
            "config": self.config.to_json(),
            "data": self.mixture.describe(),
            "n_parameters": self.descent.n_parameters,
            "device": str(self.device),
        }
        return self.sitting.run(self, self.config.updates, self.config.validate_every, **started)

    def step(self, update: int) -> TrainEvent:
        """See `Learner`: one update (algorithm 1, lines 15 to 31)."""
        config, towers = self.config, self.towers
        alpha = config.temperature(update)
        seed = int.from_bytes(hashlib.sha256(f"{config.seed} {update}".encode()).digest()[:7], "big")
        generator = torch.Generator(self.device).manual_seed(seed)
        torch.manual_seed(seed + 1)  # what dropout draws from
        examples = self.mixture.draw(Random(f"training {config.seed} {update}"), config.episodes)
        self.descent.begin(config.rate(update))
        parts = []
        for part in _split(examples, config.accumulate):
            with towers.formed():
                played = play(towers, part, config, alpha, generator, self._pay)
                (played.loss * len(part) / len(examples)).backward()  # type: ignore[no-untyped-call]
            parts.append(played)
        norm = self.descent.end(config.clip)
        if config.target_towers:
            towers.follow(config.ema)
        return {
            "rate": config.rate(update),
            "alpha": alpha,
            "gradient_norm": round(norm, 4),
            **_measure(parts),
        }

    def validate(self, *, is_last: bool) -> TrainEvent:
        """See `Learner`: scores of the towers as they would be served."""
        candidate = self.sitting.new_candidate()
        if self.spec.base == ".":
            shutil.copytree(self._base, candidate / "base")
        self.towers.save(candidate)
        record = {
            "data": self.mixture.name,
            **self.sitting.record,
            "config": self.config.to_json(),
        }
        spec = self.spec.model_copy(update={"training": record | {"examples": self.mixture.describe()}})
        write_spec(candidate, spec)
        self._familiarity.save(candidate)
        encoder = DualEncoder(candidate, str(self.device))
        config = spec.episode_config(step_budget=self.config.steps, stop_threshold=None, temperature=0.0)
        with tempfile.TemporaryDirectory() as scratch:
            store = VectorStore(
                Path(scratch) / "vectors",
                encoder.dim,
                torch.tensor([], dtype=getattr(torch, spec.vectors)).numpy().dtype,
            )
            rows = list(
                evaluate(
                    self._validation,
                    Setting(split="validation"),
                    AgentRetriever(Agent(encoder)),
                    encoder,
                    config,
                    store=store,
                )
            )
        values = [fact_f1(row.chosen[: oracle_steps(row)], row.support) for row in rows]
        scores = _validation_scores(rows, values)
        if self._pay is not None:  # labels must not decide what is kept either
            values = self._pay.f1(
                [(one, row.chosen) for one, row in zip(self._validation, rows, strict=True)]
            )
            scores["answer_f1"] = round(float(np.mean(values)), 5)
        error = float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
        best: float = scores["score" if self._pay is None else "answer_f1"]
        return scores | self.sitting.offer(candidate, best, error, is_last=is_last, last_file=SPEC_FILE)

    def tensors(self) -> dict[str, torch.Tensor]:
        """See `Learner`."""
        return self.towers.state_dict() | self.descent.state_dict()

    def _restore(self, saved: dict[str, torch.Tensor]) -> None:
        self.towers.load_state_dict(saved)
        self.descent.load_state_dict(saved)


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


def _split(examples: Sequence[Example], n_parts: int) -> list[Sequence[Example]]:
    """Parts of nearly equal size, in order."""
    return list(batches(examples, -(-len(examples) // n_parts)))


def _measure(parts: Sequence[Played]) -> TrainEvent:
    """The figures of one update, means over its episodes; `return_parts`, `q` and `v` step by step."""
    n = sum(len(part.completed) for part in parts)
    completed = sum(sum(part.completed) for part in parts)

    def per_step(name: str) -> list[float]:
        n_steps = max(len(part.taken) for part in parts)
        totals, counts = torch.zeros(n_steps), torch.zeros(n_steps)
        for part in parts:
            n = len(part.taken)
            values = getattr(part, name)[:n] * part.taken
            totals[:n] += values.sum(1).cpu()
            counts[:n] += part.taken.sum(1).cpu()
        means = totals / counts.clamp_min(1)
        return [round(value, 4) for value in means.tolist()]

    return {
        "td_loss": round(sum(part.td_loss * len(part.completed) for part in parts) / n, 5),
        "ranking_loss": round(sum(part.ranking_loss * len(part.completed) for part in parts) / n, 5),
        "success": round(completed / n, 4),
        "q": per_step("q_values"),
        "v": per_step("values"),
        "reward": per_step("rewards"),
        "returns": per_step("returns"),
        "entropy": per_step("entropy"),
        "tokens": sum(part.n_tokens for part in parts),
    }


def _validation_scores(rows: Sequence[EpisodeRow], values: Sequence[float]) -> TrainEvent:
    """`score`, which picks the best unless answers do: mean Fact F1 of `values`, oracle stop; and by task."""
    by_task: dict[str, list[EpisodeRow]] = {}
    for row in rows:
        by_task.setdefault(row.task, []).append(row)
    names = ("fact_f1_oracle_stop", "fact_em_no_stop")
    tasks = {
        task: {"n": len(group)} | {name: summarise(group).metrics[name] for name in names}
        for task, group in sorted(by_task.items())
    }
    return {"score": round(float(np.mean(values)), 5), "tasks": tasks}
