"""A SPARC run whose every event is known, and a reader that needs no weights: what tests of the tab have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.answer.protocol import Answer, Span
from core.sparc.events import (
    Answered,
    BranchQuery,
    Cost,
    Found,
    Judged,
    Merged,
    Note,
    NoteUpdated,
    Retrieved,
    RoundStarted,
    SparcConfig,
    SparcEvent,
    SparcStarted,
    SparcStopped,
    Strategy,
)

N_CHUNKS = 40
RULES = "rules and reader words"
ASKING = Cost(1, 200, 50, 300.0, "json_schema")


class WordReader:
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
        return Answer(words[-1], min(1.0, max(shared) / max(len(wanted), 1)), Span(at, start, start + len(words[-1])))

    def read_many(self, questions: Sequence[str], passages: Sequence[Sequence[str]]) -> list[Answer]:
        return [self.read(question, some) for question, some in zip(questions, passages, strict=True)]

    def support(self, statement: str, passage: str) -> float:
        wanted = set(statement.lower().split())
        return len(wanted & set(passage.lower().split())) / max(len(wanted), 1)


def text(chunk_id: int) -> str:
    return f"Chunk {chunk_id} tells of Anna."


def branch(number: int, one: int, ids: Sequence[int], before: Note, after: Note, answer: str, verdict: Any) -> list[SparcEvent]:
    """A branch from its retrieval to its verdict."""
    return [
        Retrieved(number, one, tuple(Found(i, 1.0 / (place + 1), text(i)) for place, i in enumerate(ids)), 12.0),
        NoteUpdated(number, one, before, after, ASKING),
        Answered(number, one, answer, 0.83 if answer else None, tuple(ids[:1]) if answer else (), ASKING),
        Judged(number, one, verdict, f"because of chunk {ids[0]}", ASKING),
    ]


def story(question: str = "Where did Anna hide the letter?", agents: str = "scripted", n_chunks: int = N_CHUNKS, **settings: Any) -> list[SparcEvent]:
    """Two rounds of two branches: the second branch wins round 1, the first one round 2, whose answer is accepted."""
    empty, m1, m2 = Note(), Note("Anna had a letter. She feared Peter.", (3,)), Note("Anna had a letter. She went to the mill.", (3, 17))
    config = SparcConfig(**{"depth": 3, "max_tokens": 5_000, **settings})
    one, two = BranchQuery(1, question, "bm25", "the plain question"), BranchQuery(2, question, "qrag", "the plain question")
    three, four = BranchQuery(1, "mill hiding place", "dense", "where she went"), BranchQuery(2, "Peter and the letter", "bm25")
    strategies: tuple[Strategy, ...] = ("bm25", "dense", "qrag")
    assert {query.strategy for query in (one, two, three, four)} == {*strategies}
    end = Note("Anna had a letter. It lies under the mill stone.", (3, 17, 30))
    return [
        SparcStarted(question, agents, config, n_chunks),
        RoundStarted(1, (one, two), Cost()),
        *branch(1, 1, (3, 9, 12), empty, Note("Anna had a letter.", (3,)), "", "continue"),
        *branch(1, 2, (3, 17), empty, m1, "the mill", "continue"),
        Merged(1, 2, m1, 0.25, ASKING, "it names a place"),
        RoundStarted(2, (three, four), ASKING),
        *branch(2, 1, (17, 30), m1, m2, "under the mill stone", "stop"),
        *branch(2, 2, (9, 31), m1, m1, "with Peter", "continue"),
        Merged(2, 1, end, 0.0, ASKING, "it says where exactly"),
        SparcStopped("accepted", "under the mill stone", 2, 1, end.chunk_ids, Cost(15, 3_000, 750, 4_500.0)),
    ]
