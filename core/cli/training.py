"""What the commands that train and tune share."""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib.util import find_spec
from typing import Any

from core.base.config import words
from core.base.errors import BadRequest
from core.cli.common import say
from core.cli.flags import DATA_FOLDER, DEVICE, FOLDER, RESULT_AS_JSON
from core.lab.train.sitting import Sitting, TrainEvent
from core.views.draw.words import duration


def add_training_flags(parser: argparse.ArgumentParser, noun: str, *, has_name: bool = True) -> None:
    """Where the training goes and what it reads. `noun`: what is trained."""
    add, going_on = parser.add_argument, "an unfinished training there goes on"
    add("--out", **FOLDER, required=True, help=f"folder for the {noun}; {going_on}")
    add("--data-folder", **DATA_FOLDER)
    if has_name:
        add("--name", help=f"of the {noun} (default: that of the folder)")
    add("--device", **DEVICE)
    add("--json", **RESULT_AS_JSON)


def add_tuning_flags(parser: argparse.ArgumentParser, model: str) -> None:
    """What every tuning is told. `model`: what kind of one is tuned."""
    add = parser.add_argument
    add("--model", required=True, metavar="DIR_OR_ID", help=f"{model}: a folder, or an id of the hub")
    add("--out", **FOLDER, required=True, help="folder for the adapters; an unfinished tuning there goes on")
    add("--device", **DEVICE)
    add("--json", **RESULT_AS_JSON)


def name_of(args: argparse.Namespace, noun: str) -> str:
    """What --name says, else the folder. Raises BadRequest."""
    name: str = args.name or args.out.resolve().name
    if not 1 <= len(name) <= 100:
        raise BadRequest(
            f"the {noun}'s name has {len(name)} characters, there must be between 1 and 100; name it with"
            " --name"
        )
    return name


def settings_of(args: argparse.Namespace, config: type) -> dict[str, Any]:
    """What the flags say of a config's settings, by name."""
    return {field.name: vars(args)[field.name] for field in fields(config) if field.name in args}


def let_interrupt() -> None:
    """Ctrl-C stops a training also where a shell, starting it in the background, had it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run_training(
    args: argparse.Namespace, training: Sitting, noun: str, measured: str, told: Sequence[str]
) -> int:
    """Trains to the end, a line an event on stderr, and prints what came of it. `noun`: what the result calls
    the folder; `measured`: what validation measures; `told`: see `line_of`.
    """
    for event in training.run():
        say(line_of(event, told))
    seconds, best = event["seconds"], event["best"]
    result = {noun: str(args.out), "updates": event["update"], "seconds": seconds, "best": best}
    print(json.dumps(result) if args.json else f"{args.out}: {measured} {best} after {seconds:.0f} s")
    return 0


def run_tuning(
    args: argparse.Namespace,
    tune: Callable[..., TrainEvent],
    told: Sequence[str],
    outcome: Callable[[dict[str, TrainEvent]], dict[str, Any]],
) -> int:
    """Tunes to the end and prints what came of it. `outcome`: of the last event of each kind, beside the
    folder; `told`: see `line_of`.
    """
    last: dict[str, TrainEvent] = {}

    def tell(event: TrainEvent) -> None:
        last[event["event"]] = event
        say(line_of(event, told))

    let_interrupt()
    last["finished"] = tune(tell=tell)
    said = line_of(last.get("held_out", last["finished"]), told)
    print(json.dumps({"out": str(args.out), **outcome(last)}) if args.json else f"{args.out}: {said}")
    return 0


def check_trl() -> None:
    """Raises BadRequest where the library that tunes is missing."""
    if find_spec("trl") is None:
        raise BadRequest("tuning needs the library trl, which is not installed; run pip install -e '.[tune]'")


def line_of(event: TrainEvent, told: Sequence[str]) -> str:
    """An event for a person. `told`: figures that are worth a line, by name."""
    known = {name: event[name] for name in told if event.get(name) is not None}
    figures = ", ".join(f"{words(name)} {value:.3f}" for name, value in known.items())
    reached = event.get("update", event.get("step"))
    match event["event"]:
        case "started":
            return f"training {event['n_parameters']:,} parameters"
        case "finished":
            return f"finished after {event['seconds']:.0f} s"
        case "update" | "step":
            return f"update {reached}: {figures}, {duration(event['seconds_left'])} left"
        case _:
            return f"validation after {reached} updates: {figures}{', kept' if event.get('kept') else ''}"
