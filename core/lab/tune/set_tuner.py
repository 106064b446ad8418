"""A language model learns to write evidence sets (RES-RAG section 3.4).

trl's trainers with LoRA: supervised on labelled actions, then GRPO on the joint reward, held near the model
after the warm-up. Questions in, adapters out, which `resrag-llm` reads as a local model; see `TuneFolder` for
the files, and `warm-up/` beside them for the adapters in between. Loading this module takes seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import datasets
import torch
from peft import PeftModel, get_peft_model
from transformers import set_seed
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from core.answer.protocol import Reader
from core.base.batches import batches
from core.base.config import SEEDS_OF_MODELS
from core.base.errors import BadRequest
from core.lab.train.config import check_rank
from core.lab.train.sitting import TrainEvent
from core.lab.tune.folder import (
    TuneFolder,
    digest,
    n_tokens,
    new_adapters,
    one_device,
    open_causal,
    save_adapters,
    served_prompt,
    trainer_settings,
    turns,
    without_noise,
)
from core.lab.tune.set_tasks import SetJudge, SetTask, SetTuneConfig

WARM_UP, GRPO = "warm-up", "grpo"
"""Phases, and where their saves lie."""
_AT_ONCE = 8
"""Replies to questions held out that are written together."""


def tune_sets(
    tasks: Sequence[SetTask],
    held_out: Sequence[SetTask],
    reader: Reader,
    model: str,
    out: Path,
    config: SetTuneConfig,
    *,
    device: str | None = None,
    tell: Callable[[TrainEvent], None] = lambda _: None,
) -> TrainEvent:
    """Tunes `model`, a folder or a hub id, into the folder `out`; returns the last event. A step of the
    events is an update; `held_out` is told before, after the warm-up and at the end.

    See `core.lab.tune.tuner.tune` for `tell` and what is raised.
    """
    place = one_device(device)
    learned = digest(f"{task.prompt}{task.target}{task.question.answers}" for task in (*tasks, *held_out))
    plan = {"config": asdict(config), "model": model, "reader": reader.name, "questions": learned}
    work = _SetTuning(out, plan, tell)
    if work.finished is not None:
        return work.finished
    tokenizer, network = open_causal(model, "auto")
    check_rank(config.rank, network.config.get_text_config().hidden_size)
    network.to(place)
    tasks, n_given = _fitting(tasks, tokenizer, network), len(tasks) + len(held_out)
    held_out = _fitting(held_out, tokenizer, network)
    if not tasks or not held_out:
        raise BadRequest(
            f"{len(tasks)} questions to train on and {len(held_out)} to validate with fit the model; give"
            " more of them, or a smaller --context-tokens"
        )
    work.claim()
    warm, judge = out / WARM_UP, SetJudge(reader, config)

    def measure(step: int) -> None:
        if step not in [event["step"] for event in work.events() if event["event"] == "held_out"]:
            replies = _replies(network, tokenizer, held_out)
            work.say("held_out", step, **judge.measured(held_out, replies))

    def settings(phase: str, passes: int = 1) -> dict[str, Any]:
        work.phase, together = phase, config.questions * config.group
        shared = trainer_settings(place, work.saves(phase), config.seed, together, passes)
        return shared | {"num_train_epochs": 1, "gradient_checkpointing": place.type == "cuda"}

    with without_noise():
        if not warm.is_dir():
            set_seed(config.seed % SEEDS_OF_MODELS)
            network = get_peft_model(network, new_adapters(network, config.rank, config.lora_alpha))
            counts = {"n_questions": len(tasks), "n_held_out": len(held_out)}
            work.begin(network, **counts, n_too_long=n_given - sum(counts.values()))
            measure(0)
            if config.warmup_updates:
                trainer = _warm_up(network, tokenizer, tasks, config, settings(WARM_UP))
                work.train(trainer, WARM_UP)
            partial = out / f"{WARM_UP}.part"
            save_adapters(network, tokenizer, model, partial)
            os.replace(partial, warm)
            _, network = open_causal(model, "auto")
            network.to(place)
        network = PeftModel.from_pretrained(network, warm, is_trainable=True)
        measure(config.warmup_updates)
        if config.updates > config.warmup_updates:
            trainer = _grpo(network, tokenizer, tasks, judge, config, settings(GRPO, config.passes))
            work.train(trainer, GRPO)
            measure(config.updates)
    work.end(network, tokenizer, model)
    return work.say("finished", config.updates, seconds=work.seconds)


class _SetTuning(TuneFolder):
    """Also tells what the trainers log, by their names, an update a line."""

    phase = WARM_UP

    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, float], **_: Any) -> None:
        """Figures of an update."""
        if "loss" not in logs:
            return
        config, step = self.wanted["config"], state.global_step
        if self.phase != WARM_UP:
            step = config["warmup_updates"] + step // config["passes"]
        figures = {name: round(value, 5) for name, value in logs.items()}
        self.say("step", step, phase=self.phase, **figures, **self.time(state))


def _warm_up(
    network: Any, tokenizer: Any, tasks: Sequence[SetTask], config: SetTuneConfig, settings: dict[str, Any]
) -> SFTTrainer:
    drawn = _drawn(len(tasks), config.warmup_updates * config.questions * config.group, config.seed)
    prompts = [turns(tasks[row].prompt) for row in drawn]
    replies = [[{"role": "assistant", "content": tasks[row].target}] for row in drawn]
    rows = datasets.Dataset.from_dict({"prompt": prompts, "completion": replies})
    arguments = SFTConfig(learning_rate=config.warmup_learning_rate, max_length=None, **settings)
    return SFTTrainer(model=network, args=arguments, train_dataset=rows, processing_class=tokenizer)


def _grpo(
    network: Any,
    tokenizer: Any,
    tasks: Sequence[SetTask],
    judge: SetJudge,
    config: SetTuneConfig,
    settings: dict[str, Any],
) -> GRPOTrainer:
    """The reference is trl's copy of the adapters as they are now."""
    drawn = _drawn(len(tasks), (config.updates - config.warmup_updates) * config.questions, config.seed)
    rows = datasets.Dataset.from_dict({"prompt": [turns(tasks[row].prompt) for row in drawn], "task": drawn})

    def joint(
        completions: list[Any], task: list[int], log_metric: Callable[[str, float], None], **_: Any
    ) -> list[float]:
        replies = [turns[0]["content"] for turns in completions]
        rewards = judge.rewards([tasks[row] for row in task], replies)
        for reward in rewards:
            log_metric("valid", float(reward is not None))
            for term in ("answer", "consistency", "penalty") * (reward is not None):
                log_metric(term, getattr(reward, term))
        return [judge.total(reward) for reward in rewards]

    arguments = GRPOConfig(
        learning_rate=config.learning_rate,
        num_generations=config.group,
        num_iterations=config.passes,
        max_completion_length=max(task.room for task in tasks),
        temperature=config.temperature,
        top_p=config.nucleus,
        beta=config.beta,
        epsilon=config.clip_range,
        loss_type="grpo",
        shuffle_dataset=False,
        **settings,
    )
    return GRPOTrainer(
        model=network, reward_funcs=joint, args=arguments, train_dataset=rows, processing_class=tokenizer
    )


def _replies(network: Any, tokenizer: Any, tasks: Sequence[SetTask]) -> list[str]:
    """What the model writes at temperature 0."""
    network.eval()
    replies: list[str] = []
    for some in batches(tasks, _AT_ONCE):
        prompts = [turns(task.prompt) for task in some]
        texts = tokenizer.apply_chat_template(prompts, tokenize=False, add_generation_prompt=True)
        padded = {"padding": True, "padding_side": "left", "return_tensors": "pt"}
        inputs = tokenizer(texts, add_special_tokens=False, **padded).to(network.device)
        with torch.no_grad():
            ids = network.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                do_sample=False,
                max_new_tokens=max(task.room for task in some),
                pad_token_id=tokenizer.pad_token_id,
            )
        replies += tokenizer.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return replies


def _fitting(tasks: Sequence[SetTask], tokenizer: Any, network: Any) -> list[SetTask]:
    """The tasks that the model's window holds with their reply. Raises BadRequest for its chat template."""
    config = network.config.get_text_config()
    window = int(getattr(config, "max_position_embeddings", tokenizer.model_max_length))
    tasks = [replace(task, prompt=served_prompt(task.prompt, tokenizer)) for task in tasks]
    lengths = n_tokens([turns(task.prompt) for task in tasks], tokenizer, "questions")
    return [task for task, length in zip(tasks, lengths, strict=True) if length + task.room <= window]


def _drawn(n_tasks: int, n: int, seed: int) -> list[int]:
    """Rows of n tasks: all, in random order, before any comes again."""
    rng, drawn = Random(seed), list[int]()
    while len(drawn) < n:
        drawn += rng.sample(range(n_tasks), n_tasks)
    return drawn[:n]
