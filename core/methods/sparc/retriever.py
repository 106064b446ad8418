"""SPARC as one retrieval method among others.

A whole run, then its evidence as the steps of an episode: branches retrieve, and rules remember,
`step_budget` chunks each, and of the final evidence the first so many count. Steps stand in the order in
which branches first retrieved them, with the scores of that retrieval. It has no scores of all chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, Cancelled
from core.base.events import Event, RunStarted, StepTaken, Stopped, StopReason
from core.corpus.index import Searchable
from core.llm.protocol import never
from core.methods.protocol import Method
from core.methods.sparc.agents import SparcAgents
from core.methods.sparc.config import MAX_K
from core.methods.sparc.events import Retrieved, SparcConfig
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import SparcTrace, extended

SPARC_METHOD = Method(
    name="sparc",
    label="SPARC-RAG",
    sentence=(
        "Branches look for different things at once, round after round, and share a note (SPARC-RAG section"
        " 3); these are the chunks of its final note"
    ),
    score_name="score",
)
SPARC = SPARC_METHOD.name


class SparcRetriever:
    """A `Retriever` for the corpus that `retrievals` searches; forbidden and forced chunks don't count."""

    name = SPARC

    def __init__(
        self,
        agents: Callable[[SparcConfig], SparcAgents],
        retrievals: Callable[[], Retrievals],
        checkpoint: str,
        config: SparcConfig,
    ) -> None:
        """agents: makes those of a configuration, which decides how much they remember. retrievals: makes
        what searches a corpus. checkpoint: name of the agent whose vectors it has.
        """
        self._agents = agents
        self._retrievals = retrievals
        self._checkpoint = checkpoint
        self._config = config
        self.hear: Callable[[SparcTrace], None] = lambda _: None
        """Told the trace after every event; it may raise."""
        self.cancelled: Callable[[], bool] = never
        """Asked again and again, from several threads; once true, `retrieve` raises Cancelled."""
        self.trace: SparcTrace | None = None
        """Of the last run, as far as it went."""

    def prepare(self) -> None:
        """Builds the indexes, which are no part of a run's time."""
        self._retrievals().prepare()

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`. Raises BadRequest or Cancelled after the evidence of a run without an end."""
        seed = config.seed or self._config.seed
        settings = replace(self._config, k=min(config.step_budget, MAX_K), seed=seed)
        self.trace = None
        agents, retrievals = self._agents(settings), self._retrievals()
        events = run_sparc(query, corpus, agents, retrievals, settings, self.cancelled)
        yield RunStarted(query.strip(), self.name, self._checkpoint, len(corpus), config)
        with closing(events):
            for event in events:
                self.trace = extended(self.trace, event)
                self.hear(self.trace)
        assert self.trace is not None  # a run says at least that it started
        stopped = self.trace.stopped
        failed = stopped is not None and stopped.reason == "failed"
        steps = evidence_steps(self.trace, config.step_budget)
        yield from steps[:-1] if failed else steps
        if stopped is None:
            raise Cancelled
        if failed:
            raise BadRequest(
                f"an agent could not go on: {stopped.message}; what it had found by then stands in"
                " Experiments"
            )


def evidence_steps(trace: SparcTrace, most: int | None = None) -> list[StepTaken | Stopped]:
    """The final evidence, or the last merged note's, as steps without times; the first of `most` chunks."""
    evidence = {*(trace.stopped.evidence if trace.stopped else trace.note.chunk_ids)[:most]}
    steps: dict[int, StepTaken] = {}
    for event in trace.events:
        for one in event.found if isinstance(event, Retrieved) else ():
            if one.chunk_id in evidence and one.chunk_id not in steps:
                steps[one.chunk_id] = StepTaken(
                    len(steps) + 1, one.chunk_id, one.score, 1.0, one.score, None, one.text, 0.0
                )
    if trace.stopped is None:
        return [*steps.values()]
    reason: StopReason = "threshold" if trace.stopped.reason == "accepted" else "budget"
    return [*steps.values(), Stopped(reason, len(steps))]
