"""Freed memory goes back to the system.

DuckDB, torch and JSON free pieces of all sizes on many threads; glibc keeps what lies between pieces still in
use, and a server's memory creeps up though nothing is held. It gives every thread a heap of its own, up to
eight for each core, and in heaps that threads which come and go have left few pages are ever free as a whole:
beside other work 700 runs took 36 MB so, with two heaps nothing.
"""

from __future__ import annotations

import ctypes
import os
import sys

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_TRIM, _SET = getattr(_LIBC, "malloc_trim", None), getattr(_LIBC, "mallopt", None)
_ARENA_MAX = -8
"""M_ARENA_MAX of malloc.h."""
_HEAPS = 2


def share_heaps() -> None:
    """Lets all threads share two heaps unless MALLOC_ARENA_MAX is set; before there are threads."""
    if _SET is not None and "MALLOC_ARENA_MAX" not in os.environ:
        _SET(_ARENA_MAX, _HEAPS)


def give_back() -> None:
    """Returns whole free pages to the system; other C libraries than glibc do so by themselves."""
    if _TRIM is not None:
        _TRIM(0)
