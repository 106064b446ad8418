"""A training run in a folder: updates, validation, the best agent so far, and resuming after a kill with the same curve.

The folder is at every moment a checkpoint (once the first validation is done) with three files more: `train.json`, what was asked for;
`progress.jsonl`, an event a line, which a watcher may read while it grows; `resume.safetensors`, towers and moments of the last save.
Randomness of update u derives from (seed, u) alone, so nothing about it has to be saved.
A validation saves the towers as a checkpoint and evaluates that, as it would be served: the best by validation is kept. The last one, whose
learning rate has fallen, takes its place unless the best lies more than a standard error above: among equals by so few examples it measured better.
Knows nothing of flags, pages and the log.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from core.encode.cache import VectorStore
from core.encode.checkpoint import SPEC_FILE, CheckpointSpec, find_checkpoint, read_spec, sha256_of, write_spec
from core.encode.encoder import DualEncoder, find_device
from core.encode.familiarity import Familiarity
from core.encode.tokens import FastTokenizer
from core.errors import BadCheckpoint, BadRequest
from core.evaluate.outcomes import oracle_steps
from core.evaluate.rows import EpisodeRow
from core.evaluate.run import Setting, evaluate
from core.evaluate.summary import summarise
from core.metrics import fact_f1
from core.qrag.agent import Agent
from core.retrievers import AgentRetriever
from core.tasks.example import Example
from core.train.episodes import Played, play
from core.train.mixtures import Mixture
from core.train.recipes import Plan
from core.train.towers import TrainableTowers, load_optimizer_state, optimizer_state

SAVE_EVERY = 50
"""Updates between saves, beside those after each validation; a killed run repeats at most these."""
WORD_SAMPLE = 120
"""Draws of the mixture, of 16 examples each, whose words are counted."""
CONFIG_FILE, PROGRESS_FILE, RESUME_FILE = "train.json", "progress.jsonl", "resume.safetensors"

TrainEvent = dict[str, Any]
"""One line of `progress.jsonl`: `{"event": "started" | "update" | "validated" | "finished", ...}`."""


class Trainer:
    """One training run. `run` is a generator of its events; closing it stops the training between two updates."""

    def __init__(self, plan: Plan, folder: Path, device: str | None = None) -> None:
        """Raises BadCheckpoint, and BadRequest when `folder` holds another training."""
        self.config, self.mixture, self.folder = plan.config, plan.mixture, folder
        self.device = find_device(device)
        weights = plan.base / "model.safetensors"
        if not weights.is_file():
            raise BadCheckpoint(f"the base encoder {plan.base.name} has no {weights.name}; choose one that has")
        self.spec = plan.spec.model_copy(update={"base_sha256": sha256_of(weights)})
        self._base = plan.base
        config = plan.config
        self.towers = TrainableTowers(self.spec, plan.base, rank=config.rank, with_targets=config.target_towers, device=self.device, seed=config.seed)
        if config.start_from is not None:
            self.towers.start_from(_adapters_of(config.start_from, self.spec), config.start_from)
        self._claim_folder()
        self.optimizer = torch.optim.AdamW(self.towers.parameters, lr=config.learning_rate, betas=(0.9, 0.98), eps=1e-6, weight_decay=config.weight_decay)
        self.update = 0
        """The next update, 0-based."""
        self._best: float | None = None
        self._seconds = 0.0
        """Spent training, over all sittings, validation included."""
        self._resume()

    def run(self) -> Generator[TrainEvent]:
        """Trains to the end, or until closed; yields each event after it was written."""
        validation = self.mixture.validation(self.config.n_validation)
        self._familiarity = familiarity_with(self.mixture, validation, self.towers.tokenizer)
        if self.update == 0:
            n_parameters = sum(parameter.numel() for parameter in self.towers.parameters)
            yield self._tell("started", config=self.config.to_json(), data=self.mixture.describe(), n_parameters=n_parameters, device=str(self.device))
            yield self._tell("validated", update=0, **self._validate(validation))
        while self.update < self.config.updates:
            began = time.perf_counter()
            measured = self._step()
            self.update += 1
            self._seconds += time.perf_counter() - began
            left = self._seconds / self.update * (self.config.updates - self.update)
            yield self._tell("update", update=self.update, seconds=round(self._seconds, 1), seconds_left=round(left, 1), **measured)
            validated = self.update % self.config.validate_every == 0 or self.update == self.config.updates
            if validated:
                began = time.perf_counter()
                scores = self._validate(validation)
                self._seconds += time.perf_counter() - began
                yield self._tell("validated", update=self.update, **scores)
            if validated or self.update % SAVE_EVERY == 0:
                self._save()
        yield self._tell("finished", update=self.update, seconds=round(self._seconds, 1), best=self._best)

    def _step(self) -> TrainEvent:
        """One update (algorithm 1, lines 15 to 31)."""
        config, towers = self.config, self.towers
        for group in self.optimizer.param_groups:
            group["lr"] = config.rate(self.update)
        alpha = config.temperature(self.update)
        seed = int.from_bytes(hashlib.sha256(f"{config.seed} {self.update}".encode()).digest()[:7], "big")
        generator = torch.Generator(self.device).manual_seed(seed)
        examples = self.mixture.draw(Random(f"training {config.seed} {self.update}"), config.episodes)
        self.optimizer.zero_grad()
        parts = []
        for part in _split(examples, config.accumulate):
            with towers.formed():
                played = play(towers, part, config, alpha, generator)
                (played.loss * len(part) / len(examples)).backward()  # type: ignore[no-untyped-call]
            parts.append(played)
        norm = nn.utils.clip_grad_norm_(towers.parameters, config.clip)
        self.optimizer.step()
        if config.target_towers:
            towers.follow(config.ema)
        return {"rate": config.rate(self.update), "alpha": alpha, "gradient_norm": round(float(norm), 4), **_measure(parts)}

    def _validate(self, examples: Sequence[Example]) -> TrainEvent:
        """Scores of the towers as they would be served; kept as the folder's checkpoint when none was better, or none surely better than the last."""
        candidate = self.folder / "candidate"
        shutil.rmtree(candidate, ignore_errors=True)
        candidate.mkdir()
        if self.spec.base == ".":
            shutil.copytree(self._base, candidate / "base")
        self.towers.save(candidate)
        record = {"data": self.mixture.name, "updates": self.update, "seconds": round(self._seconds), "config": self.config.to_json()}
        spec = self.spec.model_copy(update={"training": record | {"examples": self.mixture.describe()}})
        write_spec(candidate, spec)
        self._familiarity.save(candidate)
        encoder = DualEncoder(candidate, str(self.device))
        config = spec.episode_config(step_budget=self.config.steps, stop_threshold=None, temperature=0.0)
        with tempfile.TemporaryDirectory() as scratch:
            store = VectorStore(Path(scratch) / "vectors", encoder.dim, torch.tensor([], dtype=getattr(torch, spec.vectors)).numpy().dtype)
            rows = list(evaluate(examples, Setting(split="validation"), AgentRetriever(Agent(encoder)), encoder, config, store=store))
        scores, error = _validation_scores(rows)
        if is_kept(scores["score"], error, self._best, is_last=self.update == self.config.updates):
            self._best = scores["score"]
            self._keep(candidate)
            scores["kept"] = True
        shutil.rmtree(candidate, ignore_errors=True)
        return scores

    def _keep(self, candidate: Path) -> None:
        """Moves the candidate's files into the folder, the spec last."""
        for path in sorted(candidate.rglob("*"), key=lambda path: path.name == SPEC_FILE):
            if path.is_file():
                target = self.folder / path.relative_to(candidate)
                target.parent.mkdir(exist_ok=True)
                os.replace(path, target)

    def _claim_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        wanted = {"config": self.config.to_json(), "spec": self.spec.model_dump(mode="json"), "data": self.mixture.name}
        path = self.folder / CONFIG_FILE
        if not path.exists():
            if any(self.folder.iterdir()):
                raise BadRequest(f"{self.folder} is not empty and holds no training; name a new folder")
            identity = {"training_id": secrets.token_hex(16), "created_at": datetime.now(UTC).isoformat()}
            path.write_text(json.dumps(identity | wanted, indent=2) + "\n", encoding="utf-8")
        elif not wanted.items() <= read_training_file(self.folder).items():
            raise BadRequest(f"{self.folder} holds a training with other settings; name a new folder, or give the settings in its {CONFIG_FILE}")

    def _save(self) -> None:
        """Writes the resume file; a killed save leaves the one before."""
        tensors = self.towers.state_dict() | optimizer_state(self.optimizer)
        best = "" if self._best is None else repr(self._best)
        metadata = {"update": str(self.update), "best": best, "seconds": repr(self._seconds)}
        partial = self.folder / (RESUME_FILE + ".part")
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, partial, metadata)
        os.replace(partial, self.folder / RESUME_FILE)

    def _resume(self) -> None:
        """Continues from the last save, if there is one; events told after it are taken back."""
        path = self.folder / RESUME_FILE
        if path.exists():
            try:
                self._restore(path)
            except (OSError, SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
                remedy = "delete that file to begin again, or name a new folder"
                raise BadRequest(f"{path} can't be read, so the training can't go on from it; {remedy}") from error
        told = [event for event in read_progress(self.folder) if self.update and event.get("update", 0) <= self.update and event["event"] != "finished"]
        (self.folder / PROGRESS_FILE).write_text("".join(json.dumps(event) + "\n" for event in told), encoding="utf-8")

    def _restore(self, path: Path) -> None:
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        tensors = load_file(path)
        self.towers.load_state_dict(tensors)
        load_optimizer_state(self.optimizer, {name: tensor for name, tensor in tensors.items() if name.startswith("adam.")})
        self.update, self._seconds = int(metadata["update"]), float(metadata["seconds"])
        self._best = float(metadata["best"]) if metadata["best"] else None

    def _tell(self, event: str, **values: Any) -> TrainEvent:
        told: TrainEvent = {"event": event, **values}
        with (self.folder / PROGRESS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
        return told


def _adapters_of(agent: str, spec: CheckpointSpec) -> Path:
    """Folder of a trained agent's adapters. Raises BadCheckpoint when it has none, or they belong to another encoder."""
    folder = find_checkpoint(agent)
    start = read_spec(folder)
    if start.weights != "adapters" or start.base_sha256 != spec.base_sha256:
        raise BadCheckpoint(f"{agent} has no adapters of {spec.base}; start from an agent that was trained with a rank on the same encoder")
    return folder


def familiarity_with(mixture: Mixture, validation: Sequence[Example], tokenizer: FastTokenizer) -> Familiarity:
    """What an agent trained on the mixture will have read, by a sample of it."""
    rng = Random("words of training")
    texts = dict.fromkeys(text for _ in range(WORD_SAMPLE) for example in mixture.draw(rng, 16) for text in example.chunks)
    return Familiarity.of(list(texts), [text for example in validation for text in example.chunks], tokenizer)


def read_training_file(folder: Path) -> dict[str, Any]:
    """What was asked for: training_id, created_at, config, spec, data. Raises BadRequest when the folder holds no training."""
    try:
        values: dict[str, Any] = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadRequest(f"{folder} holds no readable {CONFIG_FILE}; name the folder of a training") from error
    return values


def read_progress(folder: Path) -> list[TrainEvent]:
    """Events of a training so far, also while it runs: a line still being written is left out."""
    try:
        text = (folder / PROGRESS_FILE).read_text(encoding="utf-8")
    except OSError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def _split(examples: Sequence[Example], n_parts: int) -> list[Sequence[Example]]:
    """Parts of nearly equal size, in order."""
    size = -(-len(examples) // n_parts)
    return [examples[lo : lo + size] for lo in range(0, len(examples), size)]


def _measure(parts: Sequence[Played]) -> TrainEvent:
    """The figures of one update, means over its episodes; `return_parts`, `q` and `v` step by step."""
    n = sum(len(part.completed) for part in parts)
    completed = sum(sum(part.completed) for part in parts)

    def per_step(name: str) -> list[float]:
        n_steps = max(len(part.taken) for part in parts)
        totals, counts = torch.zeros(n_steps), torch.zeros(n_steps)
        for part in parts:
            totals[: len(part.taken)] += (getattr(part, name)[: len(part.taken)] * part.taken).sum(1).cpu()
            counts[: len(part.taken)] += part.taken.sum(1).cpu()
        return [round(value, 4) for value in (totals / counts.clamp_min(1)).tolist()]

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


def is_kept(score: float, error: float, best: float | None, *, is_last: bool) -> bool:
    """Whether an agent takes the place of the one kept so far, which scored `best`; `error`: standard error of the score.

    >>> is_kept(0.97, 0.01, 0.975, is_last=False), is_kept(0.97, 0.01, 0.975, is_last=True), is_kept(0.9, 0.02, 0.975, is_last=True)
    (False, True, False)
    """
    return best is None or best <= score + error * is_last


def _validation_scores(rows: Sequence[EpisodeRow]) -> tuple[TrainEvent, float]:
    """`score` decides which agent is best: mean Fact F1 with an oracle stop. Beside it, by task; and its standard error."""
    by_task: dict[str, list[EpisodeRow]] = {}
    for row in rows:
        by_task.setdefault(row.task, []).append(row)
    names = ("fact_f1_oracle_stop", "fact_em_no_stop")
    tasks = {task: {"n": len(group)} | {name: summarise(group).metrics[name] for name in names} for task, group in sorted(by_task.items())}
    values = [fact_f1(row.chosen[: oracle_steps(row)], row.support) for row in rows]
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"score": round(float(np.mean(values)), 5), "tasks": tasks}, error
