"""`python -m core train-reranker`.

Gives an agent a reranker, which reads its best chunks together with the question. Progress goes to stderr;
the events, one a line, are in the folder's `progress.jsonl`. Started again with the same arguments, it goes
on where it was cut off. Ctrl-C stops between two updates; the best agent so far is in the folder.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import fields
from pathlib import Path

from core.cli.flags import add_settings
from core.encode.checkpoint import find_checkpoint
from core.train.reranking import RerankConfig, RerankTrainer
from core.train.sitting import TrainEvent


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `train-reranker`: every setting of `RerankConfig`, by its name."""
    parser.add_argument(
        "agent", metavar="NAME_OR_DIR", help="agent that gets the reranker; it stays as it is"
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for the agent with it; an unfinished training there goes on",
    )
    parser.add_argument(
        "--data-folder",
        type=Path,
        metavar="DIR",
        help="folder of the data sets (default: $QRAG_DATA, else ../shared/data)",
    )
    parser.add_argument("--device", metavar="D", help="cpu or cuda (default: cuda when there is one)")
    add_settings(parser, RerankConfig)
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.set_defaults(func=run_train_reranker)


def run_train_reranker(args: argparse.Namespace) -> int:
    """The command; returns the exit status."""
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where a shell started it in the background; a training stops by it
    config = RerankConfig(**{field.name: getattr(args, field.name) for field in fields(RerankConfig)})
    trainer = RerankTrainer(
        config, find_checkpoint(args.agent), args.out, data=args.data_folder, device=args.device
    )
    last: dict[str, TrainEvent] = {}
    for event in trainer.run():
        last[event["event"]] = event
        print(_line(event), file=sys.stderr, flush=True)
    result = {
        "agent": str(args.out),
        "updates": config.updates,
        "seconds": last["finished"]["seconds"],
        "best": last["finished"]["best"],
    }
    print(
        json.dumps(result)
        if args.json
        else f"{args.out}: passage recall at 4 {result['best']:+.4f} after {result['seconds']:.0f} s"
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
            return f"update {event['update']}: loss {event['loss']:.3f}, right {event['right']:.2f}, {left}"
        case "validated":
            parts = ", ".join(f"{weight}: {recall:.3f}" for weight, recall in event["recall"].items())
            return (
                f"validation after {event['update']} updates, recall by weight"
                f" {parts}{', kept' if event.get('kept') else ''}"
            )
        case "started":
            return (
                f"training {event['n_parameters']:,} parameters on {event['device']} with"
                f" {event['questions']:,} questions"
            )
        case _:
            return f"finished after {event['seconds']:.0f} s"
