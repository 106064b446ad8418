"""Long work for a Gradio generator.

Runs in a thread, hands its progress to the generator, stops when the generator is closed. The worker reports
through a callback; once the listener is gone, the callback raises `Cancelled` inside the worker. What the
worker has stored by then stays.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Generic, TypeVar

from core.base.errors import Cancelled

P = TypeVar("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Finished(Generic[R]):
    """Last item of a stream of progress: what the work returned."""

    result: R


def stream(work: Callable[[Callable[[P], None]], R], every: float = 0.2) -> Generator[P | Finished[R]]:
    """The latest progress at most once in `every` seconds, then `Finished`. Raises what the work raises."""
    reports: queue.SimpleQueue[P] = queue.SimpleQueue()
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
        except BaseException as error:  # handed to the listener, whatever it is
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(every)
            latest = None
            while not reports.empty():
                latest = reports.get()
            if latest is not None and thread.is_alive():
                yield latest
    finally:
        closed.set()
    if failure:
        raise failure[0]
    yield Finished(outcome[0])
