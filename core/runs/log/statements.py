"""Every SQL statement that changes the log.

Each function runs inside the transaction of its caller. A finished run takes no more events, and only its
owner shares or deletes it. Strings go in as parameters, never into the statement. Half a surrogate pair,
which DuckDB refuses, becomes a question mark.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from core.base.batches import batches
from core.base.errors import LogError, RunNotFound
from core.base.events import StepTaken, Stopped, event_to_json
from core.runs.log.blobs import encode_scores, encode_table, encode_text
from core.runs.log.database import Connection, storable
from core.runs.log.records import (
    DetailName,
    FinalStatus,
    LoggedDocument,
    LoggedRun,
    RunRecord,
    detail_json,
    not_recorded,
)

PART_BYTES = 4_000
"""Length of a part of a blob, just below the 4,096 bytes from which DuckDB stores a string apart."""

INTERRUPTED = "the process that made this run ended before the run did"


def insert_run(
    con: Connection, record: RunRecord, documents: Sequence[LoggedDocument], created_at: datetime
) -> None:
    """A run that has just started."""
    told = record.to_json()
    del told["document_hashes"]
    values = {
        **{name: storable(value) if isinstance(value, str) else value for name, value in told.items()},
        **{name: json_text(told[name]) for name in ("config", "chunking", "label") if told[name] is not None},
        "status": "running",
        "shared": False,
        "created_at": stored_time(created_at),
    }
    columns = ", ".join(values)
    con.execute(f"INSERT INTO runs ({columns}) VALUES ({', '.join('$' + name for name in values)})", values)
    for position, document in enumerate(documents):
        insert_document(con, document)
        title, table = storable(document.title), _insert_table(con, document)
        con.execute(
            "INSERT INTO run_documents VALUES (?, ?, ?, ?, ?, ?)",
            [record.run_id, position, document.sha256, title, table, document.withheld],
        )


def copy_parent_steps(con: Connection, record: RunRecord) -> None:
    """The steps a child run keeps of its parent, where they are missing and its owner may see the parent; so
    no run needs another to be read.

    All of them or none: a file may name a parent that has fewer, and a gap could not be read back.
    """
    if record.parent_run_id is None:
        return
    con.execute(
        """INSERT OR IGNORE INTO events SELECT $child, position, kind, event, q_values FROM events
           JOIN runs USING (run_id) WHERE run_id = $parent AND position <= $fork_step AND kind = 'step_taken'
           AND (owner IS NOT DISTINCT FROM $owner OR shared) AND n_chunks = $n_chunks
           AND $fork_step = (SELECT count(*) FROM events WHERE run_id = $parent AND position <= $fork_step AND kind = 'step_taken')""",
        {
            "child": record.run_id,
            "parent": record.parent_run_id,
            "fork_step": record.fork_step,
            "owner": record.owner,
            "n_chunks": record.n_chunks,
        },
    )


def insert_finished(con: Connection, run: LoggedRun) -> bool:
    """A run that has ended; False, and nothing changed, when its id is taken."""
    assert run.status != "running"
    assert run.finished_at is not None
    if con.execute("SELECT 1 FROM runs WHERE run_id = ?", [run.record.run_id]).fetchone():
        return False
    insert_run(con, run.record, run.documents, run.created_at)
    for event in run.events:
        insert_event(con, run.record.run_id, event)
    copy_parent_steps(con, run.record)
    for name, value in run.details.items():
        attach_detail(con, run.record.run_id, name, detail_json(name, value), run.record.owner)
    finish_run(con, run.record.run_id, run.status, run.message, run.finished_at)
    return True


def insert_document(con: Connection, document: LoggedDocument) -> None:
    """The text by its hash, unless it is there. A text that is no valid Unicode is not kept."""
    row = con.execute("SELECT text IS NOT NULL FROM documents WHERE sha256 = ?", [document.sha256]).fetchone()
    if row == (True,) or (row is not None and document.text is None):
        return
    text = None
    with suppress(UnicodeEncodeError):
        text = None if document.text is None else insert_blob(con, encode_text(document.text))
    if row is None:
        con.execute("INSERT INTO documents VALUES (?, ?, ?)", [document.sha256, document.kind, text])
    else:
        con.execute("UPDATE documents SET text = ? WHERE sha256 = ?", [text, document.sha256])


def insert_event(con: Connection, run_id: str, event: StepTaken | Stopped) -> None:
    """One event with the Q-values of all chunks. A step copied from the parent already stays as it is."""
    run = con.execute(
        "SELECT fork_step, n_chunks FROM runs WHERE run_id = ? AND status = 'running'", [run_id]
    ).fetchone()
    if run is None:
        raise not_recorded(run_id)
    fork_step, n_chunks = run
    position = event.step if isinstance(event, StepTaken) else event.n_steps + 1
    scores = event.scores
    if scores is not None and scores.q_values.shape != (n_chunks,):
        raise LogError(
            f"an event of run {run_id} has Q-values of shape {scores.q_values.shape} instead of ({n_chunks},)"
        )
    verb = "INSERT OR IGNORE" if position <= (fork_step or 0) else "INSERT"
    blob = None if scores is None else insert_blob(con, encode_scores(scores.q_values))
    con.execute(
        f"{verb} INTO events VALUES (?, ?, ?, ?, ?)",
        [run_id, position, event.event, json_text(event_to_json(event)), blob],
    )


def attach_detail(con: Connection, run_id: str, name: DetailName, value: str, owner: str | None) -> None:
    """JSON beside a run, in place of the one of that name. A run that has ended takes only answers."""
    run = con.execute(
        "SELECT status FROM runs WHERE run_id = ? AND owner IS NOT DISTINCT FROM ?", [storable(run_id), owner]
    ).fetchone()
    if run is None:
        raise RunNotFound(f"there is no run {run_id[:64]!r} of yours to add to")
    if run != ("running",) and name == "sparc":
        raise LogError(f"run {run_id} is finished and takes no detail {name!r} any more")
    inline = value if len(value.encode()) <= PART_BYTES else None
    blob = None if inline is not None else insert_blob(con, encode_text(value))
    con.execute(
        "DELETE FROM blobs WHERE blob_id = (SELECT blob FROM run_details WHERE run_id = ? AND name = ?)",
        [run_id, name],
    )
    con.execute("INSERT OR REPLACE INTO run_details VALUES (?, ?, ?, ?)", [run_id, name, inline, blob])


def finish_run(
    con: Connection, run_id: str, status: FinalStatus, message: str | None, finished_at: datetime
) -> None:
    """Close a run for good."""
    _change(
        con,
        "UPDATE runs SET status = ?, message = ?, finished_at = ? WHERE run_id = ? AND status = 'running'",
        [status, None if message is None else storable(message), stored_time(finished_at), run_id],
        f"run {run_id} can't be finished: it was not started, or is finished already",
    )


def fail_interrupted(con: Connection, at: datetime) -> None:
    """Close the runs that a process left open when it ended."""
    con.execute(
        "UPDATE runs SET status = 'failed', message = ?, finished_at = ? WHERE status = 'running'",
        [INTERRUPTED, stored_time(at)],
    )


def share_run(con: Connection, run_id: str, owner: str | None) -> None:
    """Let anyone who has its id open the run."""
    share = "UPDATE runs SET shared = true WHERE run_id = ? AND owner IS NOT DISTINCT FROM ?"
    _change(con, share, [storable(run_id), owner], f"there is no run {run_id[:64]!r} of yours to share")


def delete_run(con: Connection, run_id: str, owner: str | None) -> str:
    """Removes a run, and texts and tables no other run needs; its id. Children keep the steps they share."""
    delete = "DELETE FROM runs WHERE run_id = ? AND owner IS NOT DISTINCT FROM ?"
    _change(con, delete, [storable(run_id), owner], f"there is no run {run_id[:64]!r} of yours to delete")
    drop_unused(con)
    return run_id


def _change(con: Connection, statement: str, values: Sequence[Any], refusal: str) -> None:
    """Raises RunNotFound where no row is changed."""
    if con.execute(statement, values).fetchone() == (0,):
        raise RunNotFound(refusal)


_LEFT_BEHIND = {"runs": "owner IS NOT NULL AND coalesce(finished_at, created_at) < $before"} | dict.fromkeys(
    ("evaluations", "trainings", "marked_questions"), "owner IS NOT NULL AND created_at < $before"
)
"""What visitors made long ago. What has no owner was made in local mode and stays for good."""


def expire(con: Connection, before: datetime) -> frozenset[str] | None:
    """Deletes what visitors left behind; the ids of the runs, None where there was nothing."""
    value = {"before": stored_time(before)}
    runs = con.execute(f"SELECT run_id FROM runs WHERE {_LEFT_BEHIND['runs']}", value).fetchall()
    changed = [
        con.execute(f"DELETE FROM {table} WHERE {old}", value).fetchone()
        for table, old in _LEFT_BEHIND.items()
    ]
    if all(n == (0,) for n in changed):
        return None
    con.execute("DELETE FROM episode_rows WHERE evaluation_id NOT IN (SELECT evaluation_id FROM evaluations)")
    con.execute("DELETE FROM training_events WHERE training_id NOT IN (SELECT training_id FROM trainings)")
    drop_unused(con)
    return frozenset(run_id for (run_id,) in runs)


def drop_unused(con: Connection) -> None:
    """Removes events, details, documents and chunk tables of no run, and blobs nothing refers to."""
    for table in ("events", "run_details", "run_documents"):
        con.execute(f"DELETE FROM {table} WHERE run_id NOT IN (SELECT run_id FROM runs)")
    con.execute("DELETE FROM documents WHERE sha256 NOT IN (SELECT sha256 FROM run_documents)")
    con.execute(
        "DELETE FROM chunk_tables WHERE sha256 NOT IN (SELECT table_sha256 FROM run_documents WHERE"
        " table_sha256 IS NOT NULL)"
    )
    con.execute(
        """
        DELETE FROM blobs WHERE blob_id NOT IN (
            SELECT q_values FROM events WHERE q_values IS NOT NULL UNION ALL SELECT text FROM documents WHERE text IS NOT NULL
            UNION ALL SELECT columns FROM chunk_tables UNION ALL SELECT blob FROM run_details WHERE blob IS NOT NULL)"""
    )


def insert_blob(con: Connection, data: bytes) -> int:
    """The number under which the bytes are kept."""
    [(blob_id,)] = con.execute("SELECT coalesce(max(blob_id), 0) + 1 FROM blobs").fetchall()
    parts = list(batches(data, PART_BYTES))
    con.execute(
        "INSERT INTO blobs SELECT $id, unnest(range(len($parts::BLOB[]))), unnest($parts::BLOB[])",
        {"id": blob_id, "parts": parts},
    )
    return int(blob_id)


def stored_time(moment: datetime) -> datetime:
    """A time as the log has it: UTC without saying so."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def json_text(value: Any) -> str:
    """JSON as DuckDB stores it. Raises ValueError on NaN and infinity, which JSON does not have."""
    return storable(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _insert_table(con: Connection, document: LoggedDocument) -> str | None:
    if document.table is None:
        return None
    columns = encode_table(document.table)
    sha256 = hashlib.sha256(columns).hexdigest()
    if con.execute("SELECT 1 FROM chunk_tables WHERE sha256 = ?", [sha256]).fetchone() is None:
        con.execute("INSERT INTO chunk_tables VALUES (?, ?)", [sha256, insert_blob(con, columns)])
    return sha256
