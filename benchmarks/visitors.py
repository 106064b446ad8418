"""Eight visitors who press Step at once, each on a page of their own, against the app in public mode.

A visitor's fair share of the machine is what a step takes when nobody else is there, times the visitors, over the cores. Times are a page's:
from the click until the last change that the step makes has come. A step that ends its run does more, since the agent reviews its choices, so these are
counted apart, too. Then the page asks for the answer and its visitor waits for that, too, before the next click: its times stand in rows of their own, its
work is done beside the steps of the others.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

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
SHARE = "a fair share of the cores"
WAITS = ("any step", "a step that goes on", "a step that ends its run", "the answer of a run")


@dataclass
class Visitor:
    """A page and what its visitor waited for."""

    page: RawPage
    asked: Iterator[str]
    steps: list[float] = field(default_factory=list)
    """Seconds of each that goes on."""
    ends: list[float] = field(default_factory=list)
    """Seconds of each that ends its run."""
    answers: list[float] = field(default_factory=list)
    """Seconds of each."""

    def waits(self) -> tuple[list[float], ...]:
        """Seconds by kind, as in WAITS."""
        return self.steps + self.ends, self.steps, self.ends, self.answers

    def walk(self, n: int) -> None:
        """Takes `n` steps, the ones before forgotten."""
        for times in (self.steps, self.ends, self.answers):
            times.clear()
        question = ""
        for step in range(n):
            question = next(self.asked) if step % BUDGET == 0 else question
            began = time.perf_counter()
            came = self.page.press("qx-step", qx_question=question, qx_budget=BUDGET, qx_stops=False)
            over = time.perf_counter()
            (self.ends if (step + 1) % BUDGET == 0 else self.steps).append(over - began)
            if f"step {step % BUDGET + 1} of" not in came:
                raise RuntimeError(f"the page did not come to step {step % BUDGET + 1}: {came[-500:]}")
            if self.page.follow(came):
                self.answers.append(time.perf_counter() - over)


def rows(n: int = 8) -> list[Row]:
    """`n`: visitors."""
    with served_app("--public") as app:
        visitors = [Visitor(RawPage(app.url), questions()) for _ in range(n)]
        for visitor in visitors:
            visitor.page.load(secrets.token_hex(16))
            visitor.walk(BUDGET)
        visitors[0].walk(STEPS)
        alone = [float(np.median(times)) for times in visitors[0].waits()]
        with ThreadPoolExecutor(n) as clicking:
            list(clicking.map(lambda visitor: visitor.walk(STEPS), visitors))
    rows = []
    for what, median, *waits in zip(WAITS, alone, *(visitor.waits() for visitor in visitors), strict=True):
        share = median * n / (os.cpu_count() or 1)
        p50, p95 = np.percentile(np.concatenate(waits), [50, 95]).tolist()
        rows += [
            Row(f"{what} with nobody else, median", 1000 * median, "ms"),
            Row(f"{what} beside {n - 1} others, p50", 1000 * p50, "ms", SHARE, p50 / share),
            Row(f"{what} beside {n - 1} others, p95 (wanted: at most {WANTED:g} shares)", 1000 * p95, "ms", SHARE, p95 / share),
        ]
    return rows
