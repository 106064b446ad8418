"""What a run says while it goes: frozen events, and their trace.

The Q-values and positions of all N chunks ride along as `StepScores`, arrays that never enter the JSON form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, InstanceOf, TypeAdapter

from core.base.config import EpisodeConfig

StopReason = Literal["budget", "threshold", "exhausted"]
ChosenBy = Literal["agent", "person"]


@dataclass(frozen=True, eq=False, slots=True)
class StepScores:
    """What every chunk was worth before one action. `positions`: before rounding to the checkpoint's grid."""

    q_values: np.ndarray
    """(N,) float32, chosen and forbidden chunks included, before masking. For a baseline: its scores."""
    positions: np.ndarray | None
    """(N,) float64, or None where the method has no positions."""


Scores = Annotated[InstanceOf[StepScores] | None, Field(exclude=True)]
"""Beside an event, and no part of its JSON form."""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """First event of every run."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    query: str
    method: str
    checkpoint: str
    n_chunks: int
    config: EpisodeConfig
    event: Literal["run_started"] = "run_started"


@dataclass(frozen=True, slots=True)
class StepTaken:
    """One action. At temperature 0 (limits of eq. 3, 4) `probability` is 1, `state_value` the largest Q."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    step: int
    """1-based."""
    chunk_id: int
    q_value: float
    probability: float
    state_value: float
    """V(s) before the action (Q-RAG eq. 4), in units of Q."""
    position: float | None
    """rho of the chosen chunk before rounding, None without positions."""
    text: str
    milliseconds: float
    """Wall clock of this step: state embedding, scoring, choice."""
    content_q: float | None = None
    """The content's share of Q, no vector turned; the rest is position and words. None for Q of one part."""
    words_q: float | None = None
    """What the question's words contribute to Q of the chosen chunk; None where no words are counted."""
    reranked_q: float | None = None
    """What the reranker contributes to Q of the chosen chunk; None for an agent without one."""
    chosen_by: ChosenBy = "agent"
    n_tied: int = 1
    """Available chunks whose Q equals the largest; the first in document order won."""
    n_state_tokens: int = 0
    n_state_tokens_dropped: int = 0
    """Tokens of the state that the encoder's window had no room for."""
    scores: Scores = field(default=None, repr=False, compare=False)
    event: Literal["step_taken"] = "step_taken"


@dataclass(frozen=True, slots=True)
class Stopped:
    """Last event of a run not cancelled. `chunk_id`, `q_value`: the best action not taken, if any is left."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    reason: StopReason
    n_steps: int
    chunk_id: int | None = None
    q_value: float | None = None
    milliseconds: float = 0.0
    """Wall clock of the look after which the agent stopped, and of its review."""
    scores: Scores = field(default=None, repr=False, compare=False)
    review: tuple[float, ...] = ()
    """Of each choice in order, its Q beside the others still held; empty where nothing was reviewed."""
    taken_back: tuple[int, ...] = ()
    """Chunk ids that the review took back, in that order."""
    event: Literal["stopped"] = "stopped"


Event = RunStarted | StepTaken | Stopped


_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


def event_to_json(event: Event) -> dict[str, Any]:
    """Plain JSON values of an event, without its arrays."""
    values: dict[str, Any] = _EVENT.dump_python(event, mode="json")
    return values


def event_from_json(values: dict[str, Any]) -> Event:
    """Inverse of `event_to_json`; fields may be missing. Raises ValueError on an unknown kind or field."""
    return _EVENT.validate_python(values)


@dataclass(frozen=True)
class Trace:
    """The readable record of one run: its events, folded."""

    started: RunStarted
    steps: tuple[StepTaken, ...] = ()
    stopped: Stopped | None = None
    """None while the run goes on, or when it was cancelled."""

    @property
    def chosen(self) -> tuple[int, ...]:
        """Chunk ids in order of choice."""
        return tuple(step.chunk_id for step in self.steps)

    @property
    def taken_back(self) -> tuple[int, ...]:
        """Chosen chunks that the review took back, in that order."""
        return () if self.stopped is None else self.stopped.taken_back

    @property
    def picks(self) -> tuple[int, ...]:
        """Chunk ids in order of choice, without those that were taken back."""
        return tuple(chunk_id for chunk_id in self.chosen if chunk_id not in self.taken_back)

    @property
    def evidence(self) -> tuple[int, ...]:
        """What was kept, in document order."""
        return tuple(sorted({*self.picks}))

    @property
    def milliseconds(self) -> float:
        """Wall clock of all looks together."""
        last_look = 0.0 if self.stopped is None else self.stopped.milliseconds
        return sum(step.milliseconds for step in self.steps) + last_look

    def scores_at(self, step: int) -> StepScores | None:
        """Arrays of 1-based `step`; step len(steps) + 1 is the look after which the agent stopped."""
        if 1 <= step <= len(self.steps):
            return self.steps[step - 1].scores
        if step == len(self.steps) + 1 and self.stopped is not None:
            return self.stopped.scores
        return None

    @property
    def n_looks(self) -> int:
        """Steps, plus the look after which the agent stopped if it scored anything."""
        return len(self.steps) + (self.stopped is not None and self.stopped.scores is not None)

    def with_event(self, event: Event) -> Trace:
        """The trace after one more event."""
        match event:
            case StepTaken():
                return replace(self, steps=(*self.steps, event), stopped=None)
            case Stopped():
                return replace(self, stopped=event)
            case RunStarted():
                raise ValueError("a trace starts once")


def share_searched(trace: Trace) -> float:
    """Of all chunks, how many the run looked at: below 1 for one that was asked while they were embedded."""
    n_chunks = trace.started.n_chunks
    return trace.started.config.n_searched(n_chunks) / n_chunks if n_chunks else 1.0


def fold(events: Iterable[Event]) -> Trace:
    """The trace of a stream of events. Raises ValueError unless the first is RunStarted."""
    stream = iter(events)
    started = next(stream, None)
    if started is None:
        raise ValueError("no events: nothing ran")
    if not isinstance(started, RunStarted):
        raise ValueError(f"a run begins with run_started, not {started.event}")
    return reduce(Trace.with_event, stream, Trace(started))
