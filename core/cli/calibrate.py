"""`python -m core calibrate`.

An agent's defaults from questions it was not trained on, written into its qrag.json with what they rest on.
Stop threshold, budget and range of Q by default; with --review the threshold of the review and the stop
threshold that suits it. Without tasks, or for the task "validation", these are the validation examples of the
agent's own training data; with tasks, their training part by default, so that nothing is fitted to what is
tested. With --documents nothing is run: how likely evidence is complete is read off rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from core.base.config import EpisodeConfig
from core.base.errors import BadCheckpoint, BadRequest
from core.base.rows import EpisodeRow, row_line
from core.cli.common import check_targets, count_printer, print_json, progress_printer
from core.cli.evaluate import Subject, add_data_flags, load_subject, load_task_examples, task_length
from core.cli.flags import COUNT, JSON_LINES, path_flag
from core.cli.trec import line_file
from core.encode.checkpoint import CheckpointSpec, find_checkpoint, read_spec, write_spec
from core.lab.evaluate.calibrate import REVIEW_THRESHOLDS, STOP_THRESHOLDS, calibrate, calibrate_review
from core.lab.evaluate.completeness import PLACE, questions_by_size, with_curves
from core.lab.evaluate.documents import read_document_rows
from core.lab.evaluate.review import Thresholds, choices_of, reviewed_under
from core.lab.evaluate.run import Setting, evaluate, training_set
from core.lab.tasks.example import Example
from core.lab.train.mixtures import OwnMixture
from core.lab.train.recipes import RECIPES
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import QRAG

STEP_BUDGET = 6
"""More than any task needs, so that late stops are seen: Q-RAG's T where it studies stopping on bAbI."""
N_VALIDATION = 700
_VALIDATION = "validation"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `calibrate`."""
    add = parser.add_argument
    add("checkpoint", metavar="NAME_OR_DIR", help="whose qrag.json gets the defaults")
    once = "each counts once (default: validation, the validation examples of its own training)"
    add("tasks", nargs="*", metavar="TASK[@LENGTH]", help=once)
    add("--questions", **JSON_LINES, help="the file that an agent of your own questions was trained on")
    add_data_flags(parser, "train")
    add("--seed", **COUNT, default=0)
    most = f"most steps to choose a budget from (default {STEP_BUDGET})"
    add("--step-budget", **COUNT, default=STEP_BUDGET, help=most)
    review = "choose the review threshold instead, and the stop threshold anew with it"
    add("--review", action="store_true", help=review)
    add(
        "--documents",
        type=path_flag,
        metavar="ROWS.jsonl",
        help="instead, how likely evidence is complete: from rows of evaluate-documents --k 12 --stop none,"
        " over documents that no training has seen",
    )
    add("--rows", **JSON_LINES, help="write a line an example to this file")
    parser.set_defaults(func=run_calibrate)


def run_calibrate(args: argparse.Namespace) -> int:
    """Prints what was chosen and why."""
    folder = find_checkpoint(args.checkpoint)
    if args.documents is not None:
        return _calibrate_completeness(folder, args)
    check_targets([args.rows], [args.questions, *(Path(task.partition("@")[0]) for task in args.tasks)])
    subject = load_subject(QRAG.name, args.checkpoint, args.device)
    config = EpisodeConfig(step_budget=args.step_budget, seed=args.seed)
    rows: list[EpisodeRow] = []
    examples: list[Example] = []
    with line_file(args.rows) as keep:
        for part, setting, name in _parts(args, subject):
            examples += part
            report = progress_printer(name)
            for row in evaluate(part, setting, subject.retriever, subject.encoder, config, report):
                rows.append(row)
                keep(row_line(row))
    reviewed = _reviewed(rows, examples, Agent(subject.encoder)) if args.review else None
    calibration = calibrate(rows) if reviewed is None else calibrate_review(reviewed)
    how = {
        "on": args.tasks or [_VALIDATION],
        "split": " and ".join(dict.fromkeys(row.split for row in rows)),
        "seed": args.seed,
        "rows_step_budget": args.step_budget,
    }
    spec = calibration.applied_to(read_spec(folder), how)
    _write(folder, spec)
    print_json({"checkpoint": spec.name, **asdict(calibration), **how})
    return 0


def _calibrate_completeness(folder: Path, args: argparse.Namespace) -> int:
    """Curves of completeness into the spec; prints what they rest on."""
    spec = read_spec(folder)
    if args.tasks or args.review or args.questions is not None or args.rows is not None:
        raise BadRequest(
            "--documents reads rows and runs nothing; leave out tasks, --review, --questions and --rows"
        )
    if spec.reads_choices:
        raise BadRequest(
            f"{spec.name} looks again after each choice, so one look does not say whether its evidence is"
            " complete; name an agent of one search, general say"
        )
    curves = questions_by_size(read_document_rows(args.documents), spec.name)
    if not curves:
        raise BadRequest(
            f"{args.documents.name} has too few rows of {spec.name} with quotes, {PLACE} chunks and no stop;"
            " make more with evaluate-documents --methods auto --k 12 --stop none --rows FILE"
        )
    spec = with_curves(spec, curves, {"on": args.documents.name})
    _write(folder, spec)
    assert spec.scores is not None
    print_json({"checkpoint": spec.name, **spec.scores["completeness"]})
    return 0


def _write(folder: Path, spec: CheckpointSpec) -> None:
    try:
        write_spec(folder, spec)
    except OSError as error:
        raise BadCheckpoint(
            f"{folder} can't be written ({error.strerror}); copy the checkpoint to a folder of yours"
        ) from error


def _reviewed(
    rows: Sequence[EpisodeRow], examples: Sequence[Example], agent: Agent
) -> Iterator[tuple[Thresholds, list[EpisodeRow]]]:
    """The rows under each pair of thresholds, the agent's own stop among them."""
    own = agent.encoder.spec.stop_threshold
    stops = sorted({*STOP_THRESHOLDS} | (set() if own is None else {own}))
    report, total = count_printer(), len(stops) * (1 + len(REVIEW_THRESHOLDS))
    choices = choices_of(rows, examples, agent)
    for done, pair in enumerate(reviewed_under(rows, choices, agent, stops, REVIEW_THRESHOLDS), start=1):
        report(done, total)
        yield pair


Part = tuple[Sequence[Example], Setting, str]
"""Examples, where they come from, and what they are called."""


def _parts(args: argparse.Namespace, subject: Subject) -> Iterator[Part]:
    for named in args.tasks or [_VALIDATION]:
        if named == _VALIDATION:
            yield _validation_examples(args, subject)
            continue
        name, _, length = named.partition("@")
        own = argparse.Namespace(**vars(args) | {"length": length or args.length})
        task = load_task_examples(name, own, subject.encoder)
        yield task.examples, Setting(split=args.split, length=task_length(name, own.length)), named


def _validation_examples(args: argparse.Namespace, subject: Subject) -> Part:
    data = training_set(subject.encoder)
    if data not in RECIPES:
        raise BadRequest(
            f"{subject.encoder.spec.name} names no training data whose validation examples are known; name"
            " tasks to calibrate on"
        )
    if (data == OwnMixture.name) != (args.questions is not None):
        remedy = "name their file with --questions" if args.questions is None else "leave out --questions"
        raise BadRequest(f"{subject.encoder.spec.name} was trained on {data} questions; {remedy}")
    source = args.data if args.questions is None else args.questions
    mixture = RECIPES[data].build(source, subject.encoder.tokenizer)
    return mixture.validation(args.n or N_VALIDATION), Setting(split="validation"), _VALIDATION
