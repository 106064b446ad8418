"""The one thread that writes.

A transaction has everything that waits when it begins, so an idle log commits a step at once and a busy one
many together. A work item that fails breaks its own run only: later events of that run are dropped, its end
is recorded as failed with the reason, and the next `flush` of that run raises it.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from core.base.errors import LogError
from core.runs.log.database import Connection, Database, explain

T = TypeVar("T")

QUEUE_ITEMS = 256
"""Most work items that wait; beyond it `submit` waits too, so that a slow disk can't fill the memory."""

BATCH_ITEMS = 32

MAX_FAILURES = 1_000
"""Runs whose failure waits for somebody to be told."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class QueuedWork:
    """Work for a transaction. With a future its caller waits; without, a failure breaks the run."""

    apply: Callable[[Connection], Any]
    run_id: str | None = None
    last: bool = False
    """The end of its run: applied even if the run is broken."""
    future: Future[Any] | None = None


class Writer:
    """Owns the thread and the queue."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: queue.Queue[QueuedWork | Future[None] | None] = queue.Queue(QUEUE_ITEMS)
        """A future asks for the log to be folded; None ends the thread."""
        self.broken: dict[str, str] = {}
        """By run why events of it are missing."""
        self._failures: dict[str | None, LogError] = {}
        """The first of each run since it was last taken."""
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work_off, name="experiment-log", daemon=True)
        self._thread.start()

    def submit(self, work: QueuedWork | Future[None]) -> None:
        """Queue work. Raises LogError once the writer is closed."""
        with self._closing:
            if self._closed:
                raise LogError("the experiment log is closed; open it again to log runs")
            self._queue.put(work)

    def call(self, apply: Callable[[Connection], T]) -> T:
        """Queue work and wait; its result, or what it raised."""
        future: Future[T] = Future()
        self.submit(QueuedWork(apply, future=future))
        return future.result()

    def fold(self) -> None:
        """Wait until all that was queued is committed and, where the disk has room, folded into the file."""
        folded: Future[None] = Future()
        self.submit(folded)
        folded.result()

    def take_failure(self, run_ids: Collection[str] | None) -> LogError | None:
        """The first failure since the last call, of some runs or of any."""
        failures = [
            self._failures.pop(key) for key in list(self._failures) if run_ids is None or key in run_ids
        ]
        return failures[0] if failures else None

    def close(self) -> None:
        """Finish what is queued and end the thread."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _work_off(self) -> None:
        open_ = True
        while open_:
            batch = [self._queue.get()]
            while len(batch) < BATCH_ITEMS and not self._queue.empty():
                batch.append(self._queue.get())
            open_ = None not in batch
            self._commit([item for item in batch if isinstance(item, QueuedWork)])
            waiting = [item for item in batch if isinstance(item, Future)]
            self._tidy(force=bool(waiting))
            for folded in waiting:
                folded.set_result(None)

    def _commit(self, batch: list[QueuedWork]) -> None:
        works = [work for work in batch if work.last or work.run_id not in self.broken]
        if not works:
            return
        try:
            results = self._database.write(lambda con: [work.apply(con) for work in works])
        except Exception as error:
            if len(works) == 1:
                self._fail(works[0], error)
            else:
                for work in works:
                    self._commit([work])
            return
        for work, result in zip(works, results, strict=True):
            if work.last and work.run_id is not None:
                self.broken.pop(work.run_id, None)
            if work.future is not None:
                work.future.set_result(result)

    def _fail(self, work: QueuedWork, error: Exception) -> None:
        failure = error if isinstance(error, LogError) else explain(error, self._database.path)
        if work.future is not None:
            work.future.set_exception(failure)
            return
        _logger.warning("run %s is not logged from here on: %s", work.run_id, failure)
        self._failures.setdefault(work.run_id, failure)
        for told_to_nobody in list(self._failures)[:-MAX_FAILURES]:
            del self._failures[told_to_nobody]
        if work.last and work.run_id is not None:
            self.broken.pop(work.run_id, None)
        elif work.run_id is not None:
            self.broken[work.run_id] = str(failure)

    def _tidy(self, *, force: bool) -> None:
        try:
            self._database.checkpoint_if_due(force=force)
            if force:
                self._database.rewrite_if_due()
        except Exception as error:
            _logger.warning("the log could not be tidied up: %s", error)
