"""Questions of tasks through the reader, for `study answers`.

Over the support and over what methods retrieve. Each task's evidence is retrieved by the agent that ships for
its kind, which stops by its own threshold, and by methods that take as many chunks as the task's budget.
Progress goes to stderr while somebody watches.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

from core.answer.reader import load_reader
from core.base.config import EpisodeConfig
from core.cli.common import progress_printer
from core.cli.evaluate import Subject, load_subject, load_task_examples, task_length
from core.lab.evaluate.outcomes import own_evidence
from core.lab.evaluate.run import EvaluationProgress, Progress, Setting, evaluate
from core.lab.reader.evaluation import evaluate_answers, gold_evidence
from core.lab.reader.rows import AnswerRow
from core.lab.studies.registry import AnswerStudy
from core.lab.tasks.babi_world import TASKS as STORIES
from core.lab.tasks.catalog import TaskSet
from core.lab.tasks.example import Example
from core.methods.registry import METHODS
from core.methods.topk import TOPK

GOLD = "gold"


def answer_rows(names: Sequence[str], study: AnswerStudy, args: argparse.Namespace) -> Iterator[AnswerRow]:
    """A row a task, kind of evidence and question. Raises BadRequest, BadCheckpoint."""
    reader, subjects = load_reader(args.reader, args.device), _Subjects(args)
    for name in names:
        task = load_task_examples(
            name,
            argparse.Namespace(**vars(args) | {"n": args.n or study.n}),
            subjects.of(TOPK.name, name).encoder,
        )
        about = {"split": args.split, "length": task_length(name, args.length), "seed": args.seed}
        for kind in study.evidence:
            called, evidence_of = (
                (GOLD, gold_evidence)
                if kind == GOLD
                else _retrieved(kind, task, subjects.of(kind, name), args)
            )
            yield from evaluate_answers(
                reader,
                task.examples,
                evidence_of,
                told_by(progress_printer(f"{name} from {called}")),
                evidence=called,
                **about,
            )


class _Subjects:
    """Methods, each loaded once."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._loaded: dict[tuple[str, str | None], Subject] = {}

    def of(self, kind: str, task: str) -> Subject:
        """The method of that kind for a task."""
        agent = None
        if METHODS[kind].trained:
            agent = self._args.checkpoint or ("narrative" if task in STORIES else "multi-hop")
        if (kind, agent) not in self._loaded:
            self._loaded[kind, agent] = load_subject(kind, agent, self._args.device)
        return self._loaded[kind, agent]


def _retrieved(
    kind: str, task: TaskSet, subject: Subject, args: argparse.Namespace
) -> tuple[str, Callable[[Example], Sequence[int]]]:
    """What the evidence is called, and the chunk ids that it is for each example."""
    spec = subject.encoder.spec
    config = EpisodeConfig(step_budget=args.step_budget or task.step_budget, seed=args.seed)
    if subject.acts:
        config = config.with_(stop_threshold=spec.stop_threshold, review_threshold=spec.review_threshold)
    setting = Setting(split=args.split, length=task_length(task.name, args.length))
    rows = evaluate(
        task.examples, setting, subject.retriever, subject.encoder, config, progress_printer(task.name)
    )
    chosen = {row.id: own_evidence(row) for row in rows}
    return spec.name if subject.acts else kind, lambda example: chosen[example.id]


def told_by(report: Progress) -> Callable[[int, int], None]:
    """What reports questions done, of how many, as progress."""
    return lambda done, total: report(EvaluationProgress("retrieving", done, total, None))
