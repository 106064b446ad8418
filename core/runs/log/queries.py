"""Every SQL statement that reads the log.

A list holds the reader's own runs, and another's run opens by its id once it is shared. `owner` None is local
mode and means the runs without an owner.
"""

from __future__ import annotations

import json
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self, TypeAlias, TypeVar, get_args

from core.base.errors import LogError, RunNotFound
from core.methods.sparc.events import EndReason
from core.runs.log.blobs import decode_table, decode_text, read_event
from core.runs.log.bounds import MAX_INTEGER
from core.runs.log.database import Connection, storable
from core.runs.log.records import (
    MAX_PAGE,
    LoggedDocument,
    LoggedRun,
    RunCurve,
    RunFacets,
    RunPage,
    RunRecord,
    RunRow,
)

T = TypeVar("T")
Filter: TypeAlias = str | datetime | bool | Sequence[str]

MINE = "owner IS NOT DISTINCT FROM $owner"
VISIBLE = f"({MINE} OR shared)"

_OUTCOME_BYTES = 1 << 16
"""Of a trace, that are looked through for its outcome."""

_KEPT = """(
        SELECT list_filter(coalesce(list((event->>'$.chunk_id')::BIGINT) FILTER (kind = 'step_taken'), []),
            lambda chunk: NOT list_contains(coalesce(any_value(event->'$.taken_back')::BIGINT[], []), chunk))
        FROM events e WHERE e.run_id = r.run_id)"""
"""What a run chose and its review did not take back."""
_SUPPORT = "list_distinct(TRY_CAST(label->'$.support' AS BIGINT[]))"
"""NULL where a label, which may come from anywhere, has no list of chunks."""

_ROW = f"""
    SELECT run_id, created_at, finished_at, status, message, method, query, checkpoint, n_chunks,
        (SELECT count(*) FROM events e WHERE e.run_id = r.run_id AND kind = 'step_taken') AS n_steps,
        (SELECT coalesce(list(title ORDER BY position), []) FROM run_documents d WHERE d.run_id = r.run_id) AS titles,
        parent_run_id, shared, seed,
        (SELECT event->>'$.reason' FROM events e WHERE e.run_id = r.run_id AND kind = 'stopped') AS stop_reason,
        nullif(len({_SUPPORT}), 0) AS n_support, len(list_intersect({_KEPT}, {_SUPPORT})) AS n_found,
        (SELECT value FROM run_details d WHERE d.run_id = r.run_id AND d.name = 'answer') AS answer,
        label->>'$.answer' AS known_answer, coalesce(json_array_length(config, '$.searched'), 0) > 0 AS preview
    FROM runs r"""

SORTS = {
    "question": "lower(query)",
    "method": "method",
    "agent": "checkpoint",
    "answer": "lower(answer->>'$.text')",
    "sure": "CASE WHEN (answer->>'$.text') <> '' THEN TRY_CAST(answer->>'$.confidence' AS DOUBLE) END",
    "documents": "lower(array_to_string(titles, ', '))",
    "status": "status",
    "steps": "n_steps",
    "support": "n_found / n_support",
    "made": "created_at",
    "stopped by": "stop_reason",
    "chunks": "n_chunks",
    "seed": "seed",
    "took": "finished_at - created_at",
    "child of": "parent_run_id",
    "shared": "shared",
    "id": "run_id",
}
"""What a list can be sorted by, over the columns of `_ROW`."""

_FILTERS = {
    "text": "contains(lower(query), lower($text))",
    "method": "method = $method",
    "checkpoint": "checkpoint = $checkpoint",
    "status": "status = $status",
    "document": """run_id IN (SELECT run_id FROM run_documents
        WHERE sha256 = $document OR contains(lower(title), lower($document)))""",
    "since": "created_at >= $since",
    "until": "created_at < $until",
    "hit": f"CASE WHEN len({_SUPPORT}) > 0 THEN list_has_all({_KEPT}, {_SUPPORT}) END = $hit",
    "run_ids": "list_contains($run_ids::VARCHAR[], run_id)",
}


class RunReader(ABC):
    """Reading the log; subclasses say where from."""

    @abstractmethod
    def read(self, work: Callable[[Connection], T]) -> T:
        """`work` with a cursor over the log."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """What a statement brings, by the names of its columns."""
        return self.read(lambda con: rows_by_name(con.execute(statement, values)))

    def get(self, run_id: str, owner: str | None = None) -> LoggedRun:
        """The run with its events. Raises RunNotFound unless it is the reader's own or shared."""
        return self.read(lambda con: _fetch_run(con, _fetch_row(con, run_id, owner), owner))

    def documents(self, run_id: str, owner: str | None = None) -> tuple[LoggedDocument, ...]:
        """What the run read, in workspace order. Raises RunNotFound like `get`."""
        return self.read(lambda con: _fetch_documents(con, _fetch_row(con, run_id, owner)["run_id"]))

    def search(
        self,
        *,
        owner: str | None,
        limit: int = 50,
        offset: int = 0,
        sort: str = "made",
        descends: bool = True,
        **filters: Filter | None,
    ) -> RunPage:
        """The reader's own runs, newest first, or by another of SORTS; what has no value is last.

        Filters, None being none: `text`, part of the query; `method`; `checkpoint`; `status`; `document`, a
        hash, or part of a title, like the query without regard to case; `since` and `until`, with time zones,
        begun at or after the one and before the other; `hit`, of labelled runs those that kept all support,
        or those that did not; `run_ids`, of these only.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise LogError(f"limit={limit} must be between 1 and {MAX_PAGE}; turn pages with offset")
        if not 0 <= offset <= MAX_INTEGER:
            raise LogError(f"offset={str(offset)[:40]} must be between 0 and {MAX_INTEGER:,}; choose less")
        if sort not in SORTS:
            raise LogError(f"sort={sort[:40]!r} is no column; choose among {', '.join(SORTS)}")
        wanted = {name: _parameter(value) for name, value in filters.items() if value is not None}
        where, values = " AND ".join([MINE, *(_FILTERS[name] for name in wanted)]), {"owner": owner, **wanted}
        order = f"{SORTS[sort]} {'DESC' if descends else 'ASC'} NULLS LAST, created_at DESC, run_id"
        page, turned = f"({_ROW} WHERE {where})", "LIMIT $limit OFFSET $offset"
        if sort == "made":  # without counting anything of the runs on other pages
            ids = f"SELECT run_id FROM runs r WHERE {where} ORDER BY {order} {turned}"
            page, turned = f"({_ROW} WHERE run_id IN ({ids}))", "LIMIT $limit"
        rows, turn = f"SELECT * FROM {page} ORDER BY {order} {turned}", {"limit": limit, "offset": offset}

        def found(con: Connection) -> RunPage:
            [(total,)] = con.execute(f"SELECT count(*) FROM runs r WHERE {where}", values).fetchall()
            page = rows_by_name(con.execute(rows, values | turn))
            ends = _sparc_ends(con, [row["run_id"] for row in page if row["method"] == "sparc"])
            return RunPage(tuple(_row(row | ends.get(row["run_id"], {})) for row in page), total)

        return self.read(found)

    def facets(self, owner: str | None = None) -> RunFacets:
        """The methods and checkpoints of the reader's own runs."""
        pairs = self.rows(f"SELECT DISTINCT method, checkpoint FROM runs WHERE {MINE}", {"owner": owner})
        methods, checkpoints = ({pair[name] for pair in pairs} for name in ("method", "checkpoint"))
        return RunFacets(tuple(sorted(methods)), tuple(sorted(checkpoints)))

    def curves(self, run_ids: Sequence[str], owner: str | None = None) -> dict[str, RunCurve]:
        """Q along runs, without that of all chunks; ids that the reader may not open are left out."""
        rows = self.rows(
            f"""SELECT run_id, any_value((event->>'$.q_value')::DOUBLE) FILTER (kind = 'stopped') AS refused,
                list((event->>'$.q_value')::DOUBLE ORDER BY position) FILTER (kind = 'step_taken') AS chosen
            FROM events JOIN runs USING (run_id) WHERE {VISIBLE} AND list_contains($ids::VARCHAR[], run_id) GROUP BY run_id""",
            {"owner": owner, "ids": [storable(run_id) for run_id in run_ids]},
        )
        return {row["run_id"]: RunCurve(tuple(row["chosen"] or ()), row["refused"]) for row in rows}


class WritableLog(RunReader):
    """A log that runs, questions and measurements can be written into."""

    @abstractmethod
    def write(self, work: Callable[[Connection], T]) -> T:
        """`work` in a transaction; its result, or what it raised. Raises LogError."""

    @abstractmethod
    def remove(self, work: Callable[[Connection], T | None]) -> T | None:
        """`work` deletes, or returns None where there was nothing; its result. Raises LogError."""

    @abstractmethod
    def insert_finished(self, run: LoggedRun) -> bool:
        """Takes a whole run in, unless its id is there."""


def _parameter(value: Filter) -> str | bool | datetime | list[str]:
    """A value as the log compares it: times there are UTC without saying so."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, str):
        return storable(value)
    return value if isinstance(value, bool) else [storable(part) for part in value]


def _row(values: dict[str, Any]) -> RunRow:
    n_found = None if values["n_support"] is None else values["n_found"]
    known = {
        "created_at": _utc(values["created_at"]),
        "finished_at": values["finished_at"] and _utc(values["finished_at"]),
        "titles": tuple(values["titles"]),
        **_answered(values["answer"]),
        "known_answer": values["known_answer"] or "",
    }
    return RunRow(**values | known | {"n_found": n_found})


def rows_by_name(cursor: Connection) -> list[dict[str, Any]]:
    """What a statement brought, by the names of its columns."""
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _answered(detail: str | None) -> dict[str, Any]:
    """Out of the answer that a run left: what a reader was told, and how sure it was."""
    answer = json.loads(detail) if detail else None  # imported ones may hold anything
    if not isinstance(answer, dict) or not isinstance(answer.get("text"), str):
        return {"answer": None}
    sure = answer.get("confidence")
    if not (answer["text"] and isinstance(sure, int | float) and 0 <= sure <= 1):
        sure = None
    return {"answer": answer["text"], "confidence": sure}


_STOP_REASON = re.compile(rb'"stop_reason": "(%s)"' % "|".join(get_args(EndReason)).encode())
"""No text inside a trace matches: in it each quote is escaped."""


def _sparc_ends(con: Connection, run_ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """By SPARC run why it stopped, for which its event has two words only; a trace begins with its outcome."""
    rows = con.execute(
        "SELECT run_id, value, data FROM run_details LEFT JOIN blobs ON blob_id = blob AND part = 0"
        " WHERE name = 'sparc' AND list_contains(?::VARCHAR[], run_id)",
        [run_ids],
    ).fetchall()
    ends = {}
    for run_id, value, data in rows if run_ids else ():
        begins = value.encode() if data is None else zlib.decompressobj().decompress(data, _OUTCOME_BYTES)
        if found := _STOP_REASON.search(begins):
            ends[run_id] = {"stop_reason": found[1].decode()}
    return ends


def _fetch_row(con: Connection, run_id: str, owner: str | None) -> dict[str, Any]:
    """What the table of runs has of one that `owner` may see. Raises RunNotFound."""
    columns = f"* REPLACE (CASE WHEN {MINE} THEN owner END AS owner)"
    statement = f"SELECT {columns} FROM runs WHERE run_id = $run_id AND {VISIBLE}"
    rows = rows_by_name(con.execute(statement, {"run_id": storable(run_id), "owner": owner}))
    if not rows:
        raise RunNotFound(
            f"there is no run {run_id[:64]!r} that you may open; check the id, or ask its owner to share it"
        )
    return rows[0]


def _fetch_run(con: Connection, values: dict[str, Any], owner: str | None) -> LoggedRun:
    run_id = values["run_id"]
    created_at, finished_at = (values.pop(name) for name in ("created_at", "finished_at"))
    state = {name: values.pop(name) for name in ("status", "message", "shared")}
    for name in ("config", "chunking", "label"):
        values[name] = values[name] and json.loads(values[name])

    def of_run(statement: str, **more: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = con.execute(statement, {"run_id": run_id, **more}).fetchall()
        return rows

    documents = of_run(
        "SELECT title, sha256, kind FROM run_documents JOIN documents USING (sha256) WHERE run_id = $run_id"
        " ORDER BY position"
    )
    mine = f"SELECT run_id FROM runs WHERE parent_run_id = $run_id AND {MINE} ORDER BY created_at, run_id"
    children = of_run(mine, owner=owner)
    record = RunRecord(**values, document_hashes=tuple(sha256 for _, sha256, _ in documents))
    events = of_run("SELECT event, q_values FROM events WHERE run_id = $run_id ORDER BY position")
    details = of_run("SELECT name, value, blob FROM run_details WHERE run_id = $run_id ORDER BY name")
    run = LoggedRun(
        record=record,
        documents=tuple(LoggedDocument(*document) for document in documents),
        created_at=_utc(created_at),
        finished_at=finished_at and _utc(finished_at),
        events=tuple(
            read_event(json.loads(event), _unpacked(con, blob, bytes), record.n_chunks)
            for event, blob in events
        ),
        details={
            name: json.loads(decode_text(_blob(con, blob)) if value is None else value)
            for name, value, blob in details
        },
        children=tuple(child for (child,) in children),
        **state,
    )
    _ = run.trace  # one that this program can't read is refused here
    return run


def _fetch_documents(con: Connection, run_id: str) -> tuple[LoggedDocument, ...]:
    rows = con.execute(
        """SELECT r.title, r.sha256, d.kind, CASE WHEN NOT r.withheld THEN d.text END, t.columns FROM run_documents r JOIN documents d USING (sha256)
           LEFT JOIN chunk_tables t ON t.sha256 = r.table_sha256 WHERE r.run_id = ? ORDER BY r.position""",
        [run_id],
    ).fetchall()
    return tuple(
        LoggedDocument(
            title, sha256, kind, _unpacked(con, text, decode_text), _unpacked(con, columns, decode_table)
        )
        for title, sha256, kind, text, columns in rows
    )


def _unpacked(con: Connection, blob_id: int | None, read: Callable[[bytes], T]) -> T | None:
    """What a blob holds; None without one."""
    return None if blob_id is None else read(_blob(con, blob_id))


def _blob(con: Connection, blob_id: int) -> bytes:
    parts = con.execute("SELECT data FROM blobs WHERE blob_id = ? ORDER BY part", [blob_id]).fetchall()
    return b"".join(part for (part,) in parts)


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)
