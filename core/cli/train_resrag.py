"""`python -m core train-resrag`: RES-RAG's light policy, goes on as `train` does."""

from __future__ import annotations

import argparse

from core.answer.checkpoint import SMALL
from core.answer.reader import load_reader
from core.cli.flags import add_settings
from core.cli.training import add_training_flags, let_interrupt, name_of, run_training, settings_of
from core.encode.encoder import load_encoder
from core.lab.train.evidence_sets import SetsRecord, SetTrainConfig, SetTrainer, see
from core.lab.train.set_questions import counts_of, course_questions
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
    return run_training(args, trainer, "policy", "validation reward", ("loss", "reward", "chunks", "score"))
