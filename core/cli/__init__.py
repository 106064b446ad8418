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
from importlib import import_module
from typing import NoReturn

from core.errors import BadRequest, UserError

COMMANDS = {
    "ingest": ("cut documents into chunks", "commands", "add_ingest_flags"),
    "import-checkpoint": ("convert a checkpoint of the Q-RAG authors", "commands", "add_import_flags"),
    "blend": ("an agent from several: part of the way of a further training, or the mean of seeds", "commands", "add_blend_flags"),
    "trace": ("run the agent and print what it saw and chose", "commands", "add_trace_flags"),
    "compare": ("the same question through several methods", "commands", "add_compare_flags"),
    "sparc": ("rounds of parallel searches that end in an answer, with or without a language model", "sparc", "add_sparc_flags"),
    "evaluate": ("score a method on labelled questions", "evaluation", "add_evaluate_flags"),
    "evaluate-documents": ("questions about whole documents, with quotes that prove the answers", "documents", "add_document_flags"),
    "calibrate": ("set an agent's defaults from validation questions", "calibration", "add_calibrate_flags"),
    "study": ("tables and figures from result rows", "study", "add_study_flags"),
    "train": ("train an agent, or go on with an unfinished training", "training", "add_train_flags"),
    "train-reader": ("train the reader that answers from evidence, or go on with an unfinished training", "reader", "add_train_reader_flags"),
    "tune-reader": ("set anew when a reader says that there is no answer, and how sure it is", "reader", "add_tune_reader_flags"),
    "train-reranker": ("give an agent a reranker, or go on with an unfinished training", "reranking", "add_train_reranker_flags"),
    "train-resrag": ("train the policy that chooses evidence sets, or go on with an unfinished training", "resrag", "add_train_resrag_flags"),
    "preferences": ("preference pairs from logged SPARC runs", "tune", "add_preferences_flags"),
    "tune": ("tune a language model on preference pairs", "tune", "add_tune_flags"),
    "deploy-space": ("put the app on a Hugging Face Space, or bring it up to date there", "hub", "add_deploy_flags"),
    "runs": ("look into the log of runs", "runs", "add_runs_commands"),
}
"""What each command does, its module here and the function that gives a parser its flags. Only the one that is called is imported: torch takes seconds."""


def main(argv: Sequence[str]) -> int:
    """Runs one command; returns its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # whatever the locale: documents hold any character
    try:
        args = _parser(argv).parse_args(argv)
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


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m core", description="Multi-step retrieval over long documents.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (summary, module, add_flags) in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if argv[:1] == [name]:
            getattr(import_module(f"core.cli.{module}"), add_flags)(command)
    return parser
