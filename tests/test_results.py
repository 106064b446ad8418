"""Every table and figure of the documents with results is what its command makes of the committed rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.tables import DOCUMENTS, ROOT, commands, printed

COMMANDS = [command for document in DOCUMENTS for command in commands(document.read_text(encoding="utf-8"))]


def test_there_are_tables() -> None:
    assert all(commands(document.read_text(encoding="utf-8")) for document in DOCUMENTS)
    assert len(COMMANDS) == sum(document.read_text(encoding="utf-8").count("python -m core study ") for document in DOCUMENTS)


@pytest.mark.parametrize(("arguments", "stated"), COMMANDS, ids=[" ".join(arguments[1:4]) for arguments, _ in COMMANDS])
def test_a_table_is_what_its_command_prints(arguments: list[str], stated: str, tmp_path: Path) -> None:
    for named in arguments:
        assert not named.startswith("results/") or (ROOT / named).exists()  # the command would evaluate anew, for hours
    figure = arguments[arguments.index("--figure") + 1] if "--figure" in arguments else None
    drawn = tmp_path / "figure.svg"
    assert printed([str(drawn) if argument == figure else argument for argument in arguments]) == stated
    if figure is not None:
        assert drawn.read_bytes() == (ROOT / figure).read_bytes()
