"""Comparisons for the page.

All methods search the same chunks, those of the documents that Explore has open. Every column, and the run of
every way of cutting, is a run of the log like any other; a try-out with a changed chunk is none, because no
document holds what it searched. What Explore never chooses is left out for agents alone, since the other
methods are there to show what they find without a person's help.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Generic, Literal, TypeVar
from weakref import WeakKeyDictionary

from app.services.agents import PLAIN as PLAIN
from app.services.in_view import Labelled, OpenDocuments, RunInView
from app.services.pulse import Idle, Pulse
from app.services.recent import Recent
from app.services.shared import Services
from app.services.sparc_runs import SparcRuns
from core.answer.evidence import EvidenceAnswer
from core.base.config import EpisodeConfig, check_query
from core.base.errors import BadRequest, Cancelled, LogError, RunNotFound
from core.base.events import Event, RunStarted, StepTaken, Stopped
from core.base.progress import finish
from core.base.types import Workspace
from core.corpus.index import Corpus
from core.corpus.opening import Opened, OpenProgress, index_workspace
from core.encode.checkpoint import CheckpointSpec
from core.llm.protocol import Llm, LlmCancelled
from core.methods.bm25 import BM25
from core.methods.hybrid import HYBRID
from core.methods.protocol import Retriever
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import MULTISTEP, QRAG, AgentRetriever
from core.methods.registry import OTHERS, build_retriever, check_names, facts_of, vectors_of
from core.methods.resrag.llm.policy import LlmEvidenceSet
from core.methods.sparc.retriever import SPARC, SparcRetriever
from core.methods.sparc.trace import SparcTrace
from core.methods.topk import TOPK
from core.runs.again.records import sparc_answer, sparc_detail
from core.runs.export.comparison_page import MAX_COLUMNS, comparison_page
from core.runs.foreign.traces import Replayed
from core.runs.log import RunRow
from core.runs.log.records import MAX_PAGE
from core.runs.whatif.comparison import Contestant, compare
from core.runs.whatif.cuts import Cut, TextSpan, across_cuts, check_size, chunks_of, share_found, spans_of
from core.runs.whatif.influence import Influence, leave_one_out
from core.runs.whatif.variant import Change, TryOut, try_out
from core.views.draw.words import counted
from core.views.findings import Column, column_name, column_names

AGENT = "qrag:"
"""Begins the key of an agent's method; the checkpoint's name follows."""
MAX_K = 12
"""Right end of the slider: as many as Explore offers."""
AS_OPEN = "as it is open"
"""The way of cutting that Explore shows."""

MAX_COMPARED = 24
"""Columns of a comparison out of the log."""
MAX_INFLUENCES = 1_000
"""Runs whose leave-one-out stays in memory: some numbers each."""

_logger = logging.getLogger(__name__)

C = TypeVar("C", bound="ColumnRef | CutRow")
Stage = Literal["cutting", "embedding", "retrieving", "branching"]


@dataclass(frozen=True)
class FromExplore:
    """A run of Explore that is to be compared."""

    corpus: str
    """Token of its documents, under its agent."""
    query: str
    config: EpisodeConfig | None
    """Its settings; None once the person went back to the agent's own."""
    number: str
    """Tells requests apart."""


@dataclass(frozen=True)
class ComparisonOrder:
    """What a person asks for."""

    query: str = ""
    methods: tuple[str, ...] = ()
    """A column each, over the same chunks. Keys: see `AGENT` and `core.methods.registry.OTHERS`."""
    k: int = 4
    """Chunks of every method; at most, where agents stop."""
    own_stop: bool = False
    """Whether agents stop by their own threshold, at k at the latest; others take as many as the first."""
    settings: EpisodeConfig | None = None
    """How the open documents' agent runs, budget and forbidden chunks aside; None: by its defaults."""
    forbidden: tuple[int, ...] = ()
    """Chunks that agents must not choose."""


@dataclass(frozen=True)
class ToEmbed:
    """What has to be embedded before a comparison is whole."""

    methods: tuple[str, ...] = ()
    """Those that wait for it."""
    n_chunks: int = 0
    seconds: float | None = None
    """None where nothing was measured."""


@dataclass(frozen=True)
class ColumnRef:
    """Where a column's numbers are: small, for a session."""

    name: str
    run: str = ""
    """Token of its run; empty where the method refused."""
    milliseconds: float | None = None
    """Of retrieval; None where nobody measured it, or the log has no time of all of it."""
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
    taken: FromExplore | None = None
    """The run that was last opened here from Explore."""
    lifted: tuple[int, ...] = ()
    """Chunks that are forbidden in Explore and may be chosen here all the same."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """Of the documents and runs that must stay in memory for it."""
        return (self.corpus, *(column.run for column in self.columns))


@dataclass(frozen=True)
class CutRow:
    """What the agent found with one way of cutting: small, for a session."""

    name: str
    run_id: str = ""
    """Of the log; empty where the agent refused."""
    n_chunks: int = 0
    n_embedded: int = 0
    n_tokens: int = 0
    """Of what was chosen."""
    q_values: tuple[float, ...] = ()
    support: float | None = None
    """Share of the support's characters that was found; None where no support is known."""
    shared: float | None = None
    """Share of the characters found with the cut that is open; None where that found nothing."""
    milliseconds: float = 0.0
    refused: str = ""


@dataclass(frozen=True)
class Comparing(Generic[C]):
    """How far a comparison is. Characters while cutting, chunks while embedding, steps while retrieving."""

    columns: tuple[C, ...]
    """Those that are there."""
    name: str
    stage: Stage
    done: int
    total: int
    seconds_left: float | None = None


@dataclass(frozen=True, eq=False)
class ShownColumn(Column):
    """A column with its run."""

    run: RunInView | None = None


class Comparisons:
    """One per process."""

    def __init__(self, services: Services, sparc: SparcRuns | None = None) -> None:
        """sparc: what SPARC's column is made with; one of its own by default."""
        self.services, self._sparc = services, sparc or SparcRuns(services)
        self._to_embed: WeakKeyDictionary[Workspace, dict[tuple[str, str | None], int]] = WeakKeyDictionary()
        """By cut, by vectors and visitor."""
        self._influences: Recent[Influence] = Recent(MAX_INFLUENCES, lambda _: 1)
        self.comparing, self.cutting = Idle(), Idle()

    def methods(self, documents: OpenDocuments | None = None) -> list[str]:
        """Keys of the methods on offer, agents first; last what ran elsewhere over these documents."""
        agents = [AGENT + name for name in self.services.agents.checkpoints if name != PLAIN]
        return [*agents, *OTHERS, *self.imported(documents)]

    def imported(self, documents: OpenDocuments | None) -> list[str]:
        """Those of which the log has runs over these documents, made elsewhere."""
        if documents is None or not self.services.owns_log:
            return []
        methods = self.services.own_log.facets(documents.owner).methods
        return [name for name in methods if facts_of(name).foreign and self._imported_run(documents, name)]

    def _imported_run(self, documents: OpenDocuments, method: str, query: str = "") -> RunRow | None:
        """The longest."""
        first = documents.workspace.documents[0].sha256
        page = self.services.own_log.search(
            owner=documents.owner, method=method, document=first, text=query, limit=MAX_PAGE
        )
        n_chunks = len(documents.corpus)
        fits = [row for row in page.rows if row.n_chunks == n_chunks and query in ("", row.query)]
        longest_first = sorted(fits, key=lambda row: -row.n_steps)
        return next((row for row in longest_first if self.services.searched(row.run_id, documents)), None)

    def usual(self, agent: str) -> list[str]:
        """Keys of the methods that are chosen to begin with, for documents that are open under an agent."""
        agents = [key for key in self.methods() if key.startswith(AGENT)]
        own = AGENT + agent
        return [*([own] if own in agents else agents[:1]), HYBRID.name, TOPK.name, BM25.name]

    def usual_k(self, documents: OpenDocuments) -> int:
        """Chunks of every column to begin with."""
        return min(documents.agent.spec.step_budget, len(documents.corpus), MAX_K)

    def to_embed(self, documents: OpenDocuments, methods: Sequence[str]) -> ToEmbed:
        """What methods wait for before they can run. Raises BadCheckpoint."""
        waits = {key: self._missing(documents, self._agent(key, documents)) for key in methods}
        agents = {self._agent(key, documents).spec.name: n for key, n in waits.items()}
        n_chunks, workspace, rate = sum(agents.values()), documents.workspace, documents.agent.encoder.rate
        seconds = None
        if documents.n_embedded:
            seconds = n_chunks * documents.milliseconds["embedding"] / documents.n_embedded / 1000
        elif rate:  # they came out of the cache
            seconds = n_chunks * workspace.n_tokens / len(workspace) / rate
        return ToEmbed(tuple(key for key, n in waits.items() if n), n_chunks, seconds)

    def _agent(self, key: str, documents: OpenDocuments) -> Agent:
        """The agent under whose vectors a method searches documents."""
        if key.startswith(AGENT):
            return self.services.agents.load(key.removeprefix(AGENT))
        if key == SPARC:  # beside those of the agent that is open
            return self.services.agents.load(PLAIN)
        if not facts_of(key).has_vectors:
            return documents.agent
        return self.services.agents.load(vectors_of(key, documents.agent.spec.name))

    def _missing(self, documents: OpenDocuments, agent: Agent) -> int:
        """Chunks that have no vector of an agent yet."""
        if agent is documents.agent:
            return 0
        known = self._to_embed.setdefault(documents.workspace, {})
        whose = agent.encoder.vector_fingerprint, documents.owner
        if whose not in known:
            part = self.services.library.part_of(documents)
            with closing(index_workspace(documents.workspace, agent.encoder, part)) as opening:
                now = next(opening)
            known[whose] = now.total - now.done
        return known[whose]

    def run(
        self,
        documents: OpenDocuments,
        order: ComparisonOrder,
        report: Callable[[Comparing[ColumnRef]], None],
        llm: Llm | None = None,
    ) -> tuple[ColumnRef, ...]:
        """A column a method, that of the open documents' agent first, then those that need nothing embedded.
        `llm`: decides in SPARC's, where rules do without one, and chooses in RES-RAG's. `report` may raise
        Cancelled: columns that are there stay, the run in progress is logged as cancelled. Raises BadRequest,
        BadCheckpoint.
        """
        query = check_query(order.query)
        contestants = self._contestants(documents, order, llm)
        pulse = Pulse(report)
        with self.comparing:
            try:
                work = _Comparison(self.services, documents, query, pulse.report)
                return work.columns(contestants, pulse.is_over)
            finally:
                self._to_embed.clear()

    def across_cuts(
        self, documents: OpenDocuments, order: ComparisonOrder, report: Callable[[Comparing[CutRow]], None]
    ) -> tuple[CutRow, ...]:
        """The agent over the open documents as they are and cut in every other way. Raises BadRequest.

        Forbidden chunks are chunks of the open cut, so all may be chosen. Runs that are done before `report`
        raises Cancelled stay in the log.
        """
        query = check_query(order.query)
        check_size(documents.workspace.n_tokens)
        config = self._config(documents.agent.spec, order, own=True, stops=order.own_stop).with_(forbidden=())
        with self.cutting:
            return _Cutting(self.services, documents, query, report).rows(config)

    def open(
        self, run_ids: Sequence[str], owner: str | None, report: Callable[[OpenProgress], None]
    ) -> Compared:
        """Logged runs as a comparison; one that is gone stands behind the others with its refusal. Raises
        RunNotFound when all are, BadRequest, LogError, BadCheckpoint.
        """
        runs: list[RunInView] = []
        gone: list[RunNotFound] = []
        for run_id in run_ids:
            beside = runs[0].documents if runs else None
            try:
                runs.append(finish(self.services.attach(run_id, owner, beside), report))
            except RunNotFound as error:
                gone.append(error)
        if not runs:
            raise gone[0]
        first = runs[0]
        query, searched = first.trace.started.query, first.documents.workspace
        for run in runs:
            theirs = run.documents.workspace
            if not (run.asks(query) and searched.is_cut_as(theirs.documents, theirs.tables)):
                raise BadRequest(
                    "the address names runs of several questions, documents or ways of cutting one, which"
                    " can't be compared; compare one question again"
                )
        agents = [run for run in runs if run.method.looks_again]
        order = ComparisonOrder(
            first.trace.started.query,
            tuple(_key_of(run) for run in runs),
            min(MAX_K, *(run.config.step_budget for run in agents or runs)),  # a threshold has no budget
            any(run.config.stop_threshold is not None for run in agents),
            forbidden=next((run.config.forbidden for run in agents), ()),
        )
        names = column_names((run.trace.started.method, run.spec.name) for run in runs)
        columns = tuple(
            ColumnRef(name, run.token, _logged_time(run)) for name, run in zip(names, runs, strict=True)
        )
        columns += tuple(
            ColumnRef("Gone" if i == 1 else f"Gone ({i})", refused=str(error))
            for i, error in enumerate(gone, start=1)
        )
        return Compared(first.documents.token, order, columns)

    def try_out(self, compared: Compared, change: Change) -> list[tuple[ShownColumn, TryOut]]:
        """Every column that chooses step by step, with one chunk changed, unlogged. Raises BadRequest."""
        tried = [
            (column, try_out(run.documents.agent.encoder, run.trace, run.documents.corpus, change))
            for column in self.shown_columns(compared)
            if (run := column.run) is not None and run.method.looks_again
        ]
        if not tried:
            raise BadRequest("no column chose step by step; add an agent to the methods and compare again")
        return tried

    def shown_columns(self, compared: Compared) -> list[ShownColumn]:
        """The columns with their runs. Raises BadRequest when one is not in memory any more."""
        columns = []
        for ref in compared.columns:
            run = self.services.library.runs.get(ref.run)
            if run is None and not ref.refused:
                raise BadRequest(
                    "this comparison is not in memory any more; compare again, the vectors are kept"
                )
            column = ShownColumn(ref.name, None, refused=ref.refused)
            if run is not None:
                column = ShownColumn(
                    ref.name,
                    run.trace,
                    ref.milliseconds,
                    answer=run.answer,
                    known_answer=run.known_answer,
                    notices=run.documents.notices,
                    run=run,
                )
            columns.append(column)
        return columns

    def settle(self, columns: Sequence[ColumnRef | CutRow]) -> None:
        """Waits until their runs are in the log. Raises LogError."""
        tokens = [column.run for column in columns if isinstance(column, ColumnRef)]
        ids = [run.run_id for run in map(self.services.library.runs.get, tokens) if run is not None]
        self.services.log.flush([*ids, *(row.run_id for row in columns if isinstance(row, CutRow))])

    def page(self, compared: Compared, folder: Path) -> Path:
        """The columns as one page that stands alone, in an empty folder. Raises BadRequest, LogError."""
        columns = self.shown_columns(compared)
        runs = [column.run for column in columns if column.run is not None]
        if not runs:
            raise BadRequest("every method refused, so there is nothing for a page; compare other methods")
        if len(runs) > MAX_COLUMNS:
            most = f"a page has {MAX_COLUMNS} columns at most"
            raise BadRequest(f"{most}, and {len(runs)} answered; compare fewer")
        self.services.log.flush([run.run_id for run in runs])
        log, owner, first = self.services.own_log, runs[0].owner, runs[0].run_id
        logged = [log.get(run.run_id, owner) for run in runs]
        refused = [(column.name, column.refused) for column in columns if column.run is None]
        page = comparison_page(logged, log.documents(first, owner), with_text=True, refused=refused)
        target = folder / f"comparison-{first[:8]}.html"
        target.write_text(page, encoding="utf-8")
        return target

    def influence(self, run: RunInView) -> Influence:
        """What an agent's choices owe to those before; asked of the agent once a run."""
        documents, trace = run.documents, run.trace
        about = documents.agent, trace.started.query, documents.corpus, run.config, trace.chosen
        return self._influences.made_once(run.token, lambda: leave_one_out(*about))

    def workspace(self, compared: Compared) -> Workspace:
        """What was searched. Raises BadRequest when it is not open any more."""
        documents = self.services.library.corpora.get(compared.corpus)
        if documents is None:
            raise BadRequest(
                "the documents of this comparison are not open any more; open them in Explore and compare"
                " again"
            )
        return documents.workspace

    def _contestants(
        self, documents: OpenDocuments, order: ComparisonOrder, llm: Llm | None
    ) -> list[tuple[Contestant, Agent]]:
        """Each with the agent under whose vectors the documents have to be open."""
        names, n = self.methods(documents), len(documents.corpus)
        check_names(order.methods, names)
        if not order.methods:
            raise BadRequest("no method is chosen; choose two or more to compare")
        if not 1 <= order.k <= min(n, MAX_K):
            why = f"the documents have {counted(n, 'chunk')}" if n <= MAX_K else "a state holds few"
            bound = f"k = {order.k} chunks each must be between 1 and {min(n, MAX_K)}"
            raise BadRequest(f"{bound}, since {why}; choose a k in between")
        if order.own_stop and not any(key.startswith(AGENT) for key in order.methods):
            raise BadRequest(
                "no agent is chosen whose stop the others could follow; choose one, or the same number"
                " for all"
            )
        own = AGENT + documents.agent.spec.name
        waits = self.to_embed(documents, order.methods).methods
        keys = sorted(set(order.methods), key=lambda key: (key != own, key in waits, names.index(key)))
        return [self._contestant(key, documents, order, llm) for key in keys]

    def _contestant(
        self, key: str, documents: OpenDocuments, order: ComparisonOrder, llm: Llm | None
    ) -> tuple[Contestant, Agent]:
        agent, config = documents.agent, EpisodeConfig(step_budget=order.k)
        own = key == own_key(agent.spec.name)
        follows = order.own_stop
        retriever: Retriever
        if key.startswith(AGENT):
            agent = self._agent(key, documents)
            config = self._config(agent.spec, order, own=own, stops=order.own_stop)
            retriever = AgentRetriever(agent)
            follows = False
        elif facts_of(key).foreign:
            row = self._imported_run(documents, key, order.query)
            trace = None if row is None else self.services.own_log.get(row.run_id, documents.owner).trace
            retriever = Replayed(key, trace)
            follows = False
        elif key == SPARC:  # it searches with the agent of the open documents, too
            retriever = self._sparc.retriever(documents, llm)
        else:
            agent = self._agent(key, documents)
            retriever, _ = build_retriever(key, agent.encoder, agent.encoder, llm)
            if own:
                config = self._config(agent.spec, order, own=True, stops=False)
        return Contestant(label_of_key(key), retriever, agent.encoder, config, follows=follows), agent

    def _config(
        self, spec: CheckpointSpec, order: ComparisonOrder, *, own: bool, stops: bool
    ) -> EpisodeConfig:
        """How an agent runs: by its defaults, or as in Explore where it is the agent there."""
        threshold = self.services.agents.served(spec).stop_threshold
        config = spec.episode_config()
        if own and order.settings is not None:
            config = order.settings.with_(forced=())
            threshold = threshold if config.stop_threshold is None else config.stop_threshold
        config = config.with_(step_budget=order.k, forbidden=order.forbidden, stop_threshold=threshold)
        # at equal size of evidence nothing is taken back
        return config if stops else config.with_(stop_threshold=None, review_threshold=None)


def _key_of(run: RunInView) -> str:
    """Of the method that a run is."""
    return AGENT + run.spec.name if run.method.trained else run.trace.started.method


def _logged_time(run: RunInView) -> float | None:
    """Milliseconds of retrieval, as far as steps have them: SPARC's and a beam's don't."""
    return run.trace.milliseconds or None if run.config.beam_width == 1 else None


def label_of_key(key: str) -> str:
    """What the column of a method is called."""
    agent = key.removeprefix(AGENT)
    return column_name(key if agent == key else QRAG.name, agent)


def own_key(agent: str) -> str:
    """Key of the method that an agent is."""
    return MULTISTEP.name if agent == PLAIN else AGENT + agent


@dataclass(eq=False)
class _Work(Generic[C]):
    """One piece of work while it runs: logs what is done, and tells how far it is."""

    services: Services
    documents: OpenDocuments
    query: str
    report: Callable[[Comparing[C]], None]
    results: tuple[C, ...] = ()

    def tell(self, name: str, stage: Stage, done: int, total: int, seconds_left: float | None = None) -> None:
        self.report(Comparing(self.results, name, stage, done, total, seconds_left))


class _Comparison(_Work[ColumnRef]):
    """One question through several methods."""

    run: RunInView | None = None
    sparc: SparcRetriever | None = None
    """The method at work, where it is SPARC."""

    def columns(
        self, contestants: list[tuple[Contestant, Agent]], is_over: Callable[[], bool]
    ) -> tuple[ColumnRef, ...]:
        """is_over: for methods that wait for a language model."""
        agents = {one.name: agent for one, agent in contestants}
        opened: dict[str, OpenDocuments] = {}

        def branching(name: str, now: SparcTrace) -> None:
            self.tell(name, "branching", len(now.rounds), now.started.config.depth)

        def corpus_of(one: Contestant) -> Corpus:
            opened[one.name] = self._open(one.name, agents[one.name])
            self.sparc = one.retriever if isinstance(one.retriever, SparcRetriever) else None
            if self.sparc is not None:  # opens what dense retrieval searches, and builds the indexes
                self._open(one.name, self.services.agents.load(PLAIN))
                self.sparc.hear = partial(branching, one.name)
                self.sparc.prepare()
            if isinstance(one.retriever, SparcRetriever | LlmEvidenceSet):
                one.retriever.cancelled = is_over
                self.tell(one.name, "retrieving", 0, one.config.step_budget)
            return opened[one.name].corpus

        def hear(one: Contestant, event: Event) -> None:
            if isinstance(event, RunStarted):
                self.run = self.services.begin_run(event, opened[one.name])
            elif self.run is not None:
                if isinstance(event, Stopped):
                    self._keep_branches()
                self.run = self.services.add_event(self.run, event)
            n_steps = 0 if self.run is None else len(self.run.trace.steps)
            self.tell(one.name, "retrieving", n_steps, one.config.step_budget)

        try:
            for column in compare(self.query, (one for one, _ in contestants), corpus_of, hear):
                if column.refused:
                    self._give_up("failed", column.refused)
                    self.results += (ColumnRef(column.name, refused=column.refused),)
                elif self.run is not None:
                    self.run = self._answered(self.run)
                    self.results += (ColumnRef(column.name, self.run.token, column.milliseconds),)
        except (Cancelled, LlmCancelled) as error:
            self._give_up("cancelled", None)
            raise Cancelled from error
        except Exception as error:
            self._give_up("failed", str(error))
            raise
        return self.results

    def _answered(self, run: RunInView) -> RunInView:
        """With SPARC's own answer, or with one from what was chosen."""
        if self.sparc is None or self.sparc.trace is None:
            return self.services.answer(run)
        trace = self.sparc.trace
        answer = EvidenceAnswer.from_json(sparc_answer(trace), dict.fromkeys(trace.pool, ""))
        return self.services.changed(run, lambda now: replace(now, answer=answer))

    def _keep_branches(self) -> None:
        """Puts what SPARC's branches did beside its run, as long as that goes on."""
        if self.sparc is None or self.sparc.trace is None or self.run is None:
            return
        try:
            attach, owner, trace = self.services.log.attach, self.documents.owner, self.sparc.trace
            attach(self.run.run_id, "sparc", sparc_detail(trace), owner)
            if trace.stopped is not None:
                attach(self.run.run_id, "answer", sparc_answer(trace), owner)
        except LogError as error:
            _logger.warning("the branches of run %s are not in the log: %s", self.run.run_id, error)

    def _give_up(self, status: Literal["cancelled", "failed"], message: str | None) -> None:
        if self.run is not None and not self.run.ended:
            self._keep_branches()
            self.services.end_run(self.run, status, message)

    def _open(self, name: str, agent: Agent) -> OpenDocuments:
        """The same chunks under an agent's vectors; what this visitor has open is not opened twice."""

        def embedding(now: OpenProgress) -> None:
            self.tell(name, "embedding", now.done, now.total, now.seconds_left)

        return finish(self.services.library.under(self.documents, agent), embedding)


class _Cutting(_Work[CutRow]):
    """One question through all ways of cutting."""

    label: Labelled | None = None
    """What is known of the question, of the chunks that are open."""
    support: Sequence[TextSpan] = ()
    """Those that are labelled, else all of the support chunks; empty where no support is known."""
    open_spans: Sequence[TextSpan] = ()

    def rows(self, config: EpisodeConfig) -> tuple[CutRow, ...]:
        agent, documents = self.documents.agent, self.documents.workspace.documents
        self.label = label = self.services.label_of(self.documents, self.query)
        if label is not None:
            self.support = label.spans or spans_of(self.documents.workspace, label.support)
        n_characters = sum(len(one.text) for one in documents)
        meter = partial(self.services.library.allowance.meter, self.documents.owner, n_characters)
        self.meters = defaultdict[str, Callable[[OpenProgress], OpenProgress]](meter)
        retriever, opened = AgentRetriever(agent), Opened(self.documents.corpus)
        now = (Contestant(AS_OPEN, retriever, agent.encoder, config),)
        [column] = compare(self.query, now, lambda _: opened.corpus, self._hear)
        self.results += (self._row(Cut(AS_OPEN, column, opened)),)
        asked = self.query, documents, retriever, agent.encoder, config
        part = self.services.library.part_of(self.documents)
        for cut in across_cuts(*asked, self._opening, self._hear, part):
            self.results += (self._row(cut),)
        return self.results

    def _row(self, cut: Cut) -> CutRow:
        trace = cut.column.trace
        if trace is None or cut.opened is None:
            return CutRow(cut.name, refused=cut.column.refused)
        workspace = cut.opened.corpus.workspace
        if cut.name == AS_OPEN:
            self.open_spans = spans_of(workspace, trace.chosen)
        agent, owner, label = self.documents.agent, self.documents.owner, self.label
        if label is not None:
            label = replace(label, support=chunks_of(workspace, self.support))
        return CutRow(
            name=cut.name,
            run_id=self.services.keep_run(trace, workspace, agent, label, owner),
            n_chunks=len(workspace),
            n_embedded=cut.opened.n_embedded,
            n_tokens=sum(workspace[chunk_id].n_tokens for chunk_id in trace.chosen),
            q_values=tuple(step.q_value for step in trace.steps),
            support=share_found(workspace, trace.chosen, self.support),
            shared=share_found(workspace, trace.chosen, self.open_spans),
            milliseconds=cut.column.milliseconds or 0.0,
        )

    def _hear(self, one: Contestant, event: Event) -> None:
        n_steps = 0
        if not isinstance(event, RunStarted):
            n_steps = event.step if isinstance(event, StepTaken) else event.n_steps
        self.tell(one.name, "retrieving", n_steps, one.config.step_budget)

    def _opening(self, name: str, progress: OpenProgress) -> None:
        """Tells how far opening a cut is, and counts what a visitor has to have embedded."""
        self.meters[name](progress)
        if progress.stage in ("chunking", "embedding"):
            stage: Stage = "cutting" if progress.stage == "chunking" else "embedding"
            self.tell(name, stage, progress.done, progress.total, progress.seconds_left)
