"""Questions of tasks through the reader, for `study answers`.

Over the support and over what methods find. Evidence comes from the agent that ships for a task's kind, which
stops by its own threshold, and from methods that take as many chunks as the task's budget.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import cache

from core.answer.reader import load_reader
from core.base.config import EpisodeConfig
from core.cli.common import progress_printer
from core.cli.evaluate import load_subject, load_task_examples, task_length
from core.lab.evaluate.outcomes import own_evidence
from core.lab.evaluate.run import EvaluationProgress, Progress, Setting, evaluate
from core.lab.reader.evaluation import AnswerRow, evaluate_answers
from core.lab.tasks.babi_world import TASKS as STORIES
from core.methods.bm25 import BM25
from core.methods.qrag.retriever import QRAG
from core.methods.registry import METHODS
from core.methods.topk import TOPK

TASKS = ("squad", "nq", "hotpotqa", "2wiki", "musique", *STORIES)


def answer_rows(args: argparse.Namespace) -> Iterator[AnswerRow]:
    """A row a task, kind of evidence and question. Raises BadRequest, BadCheckpoint."""
    reader, load = load_reader(args.reader, args.device), cache(load_subject)
    for name in args.tasks or TASKS:
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
            told = told_by(progress_printer(f"{name} from {called}"))
            yield from evaluate_answers(reader, task.examples, evidence, told, evidence=called, **about)


def told_by(report: Progress) -> Callable[[int, int], None]:
    """What reports questions done, of how many, as progress."""
    return lambda done, total: report(EvaluationProgress("retrieving", done, total, None))
