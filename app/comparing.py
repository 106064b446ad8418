"""Comparisons for the page: the methods on offer, running them over the documents that Explore has open, finding what they found again.

Decides that every column is a run of the log like any other, so that it can be opened, replayed and exported as such; that all methods
search the same chunks, those of the open documents; and that agents stop by themselves only when asked to. Knows nothing of components.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from app.services import OpenDocuments, Recent, RunInView, Services
from core.comparison import Column, Contestant, compare
from core.config import EpisodeConfig, check_query
from core.errors import BadRequest, Cancelled
from core.events import Event, RunStarted
from core.index import Corpus
from core.opening import OpenProgress
from core.qrag.agent import Agent
from core.qrag.influence import Influence, leave_one_out
from core.retrievers import AgentRetriever, Bm25, build_retriever
from core.types import Workspace

AGENT = "qrag:"
"""Begins the key of an agent's method; the checkpoint's name follows."""
PLAIN = "base"
"""The untrained checkpoint that the methods without an agent of their own search with; as an agent it is `multistep`."""
METHOD_NAMES = {"topk": "top-k", "bm25": "BM25", "threshold": "threshold", "multistep": "multi-step"}
"""Methods besides the agents, as they are called on the page."""
MAX_K = 12
"""Right end of the slider: as many as Explore offers."""

MAX_INFLUENCES = 1_000
"""Runs whose leave-one-out stays in memory: some numbers each."""


@dataclass(frozen=True)
class ComparisonOrder:
    """What a person asks for."""

    query: str = ""
    methods: tuple[str, ...] = ()
    """Keys: see `AGENT` and `METHOD_NAMES`."""
    k: int = 4
    """Chunks of every column."""
    own_stop: bool = False
    """Agents stop by their own threshold, at k at the latest; the others take as many as the first agent."""


@dataclass(frozen=True)
class ColumnRef:
    """Where a column's numbers are: small, for a session."""

    name: str
    run: str = ""
    """Token of its run; empty where the method refused."""
    milliseconds: float = 0.0
    refused: str = ""


@dataclass(frozen=True)
class Compared:
    """A visitor's place in the tab."""

    corpus: str = ""
    """Token of the documents that were searched."""
    order: ComparisonOrder = ComparisonOrder()
    columns: tuple[ColumnRef, ...] = ()
    chunk_id: int | None = None
    """Chunk that is open in the reading pane."""
    anchor: int | None = None
    """Chunk around which the pane's page lies, where that is not the open one."""
    explained: tuple[int, ...] = ()
    """Positions of the columns whose choices show what they owe to those before."""
    seen: tuple[str, str] = ("", "")
    """(token of documents, question) last taken over from Explore."""


@dataclass(frozen=True)
class Comparing:
    """How far a comparison is. Chunks while embedding, steps while retrieving."""

    columns: tuple[ColumnRef, ...]
    """Those that are there."""
    name: str
    stage: Literal["embedding", "retrieving"]
    done: int
    total: int
    seconds_left: float | None = None


@dataclass(frozen=True, eq=False)
class ShownColumn:
    """A column with its run."""

    name: str
    run: RunInView | None
    milliseconds: float
    refused: str

    @property
    def column(self) -> Column:
        """As `core.comparison` exports it."""
        return Column(self.name, self.run.trace if self.run else None, self.milliseconds, BadRequest(self.refused) if self.refused else None)


class Comparisons:
    """One per process."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._bm25 = Bm25()  # its indexes live as long as the corpora that they are of
        self._influences: Recent[Influence] = Recent(MAX_INFLUENCES, lambda _: 1)
        self._idle = threading.Event()
        self._idle.set()

    def wait_idle(self, seconds: float) -> bool:
        """Whether the comparison that was running has ended by then."""
        return self._idle.wait(seconds)

    def methods(self) -> list[str]:
        """Keys of the methods on offer, agents first."""
        return [*(AGENT + name for name in self.services.checkpoints if name != PLAIN), *METHOD_NAMES]

    def usual(self, agent: str) -> list[str]:
        """Keys of the methods that are chosen to begin with, for documents that are open under an agent."""
        agents = [key for key in self.methods() if key.startswith(AGENT)]
        own = AGENT + agent
        return [*([own] if own in agents else agents[:1]), "topk", "bm25", "multistep"]

    def run(self, documents: OpenDocuments, order: ComparisonOrder, report: Callable[[Comparing], None]) -> tuple[ColumnRef, ...]:
        """A column a method, agents first, that of the open documents leading. Raises BadRequest, BadCheckpoint.

        `report` may raise Cancelled: columns that are there stay, the run in progress is logged as cancelled.
        """
        query = check_query(order.query)
        contestants = self._contestants(documents, order)
        self._idle.clear()
        try:
            return _Comparison(self.services, documents, query, report).columns(contestants)
        finally:
            self._idle.set()

    def shown(self, compared: Compared) -> list[ShownColumn]:
        """The columns with their runs. Raises BadRequest when one is not in memory any more."""
        shown = []
        for ref in compared.columns:
            run = self.services.runs.get(ref.run)
            if run is None and not ref.refused:
                raise BadRequest("this comparison is not in memory any more; compare again, the vectors are kept")
            shown.append(ShownColumn(ref.name, run, ref.milliseconds, ref.refused))
        return shown

    def influence(self, run: RunInView) -> Influence:
        """What an agent's choices owe to those before; asked of the agent once a run."""
        known = self._influences.get(run.token)
        if known is None:
            known = leave_one_out(run.documents.agent, run.trace.started.query, run.documents.corpus, run.config, run.trace.chosen)
            self._influences.put(run.token, known)
        return known

    def workspace(self, compared: Compared) -> Workspace:
        """What was searched. Raises BadRequest when it is not open any more."""
        documents = self.services.corpora.get(compared.corpus)
        if documents is None:
            raise BadRequest("the documents of this comparison are not open any more; open them in Explore and compare again")
        return documents.workspace

    def _contestants(self, documents: OpenDocuments, order: ComparisonOrder) -> list[tuple[Contestant, Agent]]:
        """Each with the agent under whose vectors the documents have to be open."""
        known = self.methods()
        outside = [key for key in order.methods if key not in known]
        if outside:
            raise BadRequest(f"method {outside[0].removeprefix(AGENT)!r} is not on offer; choose among those of the list")
        if not order.methods:
            raise BadRequest("no method is chosen; choose two or more to compare")
        n = len(documents.corpus)
        if not 1 <= order.k <= min(n, MAX_K):
            raise BadRequest(f"{order.k} chunks each must be between 1 and {min(n, MAX_K)}: {n:,} chunks are open, and a state holds few")
        if order.own_stop and not any(key.startswith(AGENT) for key in order.methods):
            raise BadRequest("no agent is chosen whose stop the others could follow; choose one, or the same number for all")
        own = AGENT + documents.agent.spec.name
        keys = sorted(dict.fromkeys(order.methods), key=lambda key: (key != own, known.index(key)))
        return [self._contestant(key, order) for key in keys]

    def _contestant(self, key: str, order: ComparisonOrder) -> tuple[Contestant, Agent]:
        if key.startswith(AGENT):
            agent = self.services.agent(key.removeprefix(AGENT))
            spec = self.services.served(agent.spec)
            config = spec.episode_config(step_budget=order.k, stop_threshold=spec.stop_threshold if order.own_stop else None)
            return Contestant(f"Q-RAG {spec.name}", AgentRetriever(agent), agent.encoder, config), agent
        plain = self.services.agent(PLAIN)
        retriever = self._bm25 if key == "bm25" else build_retriever(key, plain.encoder, plain.encoder)[0]
        return Contestant(METHOD_NAMES[key], retriever, plain.encoder, EpisodeConfig(step_budget=order.k), follows=order.own_stop), plain


class _Comparison:
    """One comparison while it runs: logs events as they come, and tells how far it is."""

    def __init__(self, services: Services, documents: OpenDocuments, query: str, report: Callable[[Comparing], None]) -> None:
        self.services, self.documents, self.query, self.report = services, documents, query, report
        self.gold = next((known.support for known in documents.questions if known.question == query), ())
        self.found: tuple[ColumnRef, ...] = ()
        self.run: RunInView | None = None

    def columns(self, contestants: list[tuple[Contestant, Agent]]) -> tuple[ColumnRef, ...]:
        agents = {one.name: agent for one, agent in contestants}
        opened: dict[str, OpenDocuments] = {}

        def corpus_of(one: Contestant) -> Corpus:
            opened[one.name] = self._open(one.name, agents[one.name])
            return opened[one.name].corpus

        def hear(one: Contestant, event: Event) -> None:
            if isinstance(event, RunStarted):
                self.run = self.services.begin_run(event, opened[one.name], self.gold)
            elif self.run is not None:
                self.run = self.services.add_event(self.run, event)
            taken = 0 if self.run is None else len(self.run.trace.steps)
            self.report(Comparing(self.found, one.name, "retrieving", taken, one.config.step_budget))

        try:
            for column in compare(self.query, (one for one, _ in contestants), corpus_of, hear):
                if column.error is not None:
                    self.found = (*self.found, ColumnRef(column.name, refused=str(column.error)))
                elif self.run is not None:
                    self.found = (*self.found, ColumnRef(column.name, self.run.token, column.milliseconds))
        except Cancelled:
            self._give_up("cancelled", None)
            raise
        except Exception as error:
            self._give_up("failed", str(error))
            raise
        return self.found

    def _give_up(self, status: Literal["cancelled", "failed"], message: str | None) -> None:
        if self.run is not None and not self.run.ended:
            self.services.end_run(self.run, status, message)

    def _open(self, name: str, agent: Agent) -> OpenDocuments:
        """The same chunks under an agent's vectors; those that this visitor has open already are not opened twice."""

        def embedding(progress: OpenProgress) -> None:
            self.report(Comparing(self.found, name, "embedding", progress.done, progress.total, progress.seconds_left))

        for known in (self.documents, *self.services.corpora.all()):
            if known.workspace is self.documents.workspace and known.agent is agent:
                return known
        return self.services.reopen(self.documents.workspace, agent, embedding, self.documents.questions)
