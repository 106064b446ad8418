"""The app in a process of its own for measurements.

On a free port, with a home folder that is gone afterwards.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_START_SECONDS = 120.0


@dataclass(frozen=True)
class Served:
    """A server that answers."""

    url: str
    pid: int


@contextmanager
def served_app(*flags: str) -> Iterator[Served]:
    """`python app.py FLAGS` until the block ends. Raises RuntimeError with what it printed when it does not
    answer.
    """
    with tempfile.TemporaryDirectory() as home, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        output = Path(home, "app.out")
        with output.open("wb") as file:
            command = [sys.executable, "app.py", "--port", str(port), *flags]
            process = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, "QRAG_HOME": home}, stdout=file, stderr=file
            )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, process, output)
            yield Served(url, process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _wait_for(url: str, process: subprocess.Popen[bytes], output: Path) -> None:
    began = time.monotonic()
    while time.monotonic() - began < _START_SECONDS and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the app did not answer: {output.read_text(errors='replace')[-2000:]}")
