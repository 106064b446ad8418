"""`python -m core tune`: from preference pairs to a tuned language model.

The same command goes on from the last save of a tuning that was cut off.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from core.cli.flags import JSON_LINES, add_settings
from core.cli.training import add_tuning_flags, check_trl, run_tuning, settings_of
from core.lab.train.sitting import TrainEvent
from core.lab.tune.pairs import TuneConfig, read_pairs


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `tune`: every setting of `TuneConfig`, by its name."""
    add = parser.add_argument
    add("--pairs", **JSON_LINES, required=True, help="pairs that `preferences` wrote")
    add_tuning_flags(parser, "a causal language model")
    add_settings(parser, TuneConfig)
    said = "compare with the untuned model (default)"
    add("--reference", action=argparse.BooleanOptionalAction, default=True, help=said)
    parser.set_defaults(func=run_tune)


def run_tune(args: argparse.Namespace) -> int:
    """Prints what came of it."""
    check_trl()
    config, pairs = TuneConfig(**settings_of(args, TuneConfig)), read_pairs(args.pairs)
    from core.lab.tune.tuner import tune  # takes seconds: what can't be used is refused before

    def outcome(last: dict[str, TrainEvent]) -> dict[str, Any]:
        result = last["finished"]
        figures = ("n_pairs", "n_held_out", "held_out", "seconds")
        return {"steps": result["step"], **{name: result[name] for name in figures}}

    run = partial(tune, pairs, args.model, args.out, config, device=args.device)
    return run_tuning(args, run, ("loss", "margin"), outcome)
