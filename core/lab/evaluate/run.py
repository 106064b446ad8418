"""Examples through one method, an `EpisodeRow` each.

The states of a batch are embedded together. The agent runs without its stop threshold, and looks once more
than its budget, so that a row answers for every threshold (see `rows`). In a short context the budget is the
number of chunks. The time of an episode is that of its steps up to the agent's own stop; embedding chunks is
not counted. A reader answers from what the method would hand on, after stop and review.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, Literal

import numpy as np

from core.answer.evidence import answer_evidence
from core.answer.protocol import Reader
from core.base.config import SETS, EpisodeConfig
from core.base.events import StepTaken, fold
from core.base.metrics import answer_em, answer_f1
from core.base.rows import EpisodeRow
from core.encode.cache import EmbedProgress, VectorStore
from core.encode.encoder import DualEncoder
from core.lab.evaluate.corpora import ExampleCorpus, index_examples
from core.lab.evaluate.outcomes import own_evidence
from core.lab.evaluate.review import reviewed
from core.lab.tasks.example import Example
from core.methods.protocol import Retriever
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from core.methods.qrag.policy import greedy
from core.methods.qrag.retriever import AgentRetriever

BATCH = 32
"""Episodes whose states are embedded together."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a row says about where its example comes from."""

    split: str
    length: int | None = None
    """Tokens of the haystack; None where the task has its own contexts."""
    chunk_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class EvaluationProgress:
    """How far an evaluation is. Units: chunks while embedding, examples while retrieving."""

    stage: Literal["embedding", "retrieving"]
    done: int
    total: int
    seconds_left: float | None


Progress = Callable[[EvaluationProgress], None]


def evaluate(
    examples: Sequence[Example],
    setting: Setting,
    retriever: Retriever,
    encoder: DualEncoder,
    config: EpisodeConfig,
    on_progress: Progress | None = None,
    *,
    batch: int = BATCH,
    store: VectorStore | None = None,
) -> Iterator[EpisodeRow]:
    """A row per example, in order. `encoder`: whose vectors `retriever` searches; `on_progress` may raise
    `Cancelled`; `config.stop_threshold` is recorded as the agent's own and stops nothing, unless a beam plans
    with it. Raises BadRequest for a budget that states can't hold, ValueError for an example without support.
    """
    unlabelled = next((example.id for example in examples if not example.support), None)
    if unlabelled is not None:
        raise ValueError(f"example {unlabelled!r} has no support, so it can't be scored; leave it out")

    def embedding(progress: EmbedProgress) -> None:
        if on_progress is not None and progress.total > progress.n_cached:
            on_progress(EvaluationProgress("embedding", progress.done, progress.total, progress.seconds_left))

    corpora, done, spent = index_examples(examples, encoder, embedding, store=store), 0, 0.0
    while done < len(examples):
        part = list(islice(corpora, batch))
        if on_progress is not None and not done:  # the first batch takes a while, and may be the only one
            on_progress(EvaluationProgress("retrieving", 0, len(examples), None))
        began = time.perf_counter()
        rows = list(_rows(part, setting, retriever, encoder, config))
        if isinstance(retriever, AgentRetriever) and config.beam_width == 1:
            rows = reviewed(rows, part, retriever.agent, config.review_threshold)
        yield from rows
        done, spent = done + len(part), spent + time.perf_counter() - began
        if on_progress is not None:
            left = spent / done * (len(examples) - done)
            on_progress(EvaluationProgress("retrieving", done, len(examples), left))


@dataclass(slots=True)
class _Path:
    """What a method did on one example."""

    chosen: list[int] = field(default_factory=list)
    q_values: list[float] = field(default_factory=list)
    best_q: list[float] = field(default_factory=list)
    milliseconds: float = 0.0
    kept: tuple[int, ...] | None = None


def _rows(
    corpora: Sequence[ExampleCorpus],
    setting: Setting,
    retriever: Retriever,
    encoder: DualEncoder,
    config: EpisodeConfig,
) -> Iterator[EpisodeRow]:
    configs = [config.with_(step_budget=min(config.step_budget, len(corpus))) for corpus in corpora]
    if isinstance(retriever, AgentRetriever) and config.beam_width == 1:
        paths = _agent_paths(retriever.agent, corpora, configs)
    else:
        paths = [_path(retriever, corpus, fitted) for corpus, fitted in zip(corpora, configs, strict=True)]
    taken = zip(corpora, paths, strict=True)
    texts = [corpus.text(chunk_id) for corpus, path in taken for chunk_id in path.chosen]
    counts = iter(encoder.tokenizer.count(texts).tolist())
    learns = isinstance(retriever, AgentRetriever)
    shared: dict[str, Any] = {
        **asdict(setting),
        "seed": config.seed,
        "method": retriever.name,
        "checkpoint": encoder.spec.name,
        "fingerprint": encoder.fingerprint,
        "trained_on": training_set(encoder) if learns else None,
        "stop_threshold": config.stop_threshold if learns else None,
        "temperature": config.temperature,
        "beam_width": config.beam_width,
        "top_k_actions": config.top_k_actions,
    }
    for corpus, fitted, path in zip(corpora, configs, paths, strict=True):
        yield EpisodeRow(
            id=corpus.example.id,
            task=corpus.example.task,
            n_chunks=len(corpus),
            support=corpus.example.support,
            # the threshold method takes as many as its rule says
            step_budget=max(fitted.step_budget, len(path.chosen)),
            chosen=tuple(path.chosen),
            q_values=_rounded(path.q_values),
            best_q=_rounded(path.best_q),
            tokens=tuple(islice(counts, len(path.chosen))),
            kept=path.kept,
            milliseconds=round(path.milliseconds, 3),
            **shared,
        )


def training_set(encoder: DualEncoder) -> str | None:
    """What the agent was trained on, by its checkpoint's `training.data`; None for an untrained one."""
    if not encoder.spec.trained:
        return None
    return str((encoder.spec.training or {}).get("data", "not stated"))


def _agent_paths(
    agent: Agent, corpora: Sequence[ExampleCorpus], configs: Sequence[EpisodeConfig]
) -> list[_Path]:
    # what the stop and the review leave is read off the rows
    bare = [config.with_(stop_threshold=None, review_threshold=None) for config in configs]
    episodes = [
        Episode(c.example.question, c, config, id=c.example.id)
        for c, config in zip(corpora, bare, strict=True)
    ]
    paths = [_Path() for _ in episodes]
    for i, event in agent.run_batch(episodes):
        if isinstance(event, StepTaken):
            path, threshold = paths[i], configs[i].stop_threshold
            if threshold is None or min(path.best_q, default=threshold) >= threshold:
                path.milliseconds += event.milliseconds  # with the look at which the agent would stop
            assert event.scores is not None
            available = np.ones(len(event.scores.q_values), dtype=bool)
            available[path.chosen] = False
            path.best_q.append(_best(event.scores.q_values, available))
            path.chosen.append(event.chunk_id)
            path.q_values.append(event.q_value)
    pairs = zip(episodes, paths, strict=True)
    going_on = [(episode, path) for episode, path in pairs if len(path.chosen) < len(episode.corpus)]
    looks = agent.look([(episode, path.chosen) for episode, path in going_on])
    for (_, path), look in zip(going_on, looks, strict=True):
        path.best_q.append(_best(look.scores.q_values, look.available))
    return paths


def _best(q_values: np.ndarray, available: np.ndarray) -> float:
    """Largest Q that the agent could take."""
    return float(q_values[greedy(q_values, available)[0]])


def _path(retriever: Retriever, corpus: ExampleCorpus, config: EpisodeConfig) -> _Path:
    """One example through a planner, or a baseline, which looks once and has no threshold of its own."""
    plans = isinstance(retriever, AgentRetriever)
    if not plans:
        config = config.with_(stop_threshold=None)
    began = time.perf_counter()
    trace = fold(retriever.retrieve(corpus.example.question, corpus, config))
    spent = 1000 * (time.perf_counter() - began) if plans else sum(step.milliseconds for step in trace.steps)
    path = _Path([*trace.chosen], [step.q_value for step in trace.steps], milliseconds=spent)
    if plans:
        # at temperature 0, and a beam has no other, V(s) is the largest Q
        path.best_q = [step.state_value for step in trace.steps]
        if trace.stopped is not None and trace.stopped.q_value is not None:
            path.best_q.append(trace.stopped.q_value)
        if config.review_threshold is not None:
            path.kept = tuple(chunk_id for chunk_id in trace.chosen if chunk_id not in trace.taken_back)
    return path


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    """Seven decimals: below what float32 tells apart."""
    return tuple(round(value, 7) for value in values)


def with_answers(
    rows: Iterable[EpisodeRow], examples: Iterable[Example], reader: Reader
) -> Iterator[EpisodeRow]:
    """The rows in order, with answer EM and F1 where the answer is known. `examples`: each row's own."""
    pairs = zip(rows, examples, strict=True)
    while batch := list(islice(pairs, BATCH)):
        answerable = [(row, own_evidence(row), example) for row, example in batch if example.answers]
        evidence = [{i: example.chunks[i] for i in chunk_ids} for _, chunk_ids, example in answerable]
        found = [() if row.method in SETS else chunk_ids for row, chunk_ids, _ in answerable]
        questions = [example.question for _, _, example in answerable]
        answers = iter(answer_evidence(reader, questions, evidence, found))
        for row, example in batch:
            if example.answers:
                text, known = next(answers).text, example.answers
                row = replace(row, answer_em=answer_em(text, known), answer_f1=answer_f1(text, known))
            yield row
