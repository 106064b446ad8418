"""Commands as functions: what they print, and the sentence with which they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.cli import main
from tests.core.lab.tasks.conftest import data  # noqa: F401

Output = Callable[..., str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Caches and log of this test alone."""
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def argv(*parts: object, **flags: object) -> list[str]:
    """A command's words: `argv("trace", "x", step_budget=2, json=True)` for `trace x --step-budget 2 --json`."""
    words = [*parts]
    for name, value in flags.items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [value])]
    return [str(word) for word in words]


@pytest.fixture
def core(capsys: pytest.CaptureFixture[str]) -> Output:
    """`core("evaluate", ...)`: what a command prints to stdout. Fails on another exit status than 0."""

    def call(*parts: object, **flags: object) -> str:
        status = main(argv(*parts, **flags))
        out, err = capsys.readouterr()
        assert status == 0, err
        return out

    return call


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Output:
    """`refused("evaluate", ...)`: the sentence of a command that exits with 2 and prints nothing else."""

    def call(*parts: object, **flags: object) -> str:
        status = main(argv(*parts, **flags))
        out, err = capsys.readouterr()
        assert (status, out) == (2, ""), (status, out, err)
        assert len(err.splitlines()) == 1, err
        return err

    return call
