"""Small runs to log: what the tests of the log, and the processes they start, have in common."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from core.base.config import EpisodeConfig
from core.base.events import StepScores, StepTaken, Stopped
from core.base.types import ChunkTable, Document
from core.runs.log import ExperimentLog, RunLog, RunRecord, new_run_id

N_CHUNKS = 50
DOCUMENT = Document(
    "Handbook", " ".join(f"Sentence {number} of the handbook." for number in range(N_CHUNKS)), "text"
)


@cache
def empty_log() -> bytes:
    """The file of a log without runs; one that is there already is opened and closed in two thirds the time."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "log.duckdb")
        ExperimentLog.open(path).close()
        return path.read_bytes()


def chunk_table(n_chunks: int = N_CHUNKS) -> ChunkTable:
    """A table whose chunks are 25 characters long and follow each other."""
    start = np.arange(n_chunks, dtype=np.int64) * 25
    return ChunkTable(
        start=start,
        end=start + 25,
        n_tokens=np.full(n_chunks, 6, np.int32),
        type_code=(np.arange(n_chunks) % 3).astype(np.uint8),
        heading_code=np.zeros(n_chunks, np.int32),
        heading_paths=(("Part", "=Section"),),
    )


def make_record(**changes: Any) -> RunRecord:
    values: dict[str, Any] = {
        "run_id": new_run_id(),
        "method": "qrag",
        "query": "Where is the milk?",
        "config": EpisodeConfig(step_budget=8, forced=((1, 2),)).to_json(),
        "chunking": [{"chunker": "sentences", "max_tokens": 64}],
        "checkpoint": "base",
        "checkpoint_fingerprint": "0123abcd",
        "vectors": "float16 0123abcd",
        "document_hashes": (DOCUMENT.sha256,),
        "n_chunks": N_CHUNKS,
        "seed": 7,
    }
    return RunRecord(**{**values, **changes})


def q_values(run_id: str, step: int, n_chunks: int = N_CHUNKS) -> np.ndarray:
    """(n_chunks,) float32 that belong to this step of this run and to no other.

    The largest stands at another chunk in each of the first n_chunks steps, since no run picks a chunk twice.
    """
    seed = int.from_bytes(hashlib.sha256(f"{run_id} {step}".encode()).digest()[:8], "big")
    scores = np.random.default_rng(seed).standard_normal(n_chunks).astype(np.float32)
    first = hashlib.sha256(run_id.encode()).digest()[0]
    best, pick = int(scores.argmax()), (first + step) % n_chunks
    scores[[best, pick]] = scores[[pick, best]]
    return scores


def step_taken(run_id: str, step: int, n_chunks: int = N_CHUNKS, text: str = "A chunk.") -> StepTaken:
    scores = q_values(run_id, step, n_chunks)
    chunk_id = int(scores.argmax())
    return StepTaken(
        step,
        chunk_id,
        float(scores[chunk_id]),
        1.0,
        float(scores[chunk_id]),
        0.5,
        text,
        1.5,
        scores=StepScores(scores, None),
    )


def stopped(run_id: str, n_steps: int) -> Stopped:
    """The end of a run that fell below its threshold, with the scores of the last look."""
    scores = q_values(run_id, n_steps + 1)
    return Stopped("threshold", n_steps, 3, float(scores[3]), 0.7, scores=StepScores(scores, None))


def log_run(
    log: RunLog, record: RunRecord, n_steps: int = 3, first_step: int = 1, text: str = "A chunk."
) -> RunRecord:
    log.start(record, [DOCUMENT], [chunk_table()])
    for step in range(first_step, n_steps + 1):
        log.record(record.run_id, step_taken(record.run_id, step, text=text))
    log.record(record.run_id, stopped(record.run_id, n_steps))
    log.finish(record.run_id, "complete")
    log.flush()
    return record
