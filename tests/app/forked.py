"""Servers and commands as processes that need not import anything: forks of one process which did, and in
which nothing else ever ran.

What a start imports takes ten seconds of a core; a test that asks for none of it starts its server so. Every
other step is that of `python app.py` and `python -m core`, and the process is as real: it can be killed.
Where the start itself is tested, or the environment that others read in /proc, it is the interpreter's own
(`imported=False` of `start_process`). All workers of a run share the process that imported: the one that
started them has it (`share`), and forks for them.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import wait
from multiprocessing.managers import BaseManager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.app.imports"])
SHARED = "QRAG_TEST_FORKS"
"""Environment variable: where to ask for forks, and the key to it; not set where there is but one process
that tests.
"""

Run = Callable[..., None]


class _Child:
    """A fork, in the process that forks. Threads of several workers may hold it."""

    _lock = threading.Lock()
    """multiprocessing reads how a process ended off a pipe, once, and looks at all of them whenever one
    begins.
    """

    def __init__(
        self, run: Run, arguments: tuple[str, ...], environment: dict[str, str], output: Path, errors: Path
    ) -> None:
        with self._lock:
            self._process = FORKS.Process(
                target=_begin, args=(run, arguments, environment, output, errors), daemon=True
            )
            self._process.start()

    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def ended(self, timeout: float = 0) -> int | None:
        """How it ended, None while it lives after `timeout` seconds."""
        wait([self._process.sentinel], timeout)
        with self._lock:
            return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


class _Forks(BaseManager):
    """Makes `_Child`ren in a process for others."""


_Forks.register("Child", _Child, exposed=("pid", "ended", "terminate", "kill"))


def share() -> None:
    """Lets processes that this one starts from now on have their forks made here."""
    key = secrets.token_bytes(16)
    server = _Forks(authkey=key).get_server()
    threading.Thread(target=server.serve_forever, name="forks", daemon=True).start()
    os.environ[SHARED] = f"{server.address} {key.hex()}"


@cache
def _shared(where: str) -> type[_Child]:
    address, key = where.rsplit(" ", 1)
    forks = _Forks(address, bytes.fromhex(key))
    forks.connect()
    made: type[_Child] = forks.Child  # type: ignore[attr-defined]
    return made


class Forked:
    """As much of `subprocess.Popen` as servers need."""

    def __init__(
        self,
        run: Run,
        arguments: tuple[str, ...],
        environment: dict[str, str],
        output: Path,
        errors: Path | None = None,
    ) -> None:
        where = os.environ.get(SHARED)
        self._child = (_shared(where) if where else _Child)(
            run, arguments, environment, output, errors or output
        )
        self.pid = self._child.pid()

    def poll(self) -> int | None:
        return self._child.ended()

    def wait(self, timeout: float) -> int:
        code = self._child.ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout)
        return code

    def terminate(self) -> None:
        self._child.terminate()

    def kill(self) -> None:
        self._child.kill()


def forked_command(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m core ...`."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        process = Forked(command, arguments, environment, output, errors)
        return subprocess.CompletedProcess(
            arguments, process.wait(300), output.read_text(), errors.read_text()
        )


def _begin(
    run: Run, arguments: tuple[str, ...], environment: dict[str, str], output: Path, errors: Path
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    # as in an interpreter of its own; semaphores made for forks outlive a process that is killed
    multiprocessing.set_start_method(None, force=True)
    for stream, path in ((1, output), (2, errors)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, stream)
        os.close(file)
    run(*arguments)


def serve(*flags: str) -> None:
    """`python app.py`."""
    sys.argv = ["app.py", *flags]
    runpy.run_path("app.py", run_name="__main__")


def start_without_serving() -> None:
    """All that `python app.py` does but to serve: prints the libraries that this imported."""
    from app.build import build_app
    from app.services import Services
    from app.settings import Settings

    services = Services(Settings())
    build_app(services)
    services.agents.load(services.agents.default_checkpoint)
    for thread in threading.enumerate():
        if thread.name.startswith("warm-up"):
            thread.join()
    print(*sorted({module.partition(".")[0] for module in sys.modules}), sep="\n", flush=True)
    services.close()
    os._exit(0)


def command(*arguments: str) -> None:
    """`python -m core`."""
    from core.cli import main

    sys.exit(main(list(arguments)))
