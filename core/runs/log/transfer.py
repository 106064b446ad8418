"""Whole runs out of the log and into another, and their tables.

Who may export what is decided by the queries, as for every reader. CSV cells that a spreadsheet would run as
formulas are disarmed with an apostrophe.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from core.base.errors import LogError, RunNotFound
from core.runs.log.atomic import write_whole
from core.runs.log.database import Connection, literal, storable
from core.runs.log.otlp import Receiver
from core.runs.log.queries import MINE, VISIBLE, RunReader, WritableLog
from core.runs.log.records import LoggedRun, now
from core.runs.log.wire import read_runs

NAMED = f"{VISIBLE} AND list_contains($ids::VARCHAR[], run_id)"
"""Those of some runs that a reader may open."""

TABLES = {
    "runs": (
        """
        SELECT run_id, make_timestamptz(epoch_us(created_at)) AS created_at, make_timestamptz(epoch_us(finished_at)) AS finished_at, status, message, method, query, checkpoint, checkpoint_fingerprint, vectors, n_chunks,
            (SELECT count(*) FROM events e WHERE e.run_id = r.run_id AND kind = 'step_taken') AS n_steps,
            (SELECT event->>'$.reason' FROM events e WHERE e.run_id = r.run_id AND kind = 'stopped') AS stop_reason, seed, parent_run_id, fork_step,
            (SELECT to_json(list(title ORDER BY position))::VARCHAR FROM run_documents d WHERE d.run_id = r.run_id) AS titles,
            (SELECT to_json(list(sha256 ORDER BY position))::VARCHAR FROM run_documents d WHERE d.run_id = r.run_id) AS document_hashes,
            config::VARCHAR AS config, chunking::VARCHAR AS chunking, {label} AS label
        FROM runs r WHERE {where} ORDER BY r.created_at DESC, run_id"""
    ),
    "steps": (
        """
        SELECT run_id, position AS step, (event->>'$.chunk_id')::BIGINT AS chunk_id, (event->>'$.q_value')::DOUBLE AS q_value,
            (event->>'$.probability')::DOUBLE AS probability, (event->>'$.state_value')::DOUBLE AS state_value,
            (event->>'$.position')::DOUBLE AS position, event->>'$.chosen_by' AS chosen_by, (event->>'$.n_tied')::INTEGER AS n_tied,
            (event->>'$.milliseconds')::DOUBLE AS milliseconds, {text} AS text
        FROM events JOIN (SELECT run_id, created_at FROM runs WHERE {where}) USING (run_id)
        WHERE kind = 'step_taken' ORDER BY created_at DESC, run_id, step"""
    ),
}
_LABEL_WITHOUT_TEXT = """CASE WHEN len(TRY_CAST(label->'$.support' AS BIGINT[])) > 0
            THEN json_merge_patch(json_object('support', TRY_CAST(label->'$.support' AS BIGINT[])),
                CASE WHEN label->>'$.marked' = 'true' THEN '{"marked": true}' ELSE '{}' END)::VARCHAR END"""
"""As `LoggedRun.without_text` leaves it."""


def import_runs(
    log: WritableLog,
    path: Path,
    *,
    owner: str | None = None,
    keep_owner: bool = False,
    admit: Callable[[LoggedRun], None] = lambda _: None,
) -> int:
    """Take in the runs of an exported JSON file as `owner`'s, or with `keep_owner` those of an inbox or a copy
    as their own owners'; how many were new. A run whose id is taken is left as it stands; where it is another
    owner's, the importer's gets an id of its own, the same each time.

    The whole file is checked, and each run shown to `admit`, which may raise, before the first enters. Raises
    MalformedRuns when anything in it is not as it should be.
    """
    ids = []
    for run in read_runs(path, keep_owner=keep_owner):
        admit(run)
        ids.append(run.record.run_id)
    runs = read_runs(path, keep_owner=keep_owner)
    if keep_owner:
        return sum(map(log.insert_finished, runs))
    others = f"SELECT run_id FROM runs WHERE list_contains($ids::VARCHAR[], run_id) AND NOT ({MINE})"
    new_ids = {
        row["run_id"]: hashlib.sha256(f"{owner} {row['run_id']}".encode()).hexdigest()[:32]
        for row in log.rows(others, {"ids": ids, "owner": owner})
    }
    return sum(log.insert_finished(_taken_over(run, owner, new_ids)) for run in runs)


def _taken_over(run: LoggedRun, owner: str | None, new_ids: Mapping[str, str]) -> LoggedRun:
    """The run as `owner`'s. A visitor's is kept from now on, whenever the file says it ended."""
    record, ended = run.record, run.finished_at if owner is None else now()
    record = replace(
        record,
        owner=owner,
        run_id=new_ids.get(record.run_id, record.run_id),
        parent_run_id=record.parent_run_id and new_ids.get(record.parent_run_id, record.parent_run_id),
    )
    return replace(run, record=record, finished_at=ended)


def is_one_question(log: RunReader, run_ids: Sequence[str], owner: str | None) -> bool:
    """Whether all runs are of one question over the same chunks."""
    sql = f"""
        SELECT DISTINCT query, n_chunks, chunking::VARCHAR,
            (SELECT to_json(list(sha256 ORDER BY position))::VARCHAR FROM run_documents d WHERE d.run_id = r.run_id)
        FROM runs r WHERE {NAMED}"""
    return len(log.rows(sql, {"owner": owner, "ids": [storable(run_id) for run_id in run_ids]})) == 1


@dataclass(frozen=True)
class EndedRun:
    """A run that has ended, as far as a copy must know it."""

    run_id: str
    owner: str | None
    shared: bool


def ended_runs(log: RunReader) -> list[EndedRun]:
    """Every owner's, oldest first, so that parents come before their children."""
    query = "SELECT run_id, owner, shared FROM runs WHERE status <> 'running' ORDER BY created_at, run_id"
    return [EndedRun(**row) for row in log.rows(query)]


def ended_ids(log: RunReader, run_ids: Sequence[str] | None, owner: str | None) -> list[str]:
    """Of the runs named, or of all that are `owner`'s, newest first. Raises RunNotFound, LogError."""
    where, values = f"{MINE} AND status <> 'running'", dict[str, Any](owner=owner)
    if run_ids is not None:
        where = NAMED
        values["ids"] = [storable(run_id) for run_id in run_ids]
    rows = log.rows(f"SELECT run_id, status FROM runs WHERE {where} ORDER BY created_at DESC, run_id", values)
    status = {row["run_id"]: row["status"] for row in rows}
    missing = {*(run_ids or ())} - status.keys()
    if missing:
        raise RunNotFound(f"there is no run {min(missing)[:64]!r} that you may open; check the id")
    running = [run_id for run_id in status if status[run_id] == "running"]
    if running:
        raise LogError(f"run {running[0]} is still going on; export it when it has ended")
    return list(status)


def send_runs(
    log: RunReader, run_ids: Sequence[str] | None, receiver: Receiver, *, include_text: bool = True
) -> int:
    """Send runs that have ended; returns how many. Raises LogError at the first that is not taken."""
    ids = ended_ids(log, run_ids, None)
    for run in whole_runs(log, ids, include_text, None):
        receiver.send(run)
    return len(ids)


def whole_runs(
    log: RunReader, ids: Sequence[str], include_text: bool, owner: str | None
) -> Iterator[LoggedRun]:
    """The runs of `ended_ids`, oldest first: parents come before their children."""
    for run_id in reversed(ids):
        run = finished_run(log, run_id, owner)
        yield run if include_text else run.without_text()


def finished_run(log: RunReader, run_id: str, owner: str | None) -> LoggedRun:
    """A run that has ended, with its texts. Raises RunNotFound, LogError for one that goes on."""
    run = log.get(run_id, owner)
    if run.status == "running":
        raise LogError(f"run {run.record.run_id} is still going on; export it when it has ended")
    return replace(run, documents=log.documents(run_id, owner))


def write_table(
    log: RunReader,
    name: str,
    target: Path,
    where: str,
    values: Mapping[str, Any],
    *,
    include_text: bool = True,
) -> None:
    """One of `TABLES`, of the runs that `where` names, as the kind of file that `target` is."""
    text, label = ("event->>'$.text'", "label::VARCHAR") if include_text else ("''", _LABEL_WITHOUT_TEXT)
    select = TABLES[name].format(where=where, text=text, label=label)
    if target.suffix == ".parquet":
        log.rows(f"COPY ({select}) TO {literal(str(target))} (FORMAT parquet)", values)
    else:
        log.read(lambda con: write_whole(target, _csv_lines(con.execute(select, values))))


def _csv_lines(cursor: Connection) -> Iterator[str]:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    header = [column[0] for column in cursor.description]
    for row in chain([header], iter(cursor.fetchone, None)):
        writer.writerow([disarmed(cell) for cell in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def disarmed(cell: Any) -> Any:
    """A text cell that no spreadsheet takes for a formula; numbers stay as they are.

    >>> disarmed("=1+1"), disarmed(-0.5), disarmed("plain")
    ("'=1+1", -0.5, 'plain')
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
