"""Training of an agent's reranker, which reads question and chunk together.

A chunk of the evidence competes with some that are none in one softmax (see `Contests` for where they come
from). LoRA on the agent's base encoder or on another one: the agent's own reranker on that one goes on; else
training begins with a reader on the same base, which has learned to find answers, where one ships. A
validation chooses the reranker and its weight in Q.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from core.answer.checkpoint import ADAPTER_FOLDER, HEADS_FILE, LARGE, SMALL, read_reader_spec
from core.answer.network import NONE
from core.base.batches import batches
from core.base.config import check_numbers
from core.base.errors import BadRequest
from core.encode.adapter import load_adapter, save_adapter
from core.encode.checkpoint import (
    SPEC_FILE,
    CheckpointSpec,
    RerankedDefaults,
    find_base,
    load_head,
    max_positions_of,
    read_spec,
    save_head,
    sha256_of,
    write_spec,
)
from core.encode.encoder import find_device
from core.encode.forward import SERVED_WIDTH_STEP, padded_width, reads_segments
from core.encode.reranker import (
    HEAD_FILE,
    RERANKER_FOLDER,
    RerankerNetwork,
    hash_of,
    padded_pairs,
    pair,
    window_of,
)
from core.encode.tokens import FastTokenizer
from core.lab.train.config import ABOVE_0, LEAST, LowRankConfig
from core.lab.train.contests import Contest, Contests
from core.lab.train.descent import Descent, low_rank_encoder, low_rank_state
from core.lab.train.mixtures import Mixture
from core.lab.train.sitting import CONFIG_FILE, Sitting, TrainEvent, Validation
from core.lab.train.towers import low_rank_changes

_TOGETHER = 2
"""Questions whose gradients are computed at once on a CPU."""


@dataclass(frozen=True, kw_only=True)
class RerankConfig(LowRankConfig):
    """One training of a reranker."""

    base: str | None = None
    """Base encoder; None: that of the agent's reranker, else the agent's own."""
    learning_rate: float = 6e-4
    n_validation: int = 426
    questions: int = 16
    """Questions of one gradient step."""
    others: int = 4
    """Candidates that a chunk of the evidence competes with."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        check_numbers(self, LEAST | {"questions": 1, "others": 1}, ABOVE_0)


class RerankTrainer(Sitting):
    """One training."""

    kind, last_file = "reranker", SPEC_FILE

    def __init__(
        self,
        config: RerankConfig,
        agent: Path,
        mixture: Mixture,
        folder: Path,
        device: str | None = None,
    ) -> None:
        """`agent` stays as it is; `folder` becomes one like it with a reranker. `mixture`: what to learn
        from. Raises BadCheckpoint, and BadRequest when `folder` holds another training.
        """
        self.config, self.agent, self.device = config, agent, find_device(device)
        spec = read_spec(agent)
        if spec.position_kind != "none":
            raise BadRequest(f"{spec.name} reads positions; a reranker is for agents with position_kind none")
        own = hash_of(agent, spec)
        named = config.base or spec.rerank_base
        self._mixture, self._base_name = mixture, named or spec.base
        base = find_base(self._base_name, agent)
        encoder, self.tokenizer = low_rank_encoder(base, config, self.device), FastTokenizer(base)
        self._most = max_positions_of(encoder)
        self.network = RerankerNetwork(encoder).to(self.device)
        weights = sha256_of(base / "model.safetensors")
        changes = {} if named is None else {"rerank_base": named, "rerank_base_sha256": weights}
        self.spec: CheckpointSpec = spec.model_copy(update={"rerank_weight": 0.0} | changes)
        if own and config.base in (None, spec.rerank_base or spec.base):
            before, origin = agent / RERANKER_FOLDER, f"the reranker of {spec.name}"
            load_adapter(before, low_rank_changes(encoder), origin)
            load_head(self.network.head, before / HEAD_FILE, origin)
        else:
            self._begin_with_reader(weights)
        self.descent = Descent(self.network.parameters(), config.weight_decay, [encoder])
        about = {
            "config": asdict(config),
            "agent": self.spec.model_dump(mode="json", exclude={"scores"}),
            "reranker": own,
            "mixture": {"name": mixture.name} | mixture.describe(),
        }
        super().__init__(folder, about)

    def begin(self) -> TrainEvent:
        counts = {"others": self.config.others, "n_validation": self.config.n_validation}
        self._contests = Contests(self._mixture, self.spec, **counts)
        return {"questions": self._contests.n_questions, "device": str(self.device)}

    def step(self, update: int, rng: Random) -> TrainEvent:
        drawn = self._contests.draw(rng, self.config.questions)
        together = _TOGETHER if self.device.type == "cpu" else len(drawn)
        n_right = 0

        def loss_of(part: Sequence[Contest]) -> torch.Tensor:
            nonlocal n_right
            logits = self._logits(part).view(len(part), -1)
            is_right = logits.argmax(1) == 0
            n_right += int(is_right.sum())
            right = torch.zeros(len(part), dtype=torch.long, device=logits.device)
            return nn.functional.cross_entropy(logits, right) * (len(part) / len(drawn))

        rate = self.config.rate(update)
        total, _ = self.descent.step(rate, 1.0, list(batches(drawn, together)), loss_of)
        return {"rate": rate, "loss": round(total, 4), "right": round(n_right / len(drawn), 3)}

    def validate(self, candidate: Path, record: TrainEvent) -> Validation:
        shutil.copytree(
            self.agent,
            candidate,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(CONFIG_FILE, RERANKER_FOLDER, "*.jsonl", "resume.safetensors"),
        )
        (candidate / RERANKER_FOLDER).mkdir()
        changes = low_rank_changes(self.network.encoder)
        save_adapter(candidate / RERANKER_FOLDER, changes, self._base_name)
        save_head(self.network.head, candidate / RERANKER_FOLDER / HEAD_FILE)
        by_weight = self._contests.scores(candidate, str(self.device))
        weight = max((weight for weight in by_weight if weight), key=lambda tried: by_weight[tried].mean())
        training = record | {"config": asdict(self.config), "questions": self._contests.n_questions}
        served = {"rerank_weight": weight, "reranked": RerankedDefaults(training=training)}
        write_spec(candidate, self.spec.model_copy(update=served))
        gain = by_weight[weight] - by_weight[0.0]
        score = float(gain.mean())
        means = {str(tried): round(float(values.mean()), 5) for tried, values in by_weight.items()}
        told = {"score": round(score, 5), "weight": weight, "by_weight": means}
        return Validation(told, score, float(gain.std() / np.sqrt(len(gain))))

    def state(self) -> dict[str, torch.Tensor]:
        return low_rank_state(self.network)

    def _logits(self, part: Sequence[Contest]) -> torch.Tensor:
        tokenizer, encoder, pairs = self.tokenizer, self.network.encoder, []
        for contest in part:
            question, *parts = tokenizer.ids([contest.question, *contest.chosen, *contest.texts])
            chosen, texts = parts[: len(contest.chosen)], parts[len(contest.chosen) :]
            window = window_of(chosen, self._most)
            pairs += [pair(tokenizer, question, text, window, chosen) for text in texts]
        longest = max(len(tokens) for tokens, _ in pairs)
        width = padded_width(longest, encoder, SERVED_WIDTH_STEP)
        inputs = padded_pairs(pairs, width, tokenizer.pad_id, segments=reads_segments(encoder))
        on_device = [torch.from_numpy(array).to(self.device) for array in inputs]
        logits: torch.Tensor = self.network(*on_device)
        return logits

    def _begin_with_reader(self, weights: str) -> None:
        """Takes over a reader on the same base, where one ships. `weights`: their hash."""
        for folder in (SMALL, LARGE):
            reader = read_reader_spec(folder)
            if (reader.base, reader.base_sha256) == (self._base_name, weights):
                load_adapter(folder / ADAPTER_FOLDER, low_rank_changes(self.network.encoder), reader.name)
                heads = load_file(folder / HEADS_FILE)
                self.network.head.load_state_dict(  # what speaks against "no answer"
                    {key: -heads[f"classes.{key}"][NONE : NONE + 1] for key in ("weight", "bias")}
                )
