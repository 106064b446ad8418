"""Work that takes long, as a generator of its progress.

What it comes to is the generator's value. Whoever follows it closes the generator to end the work.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator
from contextlib import closing
from typing import TypeVar

from core.base.errors import Cancelled

P = TypeVar("P")
Q = TypeVar("Q")
R = TypeVar("R")


def mapped(work: Generator[P, None, R], change: Callable[[P], Q]) -> Generator[Q, None, R]:
    """The same work with other progress; `change` ends it by raising."""
    with closing(work):
        while True:
            try:
                progress = next(work)
            except StopIteration as end:
                result: R = end.value
                return result
            yield change(progress)


def finish(work: Generator[P, None, R], hear: Callable[[P], object] = lambda _: None) -> R:
    """What work comes to. `hear` gets its progress, and ends it by raising."""
    heard = mapped(work, hear)
    while True:
        try:
            next(heard)
        except StopIteration as end:
            result: R = end.value
            return result


def reported(work: Callable[[Callable[[P], None]], R]) -> Generator[P, None, R]:
    """Work that reports through a callback, done in a thread. Once closed, the callback raises `Cancelled`
    inside it, and its end is waited for.
    """
    reports: queue.SimpleQueue[P | None] = queue.SimpleQueue()
    closed = threading.Event()
    outcome: list[R] = []
    failure: list[BaseException] = []

    def report(progress: P) -> None:
        if closed.is_set():
            raise Cancelled
        reports.put(progress)

    def run() -> None:
        try:
            outcome.append(work(report))
        except BaseException as error:  # handed on, whatever it is
            failure.append(error)
        finally:
            reports.put(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while (progress := reports.get()) is not None:
            yield progress
    finally:
        closed.set()
        thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
