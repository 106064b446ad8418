"""The SPARC loop, a generator of events (SPARC-RAG algorithm 1).

A branch retrieves, updates the memory, answers and judges, in a thread of its own; then the context manager
picks the best branch and merges the memories, and that branch's verdict decides. Where the paper is open:
- With `first_round="question"`, round 1 has no more branches than strategies, each with another one.
- With one branch no agent is asked to select or to merge.
- A spent budget or an agent's failure lets the other branches of the round finish their own turn, then ends
  the run with the best answer so far (`end_of`).
- Cancelling ends the events without a last word; calls on their way are told to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from threading import Event as Flag

from core.base.config import check_query
from core.base.errors import BadRequest
from core.base.metrics import jaccard
from core.base.statistics import mean
from core.corpus.index import Searchable
from core.llm.protocol import Cost, LlmCancelled, LlmError
from core.methods.bm25 import check_words
from core.methods.sparc.agents import BranchResult, Rewrite, SparcAgents, Turn
from core.methods.sparc.budget import Budget, OutOfBudget
from core.methods.sparc.config import check_sparc_config, strongest_first
from core.methods.sparc.events import (
    AgentName,
    Answered,
    BranchQuery,
    BrokenOff,
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
)
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.trace import SparcTrace, end_of

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
    retrievals.check(*config.strategies)
    if not len(corpus):
        raise BadRequest("there are no chunks to search; open a document that has text")
    retrievals.prepare()
    if config.strategies == ("bm25",):
        check_words(corpus)
    started = SparcStarted(question, agents.name, config, len(corpus))
    return _Run(agents, retrievals, cancelled, SparcTrace(started, events=(started,))).events()


@dataclass
class _Run:
    """One run while it goes."""

    agents: SparcAgents
    retrievals: Retrievals
    cancelled: Callable[[], bool]
    trace: SparcTrace
    """What it has said by now; all that it goes on from."""
    _closed: Flag = field(default_factory=Flag)

    def events(self) -> Generator[SparcEvent, None, None]:
        config = self.trace.started.config
        yield self.trace.started
        budget = Budget(config.max_tokens, config.max_calls)
        turn = Turn(self.retrievals, budget, config.temperature, config.seed, self._is_cancelled)
        pool = ThreadPoolExecutor(config.width, thread_name_prefix="sparc")
        try:
            for number in range(1, config.depth + 1):
                for event in self._round(number, turn, pool):
                    self.trace = self.trace.with_event(event)
                    yield event
                if self.trace.stopped is not None or self._is_cancelled():
                    return
            yield end_of(self.trace, "depth")
        except LlmCancelled:
            return
        finally:
            self._closed.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _is_cancelled(self) -> bool:
        return self._closed.is_set() or self.cancelled()

    def _round(self, number: int, turn: Turn, pool: ThreadPoolExecutor) -> Iterator[SparcEvent]:
        """Events of one round, and the last of the run where it ends here."""
        started = self._started(number, turn)
        yield started
        if isinstance(started, BrokenOff):
            yield end_of(self.trace, started.reason, started.message)
            return
        yield from self._branches(started, turn, pool)
        branches = self.trace.rounds[-1].branches
        broken = next((branch.broken for branch in branches if branch.broken), None)
        if broken is None:
            if self._is_cancelled():
                return
            merged = self._merge(number, [branch.result for branch in branches if branch.result], turn)
            yield merged
            if isinstance(merged, BrokenOff):
                broken = merged
        if broken is not None:
            yield end_of(self.trace, broken.reason, broken.message)
        elif (best := self.trace.rounds[-1].best) and best.judged and best.judged.verdict == "stop":
            yield end_of(self.trace, "accepted")

    def _started(self, number: int, turn: Turn) -> RoundStarted | BrokenOff:
        started, began = self.trace.started, time.perf_counter()
        task = self.trace.rewriter_task(number)
        if task is None:
            order = strongest_first(started.config.strategies)[: started.config.width]
            rewrites = tuple(Rewrite(started.question, name, "the plain question") for name in order)
            cost = Cost()
        else:
            try:
                rewrites, cost = self.agents.rewrite(task, turn)
            except (OutOfBudget, LlmError) as error:
                return _broken(error, number, 0, "query rewriter", began)
            cost = _timed(cost, began)
        queries = (
            BranchQuery(i, one.query, one.strategy, one.reason) for i, one in enumerate(rewrites, start=1)
        )
        return RoundStarted(number, tuple(queries), cost)

    def _branches(self, started: RoundStarted, turn: Turn, pool: ThreadPoolExecutor) -> Iterator[SparcEvent]:
        """Events of all branches of a round as they happen."""
        number, queries, before = started.round, started.queries, self.trace.note
        heard: SimpleQueue[SparcEvent | None] = SimpleQueue()
        futures = [pool.submit(self._work, number, query, before, turn, heard.put) for query in queries]
        for future in futures:
            future.add_done_callback(lambda _: heard.put(None))
        working = len(queries)
        while working:
            try:
                event = heard.get(timeout=_POLL)
            except Empty:
                if self._is_cancelled():
                    return
                continue
            if event is None:
                working -= 1
            else:
                yield event
        for future in futures:
            error = future.exception()
            if error is not None and not isinstance(error, LlmCancelled):
                raise error

    def _work(
        self, number: int, query: BranchQuery, before: Note, turn: Turn, say: Callable[[SparcEvent], None]
    ) -> None:
        """One branch: retrieve, remember, answer, judge."""
        agents, branch, started = self.agents, query.branch, self.trace.started
        question, k, began = started.question, started.config.k, time.perf_counter()
        hits = self.retrievals.search(query.strategy, query.query, k, before.chunk_ids)
        say(Retrieved(number, branch, hits, 1000 * (time.perf_counter() - began)))
        at_work: AgentName = "context manager"
        try:
            self._go_on()
            began = time.perf_counter()
            note, cost = agents.update(question, query.query, before, hits, turn)
            say(NoteUpdated(number, branch, before, note, _timed(cost, began)))
            self._go_on()
            at_work, began = "answer generator", time.perf_counter()
            reading, cost = agents.answer(question, note, turn)
            answer = (reading.answer, reading.confidence, reading.citations)
            say(Answered(number, branch, *answer, _timed(cost, began), reading.thoughts))
            self._go_on()
            at_work, began = "answer evaluator", time.perf_counter()
            verdict, reason, cost = agents.judge(question, query.query, reading, note, turn)
            say(Judged(number, branch, verdict, reason, _timed(cost, began)))
        except (OutOfBudget, LlmError) as error:
            say(_broken(error, number, branch, at_work, began))

    def _go_on(self) -> None:
        if self._is_cancelled():
            raise LlmCancelled

    def _merge(self, number: int, candidates: Sequence[BranchResult], turn: Turn) -> Merged | BrokenOff:
        if len(candidates) == 1:
            return Merged(number, 1, candidates[0].note, None, Cost(), "the only branch")
        agents, began, selecting = self.agents, time.perf_counter(), Cost()
        question, hits = self.trace.started.question, [one.chunks for one in self.trace.rounds[-1].branches]
        try:
            best, reason, selecting = agents.select(question, candidates, turn)
            others = [candidate for candidate in candidates if candidate.branch != best]
            note, weighed, merging = agents.merge(question, candidates[best - 1], others, turn)
        except (OutOfBudget, LlmError) as error:
            return _broken(error, number, 0, "context manager", began, selecting)
        cost = _timed(selecting + merging, began)
        return Merged(number, best, note, mean_overlap(hits), cost, reason, weighed)


def _timed(cost: Cost, began: float) -> Cost:
    """The cost with the wall clock of the whole turn."""
    return replace(cost, milliseconds=1000 * (time.perf_counter() - began))


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
