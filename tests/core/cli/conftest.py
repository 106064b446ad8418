"""Commands as functions: what they print, and the sentence with which they refuse; data sets made by the
generators.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.cli import main
from tests.core.tasks.conftest import data  # noqa: F401

Output = Callable[..., str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Caches and log of this test alone."""
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def core(capsys: pytest.CaptureFixture[str]) -> Output:
    """`core("evaluate", ...)`: what a command prints to stdout. Fails on another exit status than 0."""

    def call(*argv: object) -> str:
        status = main([str(part) for part in argv])
        out, err = capsys.readouterr()
        assert status == 0, err
        return out

    return call


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Output:
    """`refused("evaluate", ...)`: the sentence of a command that exits with 2 and prints nothing else."""

    def call(*argv: object) -> str:
        status = main([str(part) for part in argv])
        out, err = capsys.readouterr()
        assert (status, out) == (2, ""), (status, out, err)
        assert len(err.splitlines()) == 1, err
        return err

    return call
