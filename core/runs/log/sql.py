"""A person's own SQL over the log.

Asked of a snapshot, in a child process (`core.runs.sql_worker`) that can touch nothing else. For local mode
only: a snapshot holds everybody's runs, and no SQL is filtered by owner.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.base.child import ChildEnded, ask_once
from core.base.errors import BadRequest, LogError
from core.runs.log.database import CATALOG, snapshot_of
from core.runs.log.store import ExperimentLog
from core.runs.sql_worker import MAX_CHARACTERS
from core.runs.sql_worker import MAX_ROWS as MAX_ROWS

MAX_SECONDS = 5
"""Wall clock of a query, the start of its process included."""
MAX_SQL_CHARACTERS = 20_000

_MAX_ANSWER_BYTES = 12 * MAX_CHARACTERS
"""As JSON."""

EXAMPLES = {
    "How often each agent found all": (
        """SELECT method, checkpoint, count(*) AS runs, avg(len(chosen)) AS chunks,
    avg(list_has_all(chosen, support)::INT) AS found_all
FROM (
    SELECT run_id, method, checkpoint, TRY_CAST(label->'$.support' AS BIGINT[]) AS support,
        list((event->>'$.chunk_id')::BIGINT) FILTER (kind = 'step_taken') AS taken,
        coalesce(any_value(event->'$.taken_back')::BIGINT[], []) AS taken_back,
        list_filter(taken, lambda chunk: NOT list_contains(taken_back, chunk)) AS chosen
    FROM runs JOIN events USING (run_id) GROUP BY ALL)
GROUP BY ALL ORDER BY runs DESC"""
    ),
    "Chunks that are chosen most": (
        """SELECT title, (event->>'$.chunk_id')::BIGINT AS chunk_id, count(*) AS times,
    any_value(left(event->>'$.text', 80)) AS begins
FROM events e JOIN run_documents d ON d.run_id = e.run_id AND d.position = 0
WHERE kind = 'step_taken' GROUP BY ALL ORDER BY times DESC LIMIT 50"""
    ),
    "Why runs stopped, and how near to the threshold": (
        """SELECT event->>'$.reason' AS reason, count(*) AS runs,
    avg((event->>'$.q_value')::DOUBLE) AS refused_q,
    avg((config->>'$.stop_threshold')::DOUBLE) AS threshold
FROM events JOIN runs USING (run_id) WHERE kind = 'stopped'
GROUP BY reason ORDER BY runs DESC"""
    ),
}
"""Queries to begin with, by what they tell."""


@dataclass(frozen=True)
class SqlResult:
    """An answer: cells as text, None for NULL."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool
    made_at: datetime
    milliseconds: float


def query_log(log: ExperimentLog, sql: str) -> SqlResult:
    """The answer of the latest snapshot. Raises BadRequest with what is wrong with the query, LogError."""
    if not sql.strip():
        raise BadRequest("the query is empty; write a SELECT, or take one of the examples")
    if len(sql) > MAX_SQL_CHARACTERS:
        raise BadRequest(
            f"the query has {len(sql):,} characters, more than {MAX_SQL_CHARACTERS:,}; shorten it"
        )
    path = snapshot_of(log.path)
    if not path.exists():
        log.snapshot()
    made_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    began = time.perf_counter()
    answer = _ask(path, sql)
    if "refused" in answer:
        raise BadRequest(
            f"only one SELECT statement is run here, and this is {answer['refused'][:100]}; ask for what you"
            " want to see in one"
        )
    if "error" in answer:
        raise BadRequest(f"the query can't be answered: {' '.join(answer['error'].split())[:400]}")
    rows = tuple(tuple(row) for row in answer["rows"])
    return SqlResult(
        tuple(answer["columns"]), rows, answer["more"], made_at, 1000 * (time.perf_counter() - began)
    )


def _ask(path: Path, sql: str) -> dict[str, Any]:
    until = time.monotonic() + MAX_SECONDS

    def on_time(*_: int) -> None:
        if time.monotonic() > until:
            raise ChildEnded(None)

    order = {"path": str(path), "catalog": CATALOG, "sql": sql}
    worker = "core.runs.sql_worker"
    try:
        _, text = ask_once(worker, order, b"", on_time, seconds=MAX_SECONDS, most_bytes=_MAX_ANSWER_BYTES)
    except OSError as error:
        raise LogError(
            f"no process for the query could be started ({error.strerror}); close something and try again"
        ) from error
    except ChildEnded as end:
        if end.by_time:
            raise BadRequest(
                f"the query took longer than {MAX_SECONDS} s and was ended; ask for less, for example with"
                " WHERE or LIMIT"
            ) from None
        raise BadRequest(
            "the query needs more memory than there is for one, or failed in another way; ask for less, for"
            " example fewer columns"
        ) from None
    answer: dict[str, Any] = json.loads(text)
    return answer
