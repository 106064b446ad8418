"""`python -m core runs`: the log's own commands, those that speak with the hub, and `replay`, which needs the agent."""

from __future__ import annotations

import argparse

from core.cli.hub import add_copy_commands
from core.experiments import add_log_commands, add_log_option


def add_runs_commands(parser: argparse.ArgumentParser) -> None:
    """The commands of `runs`."""
    runs = add_log_commands(parser)
    add_copy_commands(runs)
    replay = runs.add_parser("replay", help="make a logged run again and compare")
    replay.add_argument("run_id")
    add_log_option(replay)
    replay.add_argument("--checkpoint", metavar="NAME_OR_DIR", help="default: the one that the run names")
    replay.add_argument("--device", metavar="D", help="cpu or cuda (default: cuda when there is one)")
    replay.set_defaults(func=_replay)


def _replay(args: argparse.Namespace) -> int:
    from core.cli.commands import run_replay  # takes seconds: the other commands do without

    return run_replay(args)
