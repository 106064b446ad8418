"""Eight visitors who press Step at once, each on a page of their own, against the app in public mode.

A visitor's fair share of the machine is what a step takes when nobody else is there, times the visitors, over the cores. Times are a page's:
from the click until the last change that the step makes has come. Where a step has ended its run, the page asks for the answer and its visitor
waits for that, too, before the next click: its times stand in a row of their own, its work is done beside the steps of the others.
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

STEPS = 16
"""Of each visitor, with nobody else and with all others."""
BUDGET = 4
"""Steps of a run; the next step begins another."""
WANTED = 2.0
"""p95 over the share."""
SHARE = "a fair share of the cores"


@dataclass
class Visitor:
    """A page and what its visitor waited for."""

    page: RawPage
    asked: Iterator[str]
    steps: list[float] = field(default_factory=list)
    """Seconds of each."""
    answers: list[float] = field(default_factory=list)
    """Seconds of each."""

    def walk(self, n: int) -> None:
        """Takes `n` steps, the ones before forgotten."""
        self.steps.clear()
        self.answers.clear()
        question = ""
        for step in range(n):
            question = next(self.asked) if step % BUDGET == 0 else question
            began = time.perf_counter()
            came = self.page.press("qx-step", qx_question=question, qx_budget=BUDGET, qx_stops=False)
            over = time.perf_counter()
            self.steps.append(over - began)
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
        alone, alone_answer = float(np.median(visitors[0].steps)), float(np.median(visitors[0].answers))
        with ThreadPoolExecutor(n) as clicking:
            list(clicking.map(lambda visitor: visitor.walk(STEPS), visitors))
    share, answer_share = (seconds * n / (os.cpu_count() or 1) for seconds in (alone, alone_answer))
    p50, p95 = np.percentile([seconds for visitor in visitors for seconds in visitor.steps], [50, 95]).tolist()
    answer = float(np.percentile([seconds for visitor in visitors for seconds in visitor.answers], 95))
    return [
        Row("a step with nobody else, median", 1000 * alone, "ms"),
        Row(f"a step beside {n - 1} others, p50", 1000 * p50, "ms", SHARE, p50 / share),
        Row(f"a step beside {n - 1} others, p95 (wanted: at most {WANTED:g} shares)", 1000 * p95, "ms", SHARE, p95 / share),
        Row("the answer of a run with nobody else, median", 1000 * alone_answer, "ms"),
        Row(f"the answer of a run beside {n - 1} others, p95", 1000 * answer, "ms", SHARE, answer / answer_share),
    ]
