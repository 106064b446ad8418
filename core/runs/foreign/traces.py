"""A foreign run as a trace and a run of the log.

A call is a look: the chunks that it returned have its scores, all others none. Where scores are missing, or
don't fall from passage to passage, a chunk is worth one over its rank, and the method's name says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import Event, RunStarted, StepScores, StepTaken, Stopped, Trace
from core.base.types import Workspace
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder
from core.methods.registry import IMPORTED, IMPORTED_BY_RANK, facts_of
from core.runs.again.records import log_trace
from core.runs.foreign.files import ForeignCall, ForeignRun
from core.runs.foreign.places import Places
from core.runs.log import RunLog
from core.runs.log.records import label_of
from core.views.draw.words import counted

MOST_CHOICES = 32
"""Chunks of a run that are choices; those after them have their score alone."""
MAX_VALUES = 1 << 30
"""Scores of one import, a chunk and choice each, known or not: some 500 MB in the log."""
_MOST_DETAILED = 100
"""Passages of a run whose place, or lack of one, is kept."""
_TEXT = 2_000
"""Characters that are kept of a passage which isn't in the documents."""


@dataclass(frozen=True, eq=False)
class Brought:
    """A foreign run over opened documents."""

    run: ForeignRun
    trace: Trace
    detail: dict[str, Any]
    """What the log keeps of the passages, as detail "imported"."""
    gold: tuple[int, ...]
    run_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """What there is to be told of it, as plain JSON values."""
        return {
            "run_id": self.run_id,
            "query": self.run.query,
            "method": self.trace.started.method,
            "evidence": list(self.trace.evidence),
            "support": list(self.gold),
            **{name: self.detail[name] for name in _COUNTS},
        }

    @property
    def n_missing(self) -> int:
        """Passages that are not in the documents."""
        return int(self.detail["n_missing"])


_COUNTS = ("n_returned", "n_missing", "n_missing_gold")


def found_sentence(brought: Sequence[Brought]) -> str:
    """What of runs was found again."""
    return detail_sentence({name: sum(one.detail[name] for one in brought) for name in _COUNTS})


def detail_sentence(detail: Mapping[str, Any]) -> str:
    """The same out of what the log keeps; empty where that is damaged: strangers bring logs."""
    n, n_missing, n_gold = (detail.get(name) for name in _COUNTS)
    if not all(type(number) is int and number >= 0 for number in (n, n_missing, n_gold)):
        return ""
    gold = (
        f" {counted(n_gold, 'gold passage')} {'is' if n_gold == 1 else 'are'} in no chunk." if n_gold else ""
    )
    if not n:
        return f"No passage was returned.{gold}"
    if not n_missing:
        all_of_them = (
            f"All {n} passages that were returned are" if n > 1 else "The passage that was returned is"
        )
        return f"{all_of_them} in these documents.{gold}"
    return f"{n_missing} of {n} passages that were returned were not found in these documents.{gold}"


def bring(
    runs: Sequence[ForeignRun],
    workspace: Workspace,
    checkpoint: str,
    part: str = "",
    hear: Callable[[Brought], None] = lambda _: None,
    places: Places | None = None,
) -> list[Brought]:
    """Runs over opened documents, their passages found again. `hear` is told of each, and may raise to end
    it. checkpoint: of the agent under which the documents are open. part: of the caches. places: of the
    workspace, from an earlier call: folding a long document takes seconds.
    """
    places = places or Places(workspace, part)
    brought: list[Brought] = []
    # all runs of a retriever have one scale
    by_rank = {run.method for run in runs if not all(map(_falls, run.calls))}
    n_values = 0
    for run in runs:
        prefix = IMPORTED_BY_RANK if run.method in by_rank else IMPORTED
        brought.append(_brought(run, prefix, workspace, checkpoint, places))
        n_values += len(workspace) * len(brought[-1].trace.steps)
        if n_values > MAX_VALUES:
            raise BadRequest(
                f"{len(runs):,} runs over {len(workspace):,} chunks are more than one import takes; import"
                f" {len(brought) - 1:,} at once"
            )
        hear(brought[-1])
    return brought


def log_brought(
    log: RunLog, brought: Brought, workspace: Workspace, encoder: DualEncoder, owner: str | None
) -> Brought:
    """Logs it, with its answer if it has one."""
    run = brought.run
    details: dict[Any, dict[str, Any]] = {"imported": brought.detail}
    if run.answer is not None:
        words = run.answer.strip()
        state = {"state": "answer" if words else "absent", "reliable": bool(words)}
        details["answer"] = {**state, "text": words, "confidence": None, "by": run.method, "citations": []}
    label = label_of(brought.gold, run.known_answer)
    run_id = log_trace(log, brought.trace, workspace, encoder, details=details, label=label, owner=owner)
    return replace(brought, run_id=run_id)


def _falls(call: ForeignCall) -> bool:
    """Whether every passage has a score, no distance, and none above that of the one before: else scores say
    no order.
    """
    scores = [
        passage.score for passage in call.passages if passage.score is not None and not passage.is_distance
    ]
    return len(scores) == len(call.passages) and all(a >= b for a, b in pairwise(scores))


def _brought(run: ForeignRun, prefix: str, workspace: Workspace, checkpoint: str, places: Places) -> Brought:
    steps: list[StepTaken] = []
    passages: list[dict[str, Any]] = []
    n_missing = 0
    for number, call in enumerate(run.calls, start=1):
        values = np.full(len(workspace), np.nan, np.float32)
        order: dict[int, float] = {}
        for rank, passage in enumerate(call.passages, start=1):
            found = places.find(passage)
            n_missing += found is None
            if len(passages) < _MOST_DETAILED:
                passages.append({"call": number, "rank": rank, "score": passage.score})
                passages[-1]["found"] = found and found.how
                passages[-1] |= {"chunks": list(found.chunk_ids)} if found else {}
                passages[-1] |= {"name": passage.name[:200]} if passage.name else {}
                passages[-1] |= {} if found else {"text": passage.text[:_TEXT]}
            score = passage.score if prefix == IMPORTED and passage.score is not None else 1 / rank
            for chunk_id in found.chunk_ids if found else ():
                order.setdefault(chunk_id, score)
        for chunk_id, score in order.items():
            values[chunk_id] = score
        chosen = {step.chunk_id for step in steps}
        fresh = [chunk_id for chunk_id in order if chunk_id not in chosen][: MOST_CHOICES - len(steps)]
        looked = StepScores(values, None)
        for i, chunk_id in enumerate(fresh):
            step, score, text = len(steps) + 1, float(values[chunk_id]), workspace[chunk_id].text
            took = 0.0 if i else call.milliseconds
            steps.append(StepTaken(step, chunk_id, score, 1.0, score, None, text, took, scores=looked))
    gold = [places.find(passage) for passage in run.gold]
    known = tuple(sorted({chunk_id for found in gold if found for chunk_id in found.chunk_ids}))
    config = EpisodeConfig(step_budget=max(1, len(steps)))
    started = RunStarted(run.query, f"{prefix}{run.method}", checkpoint, len(workspace), config)
    detail = {
        "calls": [call.query[:_TEXT] for call in run.calls[:MOST_CHOICES]],
        "n_returned": sum(len(call.passages) for call in run.calls),
        "n_missing": n_missing,
        "n_missing_gold": sum(found is None for found in gold),
        "passages": passages,
        "known_answer": run.known_answer[:_TEXT],
    }
    return Brought(run, Trace(started, tuple(steps), Stopped("exhausted", len(steps))), detail, known)


@dataclass(eq=False)
class Replayed:
    """A run that is there already, as a method beside others; satisfies `Retriever`."""

    name: str
    trace: Trace | None
    """None where it wasn't asked this question."""

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:  # noqa: ARG002
        """Its choices, the first `config.step_budget` of them."""
        if self.trace is None:
            raise BadRequest(
                f"no run of {facts_of(self.name).label} asks this question; import one, or ask another"
            )
        steps = self.trace.steps[: config.step_budget]
        yield replace(self.trace.started, config=config)
        yield from steps
        yield Stopped("exhausted", len(steps))
