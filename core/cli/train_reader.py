"""`python -m core train-reader`.

Trains a reader into a folder, and prints what came of it. Progress goes to stderr; the events, one a line,
are in the folder's `progress.jsonl`. Started again with the same arguments, it goes on where it was cut off.
Ctrl-C stops between two updates; the best reader so far is in the folder.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from core.answer.course import ReadingCourse
from core.answer.training import ReaderConfig, ReaderTrainer
from core.cli.flags import add_settings
from core.encode.checkpoint import find_base
from core.encode.packaged import MINILM
from core.encode.tokens import FastTokenizer
from core.errors import BadRequest
from core.train.sitting import TrainEvent


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `train-reader`: every setting of `ReaderConfig`, by its name."""
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for the reader; an unfinished training there goes on",
    )
    parser.add_argument(
        "--data-folder",
        type=Path,
        metavar="DIR",
        help="folder of the data sets (default: $QRAG_DATA, else ../shared/data)",
    )
    parser.add_argument("--name", help="of the reader (default: that of the folder)")
    parser.add_argument("--base", default=MINILM, metavar="DIR_OR_ID", help="base encoder")
    parser.add_argument("--device", metavar="D", help="cpu or cuda (default: cuda when there is one)")
    parser.add_argument(
        "--start-from",
        metavar="DIR",
        help="train this reader further instead of beginning with the base encoder",
    )
    add_settings(parser, ReaderConfig)
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(func=run_train_reader)


def run_train_reader(args: argparse.Namespace) -> int:
    """The command; returns the exit status."""
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where a shell started it in the background; a training stops by it
    name = args.name or args.out.resolve().name
    if not 1 <= len(name) <= 100:
        raise BadRequest(
            f"the reader's name has {len(name)} characters, there must be between 1 and 100; name it with"
            " --name"
        )
    config = ReaderConfig(**{field.name: getattr(args, field.name) for field in fields(ReaderConfig)})
    course = ReadingCourse(args.data_folder, FastTokenizer(find_base(args.base)))
    last: dict[str, TrainEvent] = {}
    for event in ReaderTrainer(config, course, args.out, name=name, base=args.base, device=args.device).run():
        last[event["event"]] = event
        print(_line(event), file=sys.stderr, flush=True)
    result = {
        "reader": str(args.out),
        "updates": config.updates,
        "seconds": last["finished"]["seconds"],
        "best": last["finished"]["best"],
    }
    print(
        json.dumps(result)
        if args.json
        else f"{args.out}: validation F1 {result['best']} after {result['seconds']:.0f} s"
    )
    return 0


def _line(event: TrainEvent) -> str:
    """One event for a person."""
    match event["event"]:
        case "update":
            left = (
                f"{event['seconds_left'] / 60:.0f} min left"
                if event["seconds_left"] >= 90
                else f"{event['seconds_left']:.0f} s left"
            )
            return f"update {event['update']}: loss {event['loss']:.3f}, {left}"
        case "validated":
            sources: dict[str, Any] = event["sources"]
            parts = ", ".join(f"{name} {values['f1']:.3f}" for name, values in sources.items())
            return (
                f"validation after {event['update']} updates: F1 {event['score']:.4f}"
                f" ({parts}){', kept' if event.get('kept') else ''}"
            )
        case "started":
            return f"training {event['n_parameters']:,} parameters on {event['device']}"
        case _:
            return f"finished after {event['seconds']:.0f} s"
