"""Frameworks that are too heavy for every run: an environment that sees this one and has one package more."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
OPTIONS = ("-p", "no:cacheprovider", "-o", "asyncio_mode=auto")
"""The last is for pytest-asyncio, where it is: LangChain's tests are run with it."""


def example(heading: str) -> str:
    """The one example of docs/interfaces.md under a heading."""
    page = (ROOT / "docs" / "interfaces.md").read_text(encoding="utf-8")
    [section] = re.findall(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    [code] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return code


def beside_an_excerpt(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goes to a folder where the examples find the beginning of their sample."""
    whole = (ROOT / "sample_docs" / "river-chronicle.txt").read_text(encoding="utf-8")
    (folder / "sample_docs").mkdir()
    (folder / "sample_docs" / "river-chronicle.txt").write_text(whole[:1_500], encoding="utf-8")
    monkeypatch.chdir(folder)


def run_elsewhere(package: str, file: str, folder: Path) -> None:
    """Run the tests of a file here with a package installed beside what this environment has."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    beside = folder / "venv" / "lib" / version / "site-packages" / "beside.pth"
    beside.write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    for command in (
        [python, "-m", "pip", "install", "--quiet", package],
        [python, "-m", "pytest", "-q", *OPTIONS, f"tests/core/integrations/adapters/{file}"],
    ):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d+ passed", done.stdout.splitlines()[-1]), done.stdout
    assert "skipped" not in done.stdout
