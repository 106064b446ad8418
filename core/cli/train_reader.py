"""`python -m core train-reader`: a reader, goes on as `train` does."""

from __future__ import annotations

import argparse

from core.cli.flags import add_settings, flag_help
from core.cli.training import add_training_flags, let_interrupt, name_of, run_training, settings_of
from core.encode.checkpoint import find_base
from core.encode.packaged import MINILM
from core.encode.tokens import FastTokenizer
from core.lab.reader.course import ReadingCourse
from core.lab.reader.training import ReaderConfig, ReaderTrainer


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `train-reader`: every setting of `ReaderConfig`, by its name."""
    add_training_flags(parser, "reader")
    add = parser.add_argument
    add("--base", default=MINILM, metavar="DIR_OR_ID", help="base encoder")
    add("--start-from", metavar="DIR", help=flag_help(ReaderConfig, "start_from"))
    add_settings(parser, ReaderConfig)
    parser.set_defaults(func=run_train_reader)


def run_train_reader(args: argparse.Namespace) -> int:
    """The command; returns the exit status."""
    let_interrupt()
    name = name_of(args, "reader")
    config = ReaderConfig(**settings_of(args, ReaderConfig))
    course = ReadingCourse(args.data_folder, FastTokenizer(find_base(args.base)))
    trainer = ReaderTrainer(config, course, args.out, name=name, base=args.base, device=args.device)
    return run_training(args, trainer, "reader", "validation F1", ("loss", "score"))
