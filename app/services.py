"""What all visitors share: loaded checkpoints, the log, opened documents, runs in view. The only module-level
cache of the app.

Decides what stays in memory: everything here is bounded and can be rebuilt from disk (caches, log). Corpora
and runs are found by unguessable tokens that only their visitor's session holds, and belong to whoever opened
the documents. Knows nothing of components.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from app import freed
from app.language_models import MAX_GIVEN, LanguageModels
from app.pages.experiments.export_upkeep import ExportUpkeep, copy_named
from app.pages.train.actions import own_agents
from app.settings import Settings
from app.visitors import (
    DOCUMENTS_OPEN,
    RETENTION,
    RUNS_IN_FLIGHT,
    Allowance,
    check_known,
    check_steps,
    n_values,
)
from core.answer.cited import CitedAnswer, cited_answer
from core.answer.evidence import EvidenceAnswer, answer_evidence
from core.answer.metadata import metadata_json, metadata_lines
from core.answer.protocol import Reader
from core.answer.reader import load_reader
from core.choice import Choice, choose, method_of
from core.config import ChunkConfig, EpisodeConfig
from core.cuts import TextSpan
from core.diagnosis import Diagnosis, Remedy, diagnose, n_found_by
from core.encode.checkpoint import SPEC_FILE, CheckpointSpec, find_checkpoint, read_spec, shipped_checkpoints
from core.encode.encoder import DualEncoder
from core.errors import BadCheckpoint, BadRequest, Cancelled, LogError
from core.events import RunStarted, StepScores, StepTaken, Stopped, Trace
from core.home import cache_bytes, trim_caches
from core.index import Corpus
from core.llm.protocol import Llm
from core.log import Evaluation, ExperimentLog, InboxLog, default_log_path, expire, log_evaluation, open_log
from core.log.records import FinalStatus, known_answer_of, label_of, now, support_of
from core.methods.protocol import Method
from core.opening import Opened, Progress, index_workspace, open_corpus
from core.qrag.agent import Agent
from core.qrag.positions import Interval, chunk_positions, intervals
from core.report import trace_json
from core.resrag.action import SETS
from core.retrievers import facts_of
from core.runs import log_trace, run_record, set_detail, workspace_of_run
from core.sparc.retriever import SPARC
from core.types import Document, Workspace

_logger = logging.getLogger(__name__)

MAX_CORPORA_BYTES = 4 * 2**30
"""Memory for open documents; the least recently used one goes first and is opened again from the caches."""
MAX_RUNS_BYTES = 2**30
"""Memory for the Q-values of runs in view; older runs are read from the log again."""
MAX_LEFT_RUNS = 50
"""Runs in memory that no page goes on with: their address may be opened again soon. Older ones are read from
the log.
"""
MAX_TRIED_TOKENS = 50_000
"""Of documents that are embedded to see whether a trained agent would have found more."""
_SNAPSHOT_PAUSE = 5.0
"""Seconds between looks into the inbox."""
_EXPIRY_PAUSE = 600.0
"""Seconds between looks for what visitors left behind, and at the size of the caches."""

PLAIN = "base"
"""The untrained checkpoint that the methods without an agent of their own search with; as an agent it is
that of multi-step retrieval.
"""

V = TypeVar("V")


class Recent(Generic[V]):
    """A thread-safe map that forgets what was not used for longest once its items weigh too much; the newest
    one always stays.
    """

    def __init__(self, most: int, weigh: Callable[[V], int]) -> None:
        """most: bytes of all items together."""
        self._most, self._weigh = most, weigh
        self._items: OrderedDict[str, V] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: str, item: V) -> None:
        """Adds or replaces."""
        with self._lock:
            self._items[key] = item
            self._items.move_to_end(key)
            weight = sum(map(self._weigh, self._items.values()))
            while weight > self._most and len(self._items) > 1:
                _, oldest = self._items.popitem(last=False)
                weight -= self._weigh(oldest)

    def drop(self, key: str) -> None:
        """Forgets an item, if it is there."""
        with self._lock:
            self._items.pop(key, None)

    def get(self, key: str) -> V | None:
        """The item, now the most recently used; None when it is not (any more) there."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            return self._items.get(key)

    def all(self) -> list[V]:
        """Every item, the least recently used first."""
        with self._lock:
            return list(self._items.values())


@dataclass(frozen=True)
class Labelled:
    """A question whose answer and support are known."""

    question: str
    answer: str
    hops: int
    """0 where nobody counted."""
    support: tuple[int, ...]
    """Chunk ids."""
    spans: tuple[TextSpan, ...] = ()
    """The support by its characters; empty where only the chunks are known."""


@dataclass(frozen=True, eq=False)
class OpenDocuments:
    """A workspace that somebody has open under one agent."""

    token: str
    corpus: Corpus
    agent: Agent
    milliseconds: dict[str, float] = field(default_factory=dict)
    n_embedded: int = 0
    notices: tuple[str, ...] = ()
    foreign: bool = False
    """Whether any of them is unlike what the agent was trained on."""
    trained: str = ""
    """The trained agent to be had instead of one that is not; empty where there is none."""
    questions: tuple[Labelled, ...] = ()
    """Known questions about a sample or a generated document."""
    owner: str | None = None
    """The visitor who opened them, and to whom runs over them belong; None in local mode."""

    @property
    def workspace(self) -> Workspace:
        return self.corpus.workspace

    def known_answer(self, question: str) -> str:
        """The answer that is known to a question, empty where nobody knows one."""
        return next((known.answer for known in self.questions if known.question == question), "")

    @property
    def n_bytes(self) -> int:
        """Memory of vectors and texts, about."""
        return 4 * self.corpus.index.vectors.numel() + sum(
            2 * len(document.text) for document in self.workspace.documents
        )


@dataclass(frozen=True, eq=False)
class RunInView:
    """A run as far as it went, over documents that are open. Replaced, never changed, as events come in."""

    token: str
    run_id: str
    documents: OpenDocuments
    trace: Trace
    gold: tuple[int, ...] = ()
    """Support chunks of a labelled question."""
    parent_run_id: str | None = None
    fork_step: int = 0
    """Steps that a child run keeps of its parent."""
    ended: bool = False
    """Complete, cancelled or failed: the log holds it as it is."""
    others: bool = False
    """Another visitor's, who shared it: seen as it was when it was opened, and gone on from in a child run.
    """
    answer: EvidenceAnswer | None = None
    """What the reader says of its evidence, once it has stopped and was read."""
    cited: CitedAnswer | None = None
    """What a language model said of it, once one was asked."""
    diagnosis: Diagnosis | None = None
    """Why it lacks support that is known, once that was looked into."""

    @property
    def owner(self) -> str | None:
        """The visitor who has it in view."""
        return self.documents.owner

    @property
    def known_answer(self) -> str:
        """The answer that is known to its question, empty where nobody knows one."""
        return self.documents.known_answer(self.trace.started.query)

    @property
    def method(self) -> Method:
        return facts_of(self.trace.started.method)

    @property
    def spec(self) -> CheckpointSpec:
        return self.documents.agent.spec

    @property
    def n_chunks(self) -> int:
        return len(self.documents.corpus)

    @property
    def n_bytes(self) -> int:
        """Memory of the Q-values, and some for the rest."""
        return 4 * self.n_chunks * self.trace.n_looks + 20_000

    @property
    def config(self) -> EpisodeConfig:
        return self.trace.started.config

    def to_json(self) -> dict[str, Any]:
        """Its id, its trace and its answer as plain JSON values; the timings say what opening the documents
        took and, as `steps`, the run.
        """
        timings = {**self.documents.milliseconds, "steps": self.trace.milliseconds}
        return {"run_id": self.run_id, **trace_json(self.trace, timings=timings, answer=self.answer)}

    def evidence_texts(self) -> dict[int, str]:
        """What was chosen, by chunk id."""
        return {chunk_id: self.documents.workspace[chunk_id].text for chunk_id in self.trace.evidence}

    def chosen_before(self, look: int) -> tuple[int, ...]:
        """Chunks that were chosen when the 1-based look was taken."""
        return self.trace.chosen[: look - 1]

    def scores(self, look: int) -> StepScores:
        """What was seen at a 1-based look. Raises BadRequest when the run has no such look."""
        scores = self.trace.scores_at(look)
        if scores is None:
            raise BadRequest(
                f"step {look} of this run has no Q-values; choose a step between 1 and {self.trace.n_looks}"
            )
        return scores

    def q_values(self, look: int) -> np.ndarray:
        """(N,) float32 at a 1-based look."""
        return self.scores(look).q_values

    def scale(self) -> tuple[float, float]:
        """Ends of the colour scale, the same for the whole run: where Q of this checkpoint usually lies, else
        what the first look saw.
        """
        first = self.q_values(1)
        lo, hi = self.spec.q_range or (0.0, 1.2 * float(first.max()))
        return min(lo, float(first.min())), max(hi, float(first.max()), lo + 1e-6)

    def unavailable(self, look: int) -> tuple[int, ...]:
        """Chunks that could not be chosen at a look: chosen before, or forbidden."""
        return (*self.chosen_before(look), *self.config.forbidden)

    def positions(self, look: int) -> np.ndarray | None:
        """(N,) rho at a look, None for an agent without positions."""
        if self.spec.position_kind == "none" or not self.config.use_positions:
            return None
        return chunk_positions(self.spec, self.documents.workspace.borders, self.chosen_before(look))

    def ruler(self, look: int) -> list[Interval]:
        """The intervals of rho at a look."""
        return intervals(
            self.spec,
            self.documents.workspace.borders,
            self.chosen_before(look),
            use_positions=self.config.use_positions,
        )


class Services:
    """One per process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.language_models = LanguageModels(settings, Recent(MAX_GIVEN, lambda _: 1))
        copy = None if settings.export_repository is None else copy_named(settings.export_repository)
        self._cache_bytes = cache_bytes()
        self.log_path = Path(settings.log or default_log_path())
        self.log: ExperimentLog | InboxLog
        self.log_notice = ""
        """Why runs only reach the log's inbox, in a sentence; empty when this process owns the log."""
        try:
            self.log = open_log(self.log_path)
            if isinstance(self.log, InboxLog):
                self.log_notice = (
                    "another program owns the log, so runs wait in its inbox and can't be opened here; close"
                    " it, or start with another --log"
                )
        except LogError as error:  # damaged, say: it is left as it is, and the app goes on
            self.log = InboxLog(self.log_path)
            self.log_notice = f"{error}; until then runs wait in its inbox"
        self.corpora: Recent[OpenDocuments] = Recent(MAX_CORPORA_BYTES, lambda documents: documents.n_bytes)
        self.runs: Recent[RunInView] = Recent(MAX_RUNS_BYTES, lambda run: run.n_bytes)
        self._left: set[str] = set()
        self._driven: set[str] = set()
        self._leaving = threading.Lock()
        self.allowance = Allowance()
        self._ours: set[str] = set()
        self.forgets: list[Callable[[Collection[str]], None]] = []
        """Told the ids of runs that were deleted, by whoever keeps runs in memory of their own."""
        self._agents: dict[str, tuple[int, Agent]] = {}
        self._thresholds: dict[str, float] = {}
        self._loading = threading.Lock()
        self._closing = threading.Event()
        self._unread = threading.Event()
        self._unread.set()  # the first snapshot serves readers from the start
        self._server = threading.Thread(target=self._serve_readers, daemon=True)
        self._export: ExportUpkeep | None = None
        if isinstance(self.log, ExperimentLog):
            self._server.start()
            if copy is not None:
                self._export = ExportUpkeep.begin(self.log, copy)

    @cached_property
    def _given_checkpoints(self) -> dict[str, Path]:
        """The one that the app was started with, and those that ship."""
        named = [find_checkpoint(self.settings.checkpoint)] if self.settings.checkpoint else []
        return {
            read_spec(folder).name: folder
            for folder in dict.fromkeys([*named, *map(find_checkpoint, shipped_checkpoints())])
        }

    @property
    def checkpoints(self) -> dict[str, Path]:
        """Folders of the checkpoints that a visitor may choose, by name: the default first, then those that
        ship, then those trained here.
        """
        found = dict(self._given_checkpoints)
        for folder in own_agents():
            try:
                found.setdefault(read_spec(folder).name, folder)
            except BadCheckpoint as error:
                _logger.warning("left out of the agents: %s", error)
        return found

    def is_own(self, name: str) -> bool:
        """Whether the agent of that name was trained here, so that its defaults are the person's to set."""
        folder = self.checkpoints.get(name)
        return folder is not None and folder in own_agents()

    def served(self, spec: CheckpointSpec) -> CheckpointSpec:
        """The spec with the stop threshold that a person set until the app is closed, if any."""
        threshold = self._thresholds.get(spec.name)
        return spec if threshold is None else spec.model_copy(update={"stop_threshold": threshold})

    def use_threshold(self, name: str, threshold: float | None) -> None:
        """The stop threshold that an agent begins with until the app is closed; None: its own. Raises
        BadRequest in public mode.
        """
        self.check_local_defaults()
        self._thresholds.pop(name, None)
        if threshold is not None:
            self._thresholds[name] = threshold

    def check_local_defaults(self) -> None:
        """Raises BadRequest in public mode, where nobody may set what all begin with."""
        if self.settings.public:
            raise BadRequest(
                "what agents begin with is the same for all visitors; set the threshold in Explore's"
                " settings, for your own runs"
            )

    def keep_evaluation(self, evaluation: Evaluation) -> None:
        """Logs it, and lets readers of the log know. Raises LogError."""
        check_known(evaluation.owner)
        log_evaluation(self.log, evaluation)
        self._unread.set()

    def keep_run(
        self, trace: Trace, workspace: Workspace, agent: Agent, gold: tuple[int, ...], owner: str | None
    ) -> str:
        """Logs a finished run that nobody has in view; returns its id. Raises LogError, BadRequest when its
        visitor has logged too much today.
        """
        self.allowance.log(owner, n_values([*trace.steps, trace.stopped]))
        run_id = log_trace(self.log, trace, workspace, agent.encoder, label=label_of(gold, ""), owner=owner)
        self._unread.set()
        return run_id

    def tell_readers(self) -> None:
        """There is something new in the log that its snapshot is to have."""
        self._unread.set()

    @property
    def default_checkpoint(self) -> str:
        """Name of the checkpoint that a first visit begins with."""
        return next(iter(self.checkpoints))

    def choice_for(self, documents: Sequence[Document]) -> Choice:
        """What answers questions about documents where nobody chose it, by the first of them; the agent named
        at the start, if any.
        """
        specs = {name: read_spec(folder) for name, folder in self.checkpoints.items()}
        if self.settings.checkpoint is not None:
            return Choice(self.default_checkpoint, method_of(specs[self.default_checkpoint]))
        return choose(documents[0], specs)

    def _trained_for(self, documents: Sequence[Document], spec: CheckpointSpec) -> str:
        """The trained agent, of those that ship, for documents that are opened under another one; empty where
        that one is trained, too.
        """
        if spec.trained:
            return ""
        trained = {name: known for name in self._given_checkpoints if (known := self.spec(name)).trained}
        return choose(documents[0], trained).checkpoint if trained else ""

    def spec(self, name: str) -> CheckpointSpec:
        """What the folder of an agent that is on offer says, without its weights. Raises BadCheckpoint."""
        return read_spec(self.checkpoints[name])

    def agent(self, name: str) -> Agent:
        """A loaded agent, as its folder has it now: a training may have bettered it. Raises BadCheckpoint;
        BadRequest for a name that is not on offer.
        """
        folders = self.checkpoints
        if name not in folders:
            raise BadRequest(f"agent {name!r} is not on offer; choose among {', '.join(folders)}")
        changed_at = (
            (folders[name] / SPEC_FILE).stat().st_mtime_ns
        )  # written last, when a training keeps a better agent
        with self._loading:
            known = self._agents.get(name)
            if known is None or known[0] != changed_at:
                known = self._agents[name] = (changed_at, Agent(DualEncoder(folders[name])))
            return known[1]

    def ours(self, document: Document) -> Document:
        """The document, one that the project made: whoever opens it reads and fills the common caches."""
        self._ours.add(document.sha256)
        return document

    def cache_part(self, hashes: Iterable[str], owner: str | None) -> str:
        """The part of the caches for a visitor's documents, by their hashes: one of their own, or the common
        one where all are the project's.

        From a common one a visitor would see whether somebody else has opened a text before.
        """
        return "" if owner is None or self._ours.issuperset(hashes) else owner

    def open(
        self,
        documents: Sequence[Document],
        agent: Agent,
        configs: Sequence[ChunkConfig] | None,
        on_progress: Progress | None = None,
        label: Callable[[Workspace], tuple[Labelled, ...]] = lambda _: (),
        owner: str | None = None,
        spent: Mapping[str, float] = MappingProxyType({}),
    ) -> OpenDocuments:
        """Chunks, embeds and registers a visitor's documents; `label` finds the chunks that support known
        questions.

        `spent`: milliseconds of the stages before. Raises BadRequest when the visitor has read too much
        today.
        """
        report = self.allowance.metered(owner, sum(len(document.text) for document in documents), on_progress)
        opened = open_corpus(
            documents,
            agent.encoder,
            configs,
            report,
            self.cache_part((document.sha256 for document in documents), owner),
        )
        opened = replace(opened, milliseconds={**spent, **opened.milliseconds})
        return self._register(opened, agent, label(opened.corpus.workspace), owner)

    def reopen(
        self,
        workspace: Workspace,
        agent: Agent,
        on_progress: Progress | None = None,
        questions: tuple[Labelled, ...] = (),
        owner: str | None = None,
    ) -> OpenDocuments:
        """The same chunks under another agent, or out of the log. Raises BadRequest as `open`."""
        n_characters = sum(
            int((table.end - table.start).sum()) for table in workspace.tables
        )  # out of a file they may be any part of the text
        report = self.allowance.metered(owner, n_characters, on_progress)
        opened = index_workspace(
            workspace,
            agent.encoder,
            report,
            self.cache_part((document.sha256 for document in workspace.documents), owner),
        )
        return self._register(opened, agent, questions, owner)

    def under(
        self, documents: OpenDocuments, agent: Agent, on_progress: Progress | None = None
    ) -> OpenDocuments:
        """The same chunks under an agent's vectors; those that their visitor has open already are not opened
        twice. Raises BadRequest as `open`.
        """
        for known in (documents, *self.corpora.all()):
            if (
                known.workspace is documents.workspace
                and known.agent is agent
                and known.owner == documents.owner
            ):
                return known
        return self.reopen(documents.workspace, agent, on_progress, documents.questions, documents.owner)

    def _register(
        self, opened: Opened, agent: Agent, questions: tuple[Labelled, ...], owner: str | None
    ) -> OpenDocuments:
        documents = OpenDocuments(
            token=secrets.token_hex(16),
            corpus=opened.corpus,
            agent=agent,
            milliseconds=opened.milliseconds,
            n_embedded=opened.n_embedded,
            notices=opened.notices,
            foreign=opened.foreign,
            trained=self._trained_for(opened.corpus.workspace.documents, agent.spec),
            questions=questions,
            owner=owner,
        )
        if owner is not None:
            theirs = [known for known in self.corpora.all() if known.owner == owner]
            for known in theirs[: max(0, len(theirs) - DOCUMENTS_OPEN + 1)]:
                self._close(known)
        self.corpora.put(documents.token, documents)
        return documents

    def _close(self, documents: OpenDocuments) -> None:
        """Forgets documents and the finished runs over them, which hold their vectors; the log has both."""
        self.corpora.drop(documents.token)
        for run in self.runs.all():
            if run.documents is documents and run.ended:
                self.runs.drop(run.token)

    def begin_run(
        self,
        started: RunStarted,
        documents: OpenDocuments,
        gold: tuple[int, ...],
        parent: RunInView | None = None,
        fork_step: int | None = None,
    ) -> RunInView:
        """Logs the start of a run and puts it in view; a child run keeps the first `fork_step` steps of its
        parent. Raises BadRequest.
        """
        check_steps(documents.owner, started.config.step_budget)
        self._make_room(documents.owner)
        parent_run_id = None if parent is None else parent.run_id
        label = label_of(gold, documents.known_answer(started.query))
        fork = {"parent_run_id": parent_run_id, "fork_step": fork_step if parent else None}
        record = run_record(
            started, documents.workspace, documents.agent.encoder, label=label, owner=documents.owner, **fork
        )
        self.log.start(record, documents.workspace.documents, documents.workspace.tables)
        kept = parent.trace.steps[:fork_step] if parent is not None else ()
        if isinstance(self.log, InboxLog):  # the log itself copies them from the parent
            for step in kept:
                self.log.record(record.run_id, step)
        run = RunInView(
            secrets.token_hex(16),
            record.run_id,
            documents,
            Trace(started, kept),
            gold,
            parent_run_id,
            len(kept),
        )
        self.runs.put(run.token, run)
        return run

    def _make_room(self, owner: str | None) -> None:
        """Closes a visitor's unfinished runs that were left for longest, so that one more is within bounds;
        going on from them makes child runs.
        """
        check_known(owner)
        unfinished = [
            run
            for run in self.runs.all()
            if run.owner == owner and not run.ended and run.token not in self._driven
        ]
        if owner is not None:
            for run in unfinished[: max(0, len(unfinished) - RUNS_IN_FLIGHT + 1)]:
                self.end_run(run, "cancelled")

    def add_event(self, run: RunInView, event: StepTaken | Stopped) -> RunInView:
        """Logs one event and takes it into view. Raises BadRequest when its visitor has logged too much
        today.
        """
        self.allowance.log(run.documents.owner, n_values([event]))
        self.log.record(run.run_id, event)
        if (
            event.scores is not None
        ):  # positions follow from the choices, see RunInView.positions; two thirds of a run's memory
            event = replace(event, scores=StepScores(event.scores.q_values, None))
        run = replace(run, trace=run.trace.with_event(event))
        self.runs.put(run.token, run)
        self._unread.set()
        if not isinstance(event, Stopped):
            return run
        if run.trace.started.method in SETS:
            detail = set_detail(run.trace, run.documents.workspace)
            self.log.attach(run.run_id, "set", detail, run.owner)
        return self.end_run(run, "complete")

    def end_run(self, run: RunInView, status: FinalStatus, message: str | None = None) -> RunInView:
        """Closes a run in the log: it never changes again, going on from it makes a child run."""
        self.log.finish(run.run_id, status, message)
        run = replace(run, ended=True)
        self.runs.put(run.token, run)
        return run

    @cached_property
    def reader(self) -> Reader:
        """Who answers from evidence. Raises BadCheckpoint."""
        return load_reader()

    def answer(self, run: RunInView) -> RunInView:
        """The run with an answer from its evidence, which the log keeps beside it; as it is where it has none
        to read. Raises LogError, BadCheckpoint.
        """
        if (
            run.trace.stopped is None
            or run.answer is not None
            or run.others
            or run.trace.started.method == SPARC
        ):  # SPARC answers by itself
            return run
        told = self.read(run, run.trace.evidence)
        run = replace(run, answer=told)
        self.runs.put(run.token, run)
        if isinstance(
            self.log, ExperimentLog
        ):  # a finished run has left for the inbox and takes nothing any more
            self.log.attach(run.run_id, "answer", told.to_json(), run.owner)
            self._unread.set()
        return run

    def read(self, run: RunInView, chunk_ids: Collection[int]) -> EvidenceAnswer:
        """What the reader says to a run's question from some chunks; of a set of RES-RAG, from the pages'
        JSON-LD, too. Raises BadCheckpoint.
        """
        workspace = run.documents.workspace
        texts = {chunk_id: workspace[chunk_id].text for chunk_id in chunk_ids}
        metadata = [metadata_lines(workspace.documents)] if run.trace.started.method in SETS else []
        return answer_evidence(self.reader, [run.trace.started.query], [texts], metadata)[0]

    def diagnose(self, run: RunInView) -> RunInView:
        """The run with why it lacks support that is known, where it does."""
        documents, trace = run.documents, run.trace
        if run.diagnosis is not None or not run.gold or trace.started.method != documents.agent.name:
            return run
        return self._diagnosed(run, diagnose(documents.agent, documents.corpus, trace, run.gold))

    def try_trained(self, run: RunInView) -> RunInView:
        """The run, its diagnosis with what a trained agent finds where that is more: tried on short documents
        of the one at home, since it embeds them.

        Raises BadCheckpoint.
        """
        documents, found = run.documents, run.diagnosis
        name = documents.trained
        if (
            found is None
            or not name
            or documents.owner is not None
            or documents.workspace.n_tokens > MAX_TRIED_TOKENS
        ):
            return run
        other = self.under(documents, self.agent(name))
        remedy = Remedy("agent", name, n_found_by(other.agent, other.corpus, run.trace, run.gold))
        if remedy.n_found <= found.n_found or remedy in found.remedies:
            return run
        remedies = sorted((*found.remedies, remedy), key=lambda remedy: -remedy.n_found)
        return self._diagnosed(run, replace(found, remedies=tuple(remedies)))

    def _diagnosed(self, run: RunInView, found: Diagnosis | None) -> RunInView:
        if found is None:
            return run
        run = replace(self.runs.get(run.token) or run, diagnosis=found)
        self.runs.put(run.token, run)
        return run

    def cite(self, run: RunInView, llm: Llm, report: Callable[[str], None]) -> RunInView:
        """The run with a language model's answer from its evidence, which the log keeps beside it.

        `report` hears all the while what was written so far; once it raises Cancelled, nobody waits for the
        model any more. Raises LlmError, LlmCancelled, LogError, BadCheckpoint.
        """
        pieces: list[str] = []

        def is_over() -> bool:
            try:
                report("".join(pieces))
            except Cancelled:
                return True
            return False

        chunks = sorted(run.evidence_texts().items())
        told = cited_answer(
            run.trace.started.query,
            chunks,
            llm,
            self.reader,
            metadata=metadata_json(run.documents.workspace.documents),
            on_text=pieces.append,
            cancelled=is_over,
        )
        run = replace(self.runs.get(run.token) or run, cited=told)
        self.runs.put(run.token, run)
        if isinstance(self.log, ExperimentLog) and not run.others:
            self.log.attach(run.run_id, "cited", told.to_json(), run.owner)
            self._unread.set()
        return run

    @contextmanager
    def driving(self, run: RunInView) -> Iterator[None]:
        """Nobody else goes on with a run until the block ends. Raises BadRequest when somebody does, or has:
        another page, say, or a call.
        """
        with self._leaving:
            known = self.runs.get(run.token)
            if run.token in self._driven or (known is not None and known is not run):
                raise BadRequest(
                    "this run goes on elsewhere, on another page or by a call; wait for it, then load this"
                    " page again"
                )
            self._driven.add(run.token)
        try:
            yield
        finally:
            self._driven.discard(run.token)

    def leave_run(self, token: str) -> None:
        """Nobody goes on with a run: it ends, and leaves memory once enough others were left after it. One
        that is driven is its driver's to leave.
        """
        run = self.runs.get(token)
        if run is None or token in self._driven:
            return
        if not run.ended:
            self.end_run(run, "cancelled")
        with self._leaving:
            self._left.add(token)
            left = [known.token for known in self.runs.all() if known.token in self._left]
            for used_long_ago in left[: max(0, len(left) - MAX_LEFT_RUNS)]:
                self.runs.drop(used_long_ago)
            self._left = set(left[-MAX_LEFT_RUNS:])

    def release(self, tokens: Collection[str], in_use: Collection[str]) -> None:
        """Forgets documents, runs and language models whose page is closed, but for those that others have
        `in_use`; the log and the caches have them.
        """
        self.language_models.release(set(tokens) - set(in_use))
        documents = {self.corpora.get(token) for token in tokens}
        for run in [run for run in self.runs.all() if run.token in tokens and run.token not in in_use]:
            if not run.ended:
                self.end_run(run, "cancelled")
            self.runs.drop(run.token)
            documents.add(run.documents)
        needed = {run.documents.token for run in self.runs.all() if run.token in in_use}
        for closed in documents:
            if closed is not None and closed.token not in in_use and closed.token not in needed:
                self._close(closed)

    def attach(self, run_id: str, on_progress: Progress | None = None, owner: str | None = None) -> RunInView:
        """A run as it stands: the visitor's own that is in view, else out of the log, with its documents open
        again, as another of that visitor's.

        Raises RunNotFound unless it is the visitor's own or shared, LogError, BadCheckpoint.
        """
        check_known(owner)
        live = next(
            (
                run
                for run in self.runs.all()
                if run.run_id == run_id and run.owner == owner and not run.others
            ),
            None,
        )
        if live is not None and self.corpora.get(live.documents.token) is not None:
            with self._leaving:
                self._left.discard(live.token)
            return live
        logged = self.own_log.get(run_id, owner)
        workspace = workspace_of_run(logged, self.own_log.documents(run_id, owner))
        gold = support_of(logged)
        questions = (Labelled(logged.record.query, known_answer_of(logged), 0, gold),) if gold else ()
        documents = self.reopen(
            workspace, self.agent(logged.record.checkpoint), on_progress, questions, owner
        )
        run = RunInView(
            token=secrets.token_hex(16),
            run_id=run_id,
            documents=documents,
            trace=logged.trace,
            gold=gold,
            parent_run_id=logged.record.parent_run_id,
            fork_step=logged.record.fork_step or 0,
            ended=True,
            others=logged.record.owner != owner,
        )
        texts = run.evidence_texts()
        cited = CitedAnswer.from_json(logged.details.get("cited", {}), texts)
        run = replace(
            run, answer=EvidenceAnswer.from_json(logged.details.get("answer", {}), texts), cited=cited
        )
        self.runs.put(run.token, run)
        return run

    @property
    def own_log(self) -> ExperimentLog:
        """The log itself, not its inbox. Raises LogError when another process owns it."""
        if isinstance(self.log, InboxLog):
            raise LogError(self.log_notice)
        return self.log

    def method_of(self, run_id: str, owner: str | None) -> str:
        """The method of a logged run. Raises RunNotFound unless it is the visitor's own
        or shared, LogError.
        """
        return self.own_log.get(run_id, owner).record.method

    def delete_run(self, run_id: str, owner: str | None) -> None:
        """Removes a run from the log and from memory, where others may have it in view. Raises RunNotFound
        unless it is `owner`'s, LogError.
        """
        self.own_log.delete(run_id, owner)
        self._forget_runs({run_id})

    def _forget_runs(self, run_ids: Collection[str]) -> None:
        for forget in self.forgets:
            forget(run_ids)
        for run in self.runs.all():
            if run.run_id in run_ids:
                self.runs.drop(run.token)

    def _serve_readers(self) -> None:
        """Takes in runs that command lines left in the inbox, deletes what visitors left behind, keeps the
        caches within bounds, and when something is new, refreshes the snapshot and gives freed memory back.
        """
        assert isinstance(self.log, ExperimentLog)
        pause, expired_at = _SNAPSHOT_PAUSE, -_EXPIRY_PAUSE
        while not self._closing.wait(pause):
            began = time.monotonic()
            try:
                if began - expired_at > _EXPIRY_PAUSE:
                    self._forget_runs(expire(self.log, now() - RETENTION))
                    trim_caches(self._cache_bytes, time.time() - RETENTION.total_seconds())
                    expired_at = began
                if self.log.import_inbox() or self._unread.is_set():
                    self._unread.clear()
                    self.log.snapshot()
                    freed.give_back()
            except LogError as error:
                _logger.warning("the log could not be copied for other programs: %s", error)
            pause = max(
                _SNAPSHOT_PAUSE, 20 * (time.monotonic() - began)
            )  # a large log must not be copied all the time

    def close(self) -> None:
        """Ends what is still running, commits what is queued and gives the log up."""
        self._closing.set()
        if self._server.is_alive():
            self._server.join(timeout=30)
        for run in self.runs.all():
            if not run.ended:
                self.end_run(run, "cancelled")
        if self._export is not None:
            self._export.close()
        self.log.close()
