"""Seconds of a question, alone and while half of the cores have other work.

Once with the app's setting of how long threads of torch wait awake, once with OpenMP's own; each in a process
of its own, since OpenMP reads it once.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import core
from benchmarks import Row, empty_home
from core.base.home import ROOT

QUESTIONS = ("Where does the Alder begin?", "Who keeps the lock?", "Why was the mill closed?")
SETTINGS = {"as set": os.environ["GOMP_SPINCOUNT"], "OpenMP's own": "300000"}
MEASURED = "from benchmarks.neighbours import seconds; print(seconds())"


def rows() -> list[Row]:
    """Alone and beside others, for each setting."""
    measured = []
    for name, spins in SETTINGS.items():
        alone = _in_a_process(spins)
        with _neighbours():
            beside = _in_a_process(spins)
        measured.append(Row(f"alone, {name}", alone, "s"))
        measured.append(Row(f"beside other work, {name}", beside, "s", "alone", beside / alone))
    return measured


def seconds() -> float:
    """Median over QUESTIONS to a sample, each asked three times."""
    with empty_home():
        book = core.open(ROOT / "sample_docs" / "river-chronicle.txt")
        taken = []
        for question in QUESTIONS[:1] + QUESTIONS * 3:
            began = time.perf_counter()
            book.ask(question)
            taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])  # the first warms up


def _in_a_process(spins: str) -> float:
    environ = os.environ | {"GOMP_SPINCOUNT": spins}
    command = [sys.executable, "-c", MEASURED]
    return float(subprocess.run(command, env=environ, check=True, capture_output=True, cwd=ROOT).stdout)


@contextmanager
def _neighbours() -> Iterator[None]:
    busy = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(busy, start_new_session=True) for _ in range((os.cpu_count() or 2) // 2)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
