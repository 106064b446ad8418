"""The readable record of a SPARC run.

Its events, folded into rounds and branches. The JSON form keeps their order, so that a run is redrawn and
replayed without asking any model again, and what each agent was given can be rebuilt (`rewriter_task`,
`judged`), for preference pairs. A run cut at a smaller depth is what that depth would have brought.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from core.base.errors import BadRequest, first_problem
from core.llm.protocol import Cost
from core.methods.sparc.agents import BranchResult, RewriteTask
from core.methods.sparc.events import (
    Answered,
    BranchEvent,
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
    SparcEvent,
    SparcStarted,
    SparcStopped,
)

FORMAT = 1
MAX_EVENTS = 1_000
"""A run of the largest width and depth has some 150."""
_EVENTS: TypeAdapter[list[SparcEvent]] = TypeAdapter(
    list[Annotated[SparcEvent, Field(discriminator="event")]]
)


_PART: dict[type, str] = {
    Retrieved: "retrieved",
    NoteUpdated: "noted",
    Answered: "answered",
    Judged: "judged",
    BrokenOff: "broken",
}
"""Which part of a branch an event is."""


@dataclass(frozen=True)
class SparcBranch:
    """One branch of a round; what it hasn't reached yet is None."""

    query: BranchQuery
    retrieved: Retrieved | None = None
    noted: NoteUpdated | None = None
    answered: Answered | None = None
    judged: Judged | None = None
    broken: BrokenOff | None = None
    """What ended it early."""

    @property
    def number(self) -> int:
        """1-based."""
        return self.query.branch

    @property
    def chunks(self) -> tuple[Hit, ...]:
        """What it retrieved, best first."""
        return () if self.retrieved is None else self.retrieved.found

    @property
    def cost(self) -> Cost:
        """Of its agents; retrieval adds its time only."""
        spent = Cost(milliseconds=self.retrieved.milliseconds) if self.retrieved else Cost()
        events = (self.noted, self.answered, self.judged, self.broken)
        return sum((event.cost for event in events if event), spent)

    @property
    def result(self) -> BranchResult | None:
        """What it came to; None where it did not go through."""
        if self.noted is None or self.answered is None or self.judged is None:
            return None
        answer = (self.answered.answer, self.answered.confidence, self.answered.citations)
        return BranchResult(self.number, self.query.query, self.noted.after, *answer, self.judged.verdict)


@dataclass(frozen=True)
class SparcRound:
    """One round; `merged` is None while its branches work, and where the run ended before."""

    started: RoundStarted
    branches: tuple[SparcBranch, ...]
    merged: Merged | None = None
    broken: BrokenOff | None = None
    """What ended it when all branches were done."""

    @property
    def number(self) -> int:
        """1-based."""
        return self.started.round

    @property
    def cost(self) -> Cost:
        """Of all agents, one after the other."""
        branches = sum((branch.cost for branch in self.branches), self.started.cost)
        return sum((event.cost for event in (self.merged, self.broken) if event), branches)

    @property
    def best(self) -> SparcBranch | None:
        """The branch that was chosen."""
        return self.branches[self.merged.best_branch - 1] if self.merged else None

    def with_event(self, event: BranchEvent | Merged) -> SparcRound:
        """The round after one more event. Raises ValueError for a branch that it doesn't have."""
        if isinstance(event, BrokenOff) and event.branch == 0:
            return replace(self, broken=event)
        number = event.best_branch if isinstance(event, Merged) else event.branch
        if not 1 <= number <= len(self.branches):
            raise ValueError(f"round {self.number} has no branch {number}")
        if isinstance(event, Merged):
            return replace(self, merged=event)
        branches, at = list(self.branches), event.branch - 1
        part: dict[str, Any] = {_PART[type(event)]: event}
        branches[at] = replace(branches[at], **part)
        return replace(self, branches=tuple(branches))


@dataclass(frozen=True)
class SparcTrace:
    """One run, as far as it got."""

    started: SparcStarted
    rounds: tuple[SparcRound, ...] = ()
    broken: BrokenOff | None = None
    """What kept a further round from beginning."""
    stopped: SparcStopped | None = None
    """None while the run goes on, or when it was cancelled."""
    events: tuple[SparcEvent, ...] = field(default=(), repr=False)

    @property
    def cost(self) -> Cost:
        """Of all agents so far."""
        return sum((one.cost for one in self.rounds), self.broken.cost if self.broken else Cost())

    @property
    def note(self) -> Note:
        """The last merged memory."""
        return next((one.merged.note for one in reversed(self.rounds) if one.merged), Note())

    @property
    def answer(self) -> str:
        """The answer of the run, or the best branch's so far."""
        if self.stopped is not None:
            return self.stopped.answer
        best = next((one.best for one in reversed(self.rounds) if one.best), None)
        return best.answered.answer if best and best.answered else ""

    @property
    def confidence(self) -> float | None:
        """Of the branch that the answer comes from; None where nobody measured it."""
        chosen = self.chosen_branch
        return chosen.answered.confidence if chosen and chosen.answered else None

    @property
    def chosen_branch(self) -> SparcBranch | None:
        """The branch that the answer comes from; None before the end, and where there was none."""
        if self.stopped is None or not 1 <= self.stopped.round <= len(self.rounds):
            return None
        branches = self.rounds[self.stopped.round - 1].branches
        return branches[self.stopped.branch - 1] if 1 <= self.stopped.branch <= len(branches) else None

    @property
    def pool(self) -> tuple[int, ...]:
        """Every chunk that any branch retrieved, none twice, in order of retrieval."""
        return tuple(self.texts)

    @property
    def texts(self) -> dict[int, str]:
        """Texts of the chunks that were retrieved, as far as it has them."""
        found = (hit for event in self.events if isinstance(event, Retrieved) for hit in event.found)
        return {hit.chunk_id: hit.text for hit in found}

    def with_event(self, event: SparcEvent) -> SparcTrace:
        """The trace after one more event. Raises ValueError for one that can't follow."""
        if (
            self.stopped is not None
            or isinstance(event, SparcStarted)
            or (self.broken is not None and not isinstance(event, SparcStopped))
        ):
            raise ValueError(f"{event.event} can't follow {self.events[-1].event}")
        trace = replace(self, events=(*self.events, event))
        if isinstance(event, SparcStopped):
            return replace(trace, stopped=event)
        if isinstance(event, RoundStarted):
            numbers = [query.branch for query in event.queries]
            if event.round != len(self.rounds) + 1 or numbers != [*range(1, len(numbers) + 1)]:
                raise ValueError(
                    f"round {event.round} can't follow {len(self.rounds)} rounds, or its branches are not"
                    " numbered from 1 on"
                )
            begun = SparcRound(event, tuple(map(SparcBranch, event.queries)))
            return replace(trace, rounds=(*self.rounds, begun))
        if isinstance(event, BrokenOff) and event.branch == 0 and event.round == len(self.rounds) + 1:
            return replace(trace, broken=event)
        if event.round != len(self.rounds) or not self.rounds:
            raise ValueError(f"{event.event} of round {event.round} came in round {len(self.rounds)}")
        return replace(trace, rounds=(*self.rounds[:-1], self.rounds[-1].with_event(event)))

    def rewriter_task(self, round: int) -> RewriteTask | None:
        """What the rewriter was given in a 1-based round; None where round 1 asked the plain question."""
        config = self.started.config
        if round == 1 and config.first_round == "question":
            return None
        before = self.rounds[round - 2].merged if round > 1 else None
        queries = tuple(query.query for one in self.rounds[: round - 1] for query in one.started.queries)
        return RewriteTask(
            self.started.question, before.note if before else Note(), config.width, config.strategies, queries
        )

    def at_depth(self, depth: int) -> SparcTrace:
        """The run with a smaller depth, itself where it was no deeper. Raises ValueError below 1."""
        if depth < 1:
            raise ValueError(f"depth {depth} must be at least 1")
        config = replace(self.started.config, depth=min(depth, self.started.config.depth))
        started = replace(self.started, config=config)
        rounds = self.rounds[:depth]
        begun = len(self.rounds) + (self.broken is not None)
        if depth >= begun or rounds[-1].merged is None:
            return replace(self, started=started, events=(started, *self.events[1:]))
        events = [
            event
            for event in self.events
            if not isinstance(event, SparcStarted | SparcStopped) and event.round <= depth
        ]
        cut = fold_sparc([started, *events])
        return cut.with_event(end_of(cut, "depth"))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values: the outcome first, then every event."""
        stopped = self.stopped
        return {
            "format": FORMAT,
            "question": self.started.question,
            "agents": self.started.agents,
            "answer": self.answer,
            "confidence": self.confidence,
            "stop_reason": stopped.reason if stopped else None,
            "message": stopped.message if stopped else "",
            "rounds": len(self.rounds),
            "evidence": list(stopped.evidence) if stopped else list(self.note.chunk_ids),
            "events": _EVENTS.dump_python(list(self.events), mode="json"),
        }

    @classmethod
    def from_json(cls, values: Any) -> SparcTrace:
        """Inverse of `to_json`; only the events are read. Raises BadRequest for anything else."""
        events = values.get("events") if isinstance(values, dict) and values.get("format") == FORMAT else None
        if not isinstance(events, list) or not 0 < len(events) <= MAX_EVENTS:
            raise BadRequest(
                f"this is no trace of a SPARC run: it must be an object of format {FORMAT} with 1 to"
                f" {MAX_EVENTS} events"
            )
        try:
            return fold_sparc(_EVENTS.validate_python(events))
        except ValueError as error:
            problem = first_problem(error) if isinstance(error, ValidationError) else error
            raise BadRequest(
                f"the trace of a SPARC run is damaged ({problem}); export the run again"
            ) from None


def end_of(trace: SparcTrace, reason: EndReason, message: str = "") -> SparcStopped:
    """The last event: the last merged answer; where nothing was merged, that of the first branch that was
    accepted, else of the first that answered.
    """
    last = next((one for one in reversed(trace.rounds) if one.merged), None) or (trace.rounds or (None,))[-1]
    results = [branch.result for branch in last.branches if branch.result] if last else []
    if last and last.merged:
        results = [result for result in results if result.branch == last.merged.best_branch]
    best = min(results, key=lambda one: (one.verdict != "stop", not one.answer, one.branch), default=None)
    evidence = tuple(dict.fromkeys([*trace.note.chunk_ids, *(best.note.chunk_ids if best else ())]))
    if last is None or best is None:
        return SparcStopped(reason, "", 0, 0, evidence, trace.cost, message)
    return SparcStopped(reason, best.answer, last.number, best.branch, evidence, trace.cost, message)


def extended(trace: SparcTrace | None, event: SparcEvent) -> SparcTrace:
    """A trace after one more event; None: a run not begun. Raises ValueError for one that can't follow."""
    if trace is not None:
        return trace.with_event(event)
    if not isinstance(event, SparcStarted):
        raise ValueError(f"a run begins with sparc_started, not {event.event}")
    return SparcTrace(event, events=(event,))


def fold_sparc(events: Iterable[SparcEvent]) -> SparcTrace:
    """The trace of events. Raises ValueError unless SparcStarted begins and each can follow the last."""
    trace: SparcTrace | None = None
    for event in events:
        trace = extended(trace, event)
    if trace is None:
        raise ValueError("no events: nothing ran")
    return trace
