"""`python -m core deploy-space`: the app on a Hugging Face Space.

Secrets are named on the command line and read from the environment, since other processes can see a command
line; the token is the hub's own, from $HF_TOKEN or `hf auth login`. None of them is printed.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from typing import Any

from core.base.errors import BadRequest
from core.cli.common import say
from core.runs.hub.client import check_repository, connect
from core.runs.hub.space import Deployment, check_hardware, deploy_space, plan


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The options of `deploy-space`."""
    add = parser.add_argument
    add("--repo", required=True, metavar="OWNER/NAME", help="the Space; it is made if it is missing")
    add("--private", action="store_true", help="make it private, if it has to be made")
    hardware = "request this hardware, for example t4-small, which costs money (default: leave it as it is)"
    add("--hardware", metavar="NAME", help=hardware)
    named: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME"}
    add("--secret", **named, help="set a secret to the value of the environment variable NAME")
    add("--variable", **named, help="the same for a variable, which anybody can read on the hub")
    dry = "say what would be made, sent and public, and what it costs; nothing is asked of the hub"
    add("--dry-run", action="store_true", help=dry)
    parser.set_defaults(func=run_deploy_space)


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
        print(plan(deployment))
        return 0
    hub = connect(tuple(deployment.secrets.values()))
    public = [name for name, value in deployment.variables.items() if value in hub.secrets]
    if public:
        raise BadRequest(
            f"variable {public[0]} holds a token or a secret, and anybody could read it on the hub; pass it"
            f" as --secret {public[0]}"
        )
    print(deploy_space(hub, deployment, say))
    return 0


def _from_environment(names: Sequence[str]) -> dict[str, str]:
    for name in names:
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):  # may be a value by mistake, so it is not repeated
            raise BadRequest(
                "--secret and --variable take the name of an environment variable, in capitals, such as"
                " HF_TOKEN; its value is read from there"
            )
        if not os.environ.get(name):
            raise BadRequest(
                f"the environment variable {name} is empty or not set; export it first, its value is read"
                " from there"
            )
    return {name: os.environ[name] for name in names}
