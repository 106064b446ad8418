"""Records of finished runs, and the logging of them.

A SPARC run lies in the log as its final evidence, a step a chunk in the order in which branches first
retrieved it, with its whole trace beside it as detail "sparc" and its outcome as detail "answer".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

from core.answer.evidence import EvidenceAnswer, answer_evidence, found_order
from core.answer.metadata import MAX_KEPT, MAX_OF_DOCUMENT, metadata_json, metadata_lines
from core.answer.protocol import Reader
from core.base.config import SETS, EpisodeConfig
from core.base.errors import LogError
from core.base.events import RunStarted, Trace
from core.base.types import Workspace
from core.corpus.context import context
from core.encode.encoder import DualEncoder
from core.methods.registry import facts_of
from core.methods.resrag.action import action_json, action_of
from core.methods.sparc.events import Retrieved, SparcEvent, SparcStarted
from core.methods.sparc.retriever import SPARC, evidence_steps
from core.methods.sparc.trace import SparcTrace
from core.runs.log import FinalStatus, LoggedRun, RunLog, RunRecord, new_run_id
from core.runs.log.records import DetailName, detail_json


def run_record(started: RunStarted, workspace: Workspace, encoder: DualEncoder, **more: Any) -> RunRecord:
    """What the log must know when a run starts. `more`: such as owner, parent_run_id, fork_step, label."""
    configs = workspace.configs or (None,) * len(workspace.documents)
    return RunRecord(
        run_id=new_run_id(),
        method=started.method,
        query=started.query,
        config=started.config.to_json(),
        chunking=[{"chunker": "given"} if config is None else asdict(config) for config in configs],
        checkpoint=encoder.spec.name,
        checkpoint_fingerprint=encoder.fingerprint,
        vectors="" if facts_of(started.method).foreign else encoder.vector_fingerprint,
        document_hashes=tuple(document.sha256 for document in workspace.documents),
        n_chunks=len(workspace),
        seed=started.config.seed,
        **more,
    )


def answers_to(
    reader: Reader, traces: Sequence[Trace], workspaces: Sequence[Workspace]
) -> list[EvidenceAnswer]:
    """What a reader finds in the evidence of each run, and in the JSON-LD of a set's documents. workspaces:
    what each run searched.
    """
    runs = list(zip(traces, workspaces, strict=True))
    return answer_evidence(
        reader,
        [trace.started.query for trace in traces],
        [{i: workspace[i].text for i in trace.evidence} for trace, workspace in runs],
        [found_order(trace) for trace in traces],
        [metadata_lines(searched.documents) if run.started.method in SETS else [] for run, searched in runs],
        [{i: context(workspace, i) for i in trace.evidence} for trace, workspace in runs],
    )


def log_trace(
    log: RunLog,
    trace: Trace,
    workspace: Workspace,
    encoder: DualEncoder,
    answer: EvidenceAnswer | None = None,
    details: Mapping[DetailName, dict[str, Any]] = MappingProxyType({}),
    **more: Any,
) -> str:
    """Logs a finished run, with its answer if it was read; returns its id. `more`: as in `run_record`."""
    record = run_record(trace.started, workspace, encoder, **more)
    log.start(record, workspace.documents, workspace.tables)
    for step in trace.steps:
        log.record(record.run_id, step)
    if trace.stopped is not None:
        log.record(record.run_id, trace.stopped)
    beside = dict(details)
    if answer is not None:
        beside["answer"] = answer.to_json()
    if trace.started.method in SETS and trace.stopped is not None:
        beside["set"] = set_detail(trace, workspace)
    for name, value in beside.items():
        log.attach(record.run_id, name, value, record.owner)
    log.finish(record.run_id, "complete" if trace.stopped else "cancelled")
    return record.run_id


def set_detail(trace: Trace, workspace: Workspace) -> dict[str, Any]:
    """What the log takes beside a set of RES-RAG: its action, and the JSON-LD of each document, which an
    answer model may read and a logged document has not.
    """
    action = action_json(action_of(trace.chosen, workspace.borders))
    return {"action": action, "json_ld": metadata_json(workspace.documents, MAX_KEPT)}


def logged_json_ld(run: LoggedRun) -> tuple[str, ...]:
    """The JSON-LD that `set_detail` kept, by document; nothing where a stranger's log has another shape."""
    json_ld = run.details.get("set", {}).get("json_ld")
    n = len(run.record.document_hashes)
    if isinstance(json_ld, list) and len(json_ld) == n and all(isinstance(text, str) for text in json_ld):
        return tuple(text[:MAX_OF_DOCUMENT] for text in json_ld)
    return ()


_TEXT_LENGTHS = (2_000, 800, 300, 100, 0)
"""Characters of a retrieved text that a trace keeps where the whole is too long for the log."""


def sparc_record(started: SparcStarted, workspace: Workspace, encoder: DualEncoder, **more: Any) -> RunRecord:
    """What the log must know when a SPARC run starts; its step budget is all that branches can retrieve."""
    config = started.config
    budget = max(1, min(len(workspace), config.width * config.depth * config.k))
    episode = EpisodeConfig(step_budget=budget, seed=config.seed)
    as_one = RunStarted(started.question, SPARC, encoder.spec.name, len(workspace), episode)
    return run_record(as_one, workspace, encoder, **more)


def sparc_detail(trace: SparcTrace) -> dict[str, Any]:
    """The trace as the log takes it: of retrieved texts only the beginning where all of them are too much."""
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
    def shortened(event: SparcEvent) -> SparcEvent:
        if not isinstance(event, Retrieved):
            return event
        return replace(event, found=tuple(replace(one, text=one.text[:length]) for one in event.found))

    return replace(trace, events=tuple(map(shortened, trace.events)))


def log_sparc_end(
    log: RunLog,
    run_id: str,
    trace: SparcTrace,
    owner: str | None,
    status: FinalStatus,
    message: str | None = None,
) -> None:
    """The last of a SPARC run: evidence, whole trace, answer, and how it ended. Raises LogError."""
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
        "state": "answer" if trace.answer else "absent",
        "text": trace.answer,
        "confidence": trace.confidence,
        "by": trace.started.agents,
        "citations": citations,
    }


def log_sparc(log: RunLog, trace: SparcTrace, workspace: Workspace, encoder: DualEncoder, **more: Any) -> str:
    """Logs a SPARC run that is over; returns its id. `encoder`: the agent's; `more`: as in `run_record`."""
    record = sparc_record(trace.started, workspace, encoder, **more)
    log.start(record, workspace.documents, workspace.tables)
    status: FinalStatus = "complete" if trace.stopped else "cancelled"
    message: str | None = None
    if trace.stopped is not None and trace.stopped.reason == "failed":
        status, message = "failed", trace.stopped.message
    log_sparc_end(log, record.run_id, trace, record.owner, status, message)
    return record.run_id
