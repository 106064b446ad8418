"""SPARC runs for the page.

A run is logged while it happens: its record at the start, the trace so far with every round that ends, the
final evidence as steps at the end; a log in trouble ends no run. What comes back out of the log is checked,
since imports bring what anybody wrote.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from weakref import WeakKeyDictionary

from app.services.agents import PLAIN
from app.services.in_view import OpenDocuments
from app.services.pulse import Pulse
from app.services.recent import Recent
from app.services.shared import Services, logged_label
from app.services.visitors import check_known
from core.base.config import check_query
from core.base.errors import BadRequest, Cancelled, LogError, UserError
from core.base.progress import finish
from core.corpus.index import Corpus
from core.corpus.opening import OpenProgress
from core.encode.encoder import DualEncoder
from core.llm.protocol import Llm, never
from core.methods.sparc.build import asks_agent, build_agents, build_retrievals
from core.methods.sparc.config import STRATEGIES, check_sparc_config
from core.methods.sparc.events import Merged, SparcConfig, SparcEvent, SparcStarted, Strategy
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.retriever import SPARC, SparcRetriever
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import fold_sparc
from core.runs.again.records import log_sparc_end, sparc_detail, sparc_record
from core.runs.again.replay import workspace_of_run
from core.runs.log import FinalStatus, LoggedRun, RunReader
from core.runs.log.records import known_answer_of, sparc_trace_of, support_of
from core.views.draw.sparc import ShownSparc

MAX_VIEW_BYTES = 256 * 2**20
"""Memory for runs in view; older ones are read from the log again."""
_POLL = 0.05
"""Seconds between looks at whether a run has ended."""


@dataclass(frozen=True)
class SparcOrder:
    """What a person asks for."""

    question: str
    config: SparcConfig


@dataclass(frozen=True, eq=False, kw_only=True)
class SparcRun(ShownSparc):
    """A run of this process or out of the log. Replaced, never changed, as events come in."""

    run_id: str
    owner: str | None = None
    """The visitor who has it in view."""
    log_error: str = ""
    """Why part of it is not in the log; empty where all is."""

    @cached_property
    def n_bytes(self) -> int:
        """Memory of the trace, about."""
        return 2_000 * len(self.trace.events) + 2 * sum(map(len, self.texts.values()))


Report = Callable[[OpenProgress | SparcRun], None]


class SparcRuns:
    """One per process."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._runs: Recent[SparcRun] = Recent(MAX_VIEW_BYTES, lambda run: run.n_bytes)
        self._called_off: set[str] = set()
        """Runs that are to end at the next look; a page that is gone tells by its silence."""
        self._retrievals = WeakKeyDictionary[OpenDocuments, dict[tuple[bool, bool], Retrievals]]()
        """Indexes live as long as their documents; by whether an agent and dense retrieval are among them."""
        services.forgets.append(self._forget)

    def call_off(self, run_id: str, owner: str | None) -> None:
        """Ends a visitor's run at its next look; nothing happens when it has ended, or is another's."""
        run = self._runs.get(run_id)
        if run is not None and run.owner == owner and run.status == "running":
            self._called_off.add(run_id)

    def wait_ended(self, run_id: str, seconds: float) -> bool:
        """Whether a run in view has ended by then; true for one that is not in view."""
        until = time.monotonic() + seconds
        while (run := self._runs.get(run_id)) is not None and run.status == "running":
            if time.monotonic() > until:
                return False
            time.sleep(_POLL)
        return True

    def strategies(self, documents: OpenDocuments) -> tuple[Strategy, ...]:
        """Ways to search open documents; the agent's only where it is trained."""
        return tuple(name for name in STRATEGIES if name != "qrag" or documents.agent.spec.name != PLAIN)

    def run(
        self,
        documents: OpenDocuments,
        order: SparcOrder,
        llm: Llm | None,
        report: Report,
        cancelled: Callable[[], bool] = never,
    ) -> SparcRun:
        """A whole run, logged as it goes; an agent's failure ends it with what it has. Raises BadRequest.

        `report` hears of documents being embedded, of the run after every event, and of it again each second
        in which nothing happens; it may raise Cancelled.
        """
        check_known(documents.owner)
        question, config = check_query(order.question), check_sparc_config(order.config)
        missing = [name for name in config.strategies if name not in self.strategies(documents)]
        if missing:
            raise BadRequest(
                "Q-RAG can't be retrieved with: the documents are open under the untrained encoder; choose an"
                " agent in Explore, or leave it out"
            )
        retrievals = self._prepared(documents, config, report)
        agents = build_agents(llm, self.services.reader, config)
        recorder = _Recorder(self, documents, question)
        pulse = Pulse[SparcRun](report, lambda: cancelled() or recorder.run_id in self._called_off)
        events = run_sparc(question, documents.corpus, agents, retrievals, config, pulse.is_over)
        try:
            return recorder.drive(events, pulse.report)
        finally:
            self._called_off.discard(recorder.run_id)

    def retriever(self, documents: OpenDocuments, llm: Llm | None) -> SparcRetriever:
        """SPARC as one method among others over open documents, with its usual settings."""
        config = replace(SparcConfig(), strategies=self.strategies(documents))
        agents = partial(build_agents, llm, self.services.reader)
        prepare = partial(self._prepared, documents, config, lambda _: None)
        return SparcRetriever(agents, prepare, documents.agent.spec.name, config)

    def view(self, run_id: str, owner: str | None) -> SparcRun:
        """A run in view, else out of the log. Raises RunNotFound unless it is the visitor's own or shared;
        LogError; BadRequest for a run of another method.
        """
        check_known(owner)
        view = self._runs.get(run_id)
        if view is not None and view.owner == owner:
            return view
        log = self.services.own_log
        run = from_log(log.get(run_id, owner), log, owner)
        return self.keep(run) if run.status != "running" else run

    def keep(self, run: SparcRun) -> SparcRun:
        """Takes a run into view."""
        self._runs.put(run.run_id, run)
        return run

    def _forget(self, run_ids: Collection[str]) -> None:
        for run_id in run_ids:
            self._runs.drop(run_id)

    def _prepared(self, documents: OpenDocuments, config: SparcConfig, report: Report) -> Retrievals:
        """What searches the documents; dense retrieval has them opened under the untrained encoder, too."""
        by_config = self._retrievals.setdefault(documents, {})
        own = documents.agent.encoder
        dense = "dense" in config.strategies
        kind = (asks_agent(own, config), dense)
        if kind not in by_config:
            plain = self.services.agents.load(PLAIN).encoder if dense else own

            def corpus_of(encoder: DualEncoder) -> Corpus:
                if encoder is own:
                    return documents.corpus
                opening = self.services.library.under(documents, self.services.agents.load(PLAIN))
                return finish(opening, report).corpus

            by_config[kind] = build_retrievals(config, own, plain, corpus_of)
        return by_config[kind]


def from_log(logged: LoggedRun, log: RunReader, owner: str | None) -> SparcRun:
    """A logged run, drawn without asking any model. Raises BadRequest for one of another method, LogError
    where its branches are damaged or not there.
    """
    record, name = logged.record, f"run {logged.record.run_id[:8]}"
    if record.method != SPARC:
        raise BadRequest(f"{name} is a run of {record.method}, not of SPARC; open it in Explore")
    trace = sparc_trace_of(logged)
    if trace is None:
        why = "it ended before it began to ask" if not logged.trace.steps else "it came in without its texts"
        raise LogError(f"{name} has no branches to show: {why}; Experiments shows what there is")
    try:
        workspace = workspace_of_run(logged, log.documents(record.run_id, owner))
    except LogError:  # its texts were not kept; what the trace quotes is there all the same
        workspace = None
    return SparcRun(
        run_id=record.run_id,
        trace=trace,
        owner=owner,
        status=logged.status,
        message=logged.message,
        workspace=workspace,
        gold=support_of(logged),
        known_answer=known_answer_of(logged),
    )


class _Recorder:
    """One run on its way into view and into the log."""

    def __init__(self, runs: SparcRuns, documents: OpenDocuments, question: str) -> None:
        self.runs, self.documents = runs, documents
        self.log = runs.services.log
        self.label = runs.services.label_of(documents, question)
        self.run: SparcRun | None = None

    @property
    def run_id(self) -> str:
        """Empty before the first event."""
        return "" if self.run is None else self.run.run_id

    def drive(self, events: Generator[SparcEvent], report: Callable[[SparcRun], None]) -> SparcRun:
        """All events of a run. Raises what `report` and the program raise; the run is then logged, too."""
        try:
            with closing(events):
                for event in events:
                    report(self._heard(event))
        except Cancelled:
            self._end("cancelled")
            raise
        except Exception as error:
            unknown = "something failed on the server; its log says why"
            self._end("failed", str(error) if isinstance(error, UserError) else unknown)
            raise
        assert self.run is not None  # a run says at least that it started
        stopped = self.run.trace.stopped
        if stopped is None:
            return self._end("cancelled")
        return self._end("failed", stopped.message) if stopped.reason == "failed" else self._end("complete")

    def _heard(self, event: SparcEvent) -> SparcRun:
        workspace, owner = self.documents.workspace, self.documents.owner
        if isinstance(event, SparcStarted):
            label, logged = self.label, logged_label(self.label)
            record = sparc_record(event, workspace, self.documents.agent.encoder, label=logged, owner=owner)
            self.run = SparcRun(
                run_id=record.run_id,
                trace=fold_sparc([event]),
                owner=owner,
                workspace=workspace,
                gold=() if label is None else label.support,
                known_answer="" if label is None else label.answer,
            )
            self.log.start(record, workspace.documents, workspace.tables)
        else:
            assert self.run is not None
            self.run = replace(self.run, trace=self.run.trace.with_event(event))
        if isinstance(event, SparcStarted | Merged):
            self._log(lambda run: self.log.attach(run.run_id, "sparc", sparc_detail(run.trace), owner))
        return self.runs.keep(self.run)

    def _log(self, write: Callable[[SparcRun], None]) -> None:
        """What goes wrong here is told with the run, which goes on."""
        assert self.run is not None
        try:
            write(self.run)
        except LogError as error:
            self.run = replace(self.run, log_error=self.run.log_error or str(error))

    def _end(self, status: FinalStatus, message: str | None = None) -> SparcRun:
        assert self.run is not None  # a run says at least that it started
        owner = self.documents.owner
        self.run = replace(self.run, status=status, message=message)
        self._log(lambda run: log_sparc_end(self.log, run.run_id, run.trace, owner, status, message))
        self.runs.services.tell_readers()
        return self.runs.keep(self.run)
