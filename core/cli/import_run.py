"""`python -m core import-run`: what another retriever found, into the log."""

from __future__ import annotations

import argparse

from core.book.book import open_book
from core.cli.common import print_json, say
from core.cli.flags import AS_JSON, DEVICE, LOG_FILE, path_flag
from core.runs.foreign.files import files_of, read_foreign
from core.runs.foreign.traces import found_sentence

LINE = """\
a line of JSON is a question and what was retrieved for it, best first:
  {"query": "Who keeps the key?", "retrieved": ["a passage, word for word", "another"]}

it must have query (or question) and retrieved (or contexts, passages, documents). each passage is its
text, its chunk id, [start, end] in the text, or an object of text, name, chunk_id, document, start, end
and score. it may have scores, method, answer, gold, known_answer and milliseconds.
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `import-run`."""
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, LINE
    add = parser.add_argument
    add(
        "files",
        nargs="+",
        type=path_flag,
        metavar="FILE",
        help="a TREC run with its queries (*quer*), passages and qrels; lines of JSON, a query and what was"
        " retrieved each; or OpenInference spans",
    )
    add("--document", nargs="+", type=path_flag, required=True, metavar="FILE", help="what was searched")
    add("--method", default="", metavar="NAME", help="of the retriever (default: as the files say)")
    agent = "the agent that runs open with (default: the one that suits)"
    add("--checkpoint", metavar="NAME_OR_DIR", help=agent)
    add("--device", **DEVICE)
    add("--log", **LOG_FILE)
    add("--json", **AS_JSON)
    parser.set_defaults(func=run_import)


def run_import(args: argparse.Namespace) -> int:
    """Prints a line a run: its id, question, and what was found again."""
    runs = read_foreign(files_of(args.files), args.method, say)
    book = open_book(args.document, args.checkpoint, args.device, args.log)
    for notice in book.notices:
        say(notice)
    for one in book.keep(runs):
        if one.n_missing:
            say(f"{one.run.query[:80]}: {found_sentence([one])}")
        print_json(one.to_json())
    return 0
