"""`python -m core train-reader`.

Trains a reader into a folder, and prints what came of it. Progress goes to stderr; the events, one a line,
are in the folder's `progress.jsonl`. Started again with the same arguments, it goes on where it was cut off.
Ctrl-C stops between two updates; the best reader so far is in the folder.
"""

from __future__ import annotations

import argparse
from typing import Any

from core.cli.flags import FILE, add_settings, flag_help
from core.cli.training import (
    add_training_flags,
    kept_mark,
    let_interrupt,
    name_of,
    run_training,
    settings_of,
    time_left,
)
from core.encode.checkpoint import find_base
from core.encode.packaged import MINILM
from core.encode.tokens import FastTokenizer
from core.lab.reader.course import ReadingCourse
from core.lab.reader.training import ReaderConfig, ReaderTrainer
from core.lab.train.sitting import TrainEvent


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `train-reader`: every setting of `ReaderConfig`, by its name."""
    add_training_flags(parser, "reader")
    add = parser.add_argument
    add("--base", default=MINILM, metavar="DIR_OR_ID", help="base encoder")
    add("--start-from", metavar="DIR", help=flag_help(ReaderConfig, "start_from"))
    add(
        "--more",
        **FILE,
        action="append",
        default=[],
        help="train on the questions of this file too, as evaluate takes them; may be given again",
    )
    add_settings(parser, ReaderConfig)
    parser.set_defaults(func=run_train_reader)


def run_train_reader(args: argparse.Namespace) -> int:
    """The command; returns the exit status."""
    let_interrupt()
    name = name_of(args, "reader")
    config = ReaderConfig(**settings_of(args, ReaderConfig))
    course = ReadingCourse(args.data_folder, FastTokenizer(find_base(args.base)), args.more)
    trainer = ReaderTrainer(config, course, args.out, name=name, base=args.base, device=args.device)
    return run_training(
        args, trainer.run(), _line, "reader", config.updates, lambda best: f"validation F1 {best}"
    )


def _line(event: TrainEvent) -> str:
    """One event, but for the last, for a person."""
    match event["event"]:
        case "update":
            return f"update {event['update']}: loss {event['loss']:.3f}, {time_left(event)}"
        case "validated":
            sources: dict[str, Any] = event["sources"]
            parts = ", ".join(f"{name} {values['f1']:.3f}" for name, values in sources.items())
            return (
                f"validation after {event['update']} updates: F1 {event['score']:.4f}"
                f" ({parts}){kept_mark(event)}"
            )
        case _:
            return f"training {event['n_parameters']:,} parameters on {event['device']}"
