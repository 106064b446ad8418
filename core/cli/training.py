"""What the commands that train share.

Their flags, a line an event, how a training is run and how it ends.
"""

from __future__ import annotations

import argparse
import json
import signal
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from core.base.errors import BadRequest
from core.cli.common import say
from core.cli.flags import DATA_FOLDER, DEVICE, FOLDER, RESULT_AS_JSON
from core.lab.train.sitting import TrainEvent


def add_training_flags(parser: argparse.ArgumentParser, noun: str, *, has_name: bool = True) -> None:
    """Where the training goes and what it reads. `noun`: what is trained."""
    add, going_on = parser.add_argument, "an unfinished training there goes on"
    add("--out", **FOLDER, required=True, help=f"folder for the {noun}; {going_on}")
    add("--data-folder", **DATA_FOLDER)
    if has_name:
        add("--name", help=f"of the {noun} (default: that of the folder)")
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
    args: argparse.Namespace,
    events: Iterable[TrainEvent],
    line: Callable[[TrainEvent], str],
    noun: str,
    updates: int,
    score: Callable[[Any], str],
) -> int:
    """Trains to the end, a line an event on stderr, and prints what came of it. `line`: an event that isn't
    the last; `noun`: what the result calls the folder; `score`: the best value of the validation, in words.
    """
    last: dict[str, TrainEvent] = {}
    for event in events:
        last[event["event"]] = event
        say(f"finished after {event['seconds']:.0f} s" if event["event"] == "finished" else line(event))
    seconds, best = last["finished"]["seconds"], last["finished"]["best"]
    result = {noun: str(args.out), "updates": updates, "seconds": seconds, "best": best}
    print(json.dumps(result) if args.json else f"{args.out}: {score(best)} after {seconds:.0f} s")
    return 0


def time_left(event: TrainEvent) -> str:
    """What is left of a training, in minutes or seconds."""
    seconds = event["seconds_left"]
    return f"{seconds / 60:.0f} min left" if seconds >= 90 else f"{seconds:.0f} s left"


def kept_mark(event: TrainEvent) -> str:
    """What ends the line of a validation whose result is the best so far."""
    return ", kept" if event.get("kept") else ""
