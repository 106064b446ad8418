"""Eight visitors who press Step at once, in public mode.

Each on a page of their own. Three measures of a visitor's share: by the CPU, how long the server's CPU
seconds for such a step take at an eighth of the cores; the same with everything that a step brings beside
others, its part of an answer and of the log's work counted; and by the clock, what a step takes when nobody
else is there, times the visitors, over the cores, which is less where a step alone uses more than one core.
Times are a page's: from the click until the last change that the step makes has come. A step that ends its
run does more, since the agent reviews its choices, so these are counted apart, too. Then the page asks for
the answer and its visitor waits for that, too, before the next click: its times stand in rows of their own,
its work is done beside the steps of the others. The clients take their part of the same cores, which no share
counts.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import Row
from benchmarks.memory import questions
from benchmarks.serving import served_app
from tests.app.raw_page import RawPage

STEPS = 24
"""Of each visitor, with nobody else and with all others."""
BUDGET = 4
"""Steps of a run; the next step begins another."""
WANTED = 2.0
"""p95 over the share."""
ANY, GOES_ON, ENDS, ANSWER = (
    "any step",
    "a step that goes on",
    "a step that ends its run",
    "the answer of a run",
)
KINDS = {ANY: (GOES_ON, ENDS), GOES_ON: (GOES_ON,), ENDS: (ENDS,), ANSWER: (ANSWER,)}


@dataclass(frozen=True)
class Wait:
    """What one click or answer took."""

    kind: str
    seconds: float
    cpu: float
    """Seconds of the server's CPU in that time, for whomever."""


@dataclass
class Visitor:
    """A page, and what its visitor waited for."""

    page: RawPage
    pid: int
    """The server's."""
    asked: Iterator[str]
    waits: list[Wait] = field(default_factory=list)

    def walk(self, n: int) -> list[Wait]:
        """Takes `n` steps, the waits before forgotten."""
        self.waits = []
        question = ""
        for step in range(n):
            question = next(self.asked) if step % BUDGET == 0 else question
            press = partial(
                self.page.press, "qx-step", qx_question=question, qx_budget=BUDGET, qx_stops=False
            )
            came = self._wait(ENDS if (step + 1) % BUDGET == 0 else GOES_ON, press)
            if f"step {step % BUDGET + 1} of" not in came:
                raise RuntimeError(f"the page did not come to step {step % BUDGET + 1}: {came[-500:]}")
            self._wait(ANSWER, partial(self.page.follow, came))
        return self.waits

    def _wait(self, kind: str, act: Callable[[], str]) -> str:
        began, cpu = time.perf_counter(), cpu_seconds(self.pid)
        came = act()
        if came:
            self.waits.append(Wait(kind, time.perf_counter() - began, cpu_seconds(self.pid) - cpu))
        return came


def rows(n: int = 8) -> list[Row]:
    """`n`: visitors."""
    with served_app("--public") as app:
        visitors = [Visitor(RawPage(app.url), app.pid, questions()) for _ in range(n)]
        for visitor in visitors:
            visitor.page.load(secrets.token_hex(16))
            visitor.walk(BUDGET)
        alone = visitors[0].walk(STEPS)
        cpu = cpu_seconds(app.pid)
        with ThreadPoolExecutor(n) as clicking:
            together = [
                wait
                for waits in clicking.map(lambda visitor: visitor.walk(STEPS), visitors)
                for wait in waits
            ]
        cpu = (cpu_seconds(app.pid) - cpu) / (n * STEPS)
    rows = [
        Row(f"{ANY} beside {n - 1} others, the server's CPU with answers and log, mean", 1000 * cpu, "ms")
    ]
    everything = n / (os.cpu_count() or 1) * cpu
    for what, kinds in KINDS.items():
        mine = [wait for wait in alone if wait.kind in kinds]
        by_clock, by_cpu = (
            n / (os.cpu_count() or 1) * each
            for each in (np.median([wait.seconds for wait in mine]), np.mean([wait.cpu for wait in mine]))
        )
        p50, p95 = np.percentile([wait.seconds for wait in together if wait.kind in kinds], [50, 95]).tolist()
        rows += [
            Row(
                f"{what} with nobody else, median",
                1000 * float(np.median([wait.seconds for wait in mine])),
                "ms",
            ),
            Row(
                f"{what} with nobody else, the server's CPU, mean",
                1000 * float(np.mean([wait.cpu for wait in mine])),
                "ms",
            ),
            Row(f"{what} beside {n - 1} others, p50", 1000 * p50, "ms", "a share by the CPU", p50 / by_cpu),
            Row(
                f"{what} beside {n - 1} others, p95 (wanted: at most {WANTED:g} shares)",
                1000 * p95,
                "ms",
                "a share by the CPU",
                p95 / by_cpu,
            ),
            Row(
                f"{what} beside {n - 1} others, p95",
                1000 * p95,
                "ms",
                "a share by the CPU, answers and log counted",
                p95 / everything,
            ),
            Row(
                f"{what} beside {n - 1} others, p95", 1000 * p95, "ms", "a share by the clock", p95 / by_clock
            ),
        ]
    return rows


def cpu_seconds(pid: int) -> float:
    """Of a process and all its threads so far, to a hundredth."""
    fields = (
        Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    )
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
