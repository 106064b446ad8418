"""`python -m benchmarks NAME [--json]`.

Runs one benchmark and prints its rows, as a table or as one JSON object. With `--rows FILE` it runs nothing,
and prints such an object as Markdown; `scaling` computes a table from it. Exit status 2 where the data or a
package that the benchmark compares with is missing.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import Row, machine
from core.base.errors import BadRequest

BENCHMARKS = {
    "browser": "how long the page is busy with a load, a run and its tabs, against a page of one text box",
    "campaign": "attacks on the app with their full counts, and what came of them",
    "click": "from the click that opens a long text to its first runs, in Chromium (--n tokens)",
    "cluster": "a step over random vectors: one Ray worker, two, this process (--n chunks, 770 bytes each)",
    "encoding": "tokens a second, against sentence-transformers",
    "first_step": "seconds from opening a 1 MB book to the first step, cold and cached (--n tokens)",
    "intake": "opening a novel, against encoding its chunks with sentence-transformers (--n tokens)",
    "neighbours": "seconds of a question, alone and while half of the cores have other work",
    "question": "seconds to each choice and to the answer, against a CrossEncoder (--n tokens)",
    "scaling": "what 1M to 1T tokens take, computed from what cluster measured (--rows results/cluster.json)",
    "scoring": "one step over 160,000 and 400,000 chunks: turned query, turned chunks, FAISS",
    "visitors": "a step while others step, against a fair share of the cores (--n visitors)",
}


def main(argv: Sequence[str]) -> int:
    """Runs one benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="\n".join(f"{name:<12}{meaning}" for name, meaning in BENCHMARKS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=BENCHMARKS, metavar="NAME")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--n", type=int, help="how much to measure, where a benchmark says what it counts")
    before = "print what --json gave before as Markdown, measuring nothing"
    parser.add_argument("--rows", type=Path, metavar="FILE", help=before)
    args = parser.parse_args(argv)
    if args.rows is not None:
        result = json.loads(args.rows.read_text(encoding="utf-8"))
        is_computed = args.name == "scaling"
        table = importlib.import_module("benchmarks.scaling").table if is_computed else markdown
        print(table(result), end="")
        return 0
    if args.name == "scaling":
        parser.error("scaling measures nothing; name what cluster measured with --rows")
    try:
        measure = importlib.import_module(f"benchmarks.{args.name}").rows
        if args.n is not None and ("n" not in inspect.signature(measure).parameters or args.n < 1):
            parser.error(
                f"--n {args.n} does not fit {args.name}; leave it out, or give a number from 1 where the list"
                " above names --n"
            )
        rows: list[Row] = measure() if args.n is None else measure(args.n)
    except (FileNotFoundError, BadRequest, ModuleNotFoundError) as error:
        print(_sentence(error), file=sys.stderr)
        return 2
    if args.json:
        result = {"benchmark": args.name, "machine": machine(), "rows": [asdict(row) for row in rows]}
        print(json.dumps(result, allow_nan=False))
        return 0
    for row in rows:
        against = f"  against {row.against}" if row.against else ""
        ratio = "" if row.ratio is None else f": {row.ratio:.3f}"
        print(f"{row.measure:<60}{row.value:>14.6g} {row.unit}{against}{ratio}")
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{error.filename} is missing; point QRAG_DATA to the folder of the data sets"
    if isinstance(error, ModuleNotFoundError):
        package = str(error.name).replace("_", "-")
        return f"the package {error.name} is not installed; pip install {package}"
    return str(error)


def markdown(result: dict[str, Any]) -> str:
    """What was measured, and on what."""
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items() if value is not None)
    lines = ["| measure | value | against | ratio |", "|---|---|---|---|"]
    for row in result["rows"]:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        value = f"{row['value']:,.6g} {row['unit']}"
        lines.append(f"| {row['measure']} | {value} | {row['against'] or ''} | {ratio} |")
    return "\n".join([*lines, "", f"Measured on: {machine}.", ""])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
