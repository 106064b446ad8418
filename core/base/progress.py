"""Long work as a generator of its progress; closing ends it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import closing
from typing import Generic, TypeVar

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


class InThread(Generic[P, R]):
    """Work that reports through a callback, begun in a thread of its own."""

    def __init__(self, work: Callable[[Callable[[P], None]], R]) -> None:
        self.reports: queue.SimpleQueue[P | None] = queue.SimpleQueue()
        """None behind the last one."""
        self._work, self._closed = work, threading.Event()
        self._outcome: Future[R] = Future()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """From now on the callback raises `Cancelled` inside the work."""
        self._closed.set()

    def result(self) -> R:
        """What the work came to, once it has ended, to be asked for once. Raises what it raised."""
        outcome = self._outcome
        del self._outcome  # else an error and the frames that it names would keep each other in memory
        try:
            return outcome.result()
        finally:
            del outcome

    def _run(self) -> None:
        try:
            self._outcome.set_result(self._work(self._report))
        except BaseException as error:  # handed on, whatever it is
            self._outcome.set_exception(error)
        finally:
            self.reports.put(None)

    def _report(self, progress: P) -> None:
        if self._closed.is_set():
            raise Cancelled
        self.reports.put(progress)


def reported(work: Callable[[Callable[[P], None]], R]) -> Generator[P, None, R]:
    """Work that reports through a callback, done in a thread. Once closed, its end is waited for."""
    begun = InThread(work)
    try:
        while (progress := begun.reports.get()) is not None:
            yield progress
    finally:
        begun.close()
        begun.thread.join()
    return begun.result()
