"""What all tunings of language models share.

The folder holds `tune.json`, what was asked for; `progress.jsonl`, an event a line; `checkpoints/` while it
is at work; and at the end adapters (safetensors only) and the tokenizer with the chat template it was tuned
with. A tuning that was cut off goes on from its last save. Loading this module takes seconds.
"""

from __future__ import annotations

import hashlib
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datasets
import torch
from huggingface_hub import constants
from peft import LoraConfig
from transformers import PrinterCallback, TrainerCallback

from core.base.config import SEEDS_OF_MODELS
from core.base.errors import BadCheckpoint, BadRequest, quoted
from core.encode.encoder import find_device
from core.encode.hub import fetch
from core.lab.train.sitting import TrainEvent, TrainingFolder
from core.llm.client import without_system
from core.llm.local import MODEL_FILES, load_causal
from core.llm.protocol import Message

ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
"""What the papers' adapters change; a model without layers of these names has all its linear layers changed.
"""
PLAIN_TEMPLATE = (
    "{% for message in messages %}{% if not loop.first %}{{ '\n\n' }}{% endif %}{{ message['role'] }}: {{"
    " message['content'] }}{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}{% if"
    " add_generation_prompt %}{{ '\n\n' }}assistant:{% endif %}"
)
"""For a tokenizer without a chat template."""
SAVE_EVERY = 10
"""Steps, or updates, between saves."""


class TuneFolder(TrainingFolder, TrainerCallback):  # type: ignore[misc]
    """The files of one tuning, which tells what happens; times are of this sitting. Its events have "step" in
    place of "update", and "held_out" in place of "validated".
    """

    noun, config_file = "tuning", "tune.json"
    differing = "of another model, on other data or with other settings"

    def __init__(self, folder: Path, wanted: dict[str, Any], watch: Callable[[TrainEvent], None]) -> None:
        """`watch` gets each event after it was written."""
        super().__init__(folder, wanted)
        self._watch, self._first = watch, 0

    def claim(self) -> None:
        """Also begins to count the time."""
        super().claim()
        self.keep(self.events())
        self._began = time.perf_counter()

    @property
    def finished(self) -> TrainEvent | None:
        """The last event of a tuning that came to its end."""
        events = self.events()
        return events[-1] if events and events[-1]["event"] == "finished" else None

    def begin(self, network: Any, **counts: Any) -> None:
        """The first event, unless the tuning goes on."""
        if not self.events():
            n_trained = sum(each.numel() for each in network.parameters() if each.requires_grad)
            self.say("started", 0, **counts, n_parameters=n_trained)

    def train(self, trainer: Any, phase: str = "") -> None:
        """Goes on from the newest whole save of a phase, where there is one."""
        # the file that a save writes last
        whole = [path.parent for path in self.saves(phase).glob("checkpoint-*/trainer_state.json")]
        newest = max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
        trainer.remove_callback(PrinterCallback)  # stdout carries results only
        trainer.add_callback(self)
        trainer.train(resume_from_checkpoint=None if newest is None else str(newest))

    def saves(self, phase: str = "") -> Path:
        """Where the saves of a phase lie."""
        return self.folder / "checkpoints" / phase

    def end(self, network: Any, tokenizer: Any, model: str) -> None:
        """Leaves what was learned from `model`, and forgets the saves."""
        save_adapters(network, tokenizer, model, self.folder)
        shutil.rmtree(self.saves(), ignore_errors=True)

    def say(self, event: str, step: int, **values: Any) -> TrainEvent:
        """One event."""
        line = self.tell(event, step=step, **values)
        self._watch(line)
        return line

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        """Steps before this one took another sitting's time."""
        self._first = state.global_step

    @property
    def seconds(self) -> float:
        """Since this sitting began."""
        return round(time.perf_counter() - self._began, 1)

    def time(self, state: Any) -> dict[str, Any]:
        """What a step's event tells of the time."""
        n_left = state.max_steps - state.global_step
        left = self.seconds / max(1, state.global_step - self._first) * n_left
        return {"seconds": self.seconds, "seconds_left": round(left, 1)}


def one_device(device: str | None) -> torch.device:
    """Where to tune. Raises BadRequest where there are several GPUs."""
    place = find_device(device)
    if place.type == "cuda" and torch.cuda.device_count() > 1:
        raise BadRequest(
            f"{torch.cuda.device_count()} GPUs are visible and tuning uses one; set CUDA_VISIBLE_DEVICES to"
            " one of them"
        )
    return place


def open_causal(model: str, dtype: torch.dtype | str) -> tuple[Any, Any]:
    """Tokenizer, with a template and a padding token, and network of a folder or hub id. Raises
    BadCheckpoint.
    """
    folder = Path(model).absolute()
    if not folder.is_dir():
        folder = fetch(model, MODEL_FILES, "pass a folder with the model")
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
    """What is trained. Without the papers' dropout: policy and reference differ by the changes alone."""
    names = {name.rpartition(".")[2] for name, _ in network.named_modules()}
    targets = list(ATTENTION) if names.issuperset(ATTENTION) else "all-linear"
    return LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM")


def save_adapters(network: Any, tokenizer: Any, model: str, out: Path) -> None:
    """Writes what was trained of `model`, a folder or a hub id, with its tokenizer."""
    base = str(Path(model).absolute()) if Path(model).is_dir() else model
    network.peft_config["default"].base_model_name_or_path = base
    network.save_pretrained(out, safe_serialization=True, selected_adapters=["default"])
    (out / "README.md").unlink(missing_ok=True)  # the adapter library's empty template
    tokenizer.save_pretrained(out)


@contextmanager
def without_noise() -> Iterator[None]:
    """Trainers warn nobody, draw no bars, and send nobody word of it."""
    constants.HF_HUB_DISABLE_TELEMETRY = True
    datasets.disable_progress_bars()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers to trl
        yield


def has_bfloat16(place: torch.device) -> bool:
    """Whether it is computed in bfloat16 there."""
    return place.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def trainer_settings(
    place: torch.device, out: Path, seed: int, n_together: int, passes: int = 1
) -> dict[str, Any]:
    """What every trainer is told: one sequence at a time, `n_together` a step, `passes` steps an update."""
    return {
        "logging_steps": passes,
        "save_steps": SAVE_EVERY * passes,
        "output_dir": str(out),
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": n_together,
        "save_total_limit": 1,
        "seed": seed % SEEDS_OF_MODELS,
        "use_cpu": place.type == "cpu",
        "bf16": has_bfloat16(place),
        "dataloader_pin_memory": place.type == "cuda",
        "disable_tqdm": True,
        "report_to": "none",
    }


def served_prompt(prompt: Sequence[Message], tokenizer: Any) -> tuple[Message, ...]:
    """The prompt as the chat template takes it: without a system role its words open the first turn."""
    try:
        tokenizer.apply_chat_template(turns(prompt), tokenize=False)
    except Exception:  # a template is a program, and may raise anything
        return tuple(without_system(prompt))
    return tuple(prompt)


def turns(messages: Iterable[Message]) -> list[dict[str, str]]:
    """Messages as templates and trainers read them."""
    return [{"role": message.role, "content": message.content} for message in messages]


def n_tokens(conversations: Iterable[Sequence[dict[str, str]]], tokenizer: Any, learned: str) -> list[int]:
    """Length of each conversation; one that ends with the user has the mark after which the model writes.
    learned: what they are, in the plural. Raises BadRequest where the chat template does not take one.
    """
    lengths = []
    try:
        for each in conversations:
            asks = each[-1]["role"] == "user"
            ids = tokenizer.apply_chat_template(each, add_generation_prompt=asks, return_dict=True)
            lengths.append(len(ids["input_ids"]))
    except Exception as error:  # a template is a program, and may raise anything
        raise BadRequest(
            f"the model's chat template does not take the {learned}{quoted(str(error))}; choose another model"
        ) from error
    return lengths


def digest(texts: Iterable[str]) -> str:
    """Names what was learned from."""
    return hashlib.sha256("".join(texts).encode("utf-8", "replace")).hexdigest()
