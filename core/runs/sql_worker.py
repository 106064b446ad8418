"""The child process that answers one SQL query.

Whoever asks may write any SQL, so this process opens a snapshot of the log to read, with DuckDB's access to
files, network, extensions, Python objects and settings locked; it accepts exactly one SELECT; and
`core.base.child` bounds its memory, time and files. It does without the libraries of `core.runs.log`, so that
it starts in a tenth of a second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import duckdb

from core.base.child import answering_end, send_frame, serve

MAX_MEMORY_BYTES = 1 << 30
"""What a query may take beyond what this process has when it begins."""
MAX_ROWS = 1_000
MAX_COLUMNS = 64
MAX_CELL = 2_000
"""Characters of a cell; the rest is left out."""
MAX_CHARACTERS = 4_000_000
"""Of all cells together; rows after that are left out."""

_SETTINGS = {
    "threads": 1,
    "memory_limit": "512MB",
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}


def main() -> None:
    """Answers until stdin ends."""
    answers = answering_end()

    def job(order: Mapping[str, Any], _: bytes) -> None:
        answer = _answer(_open(order["path"], order["catalog"]), order["sql"])
        send_frame(answers, {}, json.dumps(answer).encode())

    serve(job, MAX_MEMORY_BYTES)


def _open(path: str, catalog: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config=_SETTINGS)
    quoted = path.replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS {catalog} (TYPE duckdb, READ_ONLY)")
    connection.execute(f"USE {catalog}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _answer(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            return {"refused": ", ".join(statement.type.name for statement in statements) or "none"}
        connection.execute(statements[0])
        columns = [column[0][:MAX_CELL] for column in connection.description or ()]
        rows, more = _rows(connection)
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except duckdb.Error as error:
        return {"error": str(error).strip()[:2_000]}
    return {"columns": columns[:MAX_COLUMNS], "rows": rows, "more": more}


def _rows(connection: duckdb.DuckDBPyConnection) -> tuple[list[list[str | None]], bool]:
    """Cells as text, as many rows as are allowed, and whether there are more."""
    rows: list[list[str | None]] = []
    left = MAX_CHARACTERS
    while (row := connection.fetchone()) is not None:
        if len(rows) == MAX_ROWS or left < 0:
            return rows, True
        cells = [_cell(value) for value in row[:MAX_COLUMNS]]
        left -= sum(len(cell or "") for cell in cells)
        rows.append(cells)
    return rows, False


def _cell(value: object) -> str | None:
    match value:
        case None:
            return None
        case bytes():
            text = f"{len(value):,} bytes"
        case float():
            text = repr(value).removesuffix(".0")
        case list() | dict():
            text = json.dumps(value, ensure_ascii=False, default=str)
        case _:
            text = str(value)
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"


if __name__ == "__main__":
    main()
