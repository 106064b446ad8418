"""`python -m core evaluate`.

Tasks through a method, a JSON object a task. A flag wins over the step budget that the task names, that over
the checkpoint's settings. Rows go to a file of JSON lines, to the log, or both. Progress with the time left
goes to stderr while somebody watches. Workers of a cluster are sent the examples, so that only the agent must
be on their machines.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from core.answer.protocol import Reader
from core.answer.reader import load_reader
from core.base.batches import batches
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.rows import EpisodeRow, row_line
from core.base.types import Document
from core.cli.common import named_log, print_json, progress_printer, say
from core.cli.flags import (
    CHECKPOINT,
    COUNT,
    DATA_FOLDER,
    DEVICE,
    FILE,
    JSON_ALONE,
    JSON_LINES,
    add_cluster_flag,
    add_episode_flags,
)
from core.cli.inputs import say_other_agent
from core.cli.trec import document_lines, found_lines, line_file, relevant_lines, run_path
from core.encode.checkpoint import find_checkpoint, read_spec
from core.encode.encoder import DualEncoder, load_encoder
from core.integrations.cluster.workers import check_vectors, in_order, joined_cluster, task_results
from core.lab.evaluate.corpora import join_chunks
from core.lab.evaluate.outcomes import own_evidence
from core.lab.evaluate.run import (
    BATCH,
    EvaluationProgress,
    Progress,
    Setting,
    evaluate,
    training_set,
    with_answers,
)
from core.lab.evaluate.summary import summarise
from core.lab.tasks.babilong import parse_length
from core.lab.tasks.beir import Passages
from core.lab.tasks.catalog import PARTS, TASKS, TaskSet, load_task
from core.lab.tasks.example import Example
from core.methods.protocol import Retriever
from core.methods.qrag.retriever import QRAG
from core.methods.registry import BY_ENCODER, build_retriever, facts_of, vectors_of
from core.runs.log import new_evaluation

DIGITS = 6
"""Decimals of printed metrics."""
LOOKED_AT = 1_000
"""Chunks of a file by which an agent would be picked."""


def add_data_flags(parser: argparse.ArgumentParser, split: str) -> None:
    """Which examples: shared by every command that evaluates."""
    add = parser.add_argument
    add("--data", **DATA_FOLDER)
    add("--split", default=split, choices=PARTS, help=f"part of the data (default {split})")
    add("--length", metavar="TOKENS", help="of the haystack: 4096, 32K, 1M (default: the task's)")
    add("--n", **COUNT, help="most examples of each task (default: all)")
    add("--device", **DEVICE)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `evaluate`."""
    add = parser.add_argument
    add_episode_flags(parser)
    add("tasks", nargs="+", metavar="TASK", help="qa1, hotpotqa, ...; an unknown name lists them all")
    add_data_flags(parser, "test")
    add_cluster_flag(parser)
    add("--method", choices=BY_ENCODER, default=QRAG.name, help="default qrag: the checkpoint's agent")
    add("--checkpoint", **CHECKPOINT)
    add("--chunk-tokens", **COUNT, help="join neighbouring chunks up to so many tokens (default: none)")
    add("--one-by-one", action="store_true", help="run one question at a time, for the clock")
    add("--rows", **JSON_LINES, help="write a line an example to this file")
    add("--run", **FILE, help="write the evidence as a TREC run; with several tasks FILE-TASK each")
    add("--qrels", **FILE, help="write the support as TREC qrels; with several tasks FILE-TASK each")
    add("--log", nargs="?", const="", metavar="FILE", help="keep the rows in the experiment log")
    add("--json", **JSON_ALONE)
    parser.set_defaults(func=run_evaluate)


Named = tuple[str, str | None, str | None]
"""Method, checkpoint and device, as a command names them."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What is evaluated: a method and the encoder whose vectors it searches."""

    retriever: Retriever
    encoder: DualEncoder
    named: Named
    """What `load_subject` made it of."""

    @property
    def acts(self) -> bool:
        """Whether the encoder's agent chooses, so that its own thresholds hold."""
        return facts_of(self.retriever.name).trained

    @property
    def trained_on(self) -> str | None:
        """Name of the training set."""
        return training_set(self.encoder)


def load_subject(method: str, checkpoint: str | None, device: str | None) -> Subject:
    """A method by name; one without an agent searches `vectors_of`. Raises BadCheckpoint, BadRequest."""
    if not facts_of(method).trained:
        checkpoint = vectors_of(method, read_spec(find_checkpoint(checkpoint)).name)
    agent = load_encoder(checkpoint, device)
    return Subject(*build_retriever(method, agent, agent), (method, checkpoint, device))


def run_evaluate(args: argparse.Namespace) -> int:
    """Prints an object a task."""
    subject, reader = load_subject(args.method, args.checkpoint, args.device), load_reader(device=args.device)
    with row_file(args.rows) as keep, named_log(args.log) as log, joined_cluster(args.cluster):
        for name in args.tasks:
            began = time.perf_counter()
            task = load_task_examples(name, args, subject.encoder)
            if name not in TASKS and subject.acts:
                _say_other_agent(task, args.checkpoint, subject.encoder.spec.name)
            if args.chunk_tokens is not None:
                # refuses what the encoder can't read
                subject.encoder.spec.chunk_config("sentences", args.chunk_tokens)
                joined = (
                    join_chunks(example, subject.encoder.tokenizer, args.chunk_tokens)
                    for example in task.examples
                )
                task = replace(task, examples=tuple(joined))
            config = episode_config(args, subject, task)
            rows = []
            with (
                line_file(run_path(args.run, name, args.tasks)) as keep_found,
                line_file(run_path(args.qrels, name, args.tasks)) as keep_relevant,
            ):
                done = evaluated(task.examples, how_of(task, args, config), subject, args, reader)
                for example, row in zip(task.examples, done, strict=True):
                    rows.append(row)
                    keep(row)
                    found, relevant = _trec_lines(example, row)
                    keep_found("".join(found))
                    keep_relevant("".join(relevant))
            seconds = time.perf_counter() - began
            result = _result(name, task, args, subject, config, rows, seconds)
            print_json(result)
            if log is not None:
                evaluation = new_evaluation(rows, result["config"])
                log.keep(evaluation)
                say(f"logged as {evaluation.evaluation_id}")
    return 0


def _trec_lines(example: Example, row: EpisodeRow) -> tuple[Iterator[str], Iterator[str]]:
    """Of a run and of qrels: chunks by their names in a corpus, else by question and id."""
    names = example.chunks.names if isinstance(example.chunks, Passages) else ()
    found = own_evidence(row)
    if not names:
        return found_lines(row.id, row.id, found, row.method), relevant_lines(row.id, row.id, row.support)
    relevant = (f"{row.id} 0 {names[chunk_id]} 1\n" for chunk_id in row.support)
    return document_lines(row.id, (names[chunk_id] for chunk_id in found), row.method), relevant


def _say_other_agent(task: TaskSet, named: str | None, used: str) -> None:
    """As `say_other_agent`, of a file whose chunks are given: by the first of them as one text."""
    texts = islice((chunk for example in task.examples for chunk in example.chunks), LOOKED_AT)
    say_other_agent(Document(Path(task.name).name, "\n".join(texts), "text"), named, used)


def load_task_examples(name: str, args: argparse.Namespace, encoder: DualEncoder) -> TaskSet:
    """The examples that the flags name. Raises BadRequest."""
    return load_task(
        name,
        part=args.split,
        length=args.length,
        n=args.n,
        seed=args.seed,
        data=args.data,
        tokenizer=encoder.tokenizer,
    )


def task_length(name: str, named: str | None) -> int | None:
    """Tokens of a task's haystacks; None where its chunks are given."""
    default = TASKS[name].length if name in TASKS else None
    return None if default is None else parse_length(named or default)


@dataclass(frozen=True, kw_only=True)
class EpisodeEvaluation:
    """How examples are evaluated, whatever evaluates them."""

    setting: Setting
    config: EpisodeConfig
    batch: int = BATCH
    """Episodes whose states are embedded together: BATCH, or 1 where each is timed by itself."""

    def rows(
        self,
        examples: Sequence[Example],
        subject: Subject,
        reader: Reader | None,
        on_progress: Progress | None = None,
    ) -> Iterator[EpisodeRow]:
        rows = evaluate(
            examples,
            self.setting,
            subject.retriever,
            subject.encoder,
            self.config,
            on_progress,
            batch=self.batch,
        )
        return rows if reader is None else with_answers(rows, examples, reader)


def evaluated(
    examples: Sequence[Example],
    how: EpisodeEvaluation,
    subject: Subject,
    args: argparse.Namespace,
    reader: Reader | None = None,
) -> Iterator[EpisodeRow]:
    """A row an example, in order, with progress on stderr; with answers where there is a reader. In
    this process, or on the cluster that the flags name. Raises BadRequest, BadCheckpoint.
    """
    report = progress_printer(examples[0].task)
    if args.cluster is None:
        yield from how.rows(examples, subject, reader, report)
        return
    setup = (how, subject.named, subject.encoder.fingerprint, reader is not None)
    parts = list(batches(examples, BATCH))
    done, vectors, began = 0, dict[str, str](), time.perf_counter()
    for own_vectors, rows in in_order(task_results(BatchEvaluator, setup, "result", parts, args.cluster)):
        check_vectors({subject.encoder.spec.name: own_vectors}, vectors)
        yield from rows
        done += len(rows)
        left = (time.perf_counter() - began) / done * (len(examples) - done)
        report(EvaluationProgress("retrieving", done, len(examples), left))


class BatchEvaluator:
    """Evaluates batches in a worker of a cluster, with models of its own."""

    def __init__(self, how: EpisodeEvaluation, named: Named, fingerprint: str, reads: bool) -> None:
        """`fingerprint` is the agent's in the process that asks."""
        self._how, self._named, self._fingerprint, self._reads = how, named, fingerprint, reads

    @cached_property
    def _models(self) -> tuple[Subject, Reader | None]:
        """Loaded with the first batch: a cluster loses the sentence of what fails before."""
        subject = load_subject(*self._named)
        if subject.encoder.fingerprint != self._fingerprint:
            raise BadRequest(
                f"{subject.encoder.spec.name} is another agent on one machine of the cluster; copy its folder"
                " there, and use the same QRAG_READER everywhere"
            )
        return subject, load_reader(device=self._named[-1]) if self._reads else None

    def result(self, examples: Sequence[Example]) -> tuple[str, list[EpisodeRow]]:
        """(fingerprint of the vectors, a row an example) of what one process embeds together."""
        subject, reader = self._models
        return subject.encoder.vector_fingerprint, list(self._how.rows(examples, subject, reader))


def how_of(task: TaskSet, args: argparse.Namespace, config: EpisodeConfig) -> EpisodeEvaluation:
    """As the flags say."""
    setting = Setting(
        split=args.split, length=task_length(task.name, args.length), chunk_tokens=args.chunk_tokens
    )
    return EpisodeEvaluation(setting=setting, config=config, batch=1 if args.one_by_one else BATCH)


def episode_config(args: argparse.Namespace, subject: Subject, task: TaskSet) -> EpisodeConfig:
    """Flags over the task's step budget and the checkpoint's defaults."""
    spec = subject.encoder.spec
    budget = task.step_budget if args.step_budget is None else args.step_budget
    temperature = spec.temperature if args.temperature is None else args.temperature
    return EpisodeConfig(
        step_budget=budget,
        temperature=temperature,
        stop_threshold=getattr(args, "stop_threshold", spec.stop_threshold if subject.acts else None),
        review_threshold=getattr(args, "review_threshold", spec.review_threshold if subject.acts else None),
        seed=args.seed,
        beam_width=args.beam_width,
        top_k_actions=args.top_k_actions,
    )


def _result(
    name: str,
    task: TaskSet,
    args: argparse.Namespace,
    subject: Subject,
    config: EpisodeConfig,
    rows: Sequence[EpisodeRow],
    seconds: float,
) -> dict[str, Any]:
    """The object of the contract; `config` holds everything that qualifies the numbers."""
    summary = summarise(rows)
    about = {
        "method": args.method,
        "split": args.split,
        "length": rows[0].length,
        "left_out": task.left_out,
        "description": task.description,
    }
    agent = {"fingerprint": subject.encoder.fingerprint, "trained_on": subject.trained_on}
    return {
        "task": name,
        "checkpoint": subject.encoder.spec.name,
        "n": summary.n,
        "config": config.to_json() | about | agent,
        "metrics": {metric: _rounded(value) for metric, value in summary.metrics.items()},
        "intervals": {
            metric: None if ends is None else [_rounded(end) for end in ends]
            for metric, ends in summary.intervals.items()
        },
        "seconds": round(seconds, 3),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


@contextmanager
def row_file(path: Path | None) -> Iterator[Any]:
    """A function that keeps a row, a line at once, so that a killed evaluation leaves what it measured."""
    with line_file(path) as write:
        yield lambda row: write(row_line(row))
