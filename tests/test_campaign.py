"""The table of attacks: what a run of tests leaves for it."""

from __future__ import annotations

from pathlib import Path

from benchmarks import ROOT
from benchmarks.campaign import ATTACKS, read_report, table

REPORT = """<testsuites><testsuite>
<testcase file="tests/core/ingest/test_hostile.py" time="2.5"><properties><property name="attack" value="['files', 20000, '5 read']"/></properties></testcase>
<testcase file="tests/core/llm/test_address.py" time="0.25"/><testcase file="tests/core/llm/test_address.py" time="0.25"/>
<testcase file="tests/core/ingest/test_blocks.py" time="1"/><testcase file="tests/core/ingest/test_blocks.py" time="1"><failure message="no"/></testcase>
<testcase classname="" time="0"><error message="collection failure"/></testcase>
</testsuite></testsuites>"""


def test_every_attack_has_its_tests() -> None:
    assert [file for file in ATTACKS if not (ROOT / file).exists()] == []
    assert [
        file
        for file, what in ATTACKS.items()
        if not what and "record_attack(" not in (ROOT / file).read_text(encoding="utf-8")
    ] == []


def test_rows_say_what_was_tried_and_what_failed(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    made = {row.measure: (row.value, row.unit) for row in read_report(tmp_path / "report.xml")}
    assert made["files"] == (20_000, "tried: 5 read")
    assert made[ATTACKS["tests/core/llm/test_address.py"]] == (2, "tried: all withstood")
    assert made[ATTACKS["tests/core/ingest/test_blocks.py"]] == (2, "tried: 1 failed")
    assert made["faults: cases of all these that failed"] == (2, "faults")
    assert made["all of them"] == (5.0, "s")


def test_the_table_has_a_day_and_a_line_an_attack(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    lines = table(read_report(tmp_path / "report.xml"), "2026-01-02").splitlines()
    assert lines[2].startswith("Made on 2026-01-02 by `python -m benchmarks.campaign`")
    assert "| files | 20,000 | 5 read | `tests/core/ingest/test_hostile.py` |" in lines
    assert "| all of them | 5 | s |  |" in lines
