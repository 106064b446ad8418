"""Tuning on preferences in a folder.

Pairs in, LoRA adapters out, going on after a kill or a cancel where it was last saved; see `TuneFolder`. A
tenth of the questions is held out, whole: the margin on their pairs is what the card tells.
"""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import torch
from transformers import PrinterCallback
from trl import DPOConfig

from core.errors import BadRequest, Cancelled, quoted
from core.llm.local import without_system
from core.llm.protocol import never
from core.log.atomic import write_whole
from core.train.sitting import SAVE_EVERY
from core.tune.card import card
from core.tune.config import TuneConfig
from core.tune.dpo import PairCollator, WeightedDpoTrainer, preference_rows
from core.tune.folder import (
    TuneEvent,
    TuneFolder,
    TuneProgress,
    model_folder,
    new_adapters,
    one_device,
    open_causal,
    save_adapters,
    step_of,
)
from core.tune.pairs import Preference, pair_lines

HELD_OUT = 10
"""One question in so many is held out."""


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
    place = one_device(device)
    pairs = [
        replace(pair, weight=config.weight_lambda) if pair.kind == "continue_over_stop" else pair
        for pair in pairs
    ]
    work = TuneFolder(out, {"config": config.to_json(), "model": model, "pairs": _digest(pairs)}, "pairs")
    if work.finished is not None:
        return work.finished
    half = place.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    tokenizer, network = open_causal(model_folder(model), torch.bfloat16 if half else torch.float32)
    fitting = _fitting(_as_served(pairs, tokenizer), tokenizer, config.max_tokens)
    training, held_out = split_by_question(fitting)
    work.begin()
    saved = work.saved()
    work.keep(-1 if saved is None else step_of(saved))
    progress = _PairProgress(work, tell, cancelled)
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
    save_adapters(trainer.model, model, out)
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


class _PairProgress(TuneProgress):
    """Also tells what the trainer logs."""

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
                    **(self.time(state.global_step, state.max_steps) if event == "step" else {}),
                )


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
        peft_config=new_adapters(network, config.rank, config.lora_alpha),
    )
    trainer.remove_callback(PrinterCallback)  # stdout carries results only
    return trainer


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


def _digest(pairs: Sequence[Preference]) -> str:
    return hashlib.sha256("".join(pair_lines(pairs)).encode("utf-8", "replace")).hexdigest()
