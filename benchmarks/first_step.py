"""Seconds from opening a 1 MB book to the first step.

Cold and from the caches, and the share of each stage. The book is a real novel where the data sets are, else
a generated story of that size. The model is loaded before the clock starts, as in the app.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import time
from unittest.mock import patch

from benchmarks import DATA, Row
from core.encode.encoder import load_encoder
from core.events import StepTaken
from core.ingest import read_document
from core.opening import open_corpus
from core.qrag.agent import Agent
from core.tasks.narrative import generate_narrative

BOOK = DATA / "books" / "eval" / "Trollope_Angel_1881.txt.gz"
N_BYTES = 1_050_000


def rows() -> list[Row]:
    """Stages of a cold and of a cached opening, each followed by one step."""
    data = (
        gzip.decompress(BOOK.read_bytes())[:N_BYTES]
        if BOOK.exists()
        else generate_narrative(240_000).text.encode()
    )
    agent = Agent(load_encoder())
    agent.encoder.encode_chunks(["warm up"])
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, {"QRAG_HOME": home}):
        cold, cached = measure(data, agent), measure(data, agent)
    total = {name: sum(stages.values()) for name, stages in (("cold", cold), ("cached", cached))}
    return [
        Row("cold", total["cold"], "s"),
        Row("cached", total["cached"], "s", "cold", total["cached"] / total["cold"]),
        *(
            Row(f"cold: {stage}", seconds, "s", "all of cold", seconds / total["cold"])
            for stage, seconds in cold.items()
        ),
        *(
            Row(f"cached: {stage}", seconds, "s", "all of cached", seconds / total["cached"])
            for stage, seconds in cached.items()
        ),
    ]


def measure(data: bytes, agent: Agent) -> dict[str, float]:
    """Seconds of each stage, the first step last."""
    began = time.perf_counter()
    document = read_document(data, "book.txt")
    read = time.perf_counter()
    opened = open_corpus([document], agent.encoder)
    stepping = time.perf_counter()
    for event in agent.run(
        "Who inherits the house?", opened.corpus, agent.spec.episode_config(step_budget=1)
    ):
        if isinstance(event, StepTaken):
            break
    step = time.perf_counter() - stepping
    return {
        "reading": read - began,
        **{stage: milliseconds / 1000 for stage, milliseconds in opened.milliseconds.items()},
        "first step": step,
    }
