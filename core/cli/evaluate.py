"""`python -m core evaluate`.

Tasks through a method, a JSON object a task. A flag wins over the step budget that the task names, that over
the checkpoint's settings. Workers of a cluster are sent the examples, so that only the agent must be on their
machines.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from core.answer.protocol import Reader
from core.base.batches import batches
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.rows import EpisodeRow, row_line
from core.base.types import Document
from core.cli.common import check_targets, count_printer, named_log, print_json, progress_printer, say
from core.cli.flags import (
    AS_JSON,
    CHECKPOINT,
    COUNT,
    DATA_FOLDER,
    DEVICE,
    FILE,
    JSON_LINES,
    LOG,
    add_cluster_flag,
    add_episode_flags,
)
from core.cli.inputs import say_other_agent
from core.cli.trec import chunk_names, found_lines, line_file, relevant_lines, run_path
from core.encode.checkpoint import find_checkpoint, read_spec
from core.encode.encoder import DualEncoder, load_encoder
from core.integrations.cluster.workers import check_vectors, in_order, joined_cluster, task_results
from core.lab.evaluate.corpora import join_chunks
from core.lab.evaluate.outcomes import own_evidence
from core.lab.evaluate.run import BATCH, Progress, Setting, evaluate, training_set, with_answers
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
    tasks = "qa1, hotpotqa, ... (an unknown name lists them all), a file of questions, or a BEIR folder"
    add("tasks", nargs="+", metavar="TASK", help=tasks)
    add_data_flags(parser, "test")
    add_cluster_flag(parser)
    add("--method", choices=BY_ENCODER, default=QRAG.name, help="default qrag: the checkpoint's agent")
    add("--checkpoint", **CHECKPOINT)
    add("--chunk-tokens", **COUNT, help="join neighbouring chunks up to so many tokens (default: none)")
    add("--one-by-one", action="store_true", help="run one question at a time, for the clock")
    add("--rows", **JSON_LINES, help="write a line an example to this file")
    add("--run", **FILE, help="write the evidence as a TREC run; with several tasks FILE-TASK each")
    add("--qrels", **FILE, help="write the support as TREC qrels; with several tasks FILE-TASK each")
    add("--log", **LOG, help="keep the rows in the experiment log")
    add("--json", **AS_JSON)
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


def load_subject(method: str, checkpoint: str | None, device: str | None) -> Subject:
    """A method by name; one without an agent searches `vectors_of`. Raises BadCheckpoint, BadRequest."""
    if not facts_of(method).trained:
        checkpoint = vectors_of(method, read_spec(find_checkpoint(checkpoint)).name)
    agent = load_encoder(checkpoint, device)
    return Subject(*build_retriever(method, agent, agent), (method, checkpoint, device))


def run_evaluate(args: argparse.Namespace) -> int:
    """Prints an object a task."""
    from core.answer.reader import load_reader  # with torch, which takes seconds

    mine = [Path(name) for name in args.tasks if name not in TASKS]
    lines = [run_path(path, name, args.tasks) for name in {*args.tasks} for path in (args.run, args.qrels)]
    check_targets([args.rows, *lines], mine, args.log)
    subject, reader = load_subject(args.method, args.checkpoint, args.device), load_reader(device=args.device)
    encoder = subject.encoder
    with line_file(args.rows) as keep, named_log(args.log) as log, joined_cluster(args.cluster):
        for name in args.tasks:
            began = time.perf_counter()
            task = load_task_examples(name, args, encoder)
            if name not in TASKS and subject.acts:
                _say_other_agent(task, args.checkpoint, encoder.spec.name)
            if args.chunk_tokens is not None:
                encoder.spec.chunk_config("sentences", args.chunk_tokens)  # refuses what it can't read
                examples = (join_chunks(one, encoder.tokenizer, args.chunk_tokens) for one in task.examples)
                task = replace(task, examples=tuple(examples))
            how = _how_of(task, args, subject)
            rows = []
            with (
                line_file(run_path(args.run, name, args.tasks)) as keep_found,
                line_file(run_path(args.qrels, name, args.tasks)) as keep_relevant,
            ):
                done = _evaluated(task.examples, how, subject, args, reader)
                for example, row in zip(task.examples, done, strict=True):
                    rows.append(row)
                    keep(row_line(row))
                    keep_found(found_lines(row.id, _names(example, own_evidence(row)), row.method))
                    keep_relevant(relevant_lines(row.id, _names(example, row.support)))
            seconds = time.perf_counter() - began
            result = _result(task, args, subject, how.config, rows, seconds)
            print_json(result)
            if log is not None:
                evaluation = new_evaluation(rows, result["config"])
                log.keep(evaluation)
                say(f"logged as {evaluation.evaluation_id}")
    return 0


def _names(example: Example, chunk_ids: Sequence[int]) -> list[str]:
    """Chunks by their names in a corpus, else by question and id."""
    names = example.chunks.names if isinstance(example.chunks, Passages) else ()
    return [names[chunk_id] for chunk_id in chunk_ids] if names else chunk_names(example.id, chunk_ids)


def _say_other_agent(task: TaskSet, named: str | None, used: str) -> None:
    """As `say_other_agent`, of a file whose chunks are given: by the first of them as one text."""
    texts = islice((chunk for example in task.examples for chunk in example.chunks), LOOKED_AT)
    say_other_agent(Document(Path(task.name).name, "\n".join(texts), "text"), named, used)


def load_task_examples(name: str, args: argparse.Namespace, encoder: DualEncoder) -> TaskSet:
    """The examples that the flags name. Raises BadRequest."""
    asked = {"part": args.split} | {key: getattr(args, key) for key in ("length", "n", "seed", "data")}
    return load_task(name, **asked, tokenizer=encoder.tokenizer)


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
        reader: Reader,
        on_progress: Progress | None = None,
    ) -> Iterator[EpisodeRow]:
        asked = (examples, self.setting, subject.retriever, subject.encoder, self.config, on_progress)
        return with_answers(evaluate(*asked, batch=self.batch), examples, reader)


def _evaluated(
    examples: Sequence[Example],
    how: EpisodeEvaluation,
    subject: Subject,
    args: argparse.Namespace,
    reader: Reader,
) -> Iterator[EpisodeRow]:
    """A row with an answer an example, in order, progress on stderr. Raises BadRequest, BadCheckpoint."""
    if args.cluster is None:
        yield from how.rows(examples, subject, reader, progress_printer(examples[0].task))
        return
    setup = (how, subject.named, subject.encoder.fingerprint)
    parts, report = list(batches(examples, BATCH)), count_printer(examples[0].task)
    done, vectors, began = 0, dict[str, str](), time.perf_counter()
    for own_vectors, rows in in_order(task_results(BatchEvaluator, setup, "result", parts, args.cluster)):
        check_vectors({subject.encoder.spec.name: own_vectors}, vectors)
        yield from rows
        done += len(rows)
        left = (time.perf_counter() - began) / done * (len(examples) - done)
        report(done, len(examples), seconds_left=left)


class BatchEvaluator:
    """Evaluates batches in a worker of a cluster, with models of its own."""

    def __init__(self, how: EpisodeEvaluation, named: Named, fingerprint: str) -> None:
        """`fingerprint` is the agent's in the process that asks."""
        self._how, self._named, self._fingerprint = how, named, fingerprint

    @cached_property
    def _models(self) -> tuple[Subject, Reader]:
        """Loaded with the first batch: a cluster loses the sentence of what fails before."""
        from core.answer.reader import load_reader

        subject = load_subject(*self._named)
        if subject.encoder.fingerprint != self._fingerprint:
            raise BadRequest(
                f"{subject.encoder.spec.name} is another agent on one machine of the cluster; copy its folder"
                " there, and use the same QRAG_READER everywhere"
            )
        return subject, load_reader(device=self._named[-1])

    def result(self, examples: Sequence[Example]) -> tuple[str, list[EpisodeRow]]:
        """(fingerprint of the vectors, a row an example) of what one process embeds together."""
        subject, reader = self._models
        return subject.encoder.vector_fingerprint, list(self._how.rows(examples, subject, reader))


def _how_of(task: TaskSet, args: argparse.Namespace, subject: Subject) -> EpisodeEvaluation:
    """Flags over the task's step budget and the checkpoint's defaults."""
    spec, length = subject.encoder.spec, task_length(task.name, args.length)
    config = EpisodeConfig(
        step_budget=task.step_budget if args.step_budget is None else args.step_budget,
        temperature=spec.temperature if args.temperature is None else args.temperature,
        stop_threshold=getattr(args, "stop_threshold", spec.stop_threshold if subject.acts else None),
        review_threshold=getattr(args, "review_threshold", spec.review_threshold if subject.acts else None),
        seed=args.seed,
        beam_width=args.beam_width,
        top_k_actions=args.top_k_actions,
    )
    setting = Setting(split=args.split, length=length, chunk_tokens=args.chunk_tokens)
    return EpisodeEvaluation(setting=setting, config=config, batch=1 if args.one_by_one else BATCH)


def _result(
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
    encoder = subject.encoder
    agent = {"fingerprint": encoder.fingerprint, "trained_on": training_set(encoder)}
    return {
        "task": task.name,
        "checkpoint": encoder.spec.name,
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
