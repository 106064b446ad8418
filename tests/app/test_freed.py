"""Heaps of a process, as glibc counts them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from tests.core.runs.log.conftest import ROOT

_COUNT = """
import ctypes, sys, tempfile, threading
from app.freed import give_back, share_heaps

if sys.argv[1] == "shared":
    share_heaps()
barrier = threading.Barrier(6)
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]

def work():
    barrier.wait()
    libc.malloc(50_000)
    barrier.wait()

threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
give_back()
libc.fopen.restype = ctypes.c_void_p
libc.malloc_info.argtypes, libc.fclose.argtypes = [ctypes.c_int, ctypes.c_void_p], [ctypes.c_void_p]
with tempfile.NamedTemporaryFile() as file:
    out = libc.fopen(file.name.encode(), b"w")
    libc.malloc_info(0, out)
    libc.fclose(out)
    print(file.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other heaps")
def test_threads_share_two_heaps() -> None:
    counted = {}
    for how in ("shared", "own"):
        environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
        command = [sys.executable, "-c", _COUNT, how]
        counted[how] = int(
            subprocess.run(
                command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
            ).stdout
        )
    assert counted["shared"] == 2
    assert counted["own"] > 2
