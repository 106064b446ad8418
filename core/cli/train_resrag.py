"""`python -m core train-resrag`.

Trains the light policy of RES-RAG into a folder, and prints what came of it. Progress goes to stderr; the
events, one a line, are in the folder's `progress.jsonl`. Started again with the same arguments, it goes on
where it was cut off. Ctrl-C stops between two updates; the best policy so far is in the folder.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import fields
from pathlib import Path

from core.answer.checkpoint import SMALL
from core.answer.reader import load_reader
from core.cli.flags import add_settings
from core.encode.encoder import load_encoder
from core.errors import BadRequest
from core.resrag.reward import RewardConfig
from core.train.evidence_sets import SetsRecord, SetTrainConfig, SetTrainer, see
from core.train.set_course import counts_of, course_questions
from core.train.sitting import TrainEvent


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `train-resrag`: every setting of `SetTrainConfig` and `RewardConfig` by its name, but for
    the bounds of the reward.
    """
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for the policy; an unfinished training there goes on",
    )
    parser.add_argument(
        "--data-folder",
        type=Path,
        metavar="DIR",
        help="folder of the data sets (default: $QRAG_DATA, else ../shared/data)",
    )
    parser.add_argument("--name", help="of the policy (default: that of the folder)")
    parser.add_argument(
        "--encoder",
        default="general",
        metavar="NAME_OR_DIR",
        help="checkpoint whose vectors the policy reads, in training and ever after (default: %(default)s)",
    )
    parser.add_argument("--device", metavar="D", help="cpu or cuda (default: cuda when there is one)")
    add_settings(parser, SetTrainConfig)
    add_settings(parser, RewardConfig, without=("least", "most"))
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(func=run_train_resrag)


def run_train_resrag(args: argparse.Namespace) -> int:
    """The command; returns the exit status."""
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where a shell started it in the background; a training stops by it
    name = args.name or args.out.resolve().name
    if not 1 <= len(name) <= 100:
        raise BadRequest(
            f"the policy's name has {len(name)} characters, there must be between 1 and 100; name it with"
            " --name"
        )
    given = vars(args)
    reward = RewardConfig(
        **{field.name: given[field.name] for field in fields(RewardConfig) if field.name in given}
    )
    config = SetTrainConfig(
        **{field.name: given[field.name] for field in fields(SetTrainConfig) if field.name in given},
        reward=reward,
    )
    encoder, reader = load_encoder(args.encoder, args.device), load_reader(SMALL, args.device)
    learned, held_out = course_questions(encoder.tokenizer, args.data_folder)
    about = SetsRecord(name=name, encoder=encoder.spec.name, reader=reader.name, questions=counts_of(learned))
    last: dict[str, TrainEvent] = {}
    for event in SetTrainer(
        config, see(learned, encoder), see(held_out, encoder), reader, args.out, about
    ).run():
        last[event["event"]] = event
        print(_line(event), file=sys.stderr, flush=True)
    result = {
        "policy": str(args.out),
        "updates": config.updates,
        "seconds": last["finished"]["seconds"],
        "best": last["finished"]["best"],
    }
    print(
        json.dumps(result)
        if args.json
        else f"{args.out}: validation reward {result['best']} after {result['seconds']:.0f} s"
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
            learned = (
                f"loss {event['loss']:.3f}"
                if event["phase"] == "warm-up"
                else f"reward {event['reward']:.3f}, {event['chunks']:.1f} chunks"
            )
            return f"update {event['update']} ({event['phase']}): {learned}, {left}"
        case "validated":
            told = ", ".join(f"{name} {value:.3f}" for name, value in event["scores"].items())
            return (
                f"validation after {event['update']} updates: {told}{', kept' if event.get('kept') else ''}"
            )
        case "started":
            return (
                f"training {event['n_parameters']:,} parameters on {sum(event['questions'].values())}"
                " questions"
            )
        case _:
            return f"finished after {event['seconds']:.0f} s"
