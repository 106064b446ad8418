"""The SPARC loop.

Rounds of branches that run at the same time, as a generator of events (SPARC-RAG algorithm 1).

A branch retrieves, updates the memory, answers and judges, in a thread of its own; its events come out as
they happen, in order within the branch. When all are done, the context manager picks the best branch and
merges the memories, and that branch's verdict decides. Decides the following where the paper is open:
- With `first_round="question"`, round 1 asks the plain question, each branch with another strategy, so it has
  no more branches than strategies.
- With one branch there is nothing to select or to merge, and no agent is asked.
- A spent budget or an agent's failure lets the other branches of the round finish their own turn, then ends
  the run with the best answer so far: the last merged one, or, in round 1, that of the first branch that was
  accepted, else of the first that answered.
- Cancelling (`cancelled()` turns true, or the generator is closed) ends the events without a last word; calls
on their way are told to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event as Flag

from core.base.config import check_query
from core.base.errors import BadRequest
from core.base.metrics import jaccard
from core.base.statistics import mean
from core.corpus.index import Searchable
from core.llm.protocol import Cost, LlmCancelled, LlmError
from core.methods.sparc.agents import BranchResult, RewriteTask, SparcAgents, Turn
from core.methods.sparc.budget import Budget, OutOfBudget
from core.methods.sparc.config import check_sparc_config
from core.methods.sparc.events import (
    AgentName,
    Answered,
    BranchQuery,
    BrokenOff,
    EndReason,
    Hit,
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
from core.methods.sparc.retrievals import Retrievals

FIRST_STRATEGIES: tuple[Strategy, ...] = ("qrag", "dense", "bm25")
"""Which strategy gets the plain question first, where round 1 asks it."""
_POLL = 0.05
"""Seconds between looks at `cancelled` while branches work."""


def run_sparc(
    question: str,
    corpus: Searchable,
    agents: SparcAgents,
    retrievals: Retrievals,
    config: SparcConfig | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Generator[SparcEvent, None, None]:
    """The events of one run over `corpus`, searched by `retrievals`. Raises BadRequest before the first."""
    question = check_query(question)
    config = check_sparc_config(config or SparcConfig())
    missing = [name for name in config.strategies if name not in retrievals.strategies]
    if missing:
        raise BadRequest(
            f"strategy {missing[0]!r} can't be searched with here; choose among"
            f" {', '.join(retrievals.strategies)}"
        )
    if not len(corpus):
        raise BadRequest("there are no chunks to search; open a document that has text")
    retrievals.prepare()  # here, so that chunks without a word are refused before the first event
    return _Run(question, len(corpus), agents, retrievals, config, cancelled).events()


@dataclass
class _Run:
    """One run while it goes."""

    question: str
    n_chunks: int
    agents: SparcAgents
    retrievals: Retrievals
    config: SparcConfig
    cancelled: Callable[[], bool]
    note: Note = field(default_factory=Note)
    queries: tuple[str, ...] = ()
    best: BranchResult | None = None
    """Of the last round that was merged."""
    best_round: int = 0
    cost: Cost = field(default_factory=Cost)
    _closed: Flag = field(default_factory=Flag)

    def events(self) -> Generator[SparcEvent, None, None]:
        config = self.config
        yield SparcStarted(self.question, self.agents.name, config, self.n_chunks)
        turn = Turn(
            self.retrievals,
            Budget(config.max_tokens, config.max_calls),
            config.temperature,
            config.seed,
            self._is_cancelled,
        )
        pool = ThreadPoolExecutor(config.width, thread_name_prefix="sparc")
        try:
            for number in range(1, config.depth + 1):
                stopped = yield from self._round(number, turn, pool)
                if stopped is not None:
                    yield stopped
                    return
                if self._is_cancelled():
                    return
            yield self._stop("depth")
        except LlmCancelled:
            return
        finally:
            self._closed.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _is_cancelled(self) -> bool:
        return self._closed.is_set() or self.cancelled()

    def _round(
        self, number: int, turn: Turn, pool: ThreadPoolExecutor
    ) -> Generator[SparcEvent, None, SparcStopped | None]:
        """Events of one round; returns the last event of the run where it ends here."""
        started = self._started(number, turn)
        self.cost += started.cost
        yield started
        if isinstance(started, BrokenOff):
            return self._broken_off(started)
        self.queries += tuple(query.query for query in started.queries)
        branches = _Branches(self, number, turn)
        yield from branches.run(started.queries, pool)
        candidates = branches.finished()
        if branches.broken is not None:
            return self._broken_off(branches.broken, candidates)
        if self._is_cancelled():
            return None
        merged = self._merge(number, candidates, branches.hits, turn)
        self.cost += merged.cost
        yield merged
        if isinstance(merged, BrokenOff):
            return self._broken_off(merged, candidates)
        best = candidates[merged.best_branch - 1]
        self.note, self.best, self.best_round = merged.note, best, number
        return self._stop("accepted") if best.verdict == "stop" else None

    def _started(self, number: int, turn: Turn) -> RoundStarted | BrokenOff:
        config = self.config
        if number == 1 and config.first_round == "question":
            order = [name for name in FIRST_STRATEGIES if name in config.strategies][: config.width]
            return RoundStarted(
                1,
                tuple(
                    BranchQuery(i, self.question, name, "the plain question")
                    for i, name in enumerate(order, start=1)
                ),
                Cost(),
            )
        task = RewriteTask(self.question, self.note, config.width, config.strategies, self.queries)
        began = time.perf_counter()
        try:
            rewrites, cost = self.agents.rewriter.rewrite(task, turn)
        except (OutOfBudget, LlmError) as error:
            return _broken(error, number, 0, "query rewriter", began)
        queries = tuple(
            BranchQuery(i, one.query, one.strategy, one.reason) for i, one in enumerate(rewrites, start=1)
        )
        return RoundStarted(number, queries, _timed(cost, began))

    def _merge(
        self, number: int, candidates: Sequence[BranchResult], hits: Sequence[Sequence[Hit]], turn: Turn
    ) -> Merged | BrokenOff:
        if len(candidates) == 1:
            return Merged(number, 1, candidates[0].note, None, Cost(), "the only branch")
        manager, began, selecting = self.agents.manager, time.perf_counter(), Cost()
        try:
            best, reason, selecting = manager.select(self.question, candidates, turn)
            others = [candidate for candidate in candidates if candidate.branch != best]
            note, weighed, merging = manager.merge(self.question, candidates[best - 1], others, turn)
        except (OutOfBudget, LlmError) as error:
            return _broken(error, number, 0, "context manager", began, selecting)
        cost = _timed(selecting + merging, began)
        return Merged(number, best, note, mean_overlap(hits), cost, reason, weighed)

    def _stop(self, reason: EndReason, message: str = "") -> SparcStopped:
        best = self.best
        evidence = tuple(dict.fromkeys([*self.note.chunk_ids, *(best.note.chunk_ids if best else ())]))
        return SparcStopped(
            reason,
            best.answer if best else "",
            self.best_round,
            best.branch if best else 0,
            evidence,
            self.cost,
            message,
        )

    def _broken_off(self, broken: BrokenOff, finished: Sequence[BranchResult] = ()) -> SparcStopped:
        """The end by spent budget or failure: the last merged answer, or the best that round 1 finished."""
        if self.best is None and finished:
            self.best = min(
                finished,
                key=lambda one: (one.verdict != "stop", not one.answer, -(one.confidence or 0.0), one.branch),
            )
            self.best_round = broken.round
        return self._stop(broken.reason, broken.message)


@dataclass
class _Branches:
    """The branches of one round while they work."""

    owner: _Run
    round: int
    turn: Turn
    broken: BrokenOff | None = None
    """The first in the order of branches."""
    hits: list[tuple[Hit, ...]] = field(default_factory=list)
    _candidates: list[BranchResult | None] = field(default_factory=list)

    def finished(self) -> list[BranchResult]:
        """Results of the branches that went through, in order."""
        return [candidate for candidate in self._candidates if candidate is not None]

    def run(self, queries: Sequence[BranchQuery], pool: ThreadPoolExecutor) -> Iterator[SparcEvent]:
        """Events of all branches as they happen."""
        self._candidates, self.hits = [None] * len(queries), [()] * len(queries)
        heard: SimpleQueue[SparcEvent | None] = SimpleQueue()
        futures = [pool.submit(self._work, i, query, heard.put) for i, query in enumerate(queries)]
        for future in futures:
            future.add_done_callback(lambda _: heard.put(None))
        working = len(queries)
        while working:
            try:
                event = heard.get(timeout=_POLL)
            except Empty:
                if self.owner._is_cancelled():
                    return
                continue
            if event is None:
                working -= 1
            else:
                self._count(event)
                yield event
        for future in futures:
            error = future.exception()
            if error is not None and not isinstance(error, LlmCancelled):
                raise error

    def _count(self, event: SparcEvent) -> None:
        if isinstance(event, NoteUpdated | Answered | Judged | BrokenOff):
            self.owner.cost += event.cost
        elif isinstance(event, Retrieved):
            self.owner.cost += Cost(milliseconds=event.milliseconds)
        if isinstance(event, BrokenOff) and (self.broken is None or event.branch < self.broken.branch):
            self.broken = event

    def _work(self, i: int, query: BranchQuery, say: Callable[[SparcEvent], None]) -> None:
        """One branch: retrieve, remember, answer, judge."""
        owner, turn, agents, branch = self.owner, self.turn, self.owner.agents, query.branch
        question, before = owner.question, owner.note
        began = time.perf_counter()
        hits = owner.retrievals.search(query.strategy, query.query, owner.config.k, before.chunk_ids)
        self.hits[i] = hits
        say(Retrieved(self.round, branch, hits, 1000 * (time.perf_counter() - began)))
        at_work: AgentName = "context manager"
        try:
            self._go_on()
            began = time.perf_counter()
            note, cost = agents.manager.update(question, query.query, before, hits, turn)
            say(NoteUpdated(self.round, branch, before, note, _timed(cost, began)))
            self._go_on()
            at_work, began = "answer generator", time.perf_counter()
            reading, cost = agents.generator.answer(question, note, turn)
            say(
                Answered(
                    self.round,
                    branch,
                    reading.answer,
                    reading.confidence,
                    reading.citations,
                    _timed(cost, began),
                )
            )
            self._go_on()
            at_work, began = "answer evaluator", time.perf_counter()
            verdict, reason, cost = agents.evaluator.judge(question, query.query, reading, note, turn)
            say(Judged(self.round, branch, verdict, reason, _timed(cost, began)))
        except (OutOfBudget, LlmError) as error:
            say(_broken(error, self.round, branch, at_work, began))
            return
        self._candidates[i] = BranchResult(
            branch, query.query, note, reading.answer, reading.confidence, reading.citations, verdict
        )

    def _go_on(self) -> None:
        if self.owner._is_cancelled():
            raise LlmCancelled


def _timed(cost: Cost, began: float) -> Cost:
    """The cost with the wall clock of the whole turn."""
    return Cost(
        cost.calls,
        cost.prompt_tokens,
        cost.completion_tokens,
        1000 * (time.perf_counter() - began),
        cost.structure,
    )


def _broken(
    error: OutOfBudget | LlmError,
    number: int,
    branch: int,
    agent: AgentName,
    began: float,
    before: Cost | None = None,
) -> BrokenOff:
    """`before`: what the turn had taken by then, beside the call that brought the error."""
    cost = _timed((before or Cost()) + error.spent, began)
    if isinstance(error, OutOfBudget):
        return BrokenOff(number, branch, agent, error.reason, "", cost)
    return BrokenOff(number, branch, agent, "failed", " ".join(str(error).split()), cost)


def mean_overlap(hits: Sequence[Sequence[Hit]]) -> float | None:
    """Mean pairwise Jaccard index of branches' chunks (appendix B.2); None below two, or without finds."""
    sets = [[one.chunk_id for one in branch] for branch in hits]
    return mean(jaccard(a, b) for i, a in enumerate(sets) for b in sets[i + 1 :])
