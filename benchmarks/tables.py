"""`python -m benchmarks.tables`.

Runs the `study` commands of the documents with results and puts what they print, and the figures they draw,
in their places. So it does with commands that print what a benchmark measured before (`benchmarks NAME --rows
FILE`). A command stands in the document as it would be typed; what it prints follows between two comments.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

from benchmarks.__main__ import main as benchmarks
from core.cli import main as core

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = tuple(
    ROOT / "docs" / name for name in ("results.md", "answers.md", "sparc.md", "resrag.md", "scaling.md")
)
BEGIN, END = "<!-- printed -->\n", "<!-- end -->"
PROGRAM = "    .venv/bin/python -m "
_COMMAND = rf"^{re.escape(PROGRAM)}(?:core )?(?P<command>study [^\n]*|benchmarks \w+ --rows [^\n]*)\n\n"
_PLACE = re.compile(f"{_COMMAND}{re.escape(BEGIN)}(?P<printed>.*?){re.escape(END)}", re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[tuple[list[str], str]]:
    """The arguments of each command, those of a benchmark behind that word, and what stands after it."""
    return [(match["command"].split(), match["printed"]) for match in _PLACE.finditer(document)]


def printed(arguments: list[str]) -> str:
    """What a command prints, its paths being relative to the repository. Raises RuntimeError
    when it fails.
    """
    absolute = [str(ROOT / argument) if "/" in argument else argument for argument in arguments]
    with redirect_stdout(io.StringIO()) as out:
        status = benchmarks(absolute[1:]) if absolute[0] == "benchmarks" else core(absolute)
    if status:
        raise RuntimeError(f"{' '.join(arguments)} ended with status {status}")
    return out.getvalue()


def in_documents() -> Iterator[tuple[list[str], str]]:
    """Every command of the documents, and what stands after it."""
    return (pair for document in DOCUMENTS for pair in commands(document.read_text(encoding="utf-8")))


def main() -> int:
    """Writes the documents anew; returns the exit status."""
    for path in DOCUMENTS:
        document = path.read_text(encoding="utf-8")
        for arguments, before in commands(document):
            print(" ".join(arguments), file=sys.stderr)
            module = "" if arguments[0] == "benchmarks" else "core "
            command = f"{PROGRAM}{module}{' '.join(arguments)}\n\n{BEGIN}"
            document = document.replace(f"{command}{before}{END}", f"{command}{printed(arguments)}{END}")
        path.write_text(document, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
