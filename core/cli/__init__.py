"""The command line: parse, call, print. `python -m core --help` lists the commands.

stdout carries the result only; progress, notices and errors go to stderr. Exit status: 0, or 2 for unusable arguments or input with
one sentence. A command or method that doesn't exist yet exits 2 as well.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from core.cli.calibration import add_calibrate_flags
from core.cli.commands import run_compare, run_import, run_ingest, run_replay, run_trace
from core.cli.evaluation import add_evaluate_flags
from core.cli.hub import add_copy_commands, add_deploy_flags
from core.cli.study import add_study_flags
from core.cli.training import add_train_flags
from core.config import CHUNKERS
from core.errors import BadRequest, UserError
from core.experiments import add_log_option, add_parser


def main(argv: Sequence[str]) -> int:
    """Runs one command; returns its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # whatever the locale: documents hold any character
    try:
        args = _parser().parse_args(argv)
        status: int = args.func(args)
        sys.stdout.flush()
        return status
    except UserError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left; nothing more to say
        return 0
    except KeyboardInterrupt:
        print("stopped; what was done so far is kept", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    """Refuses with one sentence, as everything else here does, instead of a page of usage."""

    def error(self, message: str) -> NoReturn:
        """Raises BadRequest."""
        raise BadRequest(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m core", description="Multi-step retrieval over long documents.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    ingest = commands.add_parser("ingest", help="cut documents into chunks")
    ingest.add_argument("files", nargs="+", type=Path, metavar="FILE")
    ingest.add_argument("--chunker", choices=CHUNKERS, help="default: structure for HTML and Markdown, sentences for plain text")
    ingest.add_argument("--max-tokens", type=int, metavar="N", help="most tokens of a chunk (default: the checkpoint's)")
    ingest.add_argument("--checkpoint", metavar="NAME_OR_DIR", help="whose tokenizer and chunking to use")
    shape = ingest.add_mutually_exclusive_group(required=True)
    shape.add_argument("--json", action="store_true", help="one JSON object a chunk, a line each")
    shape.add_argument("--text", action="store_true", help="the text that offsets refer to; one file only")
    ingest.set_defaults(func=run_ingest)

    importer = commands.add_parser("import-checkpoint", help="convert a checkpoint of the Q-RAG authors")
    importer.add_argument("source", help="folder or hub id with config.yaml and model_best.pt")
    importer.add_argument("destination", type=Path)
    importer.add_argument("--base", metavar="DIR_OR_ID", help="the base encoder, where config.yaml doesn't name it rightly")
    importer.set_defaults(func=run_import)

    trace = commands.add_parser("trace", help="run the agent and print what it saw and chose")
    _add_inputs(trace)
    _add_episode_flags(trace)
    trace.add_argument("--full", action="store_true", help="Q and position of all chunks at every step")
    trace.add_argument("--json", action="store_true", required=True, help="the only output format so far")
    trace.set_defaults(func=run_trace)

    compare = commands.add_parser("compare", help="the same question through several methods")
    _add_inputs(compare)
    _add_episode_flags(compare)
    compare.add_argument("--methods", required=True, metavar="NAME,...", help="of qrag, topk, bm25, threshold, multistep")
    compare.add_argument("--k", type=int, metavar="N", help="most chunks of every method (default: the step budget)")
    compare.add_argument("--json", action="store_true", required=True, help="the only output format so far")
    compare.set_defaults(func=run_compare)

    evaluation = commands.add_parser("evaluate", help="score a method on labelled questions")
    _add_episode_flags(evaluation)
    add_evaluate_flags(evaluation)
    add_calibrate_flags(commands.add_parser("calibrate", help="set an agent's defaults from validation questions"))
    add_study_flags(commands.add_parser("study", help="tables and figures from result rows"))

    add_train_flags(commands.add_parser("train", help="train an agent, or go on with an unfinished training"))

    add_deploy_flags(commands.add_parser("deploy-space", help="put the app on a Hugging Face Space, or bring it up to date there"))

    runs = add_parser(commands)
    add_copy_commands(runs)
    replay = runs.add_parser("replay", help="make a logged run again and compare")
    replay.add_argument("run_id")
    add_log_option(replay)
    replay.add_argument("--checkpoint", metavar="NAME_OR_DIR", help="default: the one that the run names")
    replay.add_argument("--device", metavar="D", help="cpu or cuda (default: cuda when there is one)")
    replay.set_defaults(func=run_replay)
    return parser


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--query", metavar="TEXT")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--document", nargs="+", type=Path, metavar="FILE", help="documents, searched as one list")
    source.add_argument("--chunks", type=Path, metavar="FILE.json", help="a JSON list of strings, taken as they are")
    source.add_argument("--episodes", type=Path, metavar="FILE.jsonl", help='a line {"id", "query", "chunks": [...]} each; one result a line')
    parser.add_argument("--checkpoint", metavar="NAME_OR_DIR")
    parser.add_argument("--device", metavar="D", help="cpu or cuda (default: cuda when there is one)")
    parser.add_argument("--log", nargs="?", const="", metavar="FILE", help="keep the run in the experiment log")


def _add_episode_flags(parser: argparse.ArgumentParser) -> None:
    defaults = "default: the checkpoint's"
    parser.add_argument("--step-budget", type=int, metavar="N", help=f"most chunks ({defaults})")
    parser.add_argument("--temperature", type=float, metavar="X", help=f"0 is greedy ({defaults})")
    parser.add_argument("--stop-threshold", type=_number_or_none, default=argparse.SUPPRESS, metavar="X|none", help=f"stop below this Q ({defaults})")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--beam-width", type=int, default=1, metavar="N", help="plan with this many paths (default 1: no planning)")
    parser.add_argument("--top-k-actions", type=_count_or_none, metavar="N|none", help="sample among the N best only (default none)")


def _number_or_none(text: str) -> float | None:
    return None if text == "none" else float(text)


def _count_or_none(text: str) -> int | None:
    return None if text == "none" else int(text)
