"""Secrets taken out of the environment.

There child processes and, on Linux, every process of the same user would find them. `os.environ.pop` only
hides a variable: the words that the process was started with stay where /proc/PID/environ reads them. Decides
that they are overwritten there. What started the process (a shell, make, a container's init) has an
environment of its own, out of reach from here.
"""

from __future__ import annotations

import ctypes
import os
import sys

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def wipe_variable(name: str) -> None:
    """Takes a variable out of the environment for good. To be called before there are threads."""
    if _LIBC is not None:
        _LIBC.getenv.restype, _LIBC.getenv.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
        if place := _LIBC.getenv(os.fsencode(name)):
            ctypes.memset(place, 0, len(ctypes.string_at(place)))
    os.environ.pop(name, None)
