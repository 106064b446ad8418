"""A long text opened again, to its first step: words kept on disk, against words counted anew.

Novels of --n tokens, ten million by default. Their vectors are random and written straight into the cache:
embedding them takes minutes, and what reopening costs doesn't depend on them. The model is loaded before, as
on a running server. Both ways take turns; medians of five.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from unittest.mock import patch

import numpy as np

from benchmarks import Row, median_times
from benchmarks.first_step import measure
from benchmarks.prose import novels
from core.base.home import cache_folder
from core.corpus.opening import chunk_documents, vector_store
from core.encode.cache import text_keys
from core.encode.encoder import load_encoder
from core.ingest import read_document
from core.methods.qrag.agent import Agent

REPEATS = 5
KEPT, COUNTED = "reopened, words kept", "reopened, words counted anew"


def rows(n: int = 10_000_000) -> list[Row]:
    """Seconds of both, on the wall and of the processors, and the stages of the first."""
    data = novels(n)
    agent = Agent(load_encoder("general"))
    agent.encoder.encode_chunks(["warm up"])
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, {"QRAG_HOME": home}):
        workspace = chunk_documents([read_document(data, "book.txt")], agent.encoder)
        vectors = np.random.default_rng(0).standard_normal((len(workspace), agent.encoder.dim), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        vector_store(agent.encoder).append(text_keys(workspace.texts()), vectors)
        stages: list[dict[str, float]] = []

        def counted() -> None:
            shutil.rmtree(cache_folder("words"), ignore_errors=True)
            measure(data, agent)

        seconds = median_times({COUNTED: counted, KEPT: lambda: stages.append(measure(data, agent))}, REPEATS)
        on_disk = sum(path.stat().st_size for path in cache_folder("words").iterdir())
    was, is_ = seconds[COUNTED], seconds[KEPT]
    return [
        Row("text", workspace.n_tokens, "tokens"),
        Row("text", len(workspace), "chunks"),
        Row(COUNTED, was.wall, "s"),
        Row(COUNTED, was.processors, "CPU s"),
        Row(KEPT, is_.wall, "s", COUNTED, is_.wall / was.wall),
        Row(KEPT, is_.processors, "CPU s", COUNTED, is_.processors / was.processors),
        *(
            Row(f"{KEPT}: {stage}", statistics.median(each[stage] for each in stages), "s")
            for stage in stages[0]
        ),
        Row("words on disk", on_disk / 1e6, "MB", "text", on_disk / len(data)),
    ]
