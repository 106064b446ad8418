"""What all visitors share.

Agents, open documents, language models, and runs on their way into the log.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from app.services.agents import Agents
from app.services.export_upkeep import ExportUpkeep, copy_named
from app.services.in_view import Labelled, OpenDocuments, RunInView
from app.services.language_models import LanguageModels
from app.services.library import Library, OpenOrder
from app.services.settings import Settings
from app.services.visitors import RETENTION, RUNS_IN_FLIGHT, check_known, check_steps, n_values
from core.answer.cited import CitedAnswer, cited_answer
from core.answer.evidence import EvidenceAnswer, answer_evidence, found_order
from core.answer.metadata import metadata_json, metadata_lines
from core.answer.protocol import Reader
from core.base.config import SETS, EpisodeConfig
from core.base.errors import BadRequest, Cancelled, LogError, UserError
from core.base.events import RunStarted, StepScores, StepTaken, Stopped, Trace
from core.base.home import cache_bytes, trim_caches
from core.base.progress import finish
from core.base.types import Workspace
from core.corpus.context import context
from core.corpus.opening import Opening
from core.llm.draft import Draft
from core.llm.protocol import Llm
from core.methods.qrag.agent import Agent
from core.methods.registry import facts_of
from core.methods.sparc.retriever import SPARC
from core.runs.again.records import log_trace, run_record, set_detail
from core.runs.again.replay import workspace_of_run
from core.runs.foreign.traces import detail_sentence
from core.runs.log import Evaluation, ExperimentLog, InboxLog, RunLog, default_log_path, open_log
from core.runs.log.marks import MarkedQuestion, list_questions, relabel_run
from core.runs.log.records import (
    FinalStatus,
    LoggedRun,
    known_answer_of,
    label_of,
    now,
    support_of,
    was_marked,
)
from core.runs.whatif.cuts import chunks_of
from core.runs.whatif.diagnosis import Remedy, cut_that_helps, diagnose, n_found_by

_logger = logging.getLogger(__name__)

MAX_LEFT_RUNS = 50
"""Runs in memory that no page goes on with; older ones are read from the log."""
KEPT_READINGS = 64
"""Answers from evidence that are not read again."""
MAX_TRIED_TOKENS = 50_000
"""Of documents that are embedded to see whether a trained agent would have found more."""
_SNAPSHOT_PAUSE = 5.0
"""Seconds between looks into the inbox."""
_EXPIRY_PAUSE = 600.0
"""Seconds between looks for what visitors left behind, and at the size of the caches."""


class Services:
    """One per process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.agents = Agents(settings)
        self.library = Library(self.agents)
        self.language_models = LanguageModels(settings)
        copy = None if settings.export_repository is None else copy_named(settings.export_repository)
        self._cache_bytes = cache_bytes()
        self.log_path = Path(settings.log or default_log_path())
        self.log_notice = ""
        """Why runs only reach the log's inbox, in a sentence; empty when this process owns the log."""
        try:
            self.log: RunLog = open_log(self.log_path)
            if not self.owns_log:
                self.log_notice = (
                    "another program owns the log, so runs wait in its inbox and can't be opened here; close"
                    " it, or start with another --log"
                )
        except LogError as error:  # damaged, say: it is left as it is, and the app goes on
            self.log = InboxLog(self.log_path)
            self.log_notice = f"{error}; until then runs wait in its inbox"
        self._read_of_all = lru_cache(KEPT_READINGS)(self._read)
        """Of documents that are no visitor's own: each begins with the same run over the same sample."""
        self._left: set[str] = set()
        self._driven: set[str] = set()
        """Runs that somebody makes steps of, from their start on: nobody ends one before its first."""
        self._leaving = threading.Lock()
        self.in_use: Callable[[], Collection[str]] = tuple
        """Tokens that open pages name."""
        self.forgets: list[Callable[[Collection[str]], None]] = []
        """Told the ids of runs that were deleted, by whoever keeps runs in memory of their own."""
        self._closing = threading.Event()
        self._unread = threading.Event()
        self._unread.set()  # the first snapshot serves readers from the start
        self._server = threading.Thread(target=self._serve_readers, daemon=True)
        self._export: ExportUpkeep | None = None
        if self.owns_log:
            self._server.start()
            if copy is not None:
                self._export = ExportUpkeep.begin(self.own_log, copy)

    def keep_evaluation(self, evaluation: Evaluation) -> None:
        """Logs it, and lets readers of the log know. Raises LogError."""
        check_known(evaluation.owner)
        self.log.keep(evaluation)
        self._unread.set()

    def keep_run(
        self, trace: Trace, workspace: Workspace, agent: Agent, label: Labelled | None, owner: str | None
    ) -> str:
        """Logs a finished run that nobody has in view; returns its id. Raises LogError, BadRequest."""
        self.library.allowance.log(owner, n_values([*trace.steps, trace.stopped]))
        known = logged_label(label)
        run_id = log_trace(self.log, trace, workspace, agent.encoder, label=known, owner=owner)
        self._unread.set()
        return run_id

    def tell_readers(self) -> None:
        """There is something new in the log that its snapshot is to have."""
        self._unread.set()

    def begin_run(
        self,
        started: RunStarted,
        documents: OpenDocuments,
        parent: RunInView | None = None,
        fork_step: int | None = None,
    ) -> RunInView:
        """Logs a run's start and puts it in view; a child keeps `fork_step` steps. Raises BadRequest."""
        workspace, owner = documents.workspace, documents.owner
        check_steps(owner, started.config.step_budget)
        self._make_room(owner)
        label = self.label_of(documents, started.query)
        record = run_record(
            started,
            workspace,
            documents.agent.encoder,
            label=logged_label(label),
            owner=owner,
            parent_run_id=None if parent is None else parent.run_id,
            fork_step=fork_step,
        )
        self.log.start(record, workspace.documents, workspace.tables)
        steps = () if parent is None else parent.trace.steps[:fork_step]
        if not self.owns_log:  # the log itself copies them from the parent
            for step in steps:
                self.log.record(record.run_id, step)
        trace, token = Trace(started, steps), secrets.token_hex(16)
        run = RunInView(token, record.run_id, documents, trace, label, record.parent_run_id, len(steps))
        with self._leaving:
            self._driven.add(run.token)
            self.library.runs.put(run.token, run)
        return run

    def label_of(self, documents: OpenDocuments, question: str) -> Labelled | None:
        """What is known of a question: what came with the documents, else what their visitor marked."""
        if (label := documents.label_of(question)) is not None:
            return label
        try:
            marked = self.marked(documents, question)
        except UserError:  # the log is another's, or damaged: that is said where something is marked
            return None
        place = {document.sha256: i for i, document in enumerate(documents.workspace.documents)}
        spans = tuple((place[one.sha256], mark.start, mark.end) for one in marked for mark in one.support)
        if not spans:
            return None
        answer = next((one.answer for one in marked if one.answer), "")
        return Labelled(question, answer, 0, chunks_of(documents.workspace, spans), spans, marked=True)

    def marked(self, documents: OpenDocuments, question: str) -> list[MarkedQuestion]:
        """A question of their visitor's over open documents, once a document. Raises LogError."""
        hashes = {document.sha256 for document in documents.workspace.documents}
        marked = list_questions(self.own_log, documents.owner)
        return [one for one in marked if one.question == question and one.sha256 in hashes]

    def relabel(self, run: RunInView) -> RunInView:
        """A run of one's own as its question is marked by now, here and in the log."""
        label = self.label_of(run.documents, run.trace.started.query)
        if run.others or label == run.label:
            return run
        relabel_run(self.own_log, run.run_id, logged_label(label), run.owner)
        self._unread.set()
        return self.changed(run, lambda now: replace(now, label=label, diagnosis=None))

    def changed(self, run: RunInView, change: Callable[[RunInView], RunInView]) -> RunInView:
        """A run with something changed, as it stands by now; one that is gone by now stays so."""
        return self.library.runs.update(run.token, change) or change(run)

    def _make_room(self, owner: str | None) -> None:
        """Closes a visitor's runs that were left longest, so that one more fits; going on makes children."""
        check_known(owner)
        if owner is None:
            return
        with self._leaving:
            theirs = [run for run in self.library.runs.all() if run.owner == owner and not run.ended]
            left = [run for run in theirs if run.token not in self._driven]
            for run in left[: max(0, len(left) - RUNS_IN_FLIGHT + 1)]:
                self.end_run(run, "cancelled")

    def add_event(self, run: RunInView, event: StepTaken | Stopped) -> RunInView:
        """Logs one event and takes it into view. Raises BadRequest past the visitor's bound of a day."""
        self.library.allowance.log(run.documents.owner, n_values([event]))
        self.log.record(run.run_id, event)
        if event.scores is not None:  # positions follow from the choices, and are two thirds of the memory
            event = replace(event, scores=StepScores(event.scores.q_values, None))
        trace = run.trace.with_event(event)
        run = self.changed(run, lambda now: replace(now, trace=trace))
        self._unread.set()
        if not isinstance(event, Stopped):
            return run
        if run.trace.started.method in SETS:
            detail = set_detail(run.trace, run.documents.workspace)
            self.log.attach(run.run_id, "set", detail, run.owner)
        return self.end_run(run, "complete")

    def end_run(self, run: RunInView, status: FinalStatus, message: str | None = None) -> RunInView:
        """Closes a run in the log unless it has ended: it never changes again, going on makes a child run.
        Raises LogError where the log can't take that: it has ended all the same.
        """
        if run.ended:
            return run
        try:
            self.log.finish(run.run_id, status, message)
        finally:
            self._driven.discard(run.token)
            run = self.changed(run, lambda now: replace(now, ended=True))
        return run

    @cached_property
    def reader(self) -> Reader:
        """Who answers from evidence. Raises BadCheckpoint."""
        from core.answer.reader import load_reader  # with torch, see core.later

        return load_reader()

    def reader_named(self, name: str) -> Reader:
        """Who answered when a run was made. Raises BadCheckpoint."""
        from core.answer.reader import reader_named  # with torch, see core.later

        return self.reader if self.reader.name == name else reader_named(name)

    def answer(self, run: RunInView) -> RunInView:
        """The run with the reader's answer, if it has evidence. Raises LogError, BadCheckpoint."""
        answers_itself = run.trace.started.method == SPARC
        if run.trace.stopped is None or run.answer is not None or run.others or answers_itself:
            return run
        reading = self.read(run, run.trace.evidence)
        run = self.changed(run, lambda now: replace(now, answer=reading))
        if self.owns_log:  # a finished run has left for the inbox and takes nothing any more
            self.log.attach(run.run_id, "answer", reading.to_json(), run.owner)
            self._unread.set()
        return run

    def read(self, run: RunInView, chunk_ids: Collection[int]) -> EvidenceAnswer:
        """What the reader says from some chunks; for RES-RAG also from JSON-LD. Raises BadCheckpoint."""
        workspace, started = run.documents.workspace, run.trace.started
        texts = tuple((chunk_id, workspace[chunk_id].text) for chunk_id in chunk_ids)
        above = tuple((chunk_id, context(workspace, chunk_id)) for chunk_id in chunk_ids)
        metadata = (tuple(metadata_lines(workspace.documents)),) if started.method in SETS else ()
        read = self._read if self.library.part_of(run.documents) else self._read_of_all
        return read(started.query, texts, tuple(found_order(run.trace)), metadata, above)

    def _read(
        self,
        query: str,
        texts: tuple[tuple[int, str], ...],
        order: tuple[int, ...],
        metadata: tuple[tuple[str, ...], ...],
        above: tuple[tuple[int, str], ...],
    ) -> EvidenceAnswer:
        [answer] = answer_evidence(self.reader, [query], [dict(texts)], [order], metadata, [dict(above)])
        return answer

    def diagnose(self, run: RunInView) -> RunInView:
        """The run with why it lacks support that is known, where it does."""
        documents, trace = run.documents, run.trace
        known = trace.started.method == documents.agent.name or run.method.foreign
        if run.diagnosis is not None or run.label is None or not run.gold or not known:
            return run
        diagnosis = diagnose(documents.agent, documents.corpus, trace, run.gold, run.label.spans)
        return self.changed(run, lambda now: replace(now, diagnosis=diagnosis))

    def try_embedding(self, run: RunInView) -> RunInView:
        """The run, its diagnosis with what a trained agent finds, and its own in chunks of another size,
        where that is more: of short documents, in local mode, since it embeds. Raises BadCheckpoint.
        """
        documents, diagnosis = run.documents, run.diagnosis
        is_short = documents.workspace.n_tokens <= MAX_TRIED_TOKENS
        if diagnosis is None or documents.owner is not None or not is_short:
            return run
        remedies = {remedy.way: remedy for remedy in diagnosis.remedies}
        if name := documents.trained:
            other = finish(self.library.under(documents, self.agents.load(name)))
            n_found = n_found_by(other.agent, other.corpus, run.trace, run.gold)
            if n_found > diagnosis.n_found:
                remedies["agent"] = Remedy("agent", name, n_found)
        if run.label is not None:
            about = documents.agent, documents.corpus, run.trace, run.gold, run.label.spans
            if (cut := cut_that_helps(diagnosis, *about)) is not None:
                remedies["cut"] = cut
        if len(remedies) == len(diagnosis.remedies):
            return run
        most_first = tuple(sorted(remedies.values(), key=lambda remedy: -remedy.n_found))
        better = replace(diagnosis, remedies=most_first)
        return self.changed(run, lambda now: replace(now, diagnosis=better))

    def waited(self, run: RunInView, seconds: float) -> RunInView:
        """The run after its visitor has waited so much longer for it."""
        return self.changed(run, lambda now: replace(now, waited=now.waited + seconds))

    def cite(self, run: RunInView, llm: Llm, draft: Draft, report: Callable[[Draft], None]) -> RunInView:
        """The run with a language model's answer from its evidence. `report` is given `draft` all the while
        and may raise Cancelled. Raises LlmError, LlmCancelled, LogError, BadCheckpoint.
        """

        def is_over() -> bool:
            try:
                report(draft)
            except Cancelled:
                return True
            return False

        workspace = run.documents.workspace
        chunks = [(chunk_id, workspace[chunk_id].text) for chunk_id in sorted(run.trace.evidence)]
        metadata = metadata_json(workspace.documents)
        about = run.trace.started.query, chunks, llm, self.reader
        cited = cited_answer(*about, metadata=metadata, draft=draft, cancelled=is_over)
        run = self.changed(run, lambda now: replace(now, cited=cited))
        if self.owns_log and not run.others:
            self.log.attach(run.run_id, "cited", cited.to_json(), run.owner)
            self._unread.set()
        return run

    @contextmanager
    def driving(self, run: RunInView, *, has_begun: bool) -> Iterator[None]:
        """Nobody else goes on with a run until the block ends. Raises BadRequest when someone does or has."""
        with self._leaving:
            current = self.library.runs.get(run.token)
            went_on = current is not None and (current.ended or current.trace is not run.trace)
            if went_on or (run.token in self._driven and not has_begun):
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
        """Nobody goes on with a run: it ends, and leaves memory once enough others were left after it."""
        with self._leaving:
            run = self.library.runs.get(token)
            if run is None or token in self._driven:
                return
            self.end_run(run, "cancelled")
            self._left.add(token)
            left = [other.token for other in self.library.runs.all() if other.token in self._left]
            used_long_ago = left[: max(0, len(left) - MAX_LEFT_RUNS)]
            in_use = self.in_use() if used_long_ago else ()  # a page may show what a call has left
            for unused in set(used_long_ago).difference(in_use):
                self.library.runs.drop(unused)
            self._left = set(left[-MAX_LEFT_RUNS:])

    def release(self, tokens: Collection[str], in_use: Collection[str]) -> None:
        """Forgets what closed pages had open, but for what others have `in_use`; log and caches have it."""
        gone = set(tokens) - set(in_use)
        self.language_models.release(gone)
        documents = {self.library.corpora.get(token) for token in tokens}
        with self._leaving:
            for run in self.library.runs.all():
                of_page = run.token in gone or run.documents.token in gone
                if not of_page or run.token in in_use or run.token in self._driven:
                    continue
                with _survived("ending a run"):
                    self.end_run(run, "cancelled")
                self.library.runs.drop(run.token)
                documents.add(run.documents)
        needed = {run.documents.token for run in self.library.runs.all() if run.token in in_use}
        for closed in documents:
            if closed is not None and closed.token not in (*in_use, *needed):
                self.library.close(closed)

    def attach(
        self, run_id: str, owner: str | None = None, beside: OpenDocuments | None = None
    ) -> Opening[RunInView]:
        """A visitor's own run that is in view, else a logged one, with its documents open. `beside`: open
        documents that may be the same. Raises RunNotFound unless it is the visitor's own or shared, LogError,
        BadCheckpoint.
        """
        check_known(owner)
        theirs = [run for run in self.library.runs.all() if run.owner == owner and not run.others]
        live = next((run for run in theirs if run.run_id == run_id), None)
        if live is not None and self.library.corpora.get(live.documents.token) is not None:
            with self._leaving:
                self._left.discard(live.token)
            return live
        logged = self.own_log.get(run_id, owner)
        workspace = workspace_of_run(logged, self.own_log.documents(run_id, owner))
        gold, others = support_of(logged), logged.record.owner != owner
        query = logged.record.query
        # what is marked may be marked otherwise by now
        is_known = gold and (others or not was_marked(logged))
        questions = self._known(workspace, owner)
        if is_known and all(known.question != query for known in questions):
            questions += (Labelled(query, known_answer_of(logged), 0, gold),)
        agent = self.agents.load(logged.record.checkpoint)
        if beside is not None and beside.workspace.is_cut_as(workspace.documents, workspace.tables):
            documents = yield from self.library.under(beside, agent)
        else:
            order = OpenOrder(agent, owner, lambda _: questions)
            documents = yield from self.library.reopen(order, workspace)
        return self._in_view(logged, documents, others)

    def _known(self, workspace: Workspace, owner: str | None) -> tuple[Labelled, ...]:
        """The known questions of a visitor's documents that are open in the same chunks."""
        for documents in self.library.corpora.all():
            is_theirs = documents.owner == owner and documents.questions
            if is_theirs and documents.workspace.is_cut_as(workspace.documents, workspace.tables):
                return documents.questions
        return ()

    def made_before(self, documents: OpenDocuments, query: str, config: EpisodeConfig) -> RunInView | None:
        """The visitor's last complete run of a question over what is open, as it is in the log."""
        if not self.owns_log:
            return None
        encoder, owner = documents.agent.encoder, documents.owner
        page = self.own_log.search(
            owner=owner,
            text=query,
            method=documents.agent.name,
            checkpoint=encoder.spec.name,
            document=documents.workspace.documents[0].sha256,
            status="complete",
            limit=10,
        )
        asked = query, len(documents.corpus), encoder.fingerprint, config
        for row in page.rows:
            logged = self.own_log.get(row.run_id, owner)
            record, config_then = logged.record, logged.trace.started.config
            then = record.query, record.n_chunks, record.checkpoint_fingerprint, config_then
            if then == asked and self.searched(row.run_id, documents):
                return self._in_view(logged, documents, others=False)
        return None

    def searched(self, run_id: str, documents: OpenDocuments) -> bool:
        """Whether a logged run of their visitor's is over open documents as they are cut. Raises LogError."""
        logged = self.own_log.documents(run_id, documents.owner)
        return documents.workspace.is_cut_as(logged, [document.table for document in logged])

    def _in_view(self, logged: LoggedRun, documents: OpenDocuments, others: bool) -> RunInView:
        """A logged run over documents that are open."""
        encoder, record, details = documents.agent.encoder, logged.record, logged.details
        made_with = record.checkpoint_fingerprint, record.vectors
        texts = {chunk_id: documents.workspace[chunk_id].text for chunk_id in logged.trace.evidence}
        foreign = facts_of(logged.trace.started.method).foreign
        run = RunInView(
            token=secrets.token_hex(16),
            run_id=record.run_id,
            documents=documents,
            trace=logged.trace,
            label=self.label_of(documents, record.query),
            parent_run_id=record.parent_run_id,
            fork_step=record.fork_step or 0,
            ended=True,
            others=others,
            by_other_weights=made_with != (encoder.fingerprint, encoder.vector_fingerprint),
            answer=EvidenceAnswer.from_json(details.get("answer", {}), texts),
            cited=CitedAnswer.from_json(details.get("cited", {}), texts),
            imported=detail_sentence(details.get("imported", {})) if foreign else "",
        )
        self.library.runs.put(run.token, run)
        return run

    @property
    def owns_log(self) -> bool:
        """Whether runs go to the log itself, and not to another process's inbox."""
        return isinstance(self.log, ExperimentLog)

    @property
    def own_log(self) -> ExperimentLog:
        """The log itself. Raises LogError when another process owns it."""
        if not isinstance(self.log, ExperimentLog):
            raise LogError(self.log_notice)
        return self.log

    def method_of(self, run_id: str, owner: str | None) -> str:
        """The method of a logged run. Raises LogError, RunNotFound unless it is theirs or shared."""
        return self.own_log.get(run_id, owner).record.method

    def delete_run(self, run_id: str, owner: str | None) -> None:
        """Removes a run from log and memory. Raises RunNotFound unless it is `owner`'s, LogError."""
        self.own_log.delete(run_id, owner)
        self._forget_runs({run_id})

    def _forget_runs(self, run_ids: Collection[str]) -> None:
        for forget in self.forgets:
            forget(run_ids)
        for run in self.library.runs.all():
            if run.run_id in run_ids:
                self.library.runs.drop(run.token)

    def _serve_readers(self) -> None:
        """Takes in the inbox, deletes what visitors left, bounds the caches, and refreshes the snapshot."""
        log = self.own_log
        pause, expired_at = _SNAPSHOT_PAUSE, -_EXPIRY_PAUSE
        while not self._closing.wait(pause):
            began = time.monotonic()
            if began - expired_at > _EXPIRY_PAUSE:
                expired_at = began
                with _survived("deleting what visitors left behind"):
                    self._forget_runs(log.expire(now() - RETENTION))
                with _survived("trimming the caches"):
                    trim_caches(self._cache_bytes, time.time() - RETENTION.total_seconds())
            with _survived("copying the log for other programs"):
                if log.import_inbox() or self._unread.is_set():
                    self._unread.clear()
                    log.snapshot()
            # a large log must not be copied all the time
            pause = max(_SNAPSHOT_PAUSE, 20 * (time.monotonic() - began))

    def close(self) -> None:
        """Ends what is still running, commits what is queued and gives the log up."""
        self._closing.set()
        if self._server.is_alive():
            self._server.join(timeout=30)
        for run in self.library.runs.all():
            with _survived("ending a run"):
                self.end_run(run, "cancelled")
        if self._export is not None:
            self._export.close()
        self.log.close()


@contextmanager
def _survived(doing: str) -> Iterator[None]:
    """Whatever fails inside is told in the app's log, and the thread goes on."""
    try:
        yield
    except LogError as error:
        _logger.warning("%s failed: %s", doing, error)
    except Exception:
        _logger.exception("%s failed", doing)


def logged_label(label: Labelled | None) -> dict[str, Any] | None:
    """What the log keeps of it."""
    return None if label is None else label_of(label.support, label.answer, marked=label.marked)
