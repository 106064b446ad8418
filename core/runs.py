"""Between the log and the agent.

The records of a run and of a training, logging a finished trace, and making a logged run again. A SPARC run
lies in the log as its final evidence, a step a chunk in the order in which branches first retrieved it, with
its whole trace beside it as detail "sparc" and its outcome as detail "answer". Decides what a record says
about the encoder, and that a replay reads its documents and chunk borders from the log, its vectors from the
cache or, where they are gone, from the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from core.answer.evidence import EvidenceAnswer
from core.answer.metadata import MAX_KEPT, MAX_OF_DOCUMENT, metadata_json
from core.answer.protocol import Reader
from core.config import ChunkConfig, EpisodeConfig
from core.encode.encoder import DualEncoder
from core.errors import BadRequest, LogError
from core.events import RunStarted, Trace, fold
from core.index import Corpus
from core.log import (
    FinalStatus,
    LoggedDocument,
    LoggedRun,
    ReplayReport,
    RunLog,
    RunRecord,
    Training,
    compare_sparc,
    compare_traces,
    new_run_id,
)
from core.log.branches import decided_by_rules, sparc_trace_of
from core.log.records import detail_json
from core.opening import Progress, index_workspace
from core.resrag.action import RESRAG_LLM, SETS, action_json, action_of
from core.retrievers import build_retriever
from core.sparc.build import build_agents, build_retrievals
from core.sparc.events import Retrieved, SparcEvent, SparcStarted
from core.sparc.retrievals import Retrievals
from core.sparc.retriever import SPARC, evidence_steps
from core.sparc.run import run_sparc
from core.sparc.trace import SparcTrace, fold_sparc
from core.train.sitting import read_progress, read_training_file
from core.types import Workspace


def run_record(started: RunStarted, workspace: Workspace, encoder: DualEncoder, **more: Any) -> RunRecord:
    """What the log must know when a run starts. `more`: fields of RunRecord such as owner, parent_run_id,
    fork_step, label.
    """
    configs = workspace.configs or (None,) * len(workspace.documents)
    return RunRecord(
        run_id=new_run_id(),
        method=started.method,
        query=started.query,
        config=started.config.to_json(),
        chunking=[{"chunker": "given"} if config is None else asdict(config) for config in configs],
        checkpoint=encoder.spec.name,
        checkpoint_fingerprint=encoder.fingerprint,
        vectors=encoder.vector_fingerprint,
        document_hashes=tuple(document.sha256 for document in workspace.documents),
        n_chunks=len(workspace),
        seed=started.config.seed,
        **more,
    )


def log_trace(
    log: RunLog,
    trace: Trace,
    workspace: Workspace,
    encoder: DualEncoder,
    answer: EvidenceAnswer | None = None,
    **more: Any,
) -> str:
    """Logs a finished run with the answer from its evidence, if it was read; returns its id. `more`: as in
    `run_record`.
    """
    record = run_record(trace.started, workspace, encoder, **more)
    log.start(record, workspace.documents, workspace.tables)
    for step in trace.steps:
        log.record(record.run_id, step)
    if trace.stopped is not None:
        log.record(record.run_id, trace.stopped)
    if answer is not None:
        log.attach(record.run_id, "answer", answer.to_json(), record.owner)
    if trace.started.method in SETS and trace.stopped is not None:
        log.attach(record.run_id, "set", set_detail(trace, workspace), record.owner)
    log.finish(record.run_id, "complete" if trace.stopped else "cancelled")
    return record.run_id


def set_detail(trace: Trace, workspace: Workspace) -> dict[str, Any]:
    """What the log takes beside a set of RES-RAG: its action, and the JSON-LD that an answer model may read,
    by document, since a logged document is its text alone.
    """
    return {
        "action": action_json(action_of(trace.chosen, workspace.borders)),
        "json_ld": metadata_json(workspace.documents, MAX_KEPT),
    }


def logged_json_ld(run: LoggedRun) -> tuple[str, ...]:
    """The JSON-LD that `set_detail` kept, by document; nothing where it is not of that shape: strangers bring
    logs.
    """
    told = run.details.get("set", {}).get("json_ld")
    n = len(run.record.document_hashes)
    return (
        tuple(text[:MAX_OF_DOCUMENT] for text in told)
        if isinstance(told, list) and len(told) == n and all(isinstance(text, str) for text in told)
        else ()
    )


_TEXT_LENGTHS = (2_000, 800, 300, 100, 0)
"""Characters of a retrieved text that a trace may keep where the whole is too long for the log; the documents
have all of it.
"""


def sparc_record(started: SparcStarted, workspace: Workspace, encoder: DualEncoder, **more: Any) -> RunRecord:
    """What the log must know when a SPARC run starts; `encoder`: the agent's. The step budget is the most
    chunks that its branches can retrieve.
    """
    config = started.config
    budget = max(1, min(len(workspace), config.width * config.depth * config.k))
    episode = EpisodeConfig(step_budget=budget, seed=config.seed)
    return run_record(
        RunStarted(started.question, SPARC, encoder.spec.name, len(workspace), episode),
        workspace,
        encoder,
        **more,
    )


def sparc_detail(trace: SparcTrace) -> dict[str, Any]:
    """The trace as the log takes it: of retrieved texts only the beginning where all of them are too much.
    Where even that is, attaching it says so.
    """
    value = trace.to_json()
    for length in _TEXT_LENGTHS:
        try:
            detail_json(SPARC, value)
        except LogError:
            value = _with_short_texts(trace, length).to_json()
        else:
            break
    return value


def _with_short_texts(trace: SparcTrace, length: int) -> SparcTrace:
    def shortened(event: Retrieved) -> Retrieved:
        return replace(event, found=tuple(replace(one, text=one.text[:length]) for one in event.found))

    return replace(
        trace,
        events=tuple(shortened(event) if isinstance(event, Retrieved) else event for event in trace.events),
    )


def log_sparc_end(
    log: RunLog,
    run_id: str,
    trace: SparcTrace,
    owner: str | None,
    status: FinalStatus,
    message: str | None = None,
) -> None:
    """The last of a SPARC run: its evidence, its whole trace, its answer, and how it
    ended. Raises LogError.
    """
    for event in evidence_steps(trace):
        log.record(run_id, event)
    try:
        if trace.stopped is not None:
            log.attach(run_id, "answer", sparc_answer(trace), owner)
        log.attach(run_id, "sparc", sparc_detail(trace), owner)
    finally:
        log.finish(run_id, status, message)


def sparc_answer(trace: SparcTrace) -> dict[str, Any]:
    """What was answered, by whom, how sure, and on which chunks."""
    branch = trace.chosen_branch
    citations = list(branch.answered.citations) if branch is not None and branch.answered is not None else []
    return {
        "text": trace.answer,
        "confidence": trace.confidence,
        "by": trace.started.agents,
        "citations": citations,
    }


def log_sparc(log: RunLog, trace: SparcTrace, workspace: Workspace, encoder: DualEncoder, **more: Any) -> str:
    """Logs a SPARC run that is over; returns its id. `encoder`: the agent's; `more`: as in `run_record`."""
    record = sparc_record(trace.started, workspace, encoder, **more)
    log.start(record, workspace.documents, workspace.tables)
    failed = trace.stopped is not None and trace.stopped.reason == "failed"
    status: FinalStatus = "failed" if failed else "complete" if trace.stopped else "cancelled"
    log_sparc_end(
        log,
        record.run_id,
        trace,
        record.owner,
        status,
        trace.stopped.message if failed and trace.stopped else None,
    )
    return record.run_id


def workspace_of_run(run: LoggedRun, documents: Sequence[LoggedDocument]) -> Workspace:
    """The workspace that a logged run searched. Raises LogError when a text or its chunk borders were not
    kept.
    """
    tables = [document.table for document in documents if document.table is not None]
    if len(tables) < len(documents):
        raise LogError(
            f"run {run.record.run_id} was logged without its chunk borders; open its documents again"
        )
    configs = [
        ChunkConfig(**values) if values["chunker"] != "given" else None for values in run.record.chunking
    ]
    return Workspace(tuple(document.document() for document in documents), tuple(tables), tuple(configs))


@dataclass(frozen=True)
class Replay:
    """A run made again: how it compares, and which vectors it used."""

    run_id: str
    report: ReplayReport
    logged_vectors: str
    used_vectors: str
    n_embedded_again: int
    """Chunks whose vectors were not in the cache any more."""
    same_weights: bool

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self) | {"holds": self.report.holds, "summary": self.report.summary}


def config_again(run: LoggedRun) -> EpisodeConfig:
    """The configuration with which a run goes again as it went, from its first step: what it kept of its
    parent is forced.
    """
    config = EpisodeConfig.from_json(run.record.config)
    if not run.record.fork_step:
        return config
    kept = tuple((step.step, step.chunk_id) for step in run.trace.steps[: run.record.fork_step])
    taken = {
        chunk_id for _, chunk_id in kept
    }  # one of them may have been forbidden since: it can't be chosen again anyway
    return config.with_(
        forced=(*kept, *(pair for pair in config.forced if pair[0] > len(kept))),
        forbidden=tuple(chunk_id for chunk_id in config.forbidden if chunk_id not in taken),
    )


def replay_run(
    run: LoggedRun,
    documents: Sequence[LoggedDocument],
    encoder: DualEncoder,
    on_progress: Progress | None = None,
    part: str = "",
) -> Replay:
    """Makes a run again with the same configuration, the kept steps of its parent and forced and forbidden
    chunks included.

    `part`: of the caches, see `core.opening`. Raises BadRequest for a SPARC run, which takes `replay_sparc`.
    """
    if run.record.method == RESRAG_LLM:
        raise BadRequest(
            f"run {run.record.run_id[:8]} was chosen by a language model, which may choose otherwise; ask it"
            " again"
        )
    if run.record.method == SPARC:
        raise BadRequest(
            f"run {run.record.run_id[:8]} is one of SPARC, which needs a reader to be made again; replay it"
            " with replay_sparc"
        )
    opened = index_workspace(workspace_of_run(run, documents), encoder, on_progress, part)
    retriever, _ = build_retriever(run.record.method, encoder, encoder)
    fresh = fold(retriever.retrieve(run.record.query, opened.corpus, config_again(run)))
    return _replay(run, compare_traces(run.trace, fresh), encoder, opened.n_embedded)


def replay_sparc(
    run: LoggedRun,
    documents: Sequence[LoggedDocument],
    encoder: DualEncoder,
    plain: DualEncoder,
    reader: Reader,
    on_progress: Progress | None = None,
    part: str = "",
) -> Replay:
    """Makes a SPARC run again: all of it where rules and the reader decided, else its searches alone, since a
    language model is not asked again.

    `encoder`: the agent's; `plain`: the untrained one. Raises LogError for a run without its branches,
    BadRequest for one of another method.
    """
    if run.record.method != SPARC:
        raise BadRequest(
            f"run {run.record.run_id[:8]} is one of {run.record.method}, not of SPARC; replay it with"
            " replay_run"
        )
    logged = sparc_trace_of(run)
    if logged is None:
        raise LogError(
            f"run {run.record.run_id[:8]} was logged without its branches; ask its question again with"
            " `sparc`"
        )
    workspace, corpora, n_embedded = workspace_of_run(run, documents), dict[str, Corpus](), 0

    def corpus_of(one: DualEncoder) -> Corpus:
        nonlocal n_embedded
        if one.vector_fingerprint not in corpora:
            opened = index_workspace(workspace, one, on_progress, part)
            corpora[one.vector_fingerprint], n_embedded = opened.corpus, n_embedded + opened.n_embedded
        return corpora[one.vector_fingerprint]

    config = logged.started.config
    retrievals = build_retrievals(config, encoder, plain, corpus_of)
    if decided_by_rules(logged):
        fresh = fold_sparc(
            run_sparc(
                logged.started.question,
                corpus_of(encoder),
                build_agents(None, reader, config),
                retrievals,
                config,
            )
        )
    else:
        fresh = fold_sparc(_searched_again(logged, event, retrievals) for event in logged.events)
    return _replay(run, compare_sparc(logged, fresh), encoder, n_embedded)


def _searched_again(logged: SparcTrace, event: SparcEvent, retrievals: Retrievals) -> SparcEvent:
    """The event with what its branch finds today, where it is a search."""
    if not isinstance(event, Retrieved):
        return event
    query = logged.rounds[event.round - 1].branches[event.branch - 1].query
    before = logged.rounds[event.round - 2].merged if event.round > 1 else None
    known = before.note.chunk_ids if before is not None else ()
    return replace(
        event, found=retrievals.search(query.strategy, query.query, logged.started.config.k, known)
    )


def _replay(run: LoggedRun, report: ReplayReport, encoder: DualEncoder, n_embedded: int) -> Replay:
    return Replay(
        run_id=run.record.run_id,
        report=report,
        logged_vectors=run.record.vectors,
        used_vectors=encoder.vector_fingerprint,
        n_embedded_again=n_embedded,
        same_weights=encoder.fingerprint == run.record.checkpoint_fingerprint,
    )


def training_record(folder: Path) -> Training:
    """A training's folder as the log keeps it, as far as it has come. Raises BadRequest when
    it holds none.
    """
    told = read_training_file(folder)
    return Training(
        training_id=told["training_id"],
        created_at=datetime.fromisoformat(told["created_at"]),
        folder=folder.name,
        config=told["config"],
        events=tuple(read_progress(folder)),
    )
