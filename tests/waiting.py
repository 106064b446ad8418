"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], bool]) -> None:
    """Until it is so; fails where that takes longer than half a minute."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.005)
