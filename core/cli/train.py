"""`python -m core train`: an agent into a folder.

Started again with the same arguments, it goes on where it was cut off. Ctrl-C stops between two updates; the
best agent so far is in the folder, with the events of its training in `progress.jsonl`.
"""

from __future__ import annotations

import argparse

from core.base.errors import BadRequest
from core.cli.common import named_log
from core.cli.flags import JSON_LINES, LOG, add_settings, flag_help
from core.cli.training import add_training_flags, let_interrupt, name_of, run_training, settings_of
from core.encode.packaged import MINILM
from core.lab.train.config import TrainConfig
from core.lab.train.recipes import RECIPES, plan_training
from core.lab.train.sitting import training_record
from core.lab.train.trainer import Trainer


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `train`: every setting of `TrainConfig`, by its name."""
    add_training_flags(parser, "agent")
    add = parser.add_argument
    add("--data", choices=[name for name in RECIPES if name != "own"], help="what to train on")
    own = 'train on your own: a line {"question", "chunks": [...], "support": [ids]} each'
    add("--questions", **JSON_LINES, help=own)
    add("--base", default=MINILM, metavar="DIR_OR_ID", help="base encoder")
    add("--start-from", metavar="NAME_OR_DIR", help=flag_help(TrainConfig, "start_from"))
    add("--log", **LOG, help="keep configuration and curve in the experiment log")
    add_settings(parser, TrainConfig, with_defaults=False)  # a recipe may have defaults of its own
    for flag, name, action in (
        ("--no-soft-values", "soft_values", "store_false"),
        ("--no-target-towers", "target_towers", "store_false"),
        ("--bootstrap-at-cap", "bootstrap_at_cap", "store_true"),
        ("--no-penalty", "penalize_extra_steps", "store_false"),
    ):
        said = flag_help(TrainConfig, name).removeprefix("False: ").removeprefix("True: ")
        add(flag, dest=name, action=action, default=None, help=said)
    parser.set_defaults(func=run_train)


def run_train(args: argparse.Namespace) -> int:
    """The command; returns the exit status."""
    let_interrupt()
    if (args.questions is None) == (args.data is None):
        raise BadRequest("say what to train on: either --data NAME or --questions FILE.jsonl")
    settings = {
        name: value
        for name, value in settings_of(args, TrainConfig).items()
        if name != "data" and (value is not None or name == "top_k_actions")
    }
    plan = plan_training(
        args.data or "own",
        agent=name_of(args, "agent"),
        source=args.questions or args.data_folder,
        base=args.base,
        **settings,
    )
    trainer = Trainer(plan, args.out, args.device)
    try:
        return run_training(args, trainer, "agent", "validation score", ("td_loss", "success", "score"))
    finally:
        with named_log(args.log) as log:
            if log is not None:
                log.keep(training_record(args.out))
