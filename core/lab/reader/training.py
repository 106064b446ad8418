"""Training of the reader: LoRA on the base encoder and two heads.

The loss is the marginal likelihood of every right answer of a window. A lesson's passages are cut into
windows as in serving. If it has an answer, the first window that holds it is learned, else a random one. A
validation saves the reader as it would be served and lets that read held-out lessons: F1 of its answers
chooses which is kept, and confidence is calibrated on them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch

from core.answer.checkpoint import (
    ADAPTER_FOLDER,
    HEADS_FILE,
    SPEC_FILE,
    ReaderSpec,
    read_reader_spec,
    write_reader_spec,
)
from core.answer.network import CLASSES, ReaderNetwork, marginal_loss
from core.answer.reader import ExtractiveReader
from core.answer.windows import Window, read_windows
from core.base.config import check_numbers
from core.base.errors import BadCheckpoint, BadRequest
from core.encode.adapter import load_adapter, save_adapter
from core.encode.checkpoint import find_base, load_head, max_positions_of, save_head, sha256_of
from core.encode.encoder import find_device
from core.encode.forward import batches_by_length
from core.encode.packaged import MINILM
from core.encode.tokens import FastTokenizer
from core.lab.reader.course import Course
from core.lab.reader.lesson import Lesson, gold_answers
from core.lab.reader.tuning import Tuning, tune
from core.lab.train.config import ABOVE_0, LEAST, LowRankConfig
from core.lab.train.descent import Descent, low_rank_encoder, low_rank_state
from core.lab.train.sitting import Sitting, TrainEvent, Validation
from core.lab.train.towers import low_rank_changes

_BATCH_TOKENS = {"cpu": 2_048, "cuda": 8_192}
"""Padded tokens whose gradients are computed at once: the large base keeps 1 MB of each on a GPU."""


@dataclass(frozen=True, kw_only=True)
class ReaderConfig(LowRankConfig):
    """One training of a reader."""

    updates: int = 2_000
    warmup: int = 50
    validate_every: int = 250
    lessons: int = 16
    """Questions of one gradient step."""
    window: int = 320
    """Tokens read at once, in training and in serving."""
    longest_answer: int = 48
    """Tokens of a span, at most."""
    clip: float = 1.0
    """Largest L2 norm of the gradient."""
    start_from: str | None = None
    """Folder of a reader that is trained further; None: the base encoder is."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        check_numbers(self, LEAST | {"lessons": 1, "window": 96, "longest_answer": 1}, ABOVE_0)


class ReaderTrainer(Sitting):
    """One training."""

    kind, last_file = "reader", SPEC_FILE

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
        self.spec = ReaderSpec(
            name=name,
            base="." if Path(base).is_dir() else base,
            base_sha256=sha256_of(self._base / "model.safetensors"),
            window=config.window,
            longest_answer=config.longest_answer,
        )
        self.tokenizer = FastTokenizer(self._base)
        encoder = low_rank_encoder(self._base, config, self.device)
        if config.window > max_positions_of(encoder):
            raise BadRequest(
                f"window {config.window} is above {max_positions_of(encoder)}, what the encoder reads; choose"
                " a smaller one"
            )
        network = ReaderNetwork(encoder, config.longest_answer, self.tokenizer.pad_id)
        self.network = network.to(self.device)
        if config.start_from is not None:
            self._start_from(Path(config.start_from))
        self.descent = Descent(self.network.parameters(), config.weight_decay, [encoder])
        wanted = {"config": asdict(config), "reader": self.spec.model_dump(mode="json"), "data": course.name}
        super().__init__(folder, wanted)

    def begin(self) -> TrainEvent:
        self._validation = self.course.validation(self.config.n_validation)
        return {"data": self.course.describe(), "device": str(self.device)}

    def step(self, update: int, rng: Random) -> TrainEvent:
        lessons = self.course.draw(rng, self.config.lessons)
        windows = [self._window(lesson, rng) for lesson in lessons]
        learned = [window for window in windows if window is not None]

        def loss_of(part: Sequence[int]) -> torch.Tensor:
            return self._loss([learned[i] for i in part]) * (len(part) / len(learned))

        rate = self.config.rate(update)
        parts = batches_by_length([len(window.ids) for window, _ in learned], _BATCH_TOKENS[self.device.type])
        total, norm = self.descent.step(rate, self.config.clip, list(parts), loss_of)
        figures = {"rate": rate, "loss": round(total, 4), "gradient_norm": round(norm, 3)}
        return figures | {"n": len(learned)}

    def validate(self, candidate: Path, record: TrainEvent) -> Validation:
        if self.spec.base == ".":
            shutil.copytree(self._base, candidate / "base")
        save_adapter(candidate / ADAPTER_FOLDER, low_rank_changes(self.network.encoder), self.spec.base)
        save_head(self.network.heads, candidate / HEADS_FILE)
        write_reader_spec(candidate, self.spec)
        tuning = tune(ExtractiveReader(candidate, str(self.device)), self._validation)
        training = {"data": self.course.name, **record, "config": asdict(self.config)}
        training["lessons"] = self.course.describe()
        spec = tuned(self.spec, tuning).model_copy(update={"training": training})
        write_reader_spec(candidate, spec)
        f1 = tuning.scores["f1"]
        told = {"score": round(f1, 5), "scores": tuning.scores, "sources": tuning.by_source}
        return Validation(told, f1, tuning.standard_error)

    def state(self) -> dict[str, torch.Tensor]:
        return low_rank_state(self.network)

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
        _, n_starts, n_lengths = logits.spans.shape
        n_spans, n_classes = n_starts * n_lengths, len(CLASSES)
        gold = np.zeros((len(learned), n_spans + n_classes), dtype=bool)
        for row, (_, right) in enumerate(learned):
            gold[row, : len(right) - n_classes] = right[:-n_classes]
            gold[row, n_spans:] = right[-n_classes:]
        return marginal_loss(logits, torch.from_numpy(gold).to(self.device))

    def _start_from(self, folder: Path) -> None:
        """Takes over the adapter and the heads of a reader. Raises BadCheckpoint where they don't fit."""
        start = read_reader_spec(folder)
        if start.base_sha256 != self.spec.base_sha256:
            raise BadCheckpoint(
                f"reader {start.name} has no adapter of {self.spec.base}; start from a reader that was"
                " trained on the same encoder"
            )
        load_adapter(folder / ADAPTER_FOLDER, low_rank_changes(self.network.encoder), start.name)
        load_head(self.network.heads, folder / HEADS_FILE, f"reader {start.name}")


def tuned(spec: ReaderSpec, tuning: Tuning) -> ReaderSpec:
    """The spec with what validation set and measured."""
    names = ("no_answer_bias", "confidence", "no_answer_confidence", "least_confidence", "least_guess")
    changes = {name: getattr(tuning, name) for name in names}
    return spec.model_copy(
        update=changes | {"scores": {"validation": tuning.scores, "sources": tuning.by_source}}
    )
