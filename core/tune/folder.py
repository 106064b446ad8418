"""What every tuning shares.

Its folder, what it tells while at work, and how the model and its adapters are opened. The folder holds
`tune.json`, what was asked for; `progress.jsonl`, an event a line, which a watcher may read while it grows;
`checkpoints/` while it is at work; and at the end adapters (safetensors only), the tokenizer with the chat
template it was tuned with, and `README.md`, a card. Loading this module takes seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig
from transformers import TrainerCallback

from core.encode.encoder import find_device
from core.encode.hub import fetch
from core.errors import BadCheckpoint, BadRequest
from core.llm.local import MODEL_FILES, load_causal
from core.log.atomic import write_whole
from core.train.sitting import PROGRESS_FILE, TrainEvent, read_progress

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
"""What the papers' adapters change; a model without layers of these names has all its linear layers changed.
"""
PLAIN_TEMPLATE = (
    "{% for message in messages %}{% if not loop.first %}{{ '\n\n' }}{% endif %}{{ message['role'] }}: {{"
    " message['content'] }}{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}{% if"
    " add_generation_prompt %}{{ '\n\n' }}assistant:{% endif %}"
)
"""For a tokenizer without a chat template."""
CONFIG_FILE, CHECKPOINTS = "tune.json", "checkpoints"

TuneEvent = TrainEvent
"""One line of `progress.jsonl`: `{"event": "started" | "step" | "held_out" | "finished", "step": N, ...}`."""


class TuneFolder:
    """The files of one tuning."""

    def __init__(self, folder: Path, wanted: dict[str, Any], learned: str) -> None:
        """learned: from what, in the plural. Raises BadRequest when the folder holds something else; writes
        nothing yet.
        """
        self._folder, self._wanted = folder, wanted
        self.checkpoints = folder / CHECKPOINTS
        config = folder / CONFIG_FILE
        if config.is_file():
            if not wanted.items() <= _json_object(config).items():
                raise BadRequest(
                    f"{folder} holds a tuning of another model, on other {learned} or with other settings"
                    f" (see its {CONFIG_FILE}); name a new folder"
                )
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadRequest(f"{folder} is not empty and holds no tuning; name a new folder")

    def begin(self) -> None:
        """Claims the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if not (self._folder / CONFIG_FILE).exists():
            write_whole(
                self._folder / CONFIG_FILE,
                [json.dumps({"created_at": datetime.now(UTC).isoformat(), **self._wanted}, indent=2) + "\n"],
            )

    def saved(self, phase: str = "") -> Path | None:
        """The newest whole save of a phase, whose saves lie in a folder of its name."""
        # the file that a save writes last
        whole = [path.parent for path in (self.checkpoints / phase).glob("checkpoint-*/trainer_state.json")]
        return max(whole, key=step_of, default=None)

    def keep(self, step: int) -> None:
        """Forgets what was told after a step, since it will be told again; -1 forgets all."""
        kept = [event for event in self.events() if event["step"] <= step]
        write_whole(self._folder / PROGRESS_FILE, [json.dumps(event) + "\n" for event in kept])

    @property
    def finished(self) -> TuneEvent | None:
        """The last event of a tuning that came to its end."""
        events = self.events()
        return events[-1] if events and events[-1]["event"] == "finished" else None

    def events(self) -> list[TuneEvent]:
        """What was told so far."""
        return read_progress(self._folder)

    def add(self, event: TuneEvent) -> None:
        """Writes an event down."""
        with (self._folder / PROGRESS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


class TuneProgress(TrainerCallback):  # type: ignore[misc]
    """Tells what happens, and stops the trainer."""

    def __init__(
        self, work: TuneFolder, tell: Callable[[TuneEvent], None], cancelled: Callable[[], bool]
    ) -> None:
        self._work, self._tell, self._cancelled = work, tell, cancelled
        earlier = [event["seconds"] for event in work.events() if event["event"] == "step"]
        self._before, self._began = earlier[-1] if earlier else 0.0, time.perf_counter()
        self.stopped = False

    def say(self, event: str, step: int, **values: Any) -> TuneEvent:
        """One event."""
        told: TuneEvent = {"event": event, "step": step, **values}
        self._work.add(told)
        self._tell(told)
        return told

    def may_stop(self, _state: Any) -> bool:
        """Whether what was reached can be gone on from."""
        return True

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        """Looks whether the caller still wants it."""
        if self.may_stop(state) and self._cancelled():
            self.stopped = control.should_save = control.should_training_stop = True

    def on_epoch_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        """A stop in the middle is no end of an epoch."""
        control.should_evaluate = control.should_evaluate and not self.stopped

    def time(self, step: int, steps: int) -> dict[str, Any]:
        """What a step's event tells of the time."""
        seconds = self._before + time.perf_counter() - self._began
        left = seconds / step * (steps - step)
        return {"steps": steps, "seconds": round(seconds, 1), "seconds_left": round(left, 1)}


def one_device(device: str | None) -> torch.device:
    """Where to tune. Raises BadRequest where there are several GPUs."""
    place = find_device(device)
    if place.type == "cuda" and torch.cuda.device_count() > 1:
        raise BadRequest(
            f"{torch.cuda.device_count()} GPUs are visible and tuning uses one; set CUDA_VISIBLE_DEVICES to"
            " one of them"
        )
    return place


def model_folder(model: str) -> Path:
    """Where the model of a folder or hub id lies. Raises BadCheckpoint."""
    if Path(model).is_dir():
        return Path(model).absolute()
    return fetch(model, MODEL_FILES, "pass a folder with the model")


def open_causal(folder: Path, dtype: torch.dtype | str) -> tuple[Any, Any]:
    """Tokenizer, with a template and a padding token, and model. Raises BadCheckpoint."""
    if (folder / "adapter_config.json").exists():
        raise BadCheckpoint(f"{folder.name} holds adapters; name the model that they belong to")
    tokenizer, network = load_causal(folder, dtype)
    if tokenizer.chat_template is None:
        tokenizer.chat_template = PLAIN_TEMPLATE
    if tokenizer.pad_token is None:  # as trl does
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token is None:
        raise BadCheckpoint(
            f"the tokenizer of {folder.name} has no token that ends a text; choose another model"
        )
    return tokenizer, network


def new_adapters(network: Any, rank: int, alpha: float) -> LoraConfig:
    """What is trained. The papers' dropout is left out: policy and reference are to differ by the changes
    alone.
    """
    names = {name.rpartition(".")[2] for name, _ in network.named_modules()}
    targets = list(ATTENTION) if names.issuperset(ATTENTION) else "all-linear"
    return LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM")


def save_adapters(network: Any, model: str, out: Path) -> None:
    """Writes what was trained of `model`, a folder or a hub id."""
    network.peft_config["default"].base_model_name_or_path = (
        str(model_folder(model)) if Path(model).is_dir() else model
    )
    network.save_pretrained(out, safe_serialization=True, selected_adapters=["default"])


def step_of(save: Path) -> int:
    """The step after which a save was made."""
    return int(save.name.rpartition("-")[2])


def _json_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadRequest(
            f"{path} can't be read, so it is not known what was tuned there; name a new folder"
        ) from error
    return value if isinstance(value, dict) else {}
