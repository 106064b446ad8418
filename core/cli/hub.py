"""Commands that speak with the Hugging Face hub: `deploy-space`, `runs push`, `runs pull`.

Secrets are named on the command line and read from the environment, since other processes can see a command line; the token is the hub's
own, from $HF_TOKEN or `hf auth login`. None of them is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from core.errors import BadRequest
from core.experiments import ExperimentLog, add_log_option, default_log_path
from core.hub.client import check_repository, connect
from core.hub.export import LogCopy
from core.hub.space import Deployment, check_hardware, deploy_space, space_files


def add_deploy_flags(parser: argparse.ArgumentParser) -> None:
    """The options of `deploy-space`."""
    parser.add_argument("--repo", required=True, metavar="OWNER/NAME", help="the Space; it is made if it is missing")
    parser.add_argument("--private", action="store_true", help="make it private, if it has to be made")
    parser.add_argument("--hardware", metavar="NAME", help="request this hardware, for example t4-small, which costs money (default: leave it as it is)")
    parser.add_argument("--secret", action="append", default=[], metavar="NAME", help="set a secret to the value of the environment variable NAME")
    parser.add_argument("--variable", action="append", default=[], metavar="NAME", help="the same for a variable, which anybody can read on the hub")
    parser.add_argument("--dry-run", action="store_true", help="print the paths that would be sent, a line each, and ask nothing of the hub")
    parser.set_defaults(func=run_deploy_space)


def add_copy_commands(runs: Any) -> None:
    """`runs push` and `runs pull`."""
    push = runs.add_parser("push", help="bring a data set on the hub up to the log, with documents, owners and all")
    push.add_argument("--to", required=True, metavar="OWNER/NAME", help="the data set; it is made, and private, if it is missing")
    push.set_defaults(func=run_push)
    pull = runs.add_parser("pull", help="take in the runs that push put into a data set")
    pull.add_argument("--from", required=True, dest="source", metavar="OWNER/NAME", help="the data set")
    pull.set_defaults(func=run_pull)
    for parser in (push, pull):
        parser.add_argument("--json", action="store_true", help="print JSON")
        add_log_option(parser)


def run_deploy_space(args: argparse.Namespace) -> int:
    """Prints the Space's address."""
    deployment = Deployment(
        repository=check_repository(args.repo),
        private=args.private,
        hardware=None if args.hardware is None else check_hardware(args.hardware),
        variables=_from_environment(args.variable),
        secrets=_from_environment(args.secret),
    )
    if args.dry_run:
        print(*sorted(["README.md", *space_files()]), sep="\n")
        return 0
    hub = connect(tuple(deployment.secrets.values()))
    public = [name for name, value in deployment.variables.items() if value in hub.secrets]
    if public:
        raise BadRequest(f"variable {public[0]} holds a token or a secret, and anybody could read it on the hub; pass it as --secret {public[0]}")
    print(deploy_space(hub, deployment, _say))
    return 0


def run_push(args: argparse.Namespace) -> int:
    """Prints how many runs were new to the data set."""
    copy = LogCopy(connect(), check_repository(args.to))
    with ExperimentLog.open(args.log or default_log_path()) as log:
        pushed = copy.push(log)
    if pushed.n_removed:
        _say(f"{pushed.n_removed} runs that were deleted here are gone from {args.to}")
    print(json.dumps({"pushed": pushed.n_new, "removed": pushed.n_removed}) if args.json else pushed.n_new)
    return 0


def run_pull(args: argparse.Namespace) -> int:
    """Prints how many runs were new to the log. Exit status 1 when a file of the data set could not be taken in."""
    copy = LogCopy(connect(), check_repository(args.source))
    with ExperimentLog.open(args.log or default_log_path()) as log:
        pulled = copy.pull(log)
    for sentence in pulled.damaged:
        _say(sentence)
    if pulled.n_visitors:
        _say(f"{pulled.n_visitors} of them belong to visitors, who see them in public mode; 'runs list' shows those without an owner")
    print(json.dumps({"pulled": pulled.n_new, "visitors": pulled.n_visitors}) if args.json else pulled.n_new)
    return 1 if pulled.damaged else 0


def _from_environment(names: Sequence[str]) -> dict[str, str]:
    values = {}
    for name in names:
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):  # may be a value by mistake, so it is not repeated
            raise BadRequest("--secret and --variable take the name of an environment variable, in capitals, such as HF_TOKEN; its value is read from there")
        if not os.environ.get(name):
            raise BadRequest(f"the environment variable {name} is empty or not set; export it first, its value is read from there")
        values[name] = os.environ[name]
    return values


def _say(text: str) -> None:
    print(text, file=sys.stderr)
