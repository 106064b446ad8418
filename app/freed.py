"""Freed memory goes back to the system.

DuckDB, torch and JSON free pieces of all sizes on many threads; glibc keeps what lies between pieces still in use, and a server's memory creeps up
though nothing is held. Knows nothing of who freed what.
"""

from __future__ import annotations

import ctypes
import sys

_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


def give_back() -> None:
    """Returns whole free pages to the system; other C libraries than glibc do so by themselves."""
    if _TRIM is not None:
        _TRIM(0)
