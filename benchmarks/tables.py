"""`python -m benchmarks.tables`.

Runs the `study` commands of the documents with results and puts what they print, and the figures they draw,
in their places. So it does with commands that print what a benchmark measured before (`benchmarks NAME --rows
FILE`). A command stands in the document as it would be typed; what it prints follows between two comments.
From what each table was made stands in `results/made.json` as a hash, so that a test makes those anew of
which that is not true any more.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

from benchmarks.__main__ import main as benchmarks
from core.cli import main as core

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = tuple(
    ROOT / "docs" / name for name in ("results.md", "answers.md", "sparc.md", "resrag.md", "scaling.md")
)
MADE = ROOT / "results" / "made.json"
"""Hash of each command, see `fingerprint`; written by `python -m benchmarks.tables`."""
_STARTS = (
    *(ROOT / "core" / "studies").glob("*.py"),
    *(ROOT / "core").glob("*/rows.py"),
    ROOT / "core" / "svg.py",
)
_ALONE = (
    ROOT / "core" / "studies" / "registry.py",
    ROOT / "core" / "cli" / "study.py",
    ROOT / "benchmarks" / "tables.py",
    ROOT / "benchmarks" / "__main__.py",
    ROOT / "benchmarks" / "scaling.py",
)
"""Whose imports don't count: they are there to make rows."""
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


def fingerprint(arguments: list[str], stated: str) -> str:
    """Hash over a command, the code that makes its table, the rows, and the table and figure as they stand in
    docs/.
    """
    named = [ROOT / argument for argument in arguments if "/" in argument]
    files = [
        file
        for path in named
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if file.is_file()
    ]
    told = [" ".join(arguments), stated, code_hash(), *map(_file_hash, files)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


@cache
def code_hash() -> str:
    """Hash over the code between rows and tables: the studies and all of `core` that they import."""
    files = set(_ALONE)
    waiting = [path for path in _STARTS if path not in files]
    while waiting:
        path = waiting.pop()
        if path not in files:
            files.add(path)
            waiting.extend(_imported(path))
    return hashlib.sha256(
        "".join(f"{path.relative_to(ROOT)} {_file_hash(path)}\n" for path in sorted(files)).encode()
    ).hexdigest()


def _imported(path: Path) -> Iterator[Path]:
    """The files of ours that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                module = ROOT.joinpath(*name.split("."))
                yield from (
                    file for file in (module.with_suffix(".py"), module / "__init__.py") if file.is_file()
                )


def _file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def in_documents() -> Iterator[tuple[list[str], str]]:
    """Every command of the documents, and what stands after it."""
    return (pair for document in DOCUMENTS for pair in commands(document.read_text(encoding="utf-8")))


def main() -> int:
    """Writes the documents anew, and from what they were made; returns the exit status."""
    for path in DOCUMENTS:
        document = path.read_text(encoding="utf-8")
        for arguments, before in commands(document):
            print(" ".join(arguments), file=sys.stderr)
            module = "" if arguments[0] == "benchmarks" else "core "
            command = f"{PROGRAM}{module}{' '.join(arguments)}\n\n{BEGIN}"
            document = document.replace(f"{command}{before}{END}", f"{command}{printed(arguments)}{END}")
        path.write_text(document, encoding="utf-8")
    made = {" ".join(arguments): fingerprint(arguments, stated) for arguments, stated in in_documents()}
    MADE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
