"""Who works, and whether anybody still listens."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from core.base.errors import Cancelled
from core.llm.protocol import never

T = TypeVar("T")

_PULSE = 1.0
"""Seconds of silence after which the listener is asked whether it is still there."""


class Idle(threading.Event):
    """Set but while something is done `with` it: `wait` tells whether what was at work has ended by then."""

    def __init__(self) -> None:
        super().__init__()
        self.set()

    def __enter__(self) -> None:
        self.clear()

    def __exit__(self, *_: object) -> None:
        self.set()


class Pulse(Generic[T]):
    """Tells a listener how far work is, also while a language model is silent; it may raise Cancelled."""

    def __init__(
        self, report: Callable[[T], None], cancelled: Callable[[], bool] = never, last: T | None = None
    ) -> None:
        """last: what is told again before anything was told; None: nothing."""
        self._report, self._cancelled, self._last = report, cancelled, last
        self._told_at = time.monotonic()
        self._over = False

    def report(self, item: T) -> None:
        """Raises what the listener raises."""
        self._last, self._told_at = item, time.monotonic()
        self._report(item)

    def is_over(self) -> bool:
        """What work asks all the time, from several threads."""
        if self._last is not None and time.monotonic() - self._told_at > _PULSE:
            try:
                self.report(self._last)
            except Cancelled:
                self._over = True
        return self._over or self._cancelled()
