"""`python -m core train-resrag`.

Trains the light policy of RES-RAG into a folder, and prints what came of it. Progress goes to stderr; the
events, one a line, are in the folder's `progress.jsonl`. Started again with the same arguments, it goes on
where it was cut off. Ctrl-C stops between two updates; the best policy so far is in the folder.
"""

from __future__ import annotations

import argparse

from core.answer.checkpoint import SMALL
from core.answer.reader import load_reader
from core.cli.flags import add_settings
from core.cli.training import (
    add_training_flags,
    kept_mark,
    let_interrupt,
    name_of,
    run_training,
    settings_of,
    time_left,
)
from core.encode.encoder import load_encoder
from core.lab.train.evidence_sets import SetsRecord, SetTrainConfig, SetTrainer, see
from core.lab.train.set_questions import counts_of, course_questions
from core.lab.train.sitting import TrainEvent
from core.methods.resrag.reward import RewardConfig


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `train-resrag`: settings of `SetTrainConfig` and `RewardConfig`, but the reward's bounds."""
    add_training_flags(parser, "policy")
    parser.add_argument(
        "--encoder",
        default="general",
        metavar="NAME_OR_DIR",
        help="checkpoint whose vectors the policy reads, in training and ever after (default: %(default)s)",
    )
    add_settings(parser, SetTrainConfig)
    add_settings(parser, RewardConfig, without=("least", "most"))
    parser.set_defaults(func=run_train_resrag)


def run_train_resrag(args: argparse.Namespace) -> int:
    """The command; returns the exit status."""
    let_interrupt()
    name = name_of(args, "policy")
    reward = RewardConfig(**settings_of(args, RewardConfig))
    config = SetTrainConfig(**settings_of(args, SetTrainConfig), reward=reward)
    encoder, reader = load_encoder(args.encoder, args.device), load_reader(SMALL, args.device)
    learned, held_out = course_questions(encoder.tokenizer, args.data_folder)
    about = SetsRecord(name=name, encoder=encoder.spec.name, reader=reader.name, questions=counts_of(learned))
    trainer = SetTrainer(config, see(learned, encoder), see(held_out, encoder), reader, args.out, about)
    return run_training(
        args, trainer.run(), _line, "policy", config.updates, lambda best: f"validation reward {best}"
    )


def _line(event: TrainEvent) -> str:
    """One event, but for the last, for a person."""
    match event["event"]:
        case "update":
            learned = (
                f"loss {event['loss']:.3f}"
                if event["phase"] == "warm-up"
                else f"reward {event['reward']:.3f}, {event['chunks']:.1f} chunks"
            )
            return f"update {event['update']} ({event['phase']}): {learned}, {time_left(event)}"
        case "validated":
            scores = ", ".join(f"{name} {value:.3f}" for name, value in event["scores"].items())
            return f"validation after {event['update']} updates: {scores}{kept_mark(event)}"
        case _:
            return (
                f"training {event['n_parameters']:,} parameters on {sum(event['questions'].values())}"
                " questions"
            )
