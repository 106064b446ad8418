"""Work on a thread of its own, read item by item.

A caller who cancels waits for nothing, neither a name to be looked up nor a model's next token: the thread is
left to end by itself, and whoever started the work tells it to.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from core.llm.protocol import LlmCancelled

T = TypeVar("T")

LOOK_EVERY = 0.1
"""Seconds between looks whether the caller has cancelled."""


@dataclass(frozen=True)
class _Ended:
    error: BaseException | None = None


def from_thread(
    work: Callable[[Callable[[T], None]], None], cancelled: Callable[[], bool], seconds: float
) -> Generator[T]:
    """What `work` puts, as it comes. Raises as `work` does, LlmCancelled, TimeoutError after `seconds`."""
    items: queue.SimpleQueue[T | _Ended] = queue.SimpleQueue()

    def run() -> None:
        try:
            work(items.put)
            items.put(_Ended())
        except BaseException as error:  # handed to the caller, whatever it is
            items.put(_Ended(error))

    threading.Thread(target=run, daemon=True).start()
    deadline = time.monotonic() + seconds
    while True:
        if cancelled():
            raise LlmCancelled
        if time.monotonic() > deadline:
            raise TimeoutError
        try:
            item = items.get(timeout=LOOK_EVERY)
        except queue.Empty:
            continue
        if not isinstance(item, _Ended):
            yield item
        elif item.error is None:
            return
        else:
            raise item.error


def pause(seconds: float, cancelled: Callable[[], bool]) -> None:
    """Waits. Raises LlmCancelled."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if cancelled():
            raise LlmCancelled
        time.sleep(min(left, LOOK_EVERY))
