"""Every table and figure of the documents with results is what its command makes of the committed rows.

A table takes seconds to make. It is made here when its rows, its text, its figure or the code of the studies
changed since `python -m benchmarks.tables` made it, and in a campaign.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.tables import DOCUMENTS, MADE, ROOT, commands, fingerprint, in_documents, printed
from tests.conftest import CAMPAIGN

COMMANDS = list(in_documents())


def test_there_are_tables() -> None:
    texts = [document.read_text(encoding="utf-8") for document in DOCUMENTS]
    for text in texts:
        assert [*commands(text)]
    assert len(COMMANDS) == sum(
        text.count("python -m core study ") + len(re.findall(r"-m benchmarks \w+ --rows ", text))
        for text in texts
    )


@pytest.mark.parametrize(
    ("arguments", "stated"), COMMANDS, ids=[" ".join(arguments[1:4]) for arguments, _ in COMMANDS]
)
def test_a_table_is_what_its_command_prints(arguments: list[str], stated: str, tmp_path: Path) -> None:
    for named in arguments:
        # the command would evaluate anew, for hours
        assert not named.startswith("results/") or (ROOT / named).exists()
    as_made = json.loads(MADE.read_text(encoding="utf-8")).get(" ".join(arguments))
    if CAMPAIGN or fingerprint(arguments, stated) != as_made:
        check_made_anew(arguments, stated, tmp_path / "figure.svg")


def check_made_anew(arguments: list[str], stated: str, drawn: Path) -> None:
    """Runs the command, its figure going elsewhere; fails where something differs from what is committed."""
    figure = arguments[arguments.index("--figure") + 1] if "--figure" in arguments else None
    assert printed([str(drawn) if argument == figure else argument for argument in arguments]) == stated
    if figure is not None:
        assert drawn.read_bytes() == (ROOT / figure).read_bytes()


def test_an_edited_table_is_made_anew(tmp_path: Path) -> None:
    """By the example of the table that is quickest to make."""
    arguments, stated = next(command for command in COMMANDS if "time" in command[0])
    assert fingerprint(arguments, stated.replace("0", "1", 1)) != fingerprint(arguments, stated)
    assert fingerprint([*arguments, "--step-budget", "3"], stated) != fingerprint(arguments, stated)
    with pytest.raises(AssertionError):
        check_made_anew(arguments, stated.replace("0", "1", 1), tmp_path / "figure.svg")
