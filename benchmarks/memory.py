"""Megabytes that a hundred runs leave behind.

From the 200th run on, when caches and kernels are warm: core alone, with the log, the app. Each part runs in
a process of its own, whose resident memory is read from /proc every 50 runs, of the app when it has rested
for a moment: five seconds after something was logged it copies the log for readers. What it grows by is the
slope of the straight line nearest to these readings, since memory still goes up and down; twice the standard
error of that slope stands beside it. All runs are over the first sample, each with a question of its own, of
4 to 20 words. `page` presses Run on one page that stays open, and has each run's answer read; `HTTP` calls
`run_agent` without a page.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import httpx
import numpy as np

from benchmarks import Row
from benchmarks.serving import ROOT, served_app
from tests.app.raw_page import RawPage

WARM = 200
"""Runs before memory counts."""
EVERY = 50
"""Runs between two readings."""
REST_SECONDS = 7.0
"""Before the app's memory is read."""
WANTED = 1.0
"""MB per 100 runs."""
PARTS = {"core": "core", "log": "core with log", "page": "app, page", "http": "app, HTTP"}
"""What `python -m benchmarks.memory PART N` measures alone."""
SAMPLE = "river-chronicle.txt"
_WORDS = (
    "where",
    "was",
    "the",
    "blanket",
    "before",
    "chapel",
    "who",
    "carried",
    "lantern",
    "to",
    "mill",
    "after",
    "ferry",
    "left",
    "bridge",
    "woman",
    "boat",
)


def rows(n: int = 1_000) -> list[Row]:
    """`n`: runs that count, after the first 200; a multiple of 50, at least 200."""
    growth = {name: _in_a_process(part, n) for part, name in PARTS.items()}
    return [
        Row(f"{name}, per 100 runs (± {error:.1f} MB)", megabytes, "MB", "wanted", megabytes / WANTED)
        for name, (megabytes, error) in growth.items()
    ]


def questions() -> Iterator[str]:
    """Without end, the same ones every time."""
    rng = random.Random(0)
    while True:
        yield " ".join(rng.choices(_WORDS, k=rng.randint(4, 20))) + "?"


def resident(pid: int | str = "self") -> float:
    """Resident memory of a process in MB, without pages of files, which the system takes and gives back as it
    likes.
    """
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def growth_per_100(
    run: Callable[[str], object], pid: int | str, n: int, rest: float = 0.0
) -> tuple[float, float]:
    """MB per 100 of the `n` runs behind the first 200, and twice its standard error; `rest`: seconds before a
    reading.
    """
    asked, readings = questions(), []
    for n_runs in [WARM, *[EVERY] * (n // EVERY)]:
        for question in islice(asked, n_runs):
            run(question)
        time.sleep(rest)
        readings.append(resident(pid))
        print(f"{readings[-1]:.1f} MB", file=sys.stderr, flush=True)
    line, covariance = np.polyfit(np.arange(len(readings)), readings, 1, cov=True)
    return float(line[0]) * 100 / EVERY, 2 * float(np.sqrt(covariance[0, 0])) * 100 / EVERY


def _in_a_process(part: str, n: int) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.memory", part, str(n)]
    growth, error = subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    return float(growth), float(error)


def _of_app(runs: Callable[[str], Callable[[str], object]], n: int) -> tuple[float, float]:
    with served_app() as app:
        return growth_per_100(runs(app.url), app.pid, n, REST_SECONDS)


def _by_page(url: str) -> Callable[[str], object]:
    page = RawPage(url)
    page.load("")
    return lambda question: page.follow(page.press("qx-run", qx_question=question))


def _by_http(url: str) -> Callable[[str], object]:
    http = httpx.Client(base_url=f"{url}/gradio_api/call/v2", timeout=120)

    def call(name: str, **values: object) -> str:
        event = http.post(f"/{name}", json=values).raise_for_status().json()["event_id"]
        return http.get(f"/{name}/{event}").raise_for_status().text

    document_id = call("open_document", sample=SAMPLE).partition('"document_id": "')[2].partition('"')[0]
    return lambda question: call("run_agent", document_id=document_id, query=question)


def _measure(part: str, n: int) -> tuple[float, float]:
    return (
        _of_app(_by_page if part == "page" else _by_http, n)
        if part in ("page", "http")
        else _of_core(part, n)
    )


def _of_core(part: str, n: int) -> tuple[float, float]:
    """In this process; what it logs goes to a folder that is gone afterwards."""
    from core.base.events import fold
    from core.corpus.opening import open_corpus
    from core.encode.encoder import load_encoder
    from core.ingest import read_document
    from core.lab.tasks.samples import SAMPLE_FOLDER
    from core.methods.qrag.agent import Agent
    from core.runs.again.records import log_trace
    from core.runs.log import ExperimentLog

    encoder = load_encoder()
    corpus = open_corpus([read_document((SAMPLE_FOLDER / SAMPLE).read_bytes(), SAMPLE)], encoder).corpus
    agent, config = Agent(encoder), encoder.spec.episode_config()
    with tempfile.TemporaryDirectory() as folder:
        log = ExperimentLog.open(Path(folder, "log.duckdb")) if part == "log" else None

        def run(question: str) -> None:
            trace = fold(agent.run(question, corpus, config))
            if log is not None:
                log_trace(log, trace, corpus.workspace, encoder)
                log.flush()

        growth = growth_per_100(run, "self", n)
        if log is not None:
            log.close()
    return growth


if __name__ == "__main__":
    print(*_measure(sys.argv[1], int(sys.argv[2])))
