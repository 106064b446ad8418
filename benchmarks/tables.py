"""`python -m benchmarks.tables`.

Runs the `study` commands of the documents with results and puts what they print, and the figures they draw,
in their places. So it does with commands that print what a benchmark measured before (`benchmarks NAME --rows
FILE`). A command stands in the document as it would be typed; what it prints follows between two comments.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from benchmarks import ROOT

DOCUMENTS = tuple(
    ROOT / "docs" / name for name in ("results.md", "answers.md", "sparc.md", "resrag.md", "scaling.md")
)
BEGIN, END = "<!-- printed -->\n", "<!-- end -->"
PROGRAM = "    .venv/bin/python -m "
_COMMAND = rf"^{re.escape(PROGRAM)}(?P<command>core study [^\n]*|benchmarks \w+ --rows [^\n]*)\n\n"
_PLACE = re.compile(f"{_COMMAND}{re.escape(BEGIN)}(?P<printed>.*?){re.escape(END)}", re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[tuple[list[str], str]]:
    """The module and arguments of each command, and what stands after it."""
    return [(match["command"].split(), match["printed"]) for match in _PLACE.finditer(document)]


def printed(command: list[str]) -> str:
    """What a command prints, in a process of its own at the root. Raises CalledProcessError when it fails."""
    process = [sys.executable, "-m", *command]
    return subprocess.run(process, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def in_documents() -> Iterator[tuple[list[str], str]]:
    """Every command of the documents, and what stands after it."""
    return (pair for document in DOCUMENTS for pair in commands(document.read_text(encoding="utf-8")))


if __name__ == "__main__":
    for path in DOCUMENTS:
        document = path.read_text(encoding="utf-8")
        for command, before in commands(document):
            print(" ".join(command), file=sys.stderr)
            place = f"{PROGRAM}{' '.join(command)}\n\n{BEGIN}"
            document = document.replace(f"{place}{before}{END}", f"{place}{printed(command)}{END}")
        path.write_text(document, encoding="utf-8")
