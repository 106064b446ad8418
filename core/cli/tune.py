"""`python -m core tune`: from preference pairs to a tuned language model.

Progress goes to stderr. Ctrl-C ends a tuning after the step under way; the same command goes on from there.
"""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Event
from typing import Any

from core.base.errors import BadRequest, Cancelled
from core.cli.common import say
from core.cli.flags import DEVICE, FOLDER, JSON_LINES, RESULT_AS_JSON, add_settings
from core.cli.training import settings_of
from core.lab.tune.pairs import TuneConfig, read_pairs


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
    add("--json", **RESULT_AS_JSON)
    parser.set_defaults(func=run_tune)


def run_tune(args: argparse.Namespace) -> int:
    """Prints what came of it. Exit status 130 where Ctrl-C ended it before its end."""
    check_trl()
    config = TuneConfig(**settings_of(args, TuneConfig))
    pairs = read_pairs(args.pairs)
    from core.lab.tune.tuner import tune  # takes seconds: what can't be used is refused before

    with interruption() as interrupted:
        try:
            result = tune(
                pairs,
                args.model,
                args.out,
                config,
                device=args.device,
                tell=lambda event: say(_line(event)),
                cancelled=interrupted.is_set,
            )
        except Cancelled as stop:
            say(str(stop))
            return 130
    figures = {name: result[name] for name in ("n_pairs", "n_held_out", "held_out", "seconds")}
    print(
        json.dumps({"out": str(args.out), "steps": result["step"], **figures})
        if args.json
        else f"{args.out}: {_outcome(result)}"
    )
    return 0


def add_tuning_flags(parser: argparse.ArgumentParser, model: str) -> None:
    """What every tuning is told. `model`: what kind of one is tuned."""
    add = parser.add_argument
    add("--model", required=True, metavar="DIR_OR_ID", help=f"{model}: a folder, or an id of the hub")
    add("--out", **FOLDER, required=True, help="folder for the adapters; an unfinished tuning there goes on")
    add("--device", **DEVICE)


def check_trl() -> None:
    """Raises BadRequest where the library that tunes is missing."""
    if find_spec("trl") is None:
        raise BadRequest("tuning needs the library trl, which is not installed; run pip install -e '.[tune]'")


@contextmanager
def interruption() -> Iterator[Event]:
    """Set by the first Ctrl-C; the second ends the process as usual."""
    interrupted = Event()

    def interrupt(*_: Any) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _line(event: dict[str, Any]) -> str:
    """One event for a person."""
    match event["event"]:
        case "started":
            return (
                f"tuning {event['n_parameters']:,} parameters on {event['n_pairs']:,} pairs,"
                f" {event['device']}; {event['n_held_out']:,} pairs held out"
            )
        case "step":
            return (
                f"step {event['step']} of {event['steps']}: loss {event['loss']:.4f}, margin"
                f" {event['margin']:.3f}, {event['seconds_left']:.0f} s left"
            )
        case "held_out":
            return (
                f"pairs held out, after {event['step']} steps: loss {event['loss']:.4f}, margin"
                f" {event['margin']:.3f}"
            )
        case _:
            return f"finished after {event['seconds']:.0f} s"


def _outcome(result: dict[str, Any]) -> str:
    ends = result["held_out"]
    if ends is None:
        return f"tuned on {result['n_pairs']:,} pairs in {result['seconds']:.0f} s"
    return (
        f"margin on pairs held out {ends['before']['margin']:.3f} before, {ends['after']['margin']:.3f} after"
        f" {result['seconds']:.0f} s"
    )
