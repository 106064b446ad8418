"""One question through several methods at equal size of evidence.

Building an index is no part of a method's time, and a method that can't answer doesn't keep the others from
it. Chunk ids of all methods are those of one workspace.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.base.config import EpisodeConfig
from core.base.errors import BadCheckpoint, BadRequest
from core.base.events import Event, Trace, fold
from core.base.metrics import jaccard
from core.base.types import Workspace
from core.corpus.index import Corpus
from core.encode.encoder import DualEncoder
from core.llm.protocol import Llm
from core.methods.protocol import Retriever
from core.methods.registry import METHODS, build_retriever, facts_of
from core.runs.log.transfer import disarmed
from core.views.findings import Column, first_look_rank, found_by, sets
from core.views.report import method_json


@dataclass(frozen=True, eq=False)
class Contestant:
    """A method with what it needs to answer."""

    name: str
    """Distinct within a comparison."""
    retriever: Retriever
    encoder: DualEncoder
    """Whose vectors it searches."""
    config: EpisodeConfig
    follows: bool = False
    """It takes as many chunks as the first method has as evidence, one at least; `config` bounds them."""


CorpusOf = Callable[[Contestant], Corpus]
OnEvent = Callable[[Contestant, Event], None]


def contestant(
    method: str, agent: DualEncoder, plain: DualEncoder, config: EpisodeConfig, llm: Llm | None = None
) -> Contestant:
    """A method by its name; `plain`, `llm`: see `build_retriever`. Raises BadRequest for a name that is none.

    The stop threshold of `config` reaches only what searches the agent's own vectors; that of a trained agent
    is in units of its Q, and reaches that agent alone.
    """
    retriever, encoder = build_retriever(method, agent, plain, llm)
    if encoder is not agent or (agent.spec.trained and not METHODS[method].trained):
        config = config.with_(stop_threshold=None, review_threshold=None)
    return Contestant(method, retriever, encoder, config)


def compare(
    query: str, contestants: Iterable[Contestant], corpus_of: CorpusOf, on_event: OnEvent = lambda *_: None
) -> Iterator[Column]:
    """A column a contestant as soon as it is there; `on_event` hears all, and may raise to end it."""
    size: int | None = None
    for one in contestants:
        config = one.config
        if size is not None and one.follows:
            config = config.with_(step_budget=max(1, min(size, config.step_budget)))
        try:
            trace, spent = _answer(query, one, corpus_of(one), config, on_event)
        except (BadRequest, BadCheckpoint) as error:
            yield Column(one.name, None, refused=str(error))
            continue
        size = len(trace.evidence) if size is None else size
        # A method of one look tells its time without its index; a beam has paths that are in no event. What
        # ran elsewhere took the time that it came with.
        milliseconds = 0.0 if config.beam_width > 1 else trace.milliseconds
        foreign = facts_of(trace.started.method).foreign
        yield Column(one.name, trace, milliseconds or (None if foreign else spent))


def _answer(
    query: str, one: Contestant, corpus: Corpus, config: EpisodeConfig, on_event: OnEvent
) -> tuple[Trace, float]:
    """A run, and the milliseconds that it took without those of whoever hears of it."""
    retrieved, events, seconds = one.retriever.retrieve(query, corpus, config), list[Event](), 0.0
    while True:
        began = time.perf_counter()
        event = next(retrieved, None)
        seconds += time.perf_counter() - began
        if event is None:
            return fold(events), 1000 * seconds
        on_event(one, event)
        events.append(event)


def columns_json(columns: Iterable[Column], workspace: Workspace) -> dict[str, Any]:
    """The `methods` of `compare --json`, without those that refused."""
    return {
        column.name: method_json(column.trace, workspace, column.milliseconds or 0.0, column.answer)
        for column in columns
        if column.trace is not None
    }


def comparison_json(
    query: str, columns: Sequence[Column], workspace: Workspace, support: Sequence[int] = ()
) -> dict[str, Any]:
    """All of it as JSON values: `methods` as in `compare --json`, who found what, the support if known."""
    answered = {column.name: column.trace for column in columns if column.trace is not None}
    chosen = {name: trace.picks for name, trace in answered.items()}
    kinds = sets(chosen)
    values: dict[str, Any] = {
        "query": query,
        "documents": [{"title": one.title, "sha256": one.sha256} for one in workspace.documents],
        "methods": columns_json(columns, workspace),
        "refused": {column.name: column.refused for column in columns if column.refused},
        "chunks": [
            {"chunk_id": chunk_id, "found_by": list(names), "text": workspace[chunk_id].text}
            for chunk_id, names in found_by(chosen).items()
        ],
        "sets": {"by_all": list(kinds.by_all), "by_some": list(kinds.by_some), "by_one": list(kinds.by_one)},
        "overlap": {a: {b: jaccard(chosen[a], chosen[b]) for b in chosen if b != a} for a in chosen},
    }
    if support:
        values["support"] = {
            name: {
                "hits": len({*trace.evidence} & {*support}),
                "of": len(support),
                "first_look_ranks": {str(chunk_id): first_look_rank(trace, chunk_id) for chunk_id in support},
            }
            for name, trace in answered.items()
        }
    return values


CSV_HEAD = ("query", "method", "step", "chunk_id", "score", "n_tokens", "found_by", "support", "text")


def comparison_csv(
    query: str, columns: Sequence[Column], workspace: Workspace, support: Sequence[int] = ()
) -> str:
    """A line a chosen chunk, methods one after the other; one that a method took back was not found by it.
    `support` is empty where it is not known. Texts that a spreadsheet would take for formulas are disarmed.
    """
    answered = [(column.name, column.trace) for column in columns if column.trace is not None]
    finders = found_by({name: trace.picks for name, trace in answered})
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_HEAD)
    for name, trace in answered:
        for step in trace.steps:
            chunk = workspace[step.chunk_id]
            found = len(finders.get(step.chunk_id, ()))
            is_support = int(step.chunk_id in support) if support else ""
            numbers = (step.step, step.chunk_id, step.q_value, chunk.n_tokens, found, is_support)
            writer.writerow((disarmed(query), disarmed(name), *numbers, disarmed(chunk.text)))
    return out.getvalue()
