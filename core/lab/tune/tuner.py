"""Tuning on preference pairs: pairs in, LoRA adapters out.

trl's DPO trainer with a weight for each pair; it can do without a reference model (SPARC-RAG section 3.4). It
departs from trl in two places. The loss of a pair is multiplied by its weight; a batch is one pair, as in
the paper, so this is exact, and steps are made of several batches. Without a reference, its log-probabilities
are zeros that trl takes for computed in advance. A tenth of the questions is held out, whole. Loading this
module takes seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from trl import DPOConfig, DPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference

from core.base.errors import BadRequest
from core.lab.train.config import check_rank
from core.lab.train.sitting import TrainEvent
from core.lab.tune.folder import (
    TuneFolder,
    digest,
    has_bfloat16,
    n_tokens,
    new_adapters,
    one_device,
    open_causal,
    served_prompt,
    trainer_settings,
    without_noise,
)
from core.lab.tune.pairs import Preference, TuneConfig, pair_lines

WEIGHT, REFERENCE = "weight", ("ref_chosen_logps", "ref_rejected_logps")
"""Columns beside the messages; the latter by trl's names."""


def preference_rows(pairs: Sequence[Preference], *, reference: bool) -> Dataset:
    """What the trainer reads, a row a pair."""
    rows = [pair.to_json() for pair in pairs]
    names = ("prompt", "chosen", "rejected", WEIGHT)
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in names}
    if not reference:
        columns |= {name: [0.0] * len(pairs) for name in REFERENCE}
    return Dataset.from_dict(columns)


class PairCollator(DataCollatorForPreference):  # type: ignore[misc]
    """trl's collator, and the weight."""

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch of one pair."""
        weights = torch.tensor([example[WEIGHT] for example in examples])
        return {**super().torch_call(examples), WEIGHT: weights}


class WeightedDpoTrainer(DPOTrainer):  # type: ignore[misc]
    """DPO with loss w * -log sigmoid(beta * margin) against the untuned model, or not without `reference`."""

    def __init__(self, *, reference: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.precompute_ref_logps = not reference

    def _compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool) -> torch.Tensor:
        weight = inputs.pop(WEIGHT).item()  # one pair: raises for more
        loss: torch.Tensor = super()._compute_loss(model, inputs, return_outputs) * weight
        return loss

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        columns: list[str] = self._signature_columns
        if WEIGHT not in columns:
            columns.append(WEIGHT)


HELD_OUT = 10
"""One question in so many is held out."""


def tune(
    pairs: Sequence[Preference],
    model: str,
    out: Path,
    config: TuneConfig,
    *,
    device: str | None = None,
    tell: Callable[[TrainEvent], None] = lambda _: None,
) -> TrainEvent:
    """Tunes `model`, a folder or a hub id, on the pairs into the folder `out`; returns the last event, which
    holds what came of it.

    `tell` gets each event after it was written. Raises BadRequest, also when `out` holds another tuning, and
    BadCheckpoint.
    """
    place = one_device(device)
    pairs = [
        replace(pair, weight=config.weight_lambda) if pair.kind == "continue_over_stop" else pair
        for pair in pairs
    ]
    plan = {"config": asdict(config), "model": model, "pairs": digest(pair_lines(pairs))}
    work = _PairTuning(out, plan, tell)
    if work.finished is not None:
        return work.finished
    tokenizer, network = open_causal(model, torch.bfloat16 if has_bfloat16(place) else torch.float32)
    check_rank(config.rank, network.config.get_text_config().hidden_size)
    fitting = _fitting(pairs, tokenizer, config.max_tokens)
    training, held_out = split_by_question(fitting)
    work.claim()
    arguments = DPOConfig(
        beta=config.beta,
        num_train_epochs=config.epochs,
        learning_rate=config.learning_rate,
        per_device_eval_batch_size=1,
        max_length=None,  # what was too long was left out, so nothing is cut
        activation_checkpointing=place.type == "cuda",
        eval_strategy="epoch" if held_out else "no",
        eval_on_start=bool(held_out) and "held_out" not in [event["event"] for event in work.events()],
        **trainer_settings(place, work.saves(), config.seed, config.accumulate),
    )
    with without_noise():
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
        counts = {"n_pairs": len(training), "n_held_out": len(held_out)}
        work.begin(trainer.model, **counts, n_too_long=len(pairs) - len(fitting))
        work.train(trainer)
    work.end(trainer.model, tokenizer, model)
    measured = [
        {name: event[name] for name in ("margin", "loss")}
        for event in work.events()
        if event["event"] == "held_out"
    ]
    gained = {"before": measured[0], "after": measured[-1]} if measured else None
    steps, seconds = trainer.state.global_step, work.seconds
    return work.say("finished", steps, **counts, held_out=gained, seconds=seconds)


def split_by_question(pairs: Sequence[Preference]) -> tuple[list[Preference], list[Preference]]:
    """(pairs to train on, held out), a question's on one side; none held out if nothing would be left."""

    def is_held(pair: Preference) -> bool:
        number = hashlib.sha256(pair.question.encode("utf-8", "replace")).digest()
        return int.from_bytes(number) % HELD_OUT == 0

    held_out = [pair for pair in pairs if is_held(pair)]
    if len(held_out) == len(pairs):
        return held_out, []
    return [pair for pair in pairs if not is_held(pair)], held_out


class _PairTuning(TuneFolder):
    """Also tells what the trainer logs."""

    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, float], **_: Any) -> None:
        """Figures of a step, or of the pairs held out."""
        for event, prefix in (("step", ""), ("held_out", "eval_")):
            if f"{prefix}loss" in logs:
                margin = logs[f"{prefix}logps/chosen"] - logs[f"{prefix}logps/rejected"]
                figures = {"loss": round(logs[f"{prefix}loss"], 5), "margin": round(margin, 5)}
                seconds = self.time(state) if event == "step" else {}
                self.say(event, state.global_step, **figures, **seconds)


def _fitting(pairs: Sequence[Preference], tokenizer: Any, most: int) -> list[Preference]:
    """The pairs, as they are served, whose prompt and replies are short enough. Raises BadRequest
    where none is, or where the chat template does not take them.
    """
    pairs = [replace(pair, prompt=served_prompt(pair.prompt, tokenizer)) for pair in pairs]
    rows = [pair.to_json() for pair in pairs]
    lengths = [
        n_tokens([row["prompt"] + row[reply] for row in rows], tokenizer, "pairs")
        for reply in ("chosen", "rejected")
    ]
    fitting = [pair for pair, *of in zip(pairs, *lengths, strict=True) if max(of) <= most]
    if not fitting:
        raise BadRequest(f"none of the {len(pairs):,} pairs is within {most:,} tokens; raise --max-tokens")
    return fitting
