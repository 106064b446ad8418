"""`python -m core blend`: an agent from several, each with its share."""

from __future__ import annotations

import argparse

from core.cli.common import say
from core.cli.flags import FOLDER, read_flag
from core.encode.checkpoint import find_checkpoint
from core.lab.train.blend import blend


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `blend`."""
    add = parser.add_argument
    add("agents", nargs="+", metavar="NAME_OR_DIR", help="served as the last of them")
    shares = "one for each agent; what they leave to 1 stays the base encoder's (default: equal)"
    add("--shares", type=_shares, metavar="X,...", help=shares)
    add("--out", **FOLDER, required=True, help="a new folder for the agent; calibrate it afterwards")
    parser.set_defaults(func=run_blend)


def run_blend(args: argparse.Namespace) -> int:
    """Writes the agent between others."""
    shares = args.shares or [1 / len(args.agents)] * len(args.agents)
    blend([find_checkpoint(agent) for agent in args.agents], shares, args.out)
    parts = " and ".join(f"{share:.3g} of {agent}" for share, agent in zip(shares, args.agents, strict=True))
    say(f"{args.out} is {parts}, served as {args.agents[-1]} is; calibrate it")
    return 0


def _shares(text: str) -> list[float]:
    return [read_flag(float, part, "a number, with commas between several") for part in text.split(",")]
