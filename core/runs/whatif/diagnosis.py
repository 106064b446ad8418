"""Why a run failed, and what would have helped.

For a question whose support is known; each remedy was tried here, none is guessed. What another agent would
find, or the same one in chunks of another size, is for the caller to add, because that embeds the document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.base.events import StepTaken, Trace, fold
from core.base.metrics import fact_recall
from core.base.progress import finish
from core.base.types import Workspace
from core.corpus.index import Corpus
from core.corpus.opening import chunk_documents, index_workspace
from core.corpus.words import words_of
from core.methods.qrag.agent import Agent
from core.methods.registry import facts_of
from core.runs.whatif.cuts import TextSpan, chunks_of, share_found, sizes_for
from core.views.trail import gold_trails

MOST_STEPS = 12
"""Steps that a longer run is tried with."""
MOST_CHUNKS = 20_000
"""Chunks up to which words are counted for BM25, where nobody has counted them."""
Way = Literal["keep", "take", "longer", "bm25", "agent", "cut"]


@dataclass(frozen=True, slots=True)
class Remedy:
    """Something that was tried, and found more."""

    way: Way
    value: int | str
    """take: the chunk. longer: steps. bm25: its rank there. agent: its name. cut: most tokens of a chunk."""
    n_found: int
    """Support chunks that it would hold; cut: those of today whose support it would hold."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Of the support chunk that came nearest to being evidence and is not."""

    chunk_id: int
    n_found: int
    n_support: int
    taken_back_at: int | None
    """1-based step whose choice the review took back; None for a chunk that was never chosen."""
    beside: int | None
    """A chosen chunk right before or after it in its document."""
    ranks: tuple[int, ...]
    """Its place at each look, among those that could be chosen; empty where the looks were not kept."""
    remedies: tuple[Remedy, ...]
    """What would have found more, the most first."""
    split: tuple[int, ...] = ()
    """Chunks over which its passage is cut, itself among them; empty where it holds the whole of it."""


def diagnose(
    agent: Agent, corpus: Corpus, trace: Trace, gold: Sequence[int], spans: Sequence[TextSpan] = ()
) -> Diagnosis | None:
    """Why a stopped run of an agent lacks support; None where it lacks none, none is known, or not all chunks
    were embedded. `spans`: the support by its characters. Of a run that was made elsewhere, what the agent
    would find is tried instead of going on.
    """
    evidence = trace.picks
    lacking = [chunk_id for chunk_id in gold if chunk_id not in evidence]
    if trace.stopped is None or not lacking or trace.started.config.searched:
        return None
    ranks = {
        trail.chunk_id: tuple(standing.rank for standing in trail.standings if standing is not None)
        for trail in gold_trails(trace, lacking)
    }
    nearest = min(
        lacking,
        key=lambda chunk_id: (chunk_id not in trace.taken_back, min(ranks[chunk_id], default=len(corpus))),
    )
    taken_back_at = trace.chosen.index(nearest) + 1 if nearest in trace.taken_back else None
    n_found = len(gold) - len(lacking)
    document_of = corpus.workspace.locate
    neighbours = (i for i in trace.chosen if abs(i - nearest) == 1)
    beside = next((i for i in neighbours if document_of(i)[0] == document_of(nearest)[0]), None)
    kept = [Remedy("keep", 0, len({*gold} & {*trace.chosen}))] if trace.taken_back else []
    tried = [*kept, *_longer(agent, corpus, trace, gold)]
    if facts_of(trace.started.method).foreign:
        n_found_here = n_found_by(agent, corpus, trace, gold)
        tried = [Remedy("agent", agent.spec.name, n_found_here), *_by_words(corpus, trace, nearest, gold)]
    elif taken_back_at is None:
        if beside is not None:
            tried.append(Remedy("take", nearest, n_found + 1))
        tried += _by_words(corpus, trace, nearest, gold)
    told = [remedy for remedy in tried if remedy.n_found > n_found or remedy.way == "bm25"]
    remedies = sorted(told, key=lambda remedy: -remedy.n_found)
    over = (chunks_of(corpus.workspace, [span]) for span in spans)
    split = next((ids for ids in over if nearest in ids and len(ids) > 1), ())
    looks = ranks[nearest]
    return Diagnosis(nearest, n_found, len(gold), taken_back_at, beside, looks, tuple(remedies), split)


def n_found_by(agent: Agent, corpus: Corpus, trace: Trace, gold: Sequence[int]) -> int:
    """Support chunks that another agent would find with its own stop and review, within its own budget."""
    config = agent.spec.episode_config(
        step_budget=min(agent.spec.step_budget, len(corpus)), forbidden=trace.started.config.forbidden
    )
    return len({*gold} & {*fold(agent.run(trace.started.query, corpus, config)).picks})


def steps_tried(trace: Trace, n_chunks: int) -> int:
    """Steps that going on is tried to; 0 for a run that is as long, was planned, or was made elsewhere."""
    config = trace.started.config
    if facts_of(trace.started.method).foreign:
        return 0
    most = min(MOST_STEPS, n_chunks - len(config.forbidden))
    return most if config.beam_width == 1 and len(trace.steps) < most else 0


def are_words_tried(n_chunks: int) -> bool:
    """Whether BM25 is tried."""
    return n_chunks <= MOST_CHUNKS


def _longer(agent: Agent, corpus: Corpus, trace: Trace, gold: Sequence[int]) -> list[Remedy]:
    """The fewest steps in which the run, going on and stopping nowhere, holds the most support."""
    most = steps_tried(trace, len(corpus))
    if not most:
        return []
    chosen = list(trace.chosen)
    goes_on = trace.started.config.with_(
        step_budget=most, stop_threshold=None, review_threshold=None, forced=()
    )
    for event in agent.run(trace.started.query, corpus, goes_on, trace.chosen):
        if isinstance(event, StepTaken):
            chosen.append(event.chunk_id)
    recalls = [fact_recall(chosen[:n], gold) for n in range(len(chosen) + 1)]
    n = recalls.index(max(recalls))
    return [Remedy("longer", n, len({*gold} & {*chosen[:n]}))] if n > len(trace.steps) else []


def _by_words(corpus: Corpus, trace: Trace, chunk_id: int, gold: Sequence[int]) -> list[Remedy]:
    """Where BM25 has the chunk, if that is within as many chunks as the run might have taken."""
    if not are_words_tried(len(corpus)):
        return []
    scores = corpus.words.scores(words_of(trace.started.query))
    order = np.argsort(-scores, kind="stable").tolist()
    rank, budget = order.index(chunk_id) + 1, trace.started.config.step_budget
    if scores[chunk_id] <= 0 or rank > budget:
        return []
    return [Remedy("bm25", rank, len({*gold} & {*order[:budget]}))]


MOST_TRIED = 2


def cut_that_helps(
    diagnosis: Diagnosis,
    agent: Agent,
    corpus: Corpus,
    trace: Trace,
    gold: Sequence[int],
    spans: Sequence[TextSpan],
    part: str = "",
) -> Remedy | None:
    """The least other size with which the agent finds more; None where none does. `part`: of the caches."""
    workspace, spec, n_tried = corpus.workspace, agent.spec, 0
    missed = [span for span in spans if diagnosis.chunk_id in chunks_of(workspace, [span])]
    now = [config for config in workspace.configs if config is not None]
    beside = None if diagnosis.split else diagnosis.beside
    if not missed or len(now) < len(workspace.documents) or not (diagnosis.split or beside is not None):
        return None
    for size in sizes_for(spec):
        configs = [spec.chunk_config(config.chunker, size) for config in now]
        other = finish(chunk_documents(workspace.documents, agent.encoder, configs, part))
        if configs == now or not _holds(other, missed, workspace, beside):
            continue
        opened = finish(index_workspace(other, agent.encoder, part))
        n_found = _n_found(agent, opened.corpus, corpus, trace, gold, spans)
        if n_found > diagnosis.n_found:
            return Remedy("cut", size, n_found)
        n_tried += 1
        if n_tried == MOST_TRIED:
            break
    return None


def _holds(other: Workspace, missed: Sequence[TextSpan], workspace: Workspace, beside: int | None) -> bool:
    """Whether each passage lies in one chunk, together with some of the chosen chunk beside it."""
    for span in missed:
        holding = chunks_of(other, [span])
        if len(holding) != 1:
            return False
        if beside is not None:
            chunk, chosen = other[holding[0]], workspace[beside]
            if chunk.end <= chosen.start or chunk.start >= chosen.end:
                return False
    return True


def _n_found(
    agent: Agent, other: Corpus, corpus: Corpus, trace: Trace, gold: Sequence[int], spans: Sequence[TextSpan]
) -> int:
    """How much of the support the other cut finds, by the run as it was without a person's choices."""
    config = trace.started.config
    config = config.with_(step_budget=min(config.step_budget, len(other)), forced=(), forbidden=())
    picks = fold(agent.run(trace.started.query, other, config)).picks
    wanted = (_within(corpus.workspace, chunk_id, spans) for chunk_id in gold)
    return sum(share_found(other.workspace, picks, inside) == 1.0 for inside in wanted)


def _within(workspace: Workspace, chunk_id: int, spans: Sequence[TextSpan]) -> list[TextSpan]:
    chunk = workspace[chunk_id]
    return [
        (document, max(start, chunk.start), min(end, chunk.end))
        for document, start, end in spans
        if document == chunk.document and start < chunk.end and end > chunk.start
    ]
