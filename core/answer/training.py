"""Training of the reader.

LoRA on the base encoder and two heads, by the marginal likelihood of every right answer of a window. A
lesson's passages are cut into windows as in serving; of a question with an answer the first window that holds
it is learned, of one without an answer one at random. A validation saves the reader as it would be served and
lets that read held-out lessons: F1 of its answers decides which is kept, and confidence is calibrated on
them.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from core.answer.checkpoint import (
    ADAPTER_FOLDER,
    SPEC_FILE,
    ReaderSpec,
    load_heads,
    read_reader_spec,
    save_heads,
    write_reader_spec,
)
from core.answer.course import Course
from core.answer.lesson import Lesson, gold_answers
from core.answer.network import CLASSES, ReaderNetwork, marginal_loss
from core.answer.reader import ExtractiveReader
from core.answer.tuning import Tuning, tune
from core.answer.windows import Window, read_windows
from core.config import check_least, words
from core.encode.adapter import adaptable_layers, load_adapter, save_adapter
from core.encode.checkpoint import architecture, find_base, load_weights, max_positions_of, sha256_of
from core.encode.encoder import fast_dtype, find_device
from core.encode.forward import batches_by_length
from core.encode.packaged import MINILM
from core.encode.tokens import FastTokenizer
from core.errors import BadCheckpoint, BadRequest
from core.train.sitting import Sitting, TrainEvent
from core.train.towers import (
    base_weights,
    changes_of,
    load_optimizer_state,
    low_rank_changes,
    optimizer_state,
    trainable_tower,
)

_BATCH_TOKENS = {"cpu": 2_048, "cuda": 65_536}
"""Padded tokens whose gradients are computed at once."""
_LEAST = {
    "updates": 1,
    "lessons": 1,
    "window": 96,
    "longest_answer": 1,
    "rank": 1,
    "validate_every": 1,
    "n_validation": 1,
}
"""Smallest value of each whole number; the others must not be negative."""


@dataclass(frozen=True, kw_only=True)
class ReaderConfig:
    """One training of a reader."""

    updates: int = 2_000
    """Gradient steps."""
    lessons: int = 16
    """Questions of one gradient step."""
    window: int = 320
    """Tokens read at once, in training and in serving."""
    longest_answer: int = 48
    """Tokens of a span, at most."""
    rank: int = 32
    """Rank of the LoRA changes."""
    learning_rate: float = 1e-3
    """Highest rate."""
    warmup: int = 50
    """Updates over which the rate rises from 0; then it falls linearly."""
    weight_decay: float = 1e-3
    """Of AdamW."""
    clip: float = 1.0
    """Largest L2 norm of the gradient."""
    validate_every: int = 250
    """Updates between validations."""
    n_validation: int = 500
    """Lessons of each validation."""
    seed: int = 0
    """Of everything random."""
    start_from: str | None = None
    """Folder of a reader that is trained further; None: the base encoder is."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        check_least(self, _LEAST)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and (not math.isfinite(value) or value < 0):
                raise BadRequest(f"{words(field.name)} {value} must be a finite number, 0 or more")

    def rate(self, update: int) -> float:
        """Learning rate of a 0-based update."""
        return self.learning_rate * min(1.0, (update + 1) / max(1, self.warmup)) * (1 - update / self.updates)


class ReaderTrainer:
    """One training run; `run` is a generator of its events, and closing it stops between two updates. A
    `Learner`.
    """

    def __init__(
        self,
        config: ReaderConfig,
        course: Course,
        folder: Path,
        *,
        name: str,
        base: str = MINILM,
        device: str | None = None,
    ) -> None:
        """Raises BadCheckpoint, and BadRequest when `folder` holds another training."""
        self.config, self.course = config, course
        self.device = find_device(device)
        self._base = find_base(base)
        local = Path(base).is_dir()
        self.spec = ReaderSpec(
            name=name,
            base="." if local else base,
            base_sha256=sha256_of(self._base / "model.safetensors"),
            window=config.window,
            longest_answer=config.longest_answer,
        )
        self.tokenizer = FastTokenizer(self._base)
        self.network = self._new_network()
        if config.start_from is not None:
            self._start_from(Path(config.start_from))
        parameters = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(
            parameters, lr=config.learning_rate, betas=(0.9, 0.98), eps=1e-6, weight_decay=config.weight_decay
        )
        wanted = {"config": asdict(config), "reader": self.spec.model_dump(mode="json"), "data": course.name}
        self.sitting = Sitting(folder, wanted)
        self.sitting.resume(self._restore)

    def run(self) -> Generator[TrainEvent]:
        """Trains to the end, or until closed; yields each event after it was written."""
        self._validation = self.course.validation(self.config.n_validation)
        n_parameters = sum(
            parameter.numel() for parameter in self.network.parameters() if parameter.requires_grad
        )
        started = {
            "config": asdict(self.config),
            "data": self.course.describe(),
            "n_parameters": n_parameters,
            "device": str(self.device),
        }
        return self.sitting.run(self, self.config.updates, self.config.validate_every, **started)

    def step(self, update: int) -> TrainEvent:
        """See `Learner`."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.rate(update)
        rng = Random(f"reader {self.config.seed} {update}")
        learned = [
            one
            for lesson in self.course.draw(rng, self.config.lessons)
            if (one := self._window(lesson, rng)) is not None
        ]
        self.optimizer.zero_grad()
        total = 0.0
        with parametrize.cached():
            for layer in adaptable_layers(self.network.encoder).values():
                _ = layer.weight  # formed once, with its graph
            parts = list(
                batches_by_length([len(window.ids) for window, _ in learned], _BATCH_TOKENS[self.device.type])
            )
            for part in parts:
                loss = self._loss([learned[i] for i in part]) * (len(part) / len(learned))
                loss.backward(retain_graph=part is not parts[-1])  # type: ignore[no-untyped-call]
                total += float(loss.detach())
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        norm = nn.utils.clip_grad_norm_(parameters, self.config.clip)
        self.optimizer.step()
        return {
            "rate": self.config.rate(update),
            "loss": round(total, 4),
            "gradient_norm": round(float(norm), 3),
            "n": len(learned),
        }

    def validate(self, *, is_last: bool) -> TrainEvent:
        """See `Learner`."""
        candidate = self.sitting.new_candidate()
        self._save(candidate, self.spec)
        reader = ExtractiveReader(candidate, str(self.device))
        tuning = tune(reader, self._validation)
        record = {
            "data": self.course.name,
            "updates": self.sitting.update,
            "seconds": round(self.sitting.seconds),
            "config": asdict(self.config),
        }
        write_reader_spec(
            candidate,
            tuned(self.spec, tuning).model_copy(
                update={"training": record | {"lessons": self.course.describe()}}
            ),
        )
        kept = self.sitting.offer(
            candidate, tuning.scores["f1"], tuning.standard_error, is_last=is_last, last_file=SPEC_FILE
        )
        return {
            "score": round(tuning.scores["f1"], 5),
            "scores": tuning.scores,
            "sources": tuning.by_source,
        } | ({"kept": True} if kept else {})

    def tensors(self) -> dict[str, torch.Tensor]:
        """See `Learner`."""
        return self._trained() | optimizer_state(self.optimizer)

    def _window(self, lesson: Lesson, rng: Random) -> tuple[Window, np.ndarray] | None:
        """A window to learn and what is right in it; None where no window holds the whole answer."""
        windows = read_windows(self.tokenizer, lesson.question, lesson.passages, self.config.window)
        if lesson.label is not None and windows:
            windows = [rng.choice(windows)]
        for window in windows:
            gold = gold_answers(lesson, window, self.config.longest_answer)
            if gold is not None:
                return window, gold
        return None

    def _loss(self, learned: Sequence[tuple[Window, np.ndarray]]) -> torch.Tensor:
        logits = self.network([window for window, _ in learned])
        n_spans, n_classes = logits.spans.shape[1] * logits.spans.shape[2], len(CLASSES)
        gold = np.zeros((len(learned), n_spans + n_classes), dtype=bool)
        for row, (_, right) in enumerate(learned):
            gold[row, : len(right) - n_classes] = right[:-n_classes]
            gold[row, n_spans:] = right[-n_classes:]
        return marginal_loss(logits, torch.from_numpy(gold).to(self.device))

    def _new_network(self) -> ReaderNetwork:
        torch.manual_seed(self.config.seed)
        encoder = architecture(self._base)
        load_weights(encoder, base_weights(self._base), self._base.name)
        if self.config.window > max_positions_of(encoder):
            raise BadRequest(
                f"window {self.config.window} is above {max_positions_of(encoder)}, what the encoder reads;"
                " choose a smaller one"
            )
        encoder = trainable_tower(encoder, self.config.rank, fast_dtype(self.device))
        if self.device.type == "cpu":  # see TrainableTowers
            encoder.set_attn_implementation("eager")
        return ReaderNetwork(encoder, self.config.longest_answer, self.tokenizer.pad_id).to(self.device)

    def _start_from(self, folder: Path) -> None:
        """Takes over the adapter and the heads of a reader. Raises BadCheckpoint where they don't fit."""
        start = read_reader_spec(folder)
        if start.base_sha256 != self.spec.base_sha256:
            raise BadCheckpoint(
                f"reader {start.name} has no adapter of {self.spec.base}; start from a reader that was"
                " trained on the same encoder"
            )
        load_adapter(folder / ADAPTER_FOLDER, low_rank_changes(self.network.encoder), start.name)
        load_heads(folder, self.network.heads, start.name)

    def _save(self, folder: Path, spec: ReaderSpec) -> None:
        """The reader as it would be served, into an empty folder."""
        if spec.base == ".":
            shutil.copytree(self._base, folder / "base")
        save_adapter(folder / ADAPTER_FOLDER, low_rank_changes(self.network.encoder), spec.base)
        save_heads(folder, self.network.heads)
        write_reader_spec(folder, spec)

    def _trained(self) -> dict[str, torch.Tensor]:
        """Everything that training changes, by name."""
        heads = {
            f"{name}.{key}": value
            for name, head in self.network.heads.items()
            for key, value in head.state_dict().items()
        }
        return {name: value.detach() for name, value in changes_of(self.network.encoder)} | heads

    @torch.no_grad()
    def _restore(self, saved: dict[str, torch.Tensor]) -> None:
        for name, value in self._trained().items():
            value.copy_(saved[name])
        load_optimizer_state(
            self.optimizer, {name: tensor for name, tensor in saved.items() if name.startswith("adam.")}
        )


def tuned(spec: ReaderSpec, tuning: Tuning) -> ReaderSpec:
    """The spec with what validation set and measured."""
    names = ("no_answer_bias", "confidence", "no_answer_confidence", "least_confidence")
    changes = {name: getattr(tuning, name) for name in names}
    return spec.model_copy(
        update=changes | {"scores": {"validation": tuning.scores, "sources": tuning.by_source}}
    )
