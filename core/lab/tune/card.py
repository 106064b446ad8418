"""The card of a tuned model, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.lab.tune.config import TuneConfig

_KINDS = {
    "rewrite": "rewrites",
    "continue_over_stop": "going on before stopping",
    "stop_over_continue": "stopping before going on",
}


def card(model: str, config: TuneConfig, started: dict[str, Any], outcome: dict[str, Any]) -> str:
    """README.md of a tuning, from its first event and its outcome (see `tuner.summary`)."""
    kinds = ", ".join(f"{count:,} {_KINDS[kind]}" for kind, count in started["kinds"].items())
    left_out = ""
    if started["n_too_long"]:
        left_out = f" {started['n_too_long']:,} more than {config.max_tokens:,} tokens long were left out."
    return f"""# {_plain(model)}, tuned for SPARC-RAG

LoRA adapters (rank {config.rank}) from weighted DPO on the preferences of logged runs, as in section 3.4 of the paper.

- Trained on {started["n_pairs"]:,} pairs: {kinds}.{left_out}
- Loss: beta {config.beta:g}, lambda {config.weight_lambda:g}, {"relative to the untuned model" if config.reference else "without a reference model"}; \
{config.epochs} epochs in steps of {config.accumulate} pairs, learning rate {config.learning_rate:g}, seed {config.seed}.
- {_held_out(outcome)}
- {outcome["seconds"]:.0f} s on {started["device"]}; {started["n_parameters"]:,} parameters trained.

The folder is read as a local model; the model it was tuned from must be where it was.
"""


def _held_out(outcome: dict[str, Any]) -> str:
    ends = outcome["held_out"]
    if ends is None:
        return "Nothing was held out: too few questions."
    before, after = ends["before"], ends["after"]
    return (
        f"On {outcome['n_held_out']:,} pairs of questions held out: log-probability of the preferred reply"
        f" less that of the other, mean, {before['margin']:.3f} before and {after['margin']:.3f} after."
    )


def _plain(text: str) -> str:
    """One line without markup."""
    return "".join(character if character.isalnum() or character in " ./-_" else " " for character in text)[
        :200
    ]


def set_card(
    model: str, config: dict[str, Any], started: dict[str, Any], held_out: Sequence[dict[str, Any]]
) -> str:
    """README.md of a tuning on evidence sets, from its settings and its events."""
    rows = "\n".join(
        f"| {event['step']} | {event['valid']:.2f} | {event['reward']:.3f} | {event['answer_f1']:.3f} |"
        f" {event['support_f1']:.3f} |"
        for event in held_out
    )
    return f"""# {_plain(model)}, tuned to write evidence sets

LoRA adapters (rank {config["rank"]}) for RES-RAG: supervised on labelled actions, then GRPO on the joint reward.

- {started["n_questions"]:,} questions, of at most {config["context_tokens"]:,} tokens; labels are the {config["labels"]}.
- {config["warmup_updates"]} updates of warm-up, {config["updates"] - config["warmup_updates"]} of GRPO in groups of \
{config["group"]}, beta {config["beta"]:g}, seed {config["seed"]}.
- {started["n_parameters"]:,} parameters trained on {started["device"]}.

On {started["n_held_out"]:,} questions held out, at temperature 0 and without a second try:

| after updates | valid actions | reward | answer F1 | support F1 |
|---|---|---|---|---|
{rows}

The folder is read as a local model; the model it was tuned from must be where it was.
"""
