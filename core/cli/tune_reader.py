"""`python -m core tune-reader`.

Sets anew when a reader says "no answer", how sure it is, and from which confidence on it answers or guesses.
"""

from __future__ import annotations

import argparse
import json

from core.answer.checkpoint import write_reader_spec
from core.answer.reader import ExtractiveReader
from core.base.errors import BadRequest
from core.cli.flags import COUNT, DATA_FOLDER, DEVICE, FOLDER, path_flag
from core.lab.evaluate.documents import read_document_rows
from core.lab.reader.course import ReadingCourse
from core.lab.reader.found import found_lessons
from core.lab.reader.lesson import Lesson
from core.lab.reader.training import tuned
from core.lab.reader.tuning import BIASES, tune
from core.lab.tasks.documents import DocumentFolder, read_document_questions


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `tune-reader`."""
    add = parser.add_argument
    add("folder", **FOLDER, help="folder of a trained reader; its reader.json is written anew")
    add("--data-folder", **DATA_FOLDER)
    add("--device", **DEVICE)
    add("--n", **COUNT, default=600, help="held-out questions to read (default 600)")
    bias = 'log-odds of "no answer" to keep; chosen by F1 on the held-out questions if left out'
    add("--no-answer-bias", type=float, metavar="NATS", help=bias)
    add(
        "--found",
        nargs=3,
        type=path_flag,
        metavar=("ROWS.jsonl", "QUESTIONS.jsonl", "DOCUMENTS_FOLDER"),
        help="fit confidence on what was found for questions about documents: rows of"
        " evaluate-documents, and what was given to it",
    )
    parser.set_defaults(func=run_tune_reader)


def run_tune_reader(args: argparse.Namespace) -> int:
    """The command; prints what the questions came to as one JSON object, and returns the exit status."""
    if args.n < 1:
        raise BadRequest(f"n={args.n} must be at least 1; choose how many questions are read")
    bias, most = args.no_answer_bias, max(BIASES)
    if bias is not None and not abs(bias) <= most:
        raise BadRequest(
            f"no-answer-bias={bias:g} must be between -{most:g} and {most:g} nats; choose another"
        )
    found: list[Lesson] = []
    if args.found:
        rows, questions, folder = args.found
        documents = DocumentFolder(folder, questions)
        found = found_lessons(read_document_rows(rows), read_document_questions(questions), documents)
    reader = ExtractiveReader(args.folder, args.device)
    tuning = tune(reader, ReadingCourse(args.data_folder, reader.tokenizer).validation(args.n), bias, found)
    spec = tuned(reader.spec, tuning)
    write_reader_spec(args.folder, spec)
    result = {
        "reader": str(args.folder),
        "least_confidence": spec.least_confidence,
        "least_guess": spec.least_guess,
        "found": len(found),
        "scores": tuning.scores,
        "sources": tuning.by_source,
    }
    print(json.dumps(result))
    return 0
