"""`python -m core evaluate-documents`.

Questions with a quote that does not stand exactly once in their document are named on stderr and left out;
the exit status is 2 then. On a cluster a task is a document, so that each is embedded once; lines come in the
order that they have in one process.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from functools import cached_property

from core.answer.protocol import Reader
from core.answer.reader import load_reader
from core.base.errors import BadRequest
from core.base.rows import row_line
from core.cli.common import check_targets, print_json, progress_printer, say
from core.cli.flags import (
    AS_JSON,
    COUNT,
    DEVICE,
    FILE,
    JSON_LINES,
    add_cluster_flag,
    add_llm_flags,
    llm_of,
    path_flag,
)
from core.cli.trec import chunk_names, found_lines, line_file, relevant_lines, run_path
from core.integrations.cluster.workers import check_vectors, in_order, task_results
from core.lab.evaluate.document_evaluation import (
    METHOD_NAMES,
    AskedDocument,
    DocumentResult,
    DocumentSetting,
    asked_documents,
    check_llm,
    evaluate_document,
)
from core.lab.evaluate.documents import DocumentRow, summarise_documents
from core.lab.tasks.documents import DocumentFolder, read_document_questions
from core.llm.protocol import Llm
from core.methods.choice import Encoders


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `evaluate-documents`."""
    add = parser.add_argument
    chosen = ",".join(DocumentSetting().methods)
    add("questions", type=path_flag, metavar="QUESTIONS.jsonl", help="plain or gzipped")
    files = "each document as a file under its name, or where documents.tsv says"
    add("folder", type=path_flag, metavar="DOCUMENTS_FOLDER", help=files)
    named = f"of {', '.join(METHOD_NAMES)} (default {chosen})"
    add("--methods", default=chosen, metavar="NAME,...", help=named)
    budget = "the budget of the checkpoint that suits the document"
    add("--k", **COUNT, help=f"most chunks of every method but threshold (default: {budget})")
    own = "own (default): agents stop and review by their own thresholds"
    add("--stop", choices=("own", "none"), default="own", help=own)
    every = "for every document, as the app is started with it (default: what suits each)"
    add("--checkpoint", metavar="NAME_OR_DIR", help=every)
    add("--device", **DEVICE)
    add_llm_flags(parser)
    add_cluster_flag(parser)
    add("--rows", **JSON_LINES, help="write all of every row to this file")
    add("--run", **FILE, help="write what was found as a TREC run; with several methods FILE-METHOD each")
    add("--qrels", **FILE, help="write the chunks that hold the quotes as TREC qrels")
    add("--json", **AS_JSON)
    parser.set_defaults(func=run_evaluate_documents)


def run_evaluate_documents(args: argparse.Namespace) -> int:
    """Prints a line a question and method, then the summary. Exit status 2 when questions were left out."""
    methods = tuple(dict.fromkeys(name.strip() for name in args.methods.split(",")))
    setting = DocumentSetting(methods=methods, k=args.k, stops=args.stop == "own")
    runs = {name: run_path(args.run, name, methods) for name in methods}
    check_targets([args.rows, *runs.values(), args.qrels], [args.questions])
    questions, folder = read_document_questions(args.questions), DocumentFolder(args.folder, args.questions)
    encoders, llm = Encoders(args.checkpoint, args.device), llm_of(args)
    check_llm(setting, llm)
    if llm is not None and args.cluster is not None:
        raise BadRequest(
            f"--cluster {args.cluster} would take the language model's key to other machines; leave out"
            " --cluster, or the language model"
        )
    rows: list[DocumentRow] = []
    faults: list[BadRequest] = []
    vectors: dict[str, str] = {}

    def left_out(fault: BadRequest) -> None:
        faults.append(fault)
        say(" ".join(str(fault).split()))

    with ExitStack() as files:
        keep_row = files.enter_context(line_file(args.rows))
        keep_found = {name: files.enter_context(line_file(path)) for name, path in runs.items()}
        keep_relevant = files.enter_context(line_file(args.qrels))
        documents = {question.id: question.document for question in questions}
        setup = (folder, setting, encoders, args.device, llm)
        asked = asked_documents(questions, folder, left_out)
        for judged in in_order(task_results(DocumentEvaluator, setup, "result", asked, args.cluster)):
            check_vectors(judged.vectors, vectors)
            for notice in judged.notices:
                say(notice)
            for row in judged.rows:
                print_json(row.to_json())
                keep_row(row_line(row))
                keep_found[row.method](
                    found_lines(row.id, chunk_names(row.document, row.chunk_ids), row.method)
                )
            for question, chunk_ids in judged.relevant.items():
                keep_relevant(relevant_lines(question, chunk_names(documents[question], chunk_ids)))
            rows += judged.rows
    if rows:
        print_json({"summary": summarise_documents(rows)})
    return 2 if faults else 0


class DocumentEvaluator:
    """Evaluates documents, with models of its own: in this process, or in a worker of a cluster."""

    def __init__(
        self,
        folder: DocumentFolder,
        setting: DocumentSetting,
        encoders: Encoders,
        device: str | None,
        llm: Llm | None,
    ) -> None:
        self._setup, self._device, self._llm = (folder, setting, encoders), device, llm

    @cached_property
    def _reader(self) -> Reader:
        """Loaded with the first document: a cluster loses the sentence of what fails before."""
        return load_reader(device=self._device)

    def result(self, document: AskedDocument) -> DocumentResult:
        """See `evaluate_document`."""
        report = progress_printer(document.name)
        return evaluate_document(document, *self._setup, self._reader, report, self._llm)
