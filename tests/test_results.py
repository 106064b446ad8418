"""Every table and figure of `results/` and `docs/` is what its command makes of the committed rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.tables import COMMAND, PAGES, ROOT, in_pages, printed
from tests.conftest import CAMPAIGN

COMMANDS = list(in_pages())
SHORTENED = re.compile(r"((?:^    \.venv/bin/python -m [^\n]*\n)+)\n((?:^\|[^\n]*\n)+)", re.MULTILINE)


def n_bytes(arguments: list[str]) -> int:
    named = [ROOT / argument for argument in arguments if argument.startswith("results/")]
    files = [file for path in named for file in (path, *path.rglob("*")) if file.is_file()]
    return sum(file.stat().st_size for file in files)


SMALLEST = sorted(COMMANDS, key=lambda command: n_bytes(command[0]))[:6]


def printed_by(text: str) -> str:
    """What the commands of a text print, by the pages that hold it; fails where one stands in none."""
    held = {" ".join(arguments): stated for arguments, stated in COMMANDS}
    return "".join(held[match["command"]] for match in re.finditer(COMMAND, text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_figures_of_a_page_are_those_of_its_commands(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    printed_by(text)
    for lines, table in SHORTENED.findall(text):
        figures, source = (set(re.findall(r"\d+\.\d+", part)) for part in (table, printed_by(lines)))
        assert not source or figures <= source, f"{sorted(figures - source)} below\n{lines}"


@pytest.mark.parametrize(
    ("arguments", "stated"),
    COMMANDS if CAMPAIGN else SMALLEST,
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_table_is_what_its_command_prints(arguments: list[str], stated: str, tmp_path: Path) -> None:
    check_made_anew(arguments, stated, tmp_path / "figure.svg")


def test_the_rows_of_every_table_are_there() -> None:
    """Without them the command would evaluate anew, for hours."""
    named = {argument for arguments, _ in COMMANDS for argument in arguments}
    assert [path for path in named if path.startswith("results/") and not (ROOT / path).exists()] == []


def check_made_anew(arguments: list[str], stated: str, drawn: Path) -> None:
    """Runs the command, its figure going elsewhere; fails where something differs from what is committed."""
    figure = arguments[arguments.index("--figure") + 1] if "--figure" in arguments else None
    assert printed([str(drawn) if argument == figure else argument for argument in arguments]) == stated
    if figure is not None:
        assert drawn.read_bytes() == (ROOT / figure).read_bytes()


def test_an_edited_table_is_found(tmp_path: Path) -> None:
    """By the example of the table that is quickest to make."""
    arguments, stated = SMALLEST[0]
    with pytest.raises(AssertionError):
        check_made_anew(arguments, stated.replace("0", "1", 1), tmp_path / "figure.svg")
