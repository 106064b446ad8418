"""What methods found in common, and where each of them looked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap, zip_longest

import numpy as np

from core.answer.evidence import EvidenceAnswer
from core.base.events import StepTaken, Stopped, Trace
from core.methods.qrag.policy import TIE, place
from core.methods.registry import facts_of

Chosen = Mapping[str, Sequence[int]]
"""Chunk ids in order of choice, without those taken back, by name of each method that answered."""


@dataclass(frozen=True, eq=False)
class Column:
    """What one method answered, beside others; `trace` is None where it refused."""

    name: str
    trace: Trace | None
    milliseconds: float | None = None
    """Of retrieval, vectors and indexes being there; None where nobody measured it."""
    refused: str = ""
    """Why, in a sentence."""
    answer: EvidenceAnswer | None = None
    """From its evidence, where somebody read that."""
    known_answer: str = ""
    notices: tuple[str, ...] = ()
    """What there is to say of the documents under a trained agent."""


def column_name(method: str, checkpoint: str) -> str:
    """What the column of a run is called."""
    facts = facts_of(method)
    if facts.trained:
        return f"{facts.label} {checkpoint}"
    return facts.long_label if facts.foreign else facts.label


def column_names(runs: Iterable[tuple[str, str]]) -> list[str]:
    """Names of columns, a number behind those that come again. runs: (method, checkpoint) of each.

    >>> column_names([("bm25", ""), ("imported:BM25", ""), ("bm25", "")])
    ['BM25', 'BM25 (imported)', 'BM25 (2)']
    """
    counts: Counter[str] = Counter()
    names = []
    for name in starmap(column_name, runs):
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return names


def found_by(chosen: Chosen) -> dict[int, tuple[str, ...]]:
    """Who found each chunk, in the order in which the chunks come up when all methods take their steps
    together.

    >>> found_by({"a": [3, 1], "b": [1]})
    {3: ('a',), 1: ('a', 'b')}
    """
    steps = zip_longest(*chosen.values())
    order = dict.fromkeys(chunk_id for step in steps for chunk_id in step if chunk_id is not None)
    return {chunk_id: tuple(name for name, ids in chosen.items() if chunk_id in ids) for chunk_id in order}


@dataclass(frozen=True)
class Sets:
    """Every found chunk is in one of these. With a single method, all of its chunks are in `by_one`."""

    by_all: tuple[int, ...]
    by_some: tuple[int, ...]
    by_one: tuple[int, ...]


def sets(chosen: Chosen) -> Sets:
    """Chunks by how many methods found them, in the order of `found_by`.

    >>> sets({"a": [3, 1], "b": [1, 5], "c": [1, 5]})
    Sets(by_all=(1,), by_some=(5,), by_one=(3,))
    """
    finders = found_by(chosen)
    by_one = tuple(chunk_id for chunk_id, names in finders.items() if len(names) == 1)
    by_all = tuple(chunk_id for chunk_id, names in finders.items() if len(names) == len(chosen) > 1)
    return Sets(by_all, tuple(chunk_id for chunk_id in finders if chunk_id not in {*by_one, *by_all}), by_one)


def first_look_rank(trace: Trace, chunk_id: int) -> int | None:
    """Place of a chunk among all when the method had seen the question only, 1 is best.

    None where the method looked at nothing, and for a chunk that it can't find: one that shares no word with
    the question, for BM25, and one that a retriever elsewhere didn't return.
    """
    seen = trace.scores_at(1)
    if seen is None:
        return None
    scores = seen.q_values
    own, facts = scores[chunk_id], facts_of(trace.started.method)
    if np.isnan(own) or (facts.zero_is_none and own <= 0):
        return None
    tie = TIE if facts.looks_again else 0.0  # as the method's own choice has it
    return place(scores, np.ones(len(scores), dtype=bool), chunk_id, tie)


def looks(trace: Trace) -> list[tuple[np.ndarray, tuple[int, ...]]]:
    """(scores of all chunks (N,), chunks that were chosen by them) for every time the method really looked:
    once, or before each choice. Equal scores one after the other are one look: a log has them once a step.
    """
    seen: list[tuple[np.ndarray, tuple[int, ...]]] = []
    events: list[StepTaken | Stopped] = [*trace.steps, *([trace.stopped] if trace.stopped else [])]
    for event in events:
        if event.scores is None:
            continue
        values = event.scores.q_values
        taken = (event.chunk_id,) if isinstance(event, StepTaken) else ()
        if seen and np.array_equal(values, seen[-1][0], equal_nan=True):
            seen[-1] = (values, (*seen[-1][1], *taken))
        else:
            seen.append((values, taken))
    return seen
