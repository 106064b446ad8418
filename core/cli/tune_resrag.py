"""`python -m core tune-resrag`: a language model learns to write evidence sets.

The same command goes on from the last save of a tuning that was cut off.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from core.base.errors import BadRequest
from core.cli.flags import COUNT, DATA_FOLDER, add_settings
from core.cli.training import add_tuning_flags, check_trl, run_tuning, settings_of
from core.lab.train.set_questions import SETS
from core.lab.train.sitting import TrainEvent
from core.lab.tune.set_tasks import SetTuneConfig
from core.methods.resrag.reward import RewardConfig


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of `tune-resrag`: settings of `SetTuneConfig` and `RewardConfig`, but for the reward's bounds."""
    add = parser.add_argument
    add_tuning_flags(parser, "an instruction-tuned causal language model")
    sets = [name for name, source in SETS.items() if source.train is not None]
    said = "whose training questions (default %(default)s)"
    add("--task", choices=sets, default="hotpotqa", help=said)
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
    parser.set_defaults(func=run_tune_resrag)


def run_tune_resrag(args: argparse.Namespace) -> int:
    """Prints what came of it."""
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
    learned, held_out = (
        [task for task in tasks if is_held_out(task.question) == out] for out in (False, True)
    )

    def outcome(last: dict[str, TrainEvent]) -> dict[str, Any]:
        result = last["finished"]
        measured = {key: value for key, value in last.get("held_out", {}).items() if key != "event"}
        held_out = {"held_out": measured} if measured else {}
        return {"updates": result["step"], "seconds": result["seconds"], **held_out}

    run = partial(tune_sets, learned, held_out, reader, args.model, args.out, settings, device=args.device)
    return run_tuning(args, run, ("loss", "reward", "valid", "answer_f1", "support_f1"), outcome)
