"""`python -m core tune-resrag`.

A language model learns to write evidence sets. Progress goes to stderr. Ctrl-C ends a tuning after the update
under way; the same command goes on from there.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from core.base.errors import BadRequest, Cancelled
from core.cli.common import say
from core.cli.flags import COUNT, DATA_FOLDER, RESULT_AS_JSON, add_settings
from core.cli.training import settings_of
from core.cli.tune import add_tuning_flags, check_trl, interruption
from core.lab.train.set_questions import SETS
from core.lab.tune.set_tasks import SetTuneConfig
from core.methods.resrag.reward import RewardConfig


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `tune-resrag`: settings of `SetTuneConfig` and `RewardConfig`, but for the reward's bounds."""
    add = parser.add_argument
    add_tuning_flags(parser, "an instruction-tuned causal language model")
    add(
        "--task",
        choices=[name for name, source in SETS.items() if source.train is not None],
        default="hotpotqa",
        help="whose training questions (default %(default)s)",
    )
    add("--n", **COUNT, default=360, help="questions; one in nine validates (default 360)")
    add("--data-folder", **DATA_FOLDER)
    add(
        "--encoder",
        default="multi-hop",
        metavar="NAME_OR_DIR",
        help="checkpoint that ranks chunks where not all fit, and that similarity labels come from (default:"
        " %(default)s)",
    )
    add_settings(parser, SetTuneConfig)
    add_settings(parser, RewardConfig, without=("least", "most"))
    add("--json", **RESULT_AS_JSON)
    parser.set_defaults(func=run_tune_resrag)


def run_tune_resrag(args: argparse.Namespace) -> int:
    """Prints what came of it. Exit status 130 where Ctrl-C ended it before its end."""
    check_trl()
    if args.n < 1:
        raise BadRequest(f"n={args.n} must be at least 1; choose how many questions are learned from")
    reward = RewardConfig(**settings_of(args, RewardConfig))
    settings = SetTuneConfig(**settings_of(args, SetTuneConfig), reward=reward)
    from core.answer.checkpoint import SMALL  # these take seconds: what can't be used is refused before
    from core.answer.reader import load_reader
    from core.encode.encoder import load_encoder
    from core.lab.train.set_questions import indexed, is_held_out, set_questions
    from core.lab.tune.set_tasks import set_tasks
    from core.lab.tune.set_tuner import tune_sets

    encoder, reader = load_encoder(args.encoder, args.device), load_reader(SMALL, args.device)
    questions = set_questions(args.task, "train", args.n, encoder.tokenizer, args.data_folder)
    tasks = set_tasks(indexed(questions, encoder), encoder, settings)
    learned, held_out = ([one for one in tasks if is_held_out(one.question) == out] for out in (False, True))
    last: dict[str, Any] = {}

    def tell(event: dict[str, Any]) -> None:
        last[event["event"]] = event
        say(_line(event))

    with interruption() as interrupted:
        try:
            result = tune_sets(
                learned,
                held_out,
                reader,
                args.model,
                args.out,
                settings,
                device=args.device,
                tell=tell,
                cancelled=interrupted.is_set,
            )
        except Cancelled as stop:
            say(str(stop))
            return 130
    outcome = {"out": str(args.out), "updates": result["step"], "seconds": result["seconds"]}
    if "held_out" in last:
        outcome["held_out"] = {key: value for key, value in last["held_out"].items() if key != "event"}
    print(json.dumps(outcome) if args.json else f"{args.out}: {_line(last.get('held_out', result))}")
    return 0


def _line(event: dict[str, Any]) -> str:
    """One event for a person."""
    match event["event"]:
        case "started":
            return (
                f"tuning {event['n_parameters']:,} parameters on {event['n_questions']:,} questions,"
                f" {event['device']}; {event['n_held_out']:,} held out, {event['n_too_long']:,} too long"
            )
        case "step":
            learned = (
                f"reward {event['reward']:.3f}, {event['valid']:.2f} valid"
                if "reward" in event
                else f"loss {event['loss']:.4f}"
            )
            return (
                f"update {event['step']} of {event['steps']} ({event['phase']}): {learned},"
                f" {event['seconds_left']:.0f} s left"
            )
        case "held_out":
            return (
                f"questions held out, after {event['step']} updates: {event['valid']:.2f} valid, reward"
                f" {event['reward']:.3f}, answer F1 {event['answer_f1']:.3f}, support F1"
                f" {event['support_f1']:.3f}"
            )
        case _:
            return f"finished after {event['seconds']:.0f} s"
