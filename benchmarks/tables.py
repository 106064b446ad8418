"""`python -m benchmarks.tables`.

Runs the commands that stand above the tables of `results/` and `docs/`, a `study` or `benchmarks NAME --rows
FILE`, and puts what they print, and the figures they draw, in their places, between two comments.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from benchmarks import ROOT

PAGES = tuple(page for folder in ("docs", "results") for page in sorted((ROOT / folder).rglob("*.md")))
BEGIN, END = "<!-- printed -->\n", "<!-- end -->"
PROGRAM = "    .venv/bin/python -m "
COMMAND = rf"^{re.escape(PROGRAM)}(?P<command>core study [^\n]*|benchmarks \w+ --rows [^\n]*)\n"
_PLACE = re.compile(rf"(?ms){COMMAND}\n{re.escape(BEGIN)}(?P<printed>.*?){re.escape(END)}")


def commands(page: str) -> list[tuple[list[str], str]]:
    """The module and arguments of each command whose output stands in a page, and that output."""
    return [(match["command"].split(), match["printed"]) for match in _PLACE.finditer(page)]


def printed(command: list[str]) -> str:
    """What a command prints, in a process of its own at the root. Raises CalledProcessError when it fails."""
    process = [sys.executable, "-m", *command]
    return subprocess.run(process, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def in_pages() -> Iterator[tuple[list[str], str]]:
    """Every command whose output stands in a page, and that output."""
    return (pair for page in PAGES for pair in commands(page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        for command, before in commands(page):
            print(" ".join(command), file=sys.stderr)
            place = f"{PROGRAM}{' '.join(command)}\n\n{BEGIN}"
            page = page.replace(f"{place}{before}{END}", f"{place}{printed(command)}{END}")
        path.write_text(page, encoding="utf-8")
