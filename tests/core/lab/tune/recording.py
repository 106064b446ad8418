"""Logged SPARC runs made by hand: what each round searched, found, answered and decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.llm.protocol import Cost
from core.methods.sparc.events import (
    BranchQuery,
    Merged,
    Note,
    RoundStarted,
    SparcConfig,
    SparcEvent,
    SparcStarted,
    SparcStopped,
    Verdict,
)
from core.methods.sparc.trace import SparcTrace, fold_sparc
from core.runs.log import ExperimentLog, RunRecord
from tests.core.runs.log.recording import DOCUMENT, N_CHUNKS, chunk_table, make_record
from tests.sparc_branch import branch_events

QUESTION = "Who wrote the book that the film is based on?"
BY_MODEL = Cost(1, 200, 20, 5.0, "text")
BY_RULES = Cost()


@dataclass(frozen=True)
class Round:
    """One round, a query and its chunks a branch; every branch gives the same answer and verdict."""

    found: tuple[tuple[int, ...], ...]
    answer: str = "Ann Lee"
    verdict: Verdict = "stop"
    note: str = "The film is based on a book."
    reason: str = "It is named."
    queries: tuple[str, ...] = ("author of the book", "the film's source")
    cost: Cost = BY_MODEL


def sparc_trace(rounds: Sequence[Round]) -> SparcTrace:
    """The trace of a run whose first round was rewritten, too."""
    config = SparcConfig(
        width=2, depth=max(1, len(rounds)), k=3, strategies=("bm25", "dense"), first_round="rewrite"
    )
    events: list[SparcEvent] = [SparcStarted(QUESTION, "tiny", config, N_CHUNKS)]
    before = Note()
    for number, one in enumerate(rounds, start=1):
        queries = tuple(
            BranchQuery(i, query, "bm25", "exact") for i, query in enumerate(one.queries, start=1)
        )
        events.append(RoundStarted(number, queries, one.cost))
        after = Note(one.note, one.found[0][:1])
        for branch, chunks in enumerate(one.found, start=1):
            texts = {chunk: f"Chunk {chunk}." for chunk in chunks}
            told = {"reason": one.reason, "citations": after.chunk_ids, "cost": one.cost}
            events += branch_events(number, branch, texts, (before, after), one.answer, one.verdict, **told)
        events.append(Merged(number, 1, after, 0.0, one.cost))
        before = after
    if rounds:
        events.append(
            SparcStopped(
                "accepted" if rounds[-1].verdict == "stop" else "depth",
                rounds[-1].answer,
                len(rounds),
                1,
                before.chunk_ids,
                Cost(),
            )
        )
    return fold_sparc(events)


def log_sparc(
    log: ExperimentLog, rounds: Sequence[Round], label: Any = None, trace: dict[str, Any] | None = None
) -> RunRecord:
    """A finished run in the log; `label`: as given, by default support 1 and 2 and the answer Ann Lee;
    `trace`: instead of that of the rounds.
    """
    label = {"support": [1, 2], "answer": "Ann Lee"} if label is None else label
    record = make_record(method="sparc", query=QUESTION, label=label or None)
    log.start(record, [DOCUMENT], [chunk_table()])
    log.attach(record.run_id, "sparc", sparc_trace(rounds).to_json() if trace is None else trace, None)
    log.finish(record.run_id, "complete")
    log.flush()
    return record
