"""The README's Python runs, and its commands exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from core.base.config import RESRAG_LLM
from core.cli import main
from core.methods.registry import ALL_METHODS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.campaign
def test_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 3


@pytest.mark.parametrize("command", sorted(set(re.findall(r"python -m core ([a-z-]+)", README))))
def test_commands_exist(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"python -m core {command}" in capsys.readouterr().out


def test_the_command_that_compares_names_every_method() -> None:
    (names,) = re.findall(r"core compare .* --methods (\S+)", README)
    assert names.split(",") == [name for name in ALL_METHODS if name != RESRAG_LLM]  # that one needs a model


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(([\w./-]+)\)|\((assets/[\w.]+)\)", README))))
def test_linked_files_exist(path: tuple[str, str]) -> None:
    assert (ROOT / (path[0] or path[1])).exists()
