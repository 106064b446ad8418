"""The roles of a SPARC run.

What each is given, gives back, and may use meanwhile (SPARC-RAG section 3.2). Agents keep no state of a run,
so that branches may share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import TYPE_CHECKING, Protocol

from core.llm.protocol import Cost
from core.methods.sparc.budget import Budget
from core.methods.sparc.events import Hit, Note, Strategy, Verdict, Weighed

if TYPE_CHECKING:
    from core.methods.sparc.retrievals import Retrievals


@dataclass(frozen=True, slots=True)
class Turn:
    """What an agent may use while it is at work, beside its task."""

    sources: Retrievals
    """What can be looked up about the chunks."""
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


def filled(rewrites: Iterable[Rewrite], width: int) -> tuple[Rewrite, ...]:
    """The first `width` that say different things, over and over where there are fewer."""
    distinct: dict[tuple[str, Strategy], Rewrite] = {}
    for one in rewrites:
        distinct.setdefault((one.query.lower(), one.strategy), one)
    return tuple(islice(cycle(distinct.values()), width))


class SparcAgents(Protocol):
    """All roles of a run."""

    name: str
    """As traces and logs say who decided."""

    def rewrite(self, task: RewriteTask, turn: Turn) -> tuple[tuple[Rewrite, ...], Cost]:
        """The query rewriter: exactly `task.width` complementary queries in one turn, each with one of
        `task.strategies`. Raises LlmError, OutOfBudget.
        """

    def update(
        self, question: str, query: str, note: Note, hits: Sequence[Hit], turn: Turn
    ) -> tuple[Note, Cost]:
        """The context manager within a branch: m'_k from m^(t-1) and r_k."""

    def select(self, question: str, candidates: Sequence[BranchResult], turn: Turn) -> tuple[int, str, Cost]:
        """The context manager over branches: (k*, why, cost); two candidates at least."""

    def merge(
        self, question: str, best: BranchResult, others: Sequence[BranchResult], turn: Turn
    ) -> tuple[Note, tuple[Weighed, ...], Cost]:
        """m^(t) from the memories of the best branch and the others, and what it chose among, where known."""

    def answer(self, question: str, note: Note, turn: Turn) -> tuple[SupportedAnswer, Cost]:
        """The answer generator: a_k from the memory, perhaps empty."""

    def judge(
        self, question: str, query: str, reading: SupportedAnswer, note: Note, turn: Turn
    ) -> tuple[Verdict, str, Cost]:
        """The answer evaluator stops or goes on: (e_k, why, cost)."""
