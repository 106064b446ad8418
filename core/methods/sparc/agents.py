"""The roles of a SPARC run.

What each is given, what it gives back, and what it may use meanwhile (SPARC-RAG section 3.2). One set of
agents fills all four. The retriever is no agent: see
`core.methods.sparc.retrievals`. Agents keep no state of a run, so that branches may share them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from core.llm.protocol import Cost
from core.methods.sparc.budget import Budget
from core.methods.sparc.events import Hit, Note, Strategy, Verdict, Weighed


class Sources(Protocol):
    """What can be looked up about the chunks while an agent is at work."""

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """What can be searched with."""
        ...

    def text(self, chunk_id: int) -> str:
        """The text of a chunk."""
        ...

    def rarity(self, word: str) -> float:
        """Inverse document frequency of a lower-case word, 0 for one that stands in every chunk."""
        ...

    def worth(
        self, question: str, chunk_ids: Sequence[int], states: Sequence[Sequence[int]]
    ) -> np.ndarray | None:
        """(len(states), len(chunk_ids)) Q after each set of chunks; None without a trained agent."""
        ...

    def needed(self, question: str, chunk_ids: Sequence[int]) -> tuple[int, ...] | None:
        """What the agent itself would keep of these chunks; None without an agent that knows when to stop."""
        ...

    def left_to_find(self, question: str, memory: Sequence[int]) -> Remaining | None:
        """What the agent would take beside these chunks; None without an agent that knows when to stop."""
        ...


@dataclass(frozen=True, slots=True)
class Remaining:
    """The best chunk that is not known yet, and the Q below which the agent takes none."""

    chunk_id: int
    q_value: float
    threshold: float


@dataclass(frozen=True, slots=True)
class Turn:
    """What an agent may use while it is at work, beside its task."""

    sources: Sources
    budget: Budget = field(default_factory=Budget)
    temperature: float = 0.5
    seed: int = 42
    cancelled: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """What the rewriter is given: q_0, m^(t), W, and the queries of earlier rounds."""

    question: str
    note: Note
    width: int
    strategies: tuple[Strategy, ...]
    queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One query, how to search with it, and why."""

    query: str
    strategy: Strategy
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BranchResult:
    """One branch's result: a_k, e_k, m'_k."""

    branch: int
    query: str
    note: Note
    answer: str
    confidence: float | None
    citations: tuple[int, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SupportedAnswer:
    """An answer with the chunks it rests on. `confidence` None where nobody measured it."""

    answer: str
    confidence: float | None
    citations: tuple[int, ...]
    thoughts: str = ""
    """What a language model thought first."""


class SparcAgents(Protocol):
    """All roles of a run."""

    name: str
    """As traces and logs say who decided."""

    def rewrite(self, task: RewriteTask, turn: Turn) -> tuple[tuple[Rewrite, ...], Cost]:
        """The query rewriter: exactly `task.width` complementary queries in one turn, each with one of
        `task.strategies`. Raises LlmError, OutOfBudget.
        """
        ...

    def update(
        self, question: str, query: str, note: Note, hits: Sequence[Hit], turn: Turn
    ) -> tuple[Note, Cost]:
        """The context manager within a branch: m'_k from m^(t-1) and r_k."""
        ...

    def select(self, question: str, candidates: Sequence[BranchResult], turn: Turn) -> tuple[int, str, Cost]:
        """The context manager over branches: (k*, why, cost); two candidates at least."""
        ...

    def merge(
        self, question: str, best: BranchResult, others: Sequence[BranchResult], turn: Turn
    ) -> tuple[Note, tuple[Weighed, ...], Cost]:
        """m^(t) from the memories of the best branch and the others, and what it chose among, where known."""
        ...

    def answer(self, question: str, note: Note, turn: Turn) -> tuple[SupportedAnswer, Cost]:
        """The answer generator: a_k from the memory, perhaps empty."""
        ...

    def judge(
        self, question: str, query: str, reading: SupportedAnswer, note: Note, turn: Turn
    ) -> tuple[Verdict, str, Cost]:
        """The answer evaluator stops or goes on: (e_k, why, cost)."""
        ...
