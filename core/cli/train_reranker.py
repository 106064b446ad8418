"""`python -m core train-reranker`: an agent that reads its best chunks again.

What was chosen is read, too, where the agent reads that. See `train` for how a training goes on.
"""

from __future__ import annotations

import argparse

from core.base.errors import BadRequest
from core.cli.flags import JSON_LINES, add_settings, flag_help
from core.cli.training import add_training_flags, let_interrupt, run_training, settings_of
from core.encode.checkpoint import find_base, find_checkpoint, read_spec
from core.encode.tokens import FastTokenizer
from core.lab.train.recipes import RECIPES
from core.lab.train.reranking import RerankConfig, RerankTrainer


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `train-reranker`: every setting of `RerankConfig`, by its name."""
    add = parser.add_argument
    add("agent", metavar="NAME_OR_DIR", help="agent that gets the reranker; it stays as it is")
    add_training_flags(parser, "agent with it", has_name=False)
    mixtures = [name for name in RECIPES if name != "own"]
    add("--data", choices=mixtures, help="learn from episodes of this mixture")
    own = 'learn from your own: a line {"question", "chunks": [...], "support": [ids]} each'
    add("--own-questions", **JSON_LINES, help=own)
    add("--base", metavar="NAME_OR_DIR", help=flag_help(RerankConfig, "base"))
    add_settings(parser, RerankConfig)
    parser.set_defaults(func=run_train_reranker)


def run_train_reranker(args: argparse.Namespace) -> int:
    """The command; returns the exit status."""
    let_interrupt()
    config = RerankConfig(**settings_of(args, RerankConfig))
    if (args.data is None) == (args.own_questions is None):
        raise BadRequest("say what to learn from: either --data NAME or --own-questions FILE.jsonl")
    agent = find_checkpoint(args.agent)
    tokenizer = FastTokenizer(find_base(read_spec(agent).base, agent))
    build = RECIPES[args.data or "own"].build
    mixture = build(args.own_questions or args.data_folder, tokenizer)
    trainer = RerankTrainer(config, agent, mixture, args.out, args.device)
    return run_training(args, trainer, "agent", "Fact F1, gained", ("loss", "right", "weight", "score"))
