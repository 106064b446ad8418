"""The attacks of results/attacks.md with their full counts.

Each attack is a test that fails where it succeeds. A file of tests that says by `record_attack` how often it
tried what leaves those rows, any other one row: how many of its cases passed. `python -m benchmarks.campaign`
also writes the table.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import ROOT, Row
from tests.conftest import ATTACK, summed

TABLE = ROOT / "results" / "attacks.md"

ATTACKS = {
    "tests/core/ingest/test_hostile.py": "",
    "tests/core/ingest/test_converter.py": "conversions without end, over memory, that die, orphaned ones",
    "tests/core/ingest/test_documents.py": "",
    "tests/core/ingest/test_html.py": "",
    "tests/core/ingest/test_blocks.py": "lines of dashes, fences and nested blocks as Markdown",
    "tests/core/runs/log/test_processes.py": "",
    "tests/core/runs/log/test_damage.py": "logs damaged, cut short, and on full disks",
    "tests/core/runs/log/test_sql.py": "statements that are more than one question of the log",
    "tests/core/llm/test_address.py": "addresses of language models, written and wrapped otherwise",
    "tests/app/test_attacks.py": "",
    "tests/app/test_explore_input.py": "",
    "tests/app/test_doors.py": "",
    "tests/app/test_front_door.py": "requests of other websites, and for names that only lead here",
    "tests/app/test_signing_in.py": "passwords guessed",
    "tests/app/test_visitors.py": "what visitors may see, use and learn of each other",
}
"""Files of tests, and what they try where they leave no rows of their own."""

_HEAD = """\
# What was tried against the app

Made on {today} by `python -m benchmarks.campaign`; the promises stand in {link}.

| attack | tried | what came of it | held by |
|---|---|---|---|"""


def rows() -> list[Row]:
    """A row an attack; `unit` says what came of it, `against` names its tests. Then how many cases failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        pytest = [sys.executable, "-m", "pytest", "-q", "-ojunit_family=xunit1", f"--junitxml={report}"]
        environment = {**os.environ, "QRAG_CAMPAIGN": "1"}
        subprocess.run([*pytest, *ATTACKS], cwd=ROOT, env=environment, stdout=sys.stderr, check=False)
        return read_report(report)


def read_report(report: Path) -> list[Row]:
    """The rows of a run that pytest wrote down as XML."""
    by_file: dict[str, list[ET.Element]] = {file: [] for file in ATTACKS}
    for case in ET.parse(report).getroot().iter("testcase"):
        # a file that can't be read has a case without one
        by_file.setdefault(case.attrib.get("file", ""), []).append(case)
    made = [row for file, cases in by_file.items() for row in _rows_of(file, cases)]
    failed = sum(_failed(case) for cases in by_file.values() for case in cases)
    seconds = sum(float(case.attrib["time"]) for cases in by_file.values() for case in cases)
    return [
        *made,
        Row("faults: cases of all these that failed", failed, "faults"),
        Row("all of them", seconds, "s"),
    ]


def _rows_of(file: str, cases: list[ET.Element]) -> list[Row]:
    tried = [
        ast.literal_eval(told.attrib["value"])
        for case in cases
        for told in case.iter("property")
        if told.attrib["name"] == ATTACK
    ]
    recorded = [Row(attack, n_tried, f"tried: {outcome}", file) for attack, n_tried, outcome in summed(tried)]
    n_failed = sum(map(_failed, cases))
    if n_failed or not recorded:
        outcome = f"{n_failed} failed" if n_failed else "all withstood"
        recorded.append(Row(ATTACKS.get(file) or file, len(cases), f"tried: {outcome}", file))
    return recorded


def _failed(case: ET.Element) -> bool:
    return any(child.tag in ("failure", "error") for child in case)


def table(made: list[Row], today: str) -> str:
    """The rows as Markdown, with the day on which they were made."""
    lines = [
        f"| {row.measure} | {row.value:,.0f} | {row.unit.removeprefix('tried: ')} |"
        f" {f'`{row.against}`' if row.against else ''} |"
        for row in made
    ]
    return "\n".join((_HEAD.format(today=today, link="[docs/security.md](../docs/security.md)"), *lines, ""))


if __name__ == "__main__":
    made = rows()
    TABLE.write_text(table(made, f"{datetime.now(UTC):%Y-%m-%d}"), encoding="utf-8")
    sys.exit(any(row.unit == "faults" and row.value for row in made))  # 1 where one succeeded
