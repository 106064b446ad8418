"""A fresh log for each test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.runs.log import ExperimentLog
from tests.core.runs.log.recording import empty_log

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.duckdb"


@pytest.fixture
def log(path: Path) -> Iterator[ExperimentLog]:
    path.write_bytes(empty_log())
    with ExperimentLog.open(path) as log:
        yield log


class Owner:
    """Another process that owns the log at `path`."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", "tests.core.runs.log.owner", str(path)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._answer() == "open"

    def ask(self, command: str) -> str:
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        return self.process.stdout.readline().strip()


@pytest.fixture
def owner(path: Path) -> Iterator[Owner]:
    owner = Owner(path)
    yield owner
    owner.process.kill()
    owner.process.communicate()
