"""A tuning in a folder.

Pairs in, LoRA adapters out, going on after a kill or a cancel where it was last saved. The folder holds
`tune.json`, what was asked for; `progress.jsonl`, an event a line, which a watcher may read while it grows;
`checkpoints/` while it is at work; and at the end adapters (safetensors only), the tokenizer with the chat
template it was tuned with, and `README.md`, a card. A tenth of the questions is held out, whole: the margin
on their pairs is what the card tells.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import datasets
import torch
from peft import LoraConfig
from transformers import PrinterCallback, TrainerCallback
from trl import DPOConfig

from core.encode.encoder import find_device
from core.encode.hub import fetch
from core.errors import BadCheckpoint, BadRequest, Cancelled, quoted
from core.llm.local import MODEL_FILES, load_causal, without_system
from core.llm.protocol import never
from core.log.atomic import write_whole
from core.train.sitting import PROGRESS_FILE, SAVE_EVERY, TrainEvent, read_progress
from core.tune.card import card
from core.tune.config import TuneConfig
from core.tune.dpo import PairCollator, WeightedDpoTrainer, preference_rows
from core.tune.pairs import Preference, pair_lines

HELD_OUT = 10
"""One question in so many is held out."""
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
"""What the paper changes; a model without layers of these names has all its linear layers changed."""
PLAIN_TEMPLATE = (
    "{% for message in messages %}{% if not loop.first %}{{ '\n\n' }}{% endif %}{{ message['role'] }}: {{"
    " message['content'] }}{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}{% if"
    " add_generation_prompt %}{{ '\n\n' }}assistant:{% endif %}"
)
"""For a tokenizer without a chat template."""
CONFIG_FILE, CHECKPOINTS = "tune.json", "checkpoints"

TuneEvent = TrainEvent
"""One line of `progress.jsonl`: `{"event": "started" | "step" | "held_out" | "finished", "step": N, ...}`."""


def tune(
    pairs: Sequence[Preference],
    model: str,
    out: Path,
    config: TuneConfig,
    *,
    device: str | None = None,
    tell: Callable[[TuneEvent], None] = lambda _: None,
    cancelled: Callable[[], bool] = never,
) -> TuneEvent:
    """Tunes `model`, a folder or a hub id, on the pairs into the folder `out`; returns the last event, which
    holds what came of it.

    `tell` gets each event after it was written; `cancelled` is asked after every step, and what was reached
    is then kept for going on. Raises BadRequest, also when `out` holds another tuning, BadCheckpoint, and
    Cancelled.
    """
    place = find_device(device)
    if place.type == "cuda" and torch.cuda.device_count() > 1:
        raise BadRequest(
            f"{torch.cuda.device_count()} GPUs are visible and tuning uses one; set CUDA_VISIBLE_DEVICES to"
            " one of them"
        )
    pairs = [
        replace(pair, weight=config.weight_lambda) if pair.kind == "continue_over_stop" else pair
        for pair in pairs
    ]
    work = _Folder(out, {"config": config.to_json(), "model": model, "pairs": _digest(pairs)})
    if work.finished is not None:
        return work.finished
    local = Path(model).is_dir()
    folder = Path(model).absolute() if local else fetch(model, MODEL_FILES, "pass a folder with the model")
    half = place.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    tokenizer, network = _open(folder, torch.bfloat16 if half else torch.float32)
    fitting = _fitting(_as_served(pairs, tokenizer), tokenizer, config.max_tokens)
    training, held_out = split_by_question(fitting)
    saved = work.begin()
    progress = _Progress(work, tell, cancelled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers to trl
        trainer = _trainer(
            network,
            tokenizer,
            training,
            held_out,
            config,
            work.checkpoints,
            place.type,
            half=half,
            is_new=saved is None,
        )
        trainer.add_callback(progress)
        if saved is None:
            n_trained = sum(
                parameter.numel() for parameter in trainer.model.parameters() if parameter.requires_grad
            )
            counts = {
                "n_pairs": len(training),
                "n_held_out": len(held_out),
                "n_too_long": len(pairs) - len(fitting),
            }
            kinds = dict(sorted(Counter(pair.kind for pair in training).items()))
            progress.say("started", 0, **counts, kinds=kinds, n_parameters=n_trained, device=str(place))
        trainer.train(resume_from_checkpoint=None if saved is None else str(saved))
    if progress.stopped:
        raise Cancelled(
            f"the tuning in {out} was stopped after {trainer.state.global_step} steps; the same command goes"
            " on from there"
        )
    trainer.model.peft_config["default"].base_model_name_or_path = str(folder) if local else model
    trainer.model.save_pretrained(out, safe_serialization=True)
    tokenizer.save_pretrained(out)
    outcome = summary(work.events())
    write_whole(out / "README.md", [card(model, config, work.events()[0], outcome)])
    shutil.rmtree(work.checkpoints, ignore_errors=True)
    return progress.say("finished", trainer.state.global_step, **outcome)


def split_by_question(pairs: Sequence[Preference]) -> tuple[list[Preference], list[Preference]]:
    """(pairs to train on, pairs held out): all pairs of a question on one side. Nothing is held out where
    nothing would be left to train on.
    """
    held = [
        int(hashlib.sha256(pair.question.encode("utf-8", "replace")).hexdigest(), 16) % HELD_OUT == 0
        for pair in pairs
    ]
    if all(held):
        return list(pairs), []
    return [pair for pair, out in zip(pairs, held, strict=True) if not out], [
        pair for pair, out in zip(pairs, held, strict=True) if out
    ]


def summary(events: Sequence[TuneEvent]) -> dict[str, Any]:
    """What came of a tuning, from its events: pairs, seconds, and the pairs held out before and after; None
    where none were.
    """
    started, steps = events[0], [event for event in events if event["event"] == "step"]
    measured = [
        {name: event[name] for name in ("margin", "loss")} for event in events if event["event"] == "held_out"
    ]
    return {
        "n_pairs": started["n_pairs"],
        "n_held_out": started["n_held_out"],
        "held_out": {"before": measured[0], "after": measured[-1]} if measured else None,
        "seconds": steps[-1]["seconds"],
    }


class _Folder:
    """The files of one tuning."""

    def __init__(self, folder: Path, wanted: dict[str, Any]) -> None:
        """Raises BadRequest when the folder holds something else; writes nothing yet."""
        self._folder, self._wanted = folder, wanted
        self.checkpoints = folder / CHECKPOINTS
        config = folder / CONFIG_FILE
        if config.is_file():
            if not wanted.items() <= _json_object(config).items():
                raise BadRequest(
                    f"{folder} holds a tuning of another model, on other pairs or with other settings (see"
                    f" its {CONFIG_FILE}); name a new folder"
                )
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadRequest(f"{folder} is not empty and holds no tuning; name a new folder")

    def begin(self) -> Path | None:
        """Claims the folder; returns the save to go on from, with what was told after it forgotten, since it
        will be told again.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        if not (self._folder / CONFIG_FILE).exists():
            write_whole(
                self._folder / CONFIG_FILE,
                [json.dumps({"created_at": datetime.now(UTC).isoformat(), **self._wanted}, indent=2) + "\n"],
            )
        whole = [
            path.parent for path in self.checkpoints.glob("checkpoint-*/trainer_state.json")
        ]  # the file that a save writes last
        saved = max(whole, key=_step_of, default=None)
        kept = [] if saved is None else [event for event in self.events() if event["step"] <= _step_of(saved)]
        write_whole(self._folder / PROGRESS_FILE, [json.dumps(event) + "\n" for event in kept])
        return saved

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


class _Progress(TrainerCallback):  # type: ignore[misc]
    """Tells what the trainer logs, and stops it."""

    def __init__(
        self, work: _Folder, tell: Callable[[TuneEvent], None], cancelled: Callable[[], bool]
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

    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, float], **_: Any) -> None:
        """Figures of a step, or of the pairs held out."""
        for event, prefix in (("step", ""), ("held_out", "eval_")):
            if f"{prefix}loss" in logs:
                margin = logs[f"{prefix}logps/chosen"] - logs[f"{prefix}logps/rejected"]
                figures = {"loss": logs[f"{prefix}loss"], "margin": margin}
                self.say(
                    event,
                    state.global_step,
                    **{name: round(value, 5) for name, value in figures.items()},
                    **self._time(state, event),
                )

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        """Looks whether the caller still wants it."""
        if self._cancelled():
            self.stopped = control.should_save = control.should_training_stop = True

    def on_epoch_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        """A stop in the middle is no end of an epoch."""
        control.should_evaluate = control.should_evaluate and not self.stopped

    def _time(self, state: Any, event: str) -> dict[str, Any]:
        if event != "step":
            return {}
        seconds = self._before + time.perf_counter() - self._began
        left = seconds / state.global_step * (state.max_steps - state.global_step)
        return {"steps": state.max_steps, "seconds": round(seconds, 1), "seconds_left": round(left, 1)}


def _trainer(
    network: Any,
    tokenizer: Any,
    training: Sequence[Preference],
    held_out: Sequence[Preference],
    config: TuneConfig,
    checkpoints: Path,
    device: str,
    *,
    half: bool,
    is_new: bool,
) -> WeightedDpoTrainer:
    """`is_new`: the pairs held out are looked at before the first step, too. What was too long was left out,
    so nothing is cut.
    """
    datasets.disable_progress_bars()
    arguments = DPOConfig(
        output_dir=str(checkpoints),
        beta=config.beta,
        num_train_epochs=config.epochs,
        learning_rate=config.learning_rate,
        per_device_train_batch_size=1,
        per_device_eval_batch_size=1,
        gradient_accumulation_steps=config.accumulate,
        max_length=None,
        eval_strategy="epoch" if held_out else "no",
        eval_on_start=bool(held_out) and is_new,
        logging_steps=1,
        save_steps=SAVE_EVERY,
        save_total_limit=1,
        seed=config.seed,
        use_cpu=device == "cpu",
        bf16=half,
        activation_checkpointing=device == "cuda",
        dataloader_pin_memory=device == "cuda",
        disable_tqdm=True,
        report_to="none",
    )
    trainer = WeightedDpoTrainer(
        reference=config.reference,
        model=network,
        args=arguments,
        data_collator=PairCollator(pad_token_id=tokenizer.pad_token_id),
        train_dataset=preference_rows(training, reference=config.reference),
        eval_dataset=preference_rows(held_out, reference=config.reference) if held_out else None,
        processing_class=tokenizer,
        peft_config=_adapters(network, config),
    )
    trainer.remove_callback(PrinterCallback)  # stdout carries results only
    return trainer


def _open(folder: Path, dtype: torch.dtype) -> tuple[Any, Any]:
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


def _as_served(pairs: Sequence[Preference], tokenizer: Any) -> list[Preference]:
    """The pairs as the model's chat template takes them: where it knows no system, its words stand in the
    first turn, as when the model is asked.
    """
    try:
        _tokens(pairs[0], tokenizer)
        return list(pairs)
    except Exception:  # a template is a program, and may raise anything
        return [replace(pair, prompt=tuple(without_system(pair.prompt))) for pair in pairs]


def _fitting(pairs: Sequence[Preference], tokenizer: Any, most: int) -> list[Preference]:
    """The pairs whose prompt and replies are short enough. Raises BadRequest where none is, or where the chat
    template does not take them.
    """
    try:
        fitting = [pair for pair in pairs if max(len(ids) for ids in _tokens(pair, tokenizer)) <= most]
    except Exception as error:  # a template is a program, and may raise anything
        raise BadRequest(
            f"the model's chat template does not take the pairs{quoted(str(error))}; choose another model"
        ) from error
    if not fitting:
        raise BadRequest(f"none of the {len(pairs):,} pairs is within {most:,} tokens; raise --max-tokens")
    return fitting


def _tokens(pair: Preference, tokenizer: Any) -> list[list[int]]:
    row = pair.to_json()
    return [
        tokenizer.apply_chat_template(row["prompt"] + row[reply], tokenize=True, return_dict=True)[
            "input_ids"
        ]
        for reply in ("chosen", "rejected")
    ]


def _adapters(network: Any, config: TuneConfig) -> LoraConfig:
    """What is trained. The paper's dropout of 0.05 is left out: trl switches dropout off, so that policy and
    reference differ by the changes alone.
    """
    names = {name.rpartition(".")[2] for name, _ in network.named_modules()}
    targets = list(ATTENTION) if names.issuperset(ATTENTION) else "all-linear"
    return LoraConfig(
        r=config.rank, lora_alpha=config.lora_alpha, target_modules=targets, task_type="CAUSAL_LM"
    )


def _digest(pairs: Sequence[Preference]) -> str:
    return hashlib.sha256("".join(pair_lines(pairs)).encode("utf-8", "replace")).hexdigest()


def _step_of(save: Path) -> int:
    return int(save.name.rpartition("-")[2])


def _json_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadRequest(
            f"{path} can't be read, so it is not known what was tuned there; name a new folder"
        ) from error
    return value if isinstance(value, dict) else {}
