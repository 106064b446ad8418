"""A SPARC run whose every event is known, and a reader that needs no weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.answer.protocol import Answer, Span
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
    Strategy,
)
from tests.plain_reader import PlainReader
from tests.sparc_branch import branch_events

N_CHUNKS = 40
RULES = "rules and words"
ASKING, RULING = Cost(1, 200, 50, 300.0, "json_schema"), Cost(milliseconds=300.0)


class WordReader(PlainReader):
    """Answers with the last word of the passage that shares most words with the question."""

    name = "words"

    def read(self, question: str, passages: Sequence[str]) -> Answer:
        wanted = set(question.lower().split())
        shared = [len(wanted & set(passage.lower().split())) for passage in passages]
        if not any(shared):
            return Answer("", 1.0)
        at = shared.index(max(shared))
        words = passages[at].rstrip(" .").split()
        start = passages[at].rindex(words[-1])
        return Answer(
            words[-1], min(1.0, max(shared) / max(len(wanted), 1)), Span(at, start, start + len(words[-1]))
        )

    def support(self, statement: str, passage: str) -> float:
        wanted = set(statement.lower().split())
        return len(wanted & set(passage.lower().split())) / max(len(wanted), 1)


def text(chunk_id: int) -> str:
    return f"Chunk {chunk_id} tells of Anna."


def branch(
    number: int,
    one: int,
    ids: Sequence[int],
    before: Note,
    after: Note,
    answer: str,
    verdict: Any,
    cost: Cost,
) -> list[SparcEvent]:
    """A branch from its retrieval to its verdict."""
    sure, cited = (0.83, ids[:1]) if answer else (None, ())
    told = {
        "reason": f"because of chunk {ids[0]}",
        "cost": cost,
        "confidence": sure,
        "citations": cited,
        "milliseconds": 12.0,
    }
    return branch_events(number, one, {i: text(i) for i in ids}, (before, after), answer, verdict, **told)


def story(
    question: str = "Where did Anna hide the letter?",
    agents: str = "scripted",
    n_chunks: int = N_CHUNKS,
    **settings: Any,
) -> list[SparcEvent]:
    """Two rounds of two branches: the second branch wins round 1, the first one round 2, whose answer is
    accepted.
    """
    cost = RULING if agents == RULES else ASKING
    empty = Note()
    m1 = Note("Anna had a letter. She feared Peter.", (3,))
    m2 = Note("Anna had a letter. She went to the mill.", (3, 17))
    config = SparcConfig(**{"depth": 3, "max_tokens": 5_000, **settings})
    one = BranchQuery(1, question, "bm25", "the plain question")
    two = BranchQuery(2, question, "qrag", "the plain question")
    three = BranchQuery(1, "mill hiding place", "dense", "where she went")
    four = BranchQuery(2, "Peter and the letter", "bm25")
    strategies: tuple[Strategy, ...] = ("bm25", "dense", "qrag")
    assert {query.strategy for query in (one, two, three, four)} == {*strategies}
    end = Note("Anna had a letter. It lies under the mill stone.", (3, 17, 30))
    return [
        SparcStarted(question, agents, config, n_chunks),
        RoundStarted(1, (one, two), Cost()),
        *branch(1, 1, (3, 9, 12), empty, Note("Anna had a letter.", (3,)), "", "continue", cost),
        *branch(1, 2, (3, 17), empty, m1, "the mill", "continue", cost),
        Merged(1, 2, m1, 0.25, cost, "it names a place"),
        RoundStarted(2, (three, four), cost),
        *branch(2, 1, (17, 30), m1, m2, "under the mill stone", "stop", cost),
        *branch(2, 2, (9, 31), m1, m1, "with Peter", "continue", cost),
        Merged(2, 1, end, 0.0, cost, "it says where exactly"),
        SparcStopped(
            "accepted",
            "under the mill stone",
            2,
            1,
            end.chunk_ids,
            Cost(15 * cost.calls, 15 * cost.prompt_tokens, 15 * cost.completion_tokens, 4_500.0),
        ),
    ]
