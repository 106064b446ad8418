"""Long work behind a generator."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from app.pages.widgets.work import stream
from core.base.errors import Cancelled
from core.base.progress import finish


def test_progress_then_result() -> None:
    def work(report: Callable[[int], None]) -> str:
        for i in range(5):
            report(i)
            time.sleep(0.02)
        return "done"

    seen = list[int]()
    assert finish(stream(work, every=0.01), seen.append) == "done"
    assert seen
    assert seen == sorted(seen)


def test_closing_stops_the_work_at_its_next_report() -> None:
    stopped = threading.Event()

    def work(report: Callable[[int], None]) -> None:
        try:
            for i in range(10_000):
                report(i)
                time.sleep(0.005)
        except Cancelled:
            stopped.set()
            raise

    items = stream(work, every=0.01)
    next(items)
    items.close()
    assert stopped.wait(5)
