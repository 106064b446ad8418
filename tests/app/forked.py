"""Servers and commands as processes that need not import anything: forks of one process which did, and in which nothing else ever ran.

What a start imports takes ten seconds of a core; a test that asks for none of it starts its server so. Every other step is that of `python app.py` and
`python -m core`, and the process is as real: it can be killed. Where the start itself is tested, or the environment that others read in /proc, it is
the interpreter's own (`imported=False` of `start_process`).
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.app.imports"])


class Forked:
    """As much of `subprocess.Popen` as servers need."""

    def __init__(self, run: Callable[..., None], arguments: tuple[str, ...], environment: dict[str, str], output: Path, errors: Path | None = None) -> None:
        self._process: ForkServerProcess = FORKS.Process(target=_begin, args=(run, arguments, environment, output, errors or output), daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _begin(run: Callable[..., None], arguments: tuple[str, ...], environment: dict[str, str], output: Path, errors: Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    for stream, path in ((1, output), (2, errors)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, stream)
        os.close(file)
    run(*arguments)


def serve(*flags: str) -> None:
    """`python app.py`."""
    sys.argv = ["app.py", *flags]
    runpy.run_path("app.py", run_name="__main__")


def command(*arguments: str) -> None:
    """`python -m core`."""
    from core.cli import main

    sys.exit(main(list(arguments)))
