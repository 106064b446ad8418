"""The command line: parse, call, print.

`python -m core --help` lists the commands. stdout carries the result only; progress, notices and errors go to
stderr. Exit status: 0, or 2 for unusable arguments or input with one sentence. A command or method that
doesn't exist yet exits 2 as well.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from core.base.errors import BadRequest, UserError

COMMANDS = {
    "ingest": "cut documents into chunks",
    "import-run": "what another retriever found, as runs of the log",
    "import-checkpoint": "convert a checkpoint of the Q-RAG authors",
    "blend": "an agent from several: part of the way of a further training, or the mean of seeds",
    "trace": "run the agent and print what it saw and chose",
    "embed-corpus": "documents into a corpus on disk that trace searches, on a cluster if wanted",
    "compare": "the same question through several methods",
    "sparc": "rounds of parallel searches that end in an answer, with or without a language model",
    "evaluate": "score a method on labelled questions",
    "evaluate-documents": "questions about whole documents, with quotes that prove the answers",
    "calibrate": "set an agent's defaults from validation questions",
    "study": "tables and figures from result rows",
    "train": "train an agent, or go on with an unfinished training",
    "train-reader": "train the reader that answers from evidence, or go on with an unfinished training",
    "tune-reader": "set anew when a reader says that there is no answer, and how sure it is",
    "train-reranker": "give an agent a reranker, or go on with an unfinished training",
    "train-resrag": "train the policy that chooses evidence sets, or go on with an unfinished training",
    "preferences": "preference pairs from logged SPARC runs",
    "tune": "tune a language model on preference pairs",
    "tune-resrag": "tune a language model to write evidence sets, or go on with an unfinished tuning",
    "deploy-space": "put the app on a Hugging Face Space, or bring it up to date there",
    "runs": "look into the log of runs",
}
"""What each command does. Its module here has its name, and a function `add_flags`. Only the one that is
called is imported: torch takes seconds.
"""


def main(argv: Sequence[str]) -> int:
    """Runs one command; returns its exit status."""
    if sys.stdout is None:  # closed by the shell
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # whatever the locale: documents hold any character
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    try:
        args = _parser(argv).parse_args(argv)
        status: int = args.func(args)
        sys.stdout.flush()
        return status
    except UserError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2
    except BrokenPipeError:
        _say_no_more()  # the reader left
        return 0
    except OSError as error:
        if error.filename is not None:  # no matter of the output: a name that is too long, a loop of links
            print(f"{error.filename} can't be used ({error.strerror}); name another", file=sys.stderr)
            return 2
        _say_no_more()
        said = f"the output can't be written ({error.strerror}); make room, or name another place"
        print(said, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; what was done so far is kept", file=sys.stderr)
        return 130


def _say_no_more() -> None:
    """What stdout still holds goes nowhere: the interpreter would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """Refuses with one sentence instead of a page of usage, and takes no beginning of a flag for the flag:
    `trace --k` was `--keep-side-matter`.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # -1e-3, too, is no flag

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuses what is unknown itself: the parser above would point to its own help. Raises BadRequest."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Raises BadRequest."""
        raise BadRequest(f"{message}; see {self.prog} --help")


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m core", description="Multi-step retrieval over long documents.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if argv[:1] == [name]:
            import_module(f"core.cli.{name.replace('-', '_')}").add_flags(command)
    return parser
