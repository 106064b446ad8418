"""Every table and figure of `results/` and `docs/` is what its command makes of the committed rows.

`make test` makes those of the fewest rows; the campaign all.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.tables import ROOT, in_documents, printed
from tests.conftest import CAMPAIGN

COMMANDS = list(in_documents())


def n_bytes(arguments: list[str]) -> int:
    """Of the files that a command reads and draws."""
    return sum((ROOT / named).stat().st_size for named in arguments if (ROOT / named).is_file())


SMALLEST = sorted(COMMANDS, key=lambda command: n_bytes(command[0]))[:6]


PAGES = [page for folder in ("docs", "results") for page in sorted((ROOT / folder).rglob("*.md"))]
COMMAND = r"    \.venv/bin/python -m (?:core )?(study [^\n]*|benchmarks \w+ --rows [^\n]*)\n"


def printed_by(lines: str) -> str:
    """What the commands of these lines print, by the pages that hold it; fails where one stands in none."""
    held = {" ".join(arguments): stated for arguments, stated in COMMANDS}
    return "".join(held[command] for command in re.findall(COMMAND, lines))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_every_command_prints_is_held(page: Path) -> None:
    printed_by(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_figures_of_a_shortened_table_are_those_of_its_commands(page: Path) -> None:
    shortened = re.finditer(rf"((?:^{COMMAND})+)\n((?:^\|[^\n]*\n)+)", page.read_text("utf-8"), re.MULTILINE)
    for table in shortened:
        figures, source = (set(re.findall(r"\d+\.\d+", text)) for text in (table[3], printed_by(table[1])))
        assert figures <= source, f"{sorted(figures - source)} below {table[1]}"


@pytest.mark.parametrize(
    ("arguments", "stated"),
    COMMANDS if CAMPAIGN else SMALLEST,
    ids=lambda value: " ".join(value[1:4]) if isinstance(value, list) else "",
)
def test_a_table_is_what_its_command_prints(arguments: list[str], stated: str, tmp_path: Path) -> None:
    check_made_anew(arguments, stated, tmp_path / "figure.svg")


@pytest.mark.parametrize("arguments", [arguments for arguments, _ in COMMANDS], ids=" ".join)
def test_the_rows_of_every_table_are_there(arguments: list[str]) -> None:
    for named in arguments:
        # without them the command would evaluate anew, for hours
        assert not named.startswith("results/") or (ROOT / named).exists()


def check_made_anew(arguments: list[str], stated: str, drawn: Path) -> None:
    """Runs the command, its figure going elsewhere; fails where something differs from what is committed."""
    figure = arguments[arguments.index("--figure") + 1] if "--figure" in arguments else None
    assert printed([str(drawn) if argument == figure else argument for argument in arguments]) == stated
    if figure is not None:
        assert drawn.read_bytes() == (ROOT / figure).read_bytes()


def test_an_edited_table_is_found(tmp_path: Path) -> None:
    """By the example of the table that is quickest to make."""
    arguments, stated = next(command for command in COMMANDS if "time" in command[0])
    with pytest.raises(AssertionError):
        check_made_anew(arguments, stated.replace("0", "1", 1), tmp_path / "figure.svg")
