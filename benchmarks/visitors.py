"""Eight visitors who press Step at once, each on a page of their own, against the app in public mode.

A visitor's fair share of the machine is what a step takes when nobody else is there, times the visitors, over the cores. Times are a page's:
from the click until the last change of the page has come.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

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


def rows(n: int = 8) -> list[Row]:
    """`n`: visitors."""
    with served_app("--public") as app:
        pages = [(RawPage(app.url), questions()) for _ in range(n)]
        for page, asked in pages:
            page.load(secrets.token_hex(16))
            _steps(page, asked, BUDGET)
        alone = float(np.median(_steps(*pages[0])))
        with ThreadPoolExecutor(n) as visitors:
            together = np.concatenate(list(visitors.map(lambda visitor: _steps(*visitor), pages)))
    share = alone * n / (os.cpu_count() or 1)
    p50, p95 = np.percentile(together, [50, 95]).tolist()
    return [
        Row("a step with nobody else, median", 1000 * alone, "ms"),
        Row(f"a step beside {n - 1} others, p50", 1000 * p50, "ms", "a fair share of the cores", p50 / share),
        Row(f"a step beside {n - 1} others, p95 (wanted: at most {WANTED:g} shares)", 1000 * p95, "ms", "a fair share of the cores", p95 / share),
    ]


def _steps(page: RawPage, asked: Iterator[str], n: int = STEPS) -> list[float]:
    """Seconds of each."""
    seconds, question = [], ""
    for step in range(n):
        question = next(asked) if step % BUDGET == 0 else question
        began = time.perf_counter()
        came = page.press("qx-step", qx_question=question, qx_budget=BUDGET, qx_stops=False)
        seconds.append(time.perf_counter() - began)
        if f"step {step % BUDGET + 1} of" not in came:
            raise RuntimeError(f"the page did not come to step {step % BUDGET + 1}: {came[-500:]}")
    return seconds
