"""Seconds from opening a 1 MB book, or a longer text, to the first step.

Cold and from the caches, and the share of each stage; most memory of the process, model and all, and what the
caches hold on disk. The model is loaded before the clock starts, as in the app.
"""

from __future__ import annotations

import resource
import time

from benchmarks import Row, empty_home
from benchmarks.prose import novels
from core.base.events import StepTaken
from core.base.progress import finish
from core.corpus.opening import open_corpus
from core.encode.encoder import load_encoder
from core.ingest import read_document
from core.methods.qrag.agent import Agent


def rows(n: int = 256_000) -> list[Row]:
    """Stages of a cold and of a cached opening of about `n` tokens, each followed by one step."""
    data = novels(n)
    agent = Agent(load_encoder("general"))
    agent.encoder.encode_chunks(["warm up"])
    agent.encoder.warm_up()
    with empty_home() as home:
        stages = {name: _measure(data, agent) for name in ("cold", "cached")}
        on_disk = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    total = {name: sum(seconds.values()) for name, seconds in stages.items()}
    return [
        Row("text", len(data) / 1e6, "MB"),
        Row("cold", total["cold"], "s"),
        Row("cached", total["cached"], "s", "cold", total["cached"] / total["cold"]),
        Row("most memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MB"),
        Row("caches on disk", on_disk / 1e6, "MB", "text", on_disk / len(data)),
        *(
            Row(f"{name}: {stage}", taken, "s", f"all of {name}", taken / total[name])
            for name, seconds in stages.items()
            for stage, taken in seconds.items()
        ),
    ]


def _measure(data: bytes, agent: Agent) -> dict[str, float]:
    """Seconds of each stage, the first step last."""
    began = time.perf_counter()
    document = read_document(data, "book.txt")
    read = time.perf_counter()
    opened = finish(open_corpus([document], agent.encoder))
    stepping = time.perf_counter()
    config = agent.spec.episode_config(step_budget=1)
    for event in agent.run("Who inherits the house?", opened.corpus, config):
        if isinstance(event, StepTaken):
            break
    step = time.perf_counter() - stepping
    return {
        "reading": read - began,
        **{stage: milliseconds / 1000 for stage, milliseconds in opened.milliseconds.items()},
        "first step": step,
    }
