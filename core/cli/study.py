"""`python -m core study NAME`.

Rows into tables in Markdown and, if asked, a figure. Rows are those of --rows. The studies of answers, SPARC
and evidence sets make rows of their own where there are none yet; a frontier and SPARC, which take hours,
keep the rows that they have, and go on from them to the number that --n names.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.rows import row_line
from core.cli.common import count_printer, progress_printer, writing
from core.cli.evaluate import add_data_flags, load_subject, load_task_examples, task_length
from core.cli.flags import COUNT, FOLDER, JSON_LINES, add_llm_flags, llm_of, path_flag
from core.encode.encoder import load_encoder
from core.lab.evaluate.outcomes import own_evidence
from core.lab.evaluate.run import Setting, evaluate
from core.lab.reader.evaluation import AnswerRow, evaluate_answers
from core.lab.sparc.evaluation import STUDIED
from core.lab.studies.frontier import FrontierRow, check_policies
from core.lab.studies.frontier_rows import (
    N_FOR_THRESHOLDS,
    NATURAL,
    answering_model,
    answering_reader,
    frontier_questions,
    frontier_rows,
    other_methods,
    policy_of_set,
    set_methods,
    stop_thresholds,
)
from core.lab.studies.registry import STUDIES, TRAININGS, Study
from core.lab.studies.trainings import trainings_in
from core.lab.tasks.babi_world import TASKS as STORIES
from core.methods.bm25 import BM25
from core.methods.qrag.retriever import QRAG
from core.methods.registry import METHODS
from core.methods.resrag.card import read_card
from core.methods.topk import TOPK
from core.runs.log.atomic import write_whole
from core.views.charts import markdown
from core.views.svg import svg

ANSWERED = ("squad", "nq", "hotpotqa", "2wiki", "musique", *STORIES)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `study`."""
    add = parser.add_argument
    listed = "; ".join(f"{name}: {study.summary}" for name, study in STUDIES.items())
    add("name", choices=STUDIES, metavar="NAME", help=listed.replace("%", "%%"))
    add("tasks", nargs="*", metavar="TASK", help="what rows are made of (default: as in the paper)")
    add("--rows", **JSON_LINES, help="rows to read, or where to write those that are made; .gz is gzipped")
    folders = "folders of trainings or copies of their progress.jsonl, or of several"
    add("--trainings", type=path_flag, nargs="+", metavar="PATH", help=folders)
    add("--figure", type=path_flag, metavar="FILE.svg", help="draw the charts into this file")
    add_data_flags(parser, "test")
    add("--checkpoint", metavar="NAME_OR_DIR")
    add("--reader", **FOLDER, help="who answers (default: the reader that ships)")
    add("--policy", **FOLDER, nargs="+", help="policies of RES-RAG (default: that of the kind of text)")
    add_llm_flags(parser)
    add("--seed", **COUNT, default=0)
    parser.set_defaults(func=run_study)


def run_study(args: argparse.Namespace) -> int:
    """Prints the report."""
    if args.figure is not None and args.figure.suffix != ".svg":
        raise BadRequest(f"{args.figure.name} is no .svg file, the only kind of figure drawn; name one")
    if args.n is not None and args.n < 1:
        raise BadRequest(f"n={args.n} must be at least 1; choose how many examples of each task are studied")
    study = STUDIES[args.name]
    report = study.report(_trainings(study, args) if args.name in TRAININGS else _rows(study, args))
    sys.stdout.write(markdown(report))
    if args.figure is not None:
        if not report.charts:
            raise BadRequest(f"the study {report.name} has no chart; leave --figure out")
        _write(args.figure, svg(report.charts).encode())
    return 0


def _trainings(study: Study, args: argparse.Namespace) -> list[Any]:
    if not args.trainings:
        raise BadRequest(f"the study {args.name} compares trainings; name their folders with --trainings")
    return [study.read(path) for named in args.trainings for path in trainings_in(named)]


def _rows(study: Study, args: argparse.Namespace) -> list[Any]:
    """Those of --rows; else new ones, which go there."""
    path: Path | None = args.rows
    rows = study.read(path) if path is not None and path.exists() else []
    goes_on = not rows or args.n is not None
    if args.name in ("frontier", "set-ablations") and goes_on:
        for row in _new_frontier_rows(args, rows):
            rows.append(row)  # one by one: what is saved are those that are there
    elif args.name in STUDIED and goes_on:
        from core.cli.sparc import sparc_rows  # with torch, which tables do without

        for made in sparc_rows(STUDIED[args.name], args, tuple(rows)):
            rows.append(made)
            _save(path, rows)
    elif not rows and args.name == "answers":
        rows = list(_answer_rows(args))
        _save(path, rows)
    if not rows and path is not None and not path.exists():
        raise BadRequest(f"{path} is not there; name a file of rows with --rows")
    if not rows:
        raise BadRequest(
            f"the study {args.name} reads rows, and there are none; name their file with --rows, as"
            " evaluate, evaluate-documents or study frontier wrote it"
        )
    return rows


def _answer_rows(args: argparse.Namespace) -> Iterator[AnswerRow]:
    """A row a task, kind of evidence and question: over the support, over what the agent that ships for a
    task's kind finds up to its own stop, and over as many chunks of other methods as the task's budget.
    """
    from core.answer.reader import load_reader

    reader, load = load_reader(args.reader, args.device), cache(load_subject)
    for name in args.tasks or ANSWERED:
        agent = args.checkpoint or ("narrative" if name in STORIES else "multi-hop")
        subjects = {
            kind: load(kind, agent if METHODS[kind].trained else None, args.device)
            for kind in (QRAG.name, TOPK.name, BM25.name)
        }
        named = argparse.Namespace(**vars(args) | {"n": args.n or 100})
        task = load_task_examples(name, named, subjects[TOPK.name].encoder)
        setting = Setting(split=args.split, length=task_length(name, args.length))
        found = {"gold": {example.id: example.support for example in task.examples}}
        for kind, subject in subjects.items():
            spec = subject.encoder.spec
            config = EpisodeConfig(step_budget=task.step_budget, seed=args.seed)
            if subject.acts:
                stop, review = spec.stop_threshold, spec.review_threshold
                config = config.with_(stop_threshold=stop, review_threshold=review)
            report = progress_printer(name)
            rows = evaluate(task.examples, setting, subject.retriever, subject.encoder, config, report)
            found[spec.name if subject.acts else kind] = {row.id: own_evidence(row) for row in rows}
        about = {"split": args.split, "length": setting.length, "seed": args.seed}
        for called, evidence in found.items():
            told = count_printer(f"{name} from {called}")
            yield from evaluate_answers(reader, task.examples, evidence, told, evidence=called, **about)


def _new_frontier_rows(args: argparse.Namespace, rows: list[FrontierRow]) -> Iterator[FrontierRow]:
    """The rows that are missing to n questions of each set; all are saved as they come."""
    from core.answer.reader import load_reader

    is_ablation = args.name == "set-ablations"
    if is_ablation:  # before hours of reading
        check_policies([read_card(folder).name for folder in args.policy or ()])
    sets, n = (("hotpotqa",), 350) if is_ablation else (("hotpotqa", "nq", "conditionalqa", *NATURAL), 100)
    plain = load_encoder("base", args.device)
    reader, llm = load_reader(args.reader, args.device), llm_of(args)
    answering = answering_reader(reader) if llm is None else answering_model(llm)
    for name in args.tasks or sets:
        known = [row for row in rows if row.task == name]
        done = {row.id for row in known}
        asked = frontier_questions(name, args.n or n, plain.tokenizer, args.data)
        questions = [question for question in asked if question.id not in done]
        if not questions:
            continue
        methods = set_methods(args.policy or [policy_of_set(name)], args.device)
        if not is_ablation:
            agent = methods[0].encoders[0]
            own = (QRAG.name, agent.spec.name)
            thresholds = next((row.settings for row in known if (row.method, row.policy) == own), None)
            if thresholds is None:
                seen = frontier_questions(name, N_FOR_THRESHOLDS, plain.tokenizer, args.data, "train")
                thresholds = stop_thresholds(agent, seen)
            methods = [*other_methods(agent, thresholds, plain, reader), *methods]
        wanted = {(method.name, method.policy, method.settings, answering.name) for method in methods}
        for key in done:
            if {(r.method, r.policy, r.settings, r.reader) for r in known if r.id == key} != wanted:
                raise BadRequest(
                    f"question {key} has rows of other methods, policies, settings or readers than would be"
                    " added; name another file with --rows"
                )
        report = count_printer(name)

        def told(done: int, total: int, report: Callable[[int, int], None] = report) -> None:
            _save(args.rows, rows)
            report(done, total)

        yield from frontier_rows(questions, answering, methods, told)


def _save(path: Path | None, rows: Iterable[Any]) -> None:
    if path is not None:
        text = "".join(map(row_line, rows)).encode()
        _write(path, gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def _write(path: Path, content: bytes) -> None:
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
