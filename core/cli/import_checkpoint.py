"""`python -m core import-checkpoint`.

An agent out of a checkpoint of the Q-RAG authors.
"""

from __future__ import annotations

import argparse

from core.cli.common import say
from core.cli.flags import path_flag
from core.encode.reference import import_checkpoint


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `import-checkpoint`."""
    add = parser.add_argument
    add("source", help="folder or hub id with config.yaml and model_best.pt")
    add("destination", type=path_flag)
    add("--base", metavar="DIR_OR_ID", help="the base encoder, where config.yaml doesn't name it rightly")
    parser.set_defaults(func=run_import)


def run_import(args: argparse.Namespace) -> int:
    """Converts a checkpoint of the authors' format."""
    spec = import_checkpoint(args.source, args.destination, args.base)
    say(
        f"imported {spec.name}: positions {spec.position_kind}, {spec.step_budget} steps,"
        f" {spec.max_chunk_tokens} tokens a chunk"
    )
    return 0
