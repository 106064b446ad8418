"""What an agent's review would leave of the choices in rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TypeVar

import numpy as np

from core.base.batches import batches
from core.base.config import EpisodeConfig
from core.base.events import Stopped
from core.base.rows import EpisodeRow
from core.corpus.opening import index_of, vector_store
from core.encode.cache import embed_chunks
from core.lab.evaluate.corpora import ExampleCorpus, index_examples
from core.lab.evaluate.outcomes import own_steps
from core.lab.tasks.example import Example
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode

_BATCH = 64
"""Rows whose states are embedded together."""


def choices_of(rows: Sequence[EpisodeRow], examples: Sequence[Example], agent: Agent) -> list[ExampleCorpus]:
    """The rows' examples; only chosen chunks have own vectors, unless a reranker needs all. Raises ValueError
    unless they match.
    """
    texts: dict[str, int] = {}
    for row, example in zip(rows, examples, strict=True):
        if (row.id, row.n_chunks, row.support) != (example.id, len(example.chunks), example.support):
            raise ValueError(f"row {row.id!r} was not made from example {example.id!r}")
        for chunk_id in row.chosen:
            texts.setdefault(example.chunks[chunk_id], len(texts))
    if agent.spec.rerank_weight:
        return [*index_examples(examples, agent.encoder)]
    index = index_of(agent.encoder, embed_chunks(agent.encoder, list(texts), vector_store(agent.encoder)))
    corpora = []
    for row, example in zip(rows, examples, strict=True):
        places = np.zeros(row.n_chunks, dtype=np.int64)
        for chunk_id in row.chosen:
            places[chunk_id] = texts[example.chunks[chunk_id]]
        corpora.append(ExampleCorpus(example, index.arranged(places)))
    return corpora


def reviewed(
    rows: Sequence[EpisodeRow], corpora: Sequence[ExampleCorpus], agent: Agent, threshold: float | None
) -> list[EpisodeRow]:
    """Rows of one stop threshold with what a review at `threshold` keeps under it; None: no review."""
    if threshold is None or not rows:
        return [replace(row, kept=None) for row in rows]
    *_, (_, left) = reviewed_under(rows, corpora, agent, [rows[0].stop_threshold], [threshold])
    return left


Thresholds = tuple[float, float | None]
"""Of the stop and of the review; None: no review."""
Stop = TypeVar("Stop", bound=float | None)


def reviewed_under(
    rows: Sequence[EpisodeRow],
    corpora: Sequence[ExampleCorpus],
    agent: Agent,
    stops: Sequence[Stop],
    thresholds: Sequence[float],
) -> Iterator[tuple[tuple[Stop, float | None], list[EpisodeRow]]]:
    """The rows as each pair of a stop and a review threshold leaves them, no review being one of the latter.
    One review at the highest threshold says in what order choices go: a lower one ends earlier in it.
    """
    orders: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for stop in stops:
        stopped_rows = [replace(row, stop_threshold=stop, kept=None) for row in rows]
        new = [i for i, row in enumerate(stopped_rows) if (i, own_steps(row)) not in orders]
        ends = [_end(stopped_rows[i], corpora[i], max(thresholds)) for i in new]
        reviews = [stopped for some in batches(ends, _BATCH) for stopped in agent.review(some)]
        for i, (_, chosen, _), stopped in zip(new, ends, reviews, strict=True):
            worth = dict(zip(chosen, stopped.review, strict=False))  # nothing is said of a single choice
            orders[i, len(chosen)] = [(chunk_id, worth[chunk_id]) for chunk_id in stopped.taken_back]
        yield (stop, None), stopped_rows
        for threshold in thresholds:
            left = [_without(row, orders[i, own_steps(row)], threshold) for i, row in enumerate(stopped_rows)]
            yield (stop, threshold), left


def _without(row: EpisodeRow, order: Sequence[tuple[int, float]], threshold: float) -> EpisodeRow:
    """`order`: choices as they go, and what each is worth then."""
    gone = {chunk_id for chunk_id, _ in takewhile(lambda choice: choice[1] < threshold, order)}
    return replace(row, kept=tuple(i for i in row.chosen[: own_steps(row)] if i not in gone))


def _end(
    row: EpisodeRow, corpus: ExampleCorpus, threshold: float
) -> tuple[Episode, tuple[int, ...], Stopped]:
    n_steps, stop = own_steps(row), row.stop_threshold
    config = EpisodeConfig(step_budget=row.step_budget, stop_threshold=stop, review_threshold=threshold)
    episode = Episode(corpus.example.question, corpus, config)
    return episode, row.chosen[:n_steps], Stopped("threshold", n_steps)
