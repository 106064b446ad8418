"""What the documents say can be done: README's Python runs, commands exist, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from core.base.config import RESRAG_LLM
from core.cli import main
from core.methods.registry import METHODS

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
}
IN_CODE = {name for text in PAGES.values() for name in re.findall(r"python -m core ([a-z-]+)", text)}
BESIDE_FUNCTIONS = re.findall(
    r"^\| `\w+` \|[^|]*\| `([a-z ]+)` \|", PAGES["docs/interfaces.md"], re.MULTILINE
)
COMMANDS = sorted({*IN_CODE, *BESIDE_FUNCTIONS})


@pytest.mark.campaign
def test_python_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGES["README.md"], re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_exist(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    assert f"python -m core {command}" in capsys.readouterr().out


def test_the_command_that_compares_names_every_method() -> None:
    (names,) = re.findall(r"core compare .* --methods (\S+)", PAGES["docs/guide.md"])
    assert names.split(",") == [name for name in METHODS if name != RESRAG_LLM]  # that one needs a model


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    for target, heading in re.findall(r"\]\((?!https?:)([\w./-]*)(?:#([\w-]+))?\)", PAGES[page]):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in map(anchor, titles), f"{target}#{heading}"


def anchor(title: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
