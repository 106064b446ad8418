"""The child process that answers one SQL query.

Whoever asks may write any SQL, so this process has nothing to lose: it opens a snapshot of the log to read,
nothing else, with DuckDB's access to files, network, extensions, Python objects and settings locked; it
accepts exactly one SELECT; and `core.base.child` bounds its memory, computing time and files. It lies outside
of `core.runs.log`, whose libraries it does without, so that it starts in a tenth of a second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import duckdb

from core.base.child import answering_end, send_frame, serve

MAX_MEMORY_BYTES = 1 << 30
"""What a query may take beyond what this process has when it begins."""

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
    """Answers until stdin ends."""
    answers = answering_end()

    def job(order: Mapping[str, Any], _: bytes) -> None:
        send_frame(answers, {}, json.dumps(_answer(_open(order["path"], order["catalog"]), order)).encode())

    serve(job, MAX_MEMORY_BYTES)


def _open(path: str, catalog: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config=_SETTINGS)
    quoted = path.replace("'", "''")
    connection.execute(f"ATTACH '{quoted}' AS {catalog} (TYPE duckdb, READ_ONLY)")
    connection.execute(f"USE {catalog}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _answer(connection: duckdb.DuckDBPyConnection, order: Mapping[str, Any]) -> Answer:
    try:
        statements = connection.extract_statements(order["sql"])
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            return {"refused": ", ".join(statement.type.name for statement in statements) or "none"}
        connection.execute(statements[0])
        columns = [column[0][: order["max_cell"]] for column in connection.description or ()]
        rows, more = _rows(connection, order)
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except duckdb.Error as error:
        return {"error": str(error).strip()[:2_000]}
    return {"columns": columns[: order["max_columns"]], "rows": rows, "more": more}


def _rows(
    connection: duckdb.DuckDBPyConnection, order: Mapping[str, Any]
) -> tuple[list[list[str | None]], bool]:
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
    return text if len(text) <= longest else text[: longest - 1] + "…"


if __name__ == "__main__":
    main()
