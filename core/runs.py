"""Between the log and the agent: the record of a run, logging a finished trace, and making a logged run again.

Decides what a record says about the encoder, and that a replay reads its documents and chunk borders from the log, its vectors from
the cache or, where they are gone, from the encoder. Knows nothing of SQL or pages.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from core.config import EpisodeConfig
from core.encode.cache import text_keys
from core.encode.encoder import DualEncoder
from core.errors import LogError
from core.events import RunStarted, Trace, fold
from core.experiments import LoggedRun, RunLog, RunRecord, new_run_id
from core.experiments.replay import compare_traces
from core.opening import Progress, index_workspace, vector_store
from core.retrievers import build_retriever
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


def log_trace(log: RunLog, trace: Trace, workspace: Workspace, encoder: DualEncoder) -> str:
    """Logs a finished run; returns its id."""
    record = run_record(trace.started, workspace, encoder)
    log.start(record, workspace.documents, workspace.tables)
    for event in (*trace.steps, *([trace.stopped] if trace.stopped else [])):
        log.record(record.run_id, event)
    log.finish(record.run_id, "complete" if trace.stopped else "cancelled")
    return record.run_id


def workspace_of_run(run: LoggedRun, documents: Any) -> Workspace:
    """The workspace that a logged run searched. `documents`: its LoggedDocuments. Raises LogError when a text or table was not kept."""
    tables = [document.table for document in documents]
    if any(table is None for table in tables):
        raise LogError(f"run {run.record.run_id} was logged without its chunk borders; open its documents again")
    return Workspace(tuple(document.document() for document in documents), tuple(table for table in tables if table is not None))


def replay_run(run: LoggedRun, documents: Any, encoder: DualEncoder, on_progress: Progress | None = None) -> dict[str, Any]:
    """Makes a run again with the same configuration, forced and forbidden chunks included, and compares choices and Q of all chunks.

    The result says which vectors were used: how many of the chunks' vectors came from the cache, and whether the encoder is the same.
    """
    workspace = workspace_of_run(run, documents)
    store = vector_store(encoder)
    found, _ = store.read(text_keys(workspace.texts()))
    retriever, reader = build_retriever(run.record.method, encoder, encoder)
    corpus = index_workspace(workspace, reader, on_progress).corpus
    config = EpisodeConfig.from_json(run.record.config)
    kept = tuple(step.chunk_id for step in run.trace.steps[: run.record.fork_step or 0])
    config = config.with_(forced=(*((step, chunk_id) for step, chunk_id in enumerate(kept, start=1)), *config.forced)) if kept else config
    fresh = fold(retriever.retrieve(run.record.query, corpus, config))
    report = compare_traces(run.trace, fresh)
    vectors = "cached" if found.all() else f"{int(np.count_nonzero(~found))} of {len(workspace)} chunks embedded again"
    return {
        "run_id": run.record.run_id,
        **report.to_json(),
        "vectors": {
            "logged": run.record.vectors,
            "used": encoder.vector_fingerprint,
            "source": vectors,
            "same_encoder": encoder.fingerprint == run.record.checkpoint_fingerprint,
        },
    }
