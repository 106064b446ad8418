"""Eight visitors who press Step at once, in public mode, each on a page of their own.

A visitor's share by the CPU: how long the server's CPU seconds for such a step take at an eighth of the
cores; the same with a step's part of answers and of the log's work; and by the clock, what a step takes when
nobody else is there, times the visitors, over the cores. Times are a page's, from the click until the last
change has come. A step that ends its run is counted apart, too, since the agent reviews its choices then.
Before the next click the visitor waits for the answer. The clients take their part of the same cores, which
no share counts. Wanted: a p95 of 2 shares by the CPU.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from benchmarks import Row, cpu_seconds
from benchmarks.serving import served_app
from tests.app.raw_page import RawPage

STEPS = 24
"""Of each visitor, with nobody else and with all others."""
BUDGET = 4
"""Steps of a run; the next step begins another."""
ANY, ANSWER = "any step", "the answer of a run"
GOES_ON, ENDS = "a step that goes on", "a step that ends its run"
WORDS = "where was the blanket before chapel who carried lantern to mill after ferry left bridge boat"
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
            values = {"qx_question": question, "qx_budget": BUDGET, "qx_stops": False}
            kind = ENDS if (step + 1) % BUDGET == 0 else GOES_ON
            came = self._wait(kind, partial(self.page.press, "qx-step", **values))
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
        visitors = [Visitor(RawPage(app.url), app.pid, _questions()) for _ in range(n)]
        for visitor in visitors:
            visitor.page.load(secrets.token_hex(16))
            visitor.walk(BUDGET)
        alone = visitors[0].walk(STEPS)
        cpu = cpu_seconds(app.pid)
        with ThreadPoolExecutor(n) as clicking:
            walked = clicking.map(lambda visitor: visitor.walk(STEPS), visitors)
            together = [wait for waits in walked for wait in waits]
        cpu = (cpu_seconds(app.pid) - cpu) / (n * STEPS)
    beside, cores = f"beside {n - 1} others", n / (os.cpu_count() or 1)
    rows = [Row(f"{ANY} {beside}, the server's CPU with answers and log, mean", 1000 * cpu, "ms")]
    for name, kinds in KINDS.items():
        mine = [wait for wait in alone if wait.kind in kinds]
        median, mean = np.median([wait.seconds for wait in mine]), np.mean([wait.cpu for wait in mine])
        p50, p95 = np.percentile([wait.seconds for wait in together if wait.kind in kinds], [50, 95]).tolist()
        shares = {
            "a share by the CPU": mean,
            "a share by the CPU, answers and log counted": cpu,
            "a share by the clock": median,
        }
        rows += [
            Row(f"{name} with nobody else, median", 1000 * float(median), "ms"),
            Row(f"{name} with nobody else, the server's CPU, mean", 1000 * float(mean), "ms"),
            *(
                Row(f"{name} {beside}, {which}", 1000 * taken, "ms", against, taken / cores / float(seconds))
                for which, taken in (("p50", p50), ("p95", p95))
                for against, seconds in shares.items()
            ),
        ]
    return rows


def _questions() -> Iterator[str]:
    """Without end, the same ones every time, of 4 to 20 words."""
    rng = random.Random(0)
    while True:
        yield " ".join(rng.choices(WORDS.split(), k=rng.randint(4, 20))) + "?"
