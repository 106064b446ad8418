"""Twenty visitors for half an hour, in public mode.

Each opens a page, which opens the first sample, makes some runs on it step by step, waits for each answer,
closes the page and comes back with another; none ever thinks. What the app answers with a mistake, or not at
all, is an error; the visitor opens a new page then. The half hour begins once every visitor's first page is
open: an app that has just started embeds the sample for them. Memory is the server's own, without pages of
files. The clients take their part of the same cores.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import numpy as np

from benchmarks import Row
from benchmarks.memory import questions, resident
from benchmarks.serving import Served, served_app
from benchmarks.visitors import ANSWER, ANY, BUDGET, KINDS, Visitor, Wait, cpu_seconds
from tests.app.raw_page import RawPage

VISITORS = 20
RUNS = 5
"""On one page."""
START_SECONDS = 600.0
"""Until the last visitor's first page is open, at most."""


@dataclass
class Seen:
    """What one visitor met with."""

    pages: list[float] = field(default_factory=list)
    """Seconds until each behind the first was open."""
    waits: list[Wait] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def rows(n: int = 30) -> list[Row]:
    """`n`: minutes."""
    seen = [Seen() for _ in range(VISITORS)]
    over, all_in = threading.Event(), threading.Barrier(VISITORS + 1)
    with served_app("--public") as app, ThreadPoolExecutor(VISITORS) as visiting:
        done = [visiting.submit(_visit, app, one, all_in, over) for one in seen]
        with _ended(over, all_in):
            all_in.wait(START_SECONDS)
            memory, busy, cpu = [resident(app.pid)], [], cpu_seconds(app.pid)
            began = time.perf_counter()
            for half_minutes in range(1, 2 * n + 1):
                over.wait(30)
                busy.append(os.getloadavg()[0])
                if half_minutes == n:
                    memory.append(resident(app.pid))
            cpu = cpu_seconds(app.pid) - cpu
            cores = cpu / (time.perf_counter() - began)
            memory.append(resident(app.pid))
        for one in done:
            one.result()
    pages = [seconds for one in seen for seconds in one.pages]
    waits = [wait for one in seen for wait in one.waits]
    errors = [error for one in seen for error in one.errors]
    print(*sorted({*errors}), sep="\n", file=sys.stderr)
    steps = [wait.seconds for wait in waits if wait.kind in KINDS[ANY]]
    answers = [wait.seconds for wait in waits if wait.kind == ANSWER]
    return [
        Row(f"{VISITORS} visitors", n, "minutes"),
        Row("pages opened, steps and answers", len(pages) + len(waits), "requests"),
        Row("of these steps", len(steps), "requests"),
        Row("errors", len(errors), "requests"),
        *_times("a step", steps),
        *_times("an answer, behind its run", answers),
        *_times("a page with its document", pages),
        Row("a step, the server's CPU with pages, answers and log, mean", 1000 * cpu / len(steps), "ms"),
        Row("resident memory, start", memory[0], "MB"),
        Row("resident memory, middle", memory[1], "MB", "start", memory[1] / memory[0]),
        Row("resident memory, end", memory[2], "MB", "middle", memory[2] / memory[1]),
        Row(
            "cores that the server had, mean", cores, "cores", "the machine's", cores / (os.cpu_count() or 1)
        ),
        Row("processes that want a core (load average), mean", float(np.mean(busy)), "processes"),
    ]


def _times(what: str, seconds: list[float]) -> list[Row]:
    return [
        Row(f"{what}, {name}", 1000 * float(np.quantile(seconds, share)), "ms")
        for name, share in (("median", 0.5), ("p95", 0.95), ("worst", 1.0))
        if seconds
    ]


@contextmanager
def _ended(over: threading.Event, all_in: threading.Barrier) -> Iterator[None]:
    """Visitors leave whatever happens."""
    try:
        yield
    finally:
        over.set()
        all_in.abort()


def _visit(app: Served, seen: Seen, all_in: threading.Barrier, over: threading.Event) -> None:
    key, asked, first = secrets.token_hex(16), questions(), True
    while not over.is_set():
        began = time.perf_counter()
        try:
            page = RawPage(app.url)
            with page.heartbeat():
                page.load(key)
                if first:
                    all_in.wait(START_SECONDS)
                    first = False
                else:
                    seen.pages.append(time.perf_counter() - began)
                visitor = Visitor(page, app.pid, asked)
                for _ in range(RUNS):
                    if not over.is_set():
                        seen.waits += visitor.walk(BUDGET)
        except (httpx.HTTPError, RuntimeError) as error:
            seen.errors.append(f"{type(error).__name__}: {error!s:.300}")
