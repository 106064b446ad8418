"""Between the log and the agent: the records of a run and of a training, logging a finished trace, and making a logged run again.

Decides what a record says about the encoder, and that a replay reads its documents and chunk borders from the log, its vectors from
the cache or, where they are gone, from the encoder. Knows nothing of SQL or pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from core.config import ChunkConfig, EpisodeConfig
from core.encode.encoder import DualEncoder
from core.errors import LogError
from core.events import RunStarted, Trace, fold
from core.experiments import LoggedDocument, LoggedRun, ReplayReport, RunLog, RunRecord, Training, compare_traces, new_run_id
from core.opening import Progress, index_workspace
from core.retrievers import build_retriever
from core.train.trainer import read_progress, read_training_file
from core.types import Workspace


def run_record(started: RunStarted, workspace: Workspace, encoder: DualEncoder, **more: Any) -> RunRecord:
    """What the log must know when a run starts. `more`: fields of RunRecord such as owner, parent_run_id, fork_step, label."""
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


def log_trace(log: RunLog, trace: Trace, workspace: Workspace, encoder: DualEncoder, **more: Any) -> str:
    """Logs a finished run; returns its id. `more`: as in `run_record`."""
    record = run_record(trace.started, workspace, encoder, **more)
    log.start(record, workspace.documents, workspace.tables)
    for step in trace.steps:
        log.record(record.run_id, step)
    if trace.stopped is not None:
        log.record(record.run_id, trace.stopped)
    log.finish(record.run_id, "complete" if trace.stopped else "cancelled")
    return record.run_id


def workspace_of_run(run: LoggedRun, documents: Sequence[LoggedDocument]) -> Workspace:
    """The workspace that a logged run searched. Raises LogError when a text or its chunk borders were not kept."""
    tables = [document.table for document in documents if document.table is not None]
    if len(tables) < len(documents):
        raise LogError(f"run {run.record.run_id} was logged without its chunk borders; open its documents again")
    configs = [ChunkConfig(**values) if values["chunker"] != "given" else None for values in run.record.chunking]
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
    """The configuration with which a run goes again as it went, from its first step: what it kept of its parent is forced."""
    config = EpisodeConfig.from_json(run.record.config)
    if not run.record.fork_step:
        return config
    kept = tuple((step.step, step.chunk_id) for step in run.trace.steps[: run.record.fork_step])
    taken = {chunk_id for _, chunk_id in kept}  # one of them may have been forbidden since: it can't be chosen again anyway
    return config.with_(
        forced=(*kept, *(pair for pair in config.forced if pair[0] > len(kept))),
        forbidden=tuple(chunk_id for chunk_id in config.forbidden if chunk_id not in taken),
    )


def replay_run(run: LoggedRun, documents: Sequence[LoggedDocument], encoder: DualEncoder, on_progress: Progress | None = None) -> Replay:
    """Makes a run again with the same configuration, the kept steps of its parent and forced and forbidden chunks included."""
    opened = index_workspace(workspace_of_run(run, documents), encoder, on_progress)
    retriever, _ = build_retriever(run.record.method, encoder, encoder)
    fresh = fold(retriever.retrieve(run.record.query, opened.corpus, config_again(run)))
    return Replay(
        run_id=run.record.run_id,
        report=compare_traces(run.trace, fresh),
        logged_vectors=run.record.vectors,
        used_vectors=encoder.vector_fingerprint,
        n_embedded_again=opened.n_embedded,
        same_weights=encoder.fingerprint == run.record.checkpoint_fingerprint,
    )


def training_record(folder: Path) -> Training:
    """A training's folder as the log keeps it, as far as it has come. Raises BadRequest when it holds none."""
    told = read_training_file(folder)
    return Training(
        training_id=told["training_id"],
        created_at=datetime.fromisoformat(told["created_at"]),
        folder=folder.name,
        config=told["config"],
        events=tuple(read_progress(folder)),
    )
