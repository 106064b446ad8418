"""Who goes first at the processors.

Work that somebody waits for goes before what is embedded for later, which waits for it, though not for good.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_WAIT = 2.0
"""Seconds that a batch waits: so embedding goes on, slowly, beside evaluations and busy people."""

_changed = threading.Condition()
_n_urgent = 0


@contextmanager
def urgent() -> Iterator[None]:
    """Work that somebody waits for."""
    global _n_urgent
    with _changed:
        _n_urgent += 1
    try:
        yield
    finally:
        with _changed:
            _n_urgent -= 1
            _changed.notify_all()


def give_way(most: float = LONGEST_WAIT) -> None:
    """Returns once nothing is urgent, or after `most` seconds."""
    with _changed:
        _changed.wait_for(lambda: not _n_urgent, most)
