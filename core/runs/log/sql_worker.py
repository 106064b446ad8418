"""The child process that answers one SQL query.

An order as JSON on stdin, the answer as JSON on stdout. Whoever asks may write any SQL, so this process has
nothing to lose: it opens a snapshot of the log to read, nothing else, with DuckDB's access to files, network,
extensions, Python objects and settings locked; it accepts exactly one SELECT; and the system bounds its
memory, computing time and files. Its parent watches the clock. It runs as a file of its own, outside the
package, so that it starts in a tenth of a second.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

Answer = dict[str, Any]

_SETTINGS = {
    "threads": 1,
    "memory_limit": "512MB",
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}


def main() -> None:
    """Answers the order; the exit status is `out_of_memory` of the order where memory ran out."""
    order = json.load(sys.stdin)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints is no answer
    try:
        connection = _open(order["path"], order["catalog"])
        _limit(order["memory_bytes"], order["seconds"])
        json.dump(_answer(connection, order), answers)
    except MemoryError:
        os._exit(order["out_of_memory"])
    answers.close()


def _open(path: str, catalog: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config=_SETTINGS)
    quoted = path.replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS {catalog} (TYPE duckdb, READ_ONLY)")
    connection.execute(f"USE {catalog}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _limit(memory_bytes: int, seconds: int) -> None:
    with suppress(FileNotFoundError):  # elsewhere than on Linux the system knows no such limit
        n_bytes = (
            int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        )
        resource.setrlimit(resource.RLIMIT_AS, (n_bytes + memory_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(connection: duckdb.DuckDBPyConnection, order: Answer) -> Answer:
    try:
        statements = connection.extract_statements(order["sql"])
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            return {"refused": ", ".join(statement.type.name for statement in statements) or "none"}
        connection.execute(statements[0])
        columns = [column[0][: order["max_cell"]] for column in connection.description or ()][
            : order["max_columns"]
        ]
        rows, more = _rows(connection, order)
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except duckdb.Error as error:
        return {"error": str(error).strip()[:2_000]}
    return {"columns": columns, "rows": rows, "more": more}


def _rows(connection: duckdb.DuckDBPyConnection, order: Answer) -> tuple[list[list[str | None]], bool]:
    """Cells as text, as many rows as the order allows, and whether there are more."""
    rows: list[list[str | None]] = []
    left = order["max_characters"]
    while (row := connection.fetchone()) is not None:
        if len(rows) == order["max_rows"] or left < 0:
            return rows, True
        cells = [_cell(value, order["max_cell"]) for value in row[: order["max_columns"]]]
        left -= sum(len(cell or "") for cell in cells)
        rows.append(cells)
    return rows, False


def _cell(value: object, longest: int) -> str | None:
    if value is None:
        return None
    text = (
        f"{len(value):,} bytes"
        if isinstance(value, bytes)
        else f"{value:.6g}"
        if isinstance(value, float)
        else str(value)
    )
    return text if len(text) <= longest else text[: longest - 1] + "…"


if __name__ == "__main__":
    main()
