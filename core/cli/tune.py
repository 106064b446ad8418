"""`python -m core tune`: from preference pairs to a tuned language model.

Progress goes to stderr. The same command goes on from the last save of a tuning that was cut off.
"""

from __future__ import annotations

import argparse
import json
from functools import partial

from core.cli.flags import JSON_LINES, add_settings
from core.cli.training import add_tuning_flags, check_trl, line_of, run_tuning, settings_of
from core.lab.tune.pairs import TuneConfig, read_pairs

FIGURES = ("loss", "margin")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `tune`: every setting of `TuneConfig`, by its name."""
    add = parser.add_argument
    add("--pairs", **JSON_LINES, required=True, help="pairs that `preferences` wrote")
    add_tuning_flags(parser, "a causal language model")
    add_settings(parser, TuneConfig)
    add(
        "--reference",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="compare with the untuned model (default)",
    )
    parser.set_defaults(func=run_tune)


def run_tune(args: argparse.Namespace) -> int:
    """Prints what came of it."""
    check_trl()
    config, pairs = TuneConfig(**settings_of(args, TuneConfig)), read_pairs(args.pairs)
    from core.lab.tune.tuner import tune  # takes seconds: what can't be used is refused before

    last = run_tuning(partial(tune, pairs, args.model, args.out, config, device=args.device), FIGURES)
    result = last["finished"]
    figures = {name: result[name] for name in ("n_pairs", "n_held_out", "held_out", "seconds")}
    told = json.dumps({"out": str(args.out), "steps": result["step"], **figures})
    print(told if args.json else f"{args.out}: {line_of(last.get('held_out', result), FIGURES)}")
    return 0
