"""`python -m core study NAME`.

Result rows into tables in Markdown and, if asked, a figure. Rows come from the file that --rows names when it
is there; otherwise the evaluations that the study needs are run, and their rows written to that file. So a
table in the docs is one command, which needs no model once its rows are kept. A frontier, which takes
hours, keeps the rows that it has, and goes on from them to the number that --n names.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from core.answer.reader import load_reader
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.rows import EpisodeRow, read_rows, row_line
from core.cli.answers import answer_rows, told_by
from core.cli.common import progress_printer
from core.cli.evaluate import (
    EpisodeEvaluation,
    add_data_flags,
    evaluated,
    load_subject,
    load_task_examples,
    task_length,
)
from core.cli.flags import COUNT, FOLDER, JSON_LINES, add_cluster_flag, add_llm_flags, llm_of
from core.cli.sparc import sparc_rows
from core.encode.encoder import load_encoder
from core.integrations.cluster.workers import joined_cluster
from core.lab.evaluate.documents import DocumentRow, read_document_rows
from core.lab.evaluate.frontier import FrontierRow, read_frontier
from core.lab.evaluate.joining import join_chunks
from core.lab.evaluate.run import BATCH, Setting
from core.lab.reader.rows import AnswerRow, read_answers
from core.lab.sparc.rows import SparcRow, read_sparc_rows
from core.lab.studies.frontier_rows import (
    N_FOR_THRESHOLDS,
    Sized,
    agent_method,
    answering_model,
    answering_reader,
    frontier_questions,
    frontier_rows,
    plain_methods,
    policy_of_set,
    set_methods,
    sparc_methods,
    stop_thresholds,
)
from core.lab.studies.registry import (
    STUDIES,
    AnswerStudy,
    DocumentStudy,
    FrontierStudy,
    RowStudy,
    SparcStudy,
    TrainingStudy,
    Variation,
)
from core.lab.studies.set_ablations import check_policies
from core.lab.studies.trainings import read_training, trainings_in
from core.methods.qrag.retriever import QRAG
from core.methods.resrag.card import read_card
from core.runs.log.atomic import write_whole
from core.views.charts import Report, markdown
from core.views.svg import svg

Row = TypeVar("Row", EpisodeRow, AnswerRow, SparcRow, FrontierRow)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `study`."""
    add = parser.add_argument
    listed = "; ".join(f"{name}: {study.summary}" for name, study in STUDIES.items())
    add("name", choices=STUDIES, metavar="NAME", help=listed.replace("%", "%%"))
    add("tasks", nargs="*", metavar="TASK", help="what to evaluate (default: the task of the paper's study)")
    add(
        "--rows",
        **JSON_LINES,
        help="rows to read, or where to write those that are made; gzipped if it ends in .gz",
    )
    add(
        "--trainings",
        type=Path,
        nargs="+",
        metavar="PATH",
        help="folders of trainings or copies of their progress.jsonl, or of several",
    )
    add("--figure", type=Path, metavar="FILE.svg", help="draw the charts into this file")
    add_data_flags(parser, "test")
    add("--lengths", metavar="TOKENS,...", help="only these of the study's lengths")
    add("--checkpoint", metavar="NAME_OR_DIR")
    add("--reader", **FOLDER, help="who answers (default: the reader that ships)")
    add(
        "--policy",
        **FOLDER,
        nargs="+",
        help="policies of RES-RAG (default: the one that ships for the kind of text)",
    )
    add_cluster_flag(parser)
    add_llm_flags(parser)
    add("--step-budget", **COUNT, help="T (default: the study's, or the task's)")
    add("--seed", **COUNT, default=0)
    parser.set_defaults(func=run_study)


def run_study(args: argparse.Namespace) -> int:
    """Prints the report."""
    if args.figure is not None and args.figure.suffix != ".svg":
        raise BadRequest(f"{args.figure.name} is no .svg file, the only kind of figure drawn; name one")
    if args.n is not None and args.n < 1:
        raise BadRequest(f"n={args.n} must be at least 1; choose how many examples of each task are studied")
    study = STUDIES[args.name]
    if args.cluster is not None and not isinstance(study, RowStudy):
        spread = ", ".join(name for name, candidate in STUDIES.items() if isinstance(candidate, RowStudy))
        raise BadRequest(f"the study {args.name} runs in this process; leave --cluster out, or name {spread}")
    match study:
        case TrainingStudy():
            report = _training_report(study, args)
        case AnswerStudy():
            new = answer_rows(args.tasks or study.tasks, study, args)
            report = study.report(_rows_of(args, read_answers, new))
        case DocumentStudy():
            report = study.report(_document_rows(args))
        case SparcStudy():
            report = study.report(_rows_of(args, read_sparc_rows, sparc_rows(study, args)))
        case FrontierStudy():
            report = study.report(_frontier_rows(study, args))
        case _:
            report = study.report(_rows_of(args, read_rows, _episode_rows(study, args)))
    sys.stdout.write(markdown(report))
    if args.figure is not None:
        _write(args.figure, _figure(report).encode())
    return 0


def _figure(report: Report) -> str:
    if not report.charts:
        raise BadRequest(f"the study {report.name} has no chart; leave --figure out")
    return svg(report.charts)


def _training_report(study: TrainingStudy, args: argparse.Namespace) -> Report:
    if not args.trainings:
        raise BadRequest(f"the study {args.name} compares trainings; name their folders with --trainings")
    paths = [path for named in args.trainings for path in trainings_in(named)]
    return study.report([read_training(path, study.told) for path in paths])


def _rows_of(args: argparse.Namespace, read: Callable[[Path], list[Row]], new: Iterable[Row]) -> list[Row]:
    """Rows that the file of --rows holds already, or else new ones, which go there."""
    path: Path | None = args.rows
    if path is not None and path.exists():
        return read(path)
    rows = list(new)
    if path is not None:
        _write_rows(path, rows)
    return rows


def _write_rows(path: Path, rows: Iterable[Row]) -> None:
    text = "".join(map(row_line, rows)).encode()
    _write(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def _episode_rows(study: RowStudy, args: argparse.Namespace) -> Iterator[EpisodeRow]:
    variations = _variations(study, args)
    with joined_cluster(args.cluster):
        for name in args.tasks or study.tasks:
            for variation in variations:
                yield from _evaluate(study, name, variation, args)


def _document_rows(args: argparse.Namespace) -> list[DocumentRow]:
    if args.rows is None or not args.rows.exists():
        raise BadRequest(
            f"the study {args.name} reads rows; name their file with --rows, or make one with"
            " evaluate-documents --rows FILE"
        )
    return read_document_rows(args.rows)


def _frontier_rows(study: FrontierStudy, args: argparse.Namespace) -> list[FrontierRow]:
    """Those of --rows, and with --n those that are missing to n questions of each set, saved as they come."""
    path: Path | None = args.rows
    rows = read_frontier(path) if path is not None and path.exists() else []
    if rows and args.n is None:
        return rows
    if not study.makes_rows:
        raise BadRequest(
            f"the study {args.name} only reads rows; name a file that joins those of two runs of study"
            " frontier with --rows, and leave --n out"
        )
    if study.policies_alone:  # before hours of reading
        check_policies([read_card(folder).name for folder in args.policy or ()])
    plain = load_encoder("base", args.device)
    reader, llm = load_reader(args.reader, args.device), llm_of(args)
    answering = answering_reader(reader) if llm is None else answering_model(llm)
    if rows and rows[0].reader != answering.name:
        raise BadRequest(
            f"the rows that are there were read by {rows[0].reader}, not {answering.name}; use the same one,"
            " or name another file with --rows"
        )
    for name in args.tasks or study.tasks:
        known = [row for row in rows if row.task == name]
        done = {row.id for row in known}
        asked = frontier_questions(name, args.n or study.n, plain.tokenizer, args.data)
        questions = [question for question in asked if question.id not in done]
        if not questions:
            continue
        methods = set_methods(args.policy or [policy_of_set(name)], args.device)
        if not study.policies_alone:
            agent = methods[0].encoders[0]
            own = (QRAG.name, agent.spec.name)
            thresholds = next((row.settings for row in known if (row.method, row.policy) == own), None)
            if thresholds is None:
                seen = frontier_questions(name, N_FOR_THRESHOLDS, plain.tokenizer, args.data, "train")
                thresholds = stop_thresholds(agent, seen)
            others = [*plain_methods(plain), agent_method(agent, thresholds)]
            methods = [*others, *sparc_methods(agent, plain, reader), *methods]
        _check_same_methods(known, methods)
        told = partial(_saved, path, rows, told_by(progress_printer(name)))
        for row in frontier_rows(questions, answering, methods, told):
            rows.append(row)  # one by one: `told` saves those that are there
    return rows


def _check_same_methods(known: Iterable[FrontierRow], methods: Iterable[Sized]) -> None:
    """Raises BadRequest where a question has rows of other methods, policies or settings: all questions of a
    set are compared.
    """
    wanted = {(method.name, method.policy, method.settings) for method in methods}
    of_question: dict[str, set[tuple[str, str, tuple[float, ...]]]] = {}
    for row in known:
        of_question.setdefault(row.id, set()).add((row.method, row.policy, row.settings))
    for question, made in of_question.items():
        if made != wanted:
            raise BadRequest(
                f"question {question} has rows of other methods, policies or settings than would be added;"
                " name another file with --rows"
            )


def _saved(
    path: Path | None, rows: list[FrontierRow], told: Callable[[int, int], None], done: int, total: int
) -> None:
    if path is not None:
        _write_rows(path, rows)
    told(done, total)


def _variations(study: RowStudy, args: argparse.Namespace) -> list[Variation]:
    """Those of the study; --length fills in where it names none, --lengths picks among those it names."""
    lengths = None if args.lengths is None else args.lengths.split(",")
    variations = [
        variation for variation in study.variations if lengths is None or variation.length in lengths
    ]
    if not variations:
        raise BadRequest(
            f"--lengths {args.lengths} names none of the study's lengths; they are"
            f" {', '.join(sorted({str(v.length) for v in study.variations}))}"
        )
    return [replace(variation, length=variation.length or args.length) for variation in variations]


def _evaluate(
    study: RowStudy, name: str, variation: Variation, args: argparse.Namespace
) -> Iterator[EpisodeRow]:
    subject = load_subject(variation.method, args.checkpoint, args.device)
    named = argparse.Namespace(**vars(args) | {"length": variation.length, "n": args.n or study.n})
    task = load_task_examples(name, named, subject.encoder)
    examples = list(task.examples)
    if variation.chunk_tokens is not None:
        # refuses what the encoder can't read
        subject.encoder.spec.chunk_config("sentences", variation.chunk_tokens)
        examples = [
            join_chunks(example, subject.encoder.tokenizer, variation.chunk_tokens) for example in examples
        ]
    budget = next(
        value for value in (args.step_budget, study.step_budget, task.step_budget) if value is not None
    )
    spec = subject.encoder.spec
    config = EpisodeConfig(step_budget=budget, seed=args.seed, beam_width=variation.beam_width)
    if study.stops:
        config = config.with_(stop_threshold=spec.stop_threshold, review_threshold=spec.review_threshold)
    setting = Setting(
        split=args.split, length=task_length(name, variation.length), chunk_tokens=variation.chunk_tokens
    )
    how = EpisodeEvaluation(setting=setting, config=config, batch=1 if variation.one_by_one else BATCH)
    return evaluated(examples, how, subject, args)


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise BadRequest(f"{path} can't be written ({error.strerror}); name another file") from error
