"""`python -m benchmarks.tables`: runs the `study` commands of the documents with results and puts what they print, and the figures they draw, in their places.

A command stands in the document as it would be typed; what it prints follows between two comments.
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

from core.cli import main as core

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "docs" / "results.md", ROOT / "docs" / "answers.md", ROOT / "docs" / "sparc.md")
BEGIN, END = "<!-- printed -->\n", "<!-- end -->"
_COMMAND = r"^    \.venv/bin/python -m core (?P<command>study [^\n]*)\n\n"
_PLACE = re.compile(f"{_COMMAND}{re.escape(BEGIN)}(?P<printed>.*?){re.escape(END)}", re.MULTILINE | re.DOTALL)


def commands(document: str) -> list[tuple[list[str], str]]:
    """The arguments of each command, and what stands after it."""
    return [(match["command"].split(), match["printed"]) for match in _PLACE.finditer(document)]


def printed(arguments: list[str]) -> str:
    """What a command prints, its paths being relative to the repository. Raises RuntimeError when it fails."""
    absolute = [str(ROOT / argument) if "/" in argument else argument for argument in arguments]
    with redirect_stdout(io.StringIO()) as out:
        status = core(absolute)
    if status:
        raise RuntimeError(f"{' '.join(arguments)} ended with status {status}")
    return out.getvalue()


def main() -> int:
    """Writes the documents anew; returns the exit status."""
    for path in DOCUMENTS:
        document = path.read_text(encoding="utf-8")
        for arguments, before in commands(document):
            print(" ".join(arguments), file=sys.stderr)
            command = f"    .venv/bin/python -m core {' '.join(arguments)}\n\n{BEGIN}"
            document = document.replace(f"{command}{before}{END}", f"{command}{printed(arguments)}{END}")
        path.write_text(document, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
