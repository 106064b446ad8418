"""Runs out of the log and into another.

JSON (lines, lossless), CSV and Parquet (a table of runs and a table of steps), HTML (a page a run, or one of
several runs of one question), OpenInference (a line a run, for tools that show traces), GraphML (a graph a
SPARC run). Only JSON carries the Q-values of all chunks and comes back in. Who may export what is decided by
the queries, as for every reader.
CSV cells that a spreadsheet would run as formulas are disarmed with an apostrophe.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from core.errors import LogError, RunNotFound
from core.log.atomic import write_whole
from core.log.comparison_page import MAX_COLUMNS, comparison_page
from core.log.database import Connection, literal, storable
from core.log.graph import graphml_of
from core.log.otlp import Receiver, json_line
from core.log.page import run_page
from core.log.queries import MINE, VISIBLE, RunReader
from core.log.records import now
from core.log.spans import spans_of
from core.log.wire import FinishedRun, read_runs, run_lines

ExportFormat = Literal["json", "csv", "parquet", "html", "openinference", "graphml"]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
LINES: dict[str, str] = {"json": ".jsonl", "openinference": ".otlp.jsonl"}
"""Formats that are one file for all runs, and how its name ends."""
FILES: dict[str, str] = {"html": ".html", "graphml": ".graphml"}
"""Formats that are a file a run, and how its name ends."""

TABLES = {
    "runs": (
        """
        SELECT run_id, created_at, finished_at, status, message, method, query, checkpoint, checkpoint_fingerprint, vectors, n_chunks,
            (SELECT count(*) FROM events e WHERE e.run_id = r.run_id AND kind = 'step_taken') AS n_steps,
            (SELECT event->>'$.reason' FROM events e WHERE e.run_id = r.run_id AND kind = 'stopped') AS stop_reason, seed, parent_run_id, fork_step,
            (SELECT to_json(list(title ORDER BY position))::VARCHAR FROM run_documents d WHERE d.run_id = r.run_id) AS titles,
            (SELECT to_json(list(sha256 ORDER BY position))::VARCHAR FROM run_documents d WHERE d.run_id = r.run_id) AS document_hashes,
            config::VARCHAR AS config, chunking::VARCHAR AS chunking, label::VARCHAR AS label
        FROM runs r WHERE {where} ORDER BY created_at DESC, run_id"""
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


class RunSink(Protocol):
    """Whatever takes in whole runs: the log."""

    def insert_finished(self, run: FinishedRun) -> bool:
        """False when the run's id is taken."""


def export_runs(
    log: RunReader,
    run_ids: Sequence[str] | None,
    format: ExportFormat,
    target: Path,
    *,
    include_text: bool = True,
    owner: str | None = None,
) -> Path:
    """Write runs that have ended, all of `owner`'s if `run_ids` is None, to `target`; returns the file (json,
    openinference) or the folder (csv, parquet, html, graphml) written.

    `target` is a folder, which is made, or for lines and for the page or graph of one run also a file; several
    runs of one question over the same chunks become one page where it is a file. Without text, texts of documents and chunks stay behind, and headings; a graph is of nothing else, so it needs them.
    Raises RunNotFound for an id that `owner` may not open, LogError for a run that goes on or a disk that is
    full.
    """
    if format not in FORMATS:
        raise LogError(f"format={format!r} is unknown; choose one of {', '.join(FORMATS)}")
    ids = _ended(log, run_ids, owner)
    target = Path(target)
    try:
        if format in LINES:
            file = target if target.suffix and not target.is_dir() else target / f"runs{LINES[format]}"
            file.parent.mkdir(parents=True, exist_ok=True)
            runs = _runs(log, ids, include_text, owner)
            write_whole(file, _json_lines(runs) if format == "json" else map(json_line, map(spans_of, runs)))
            return file
        if format in FILES:
            return _write_files(log, ids, target, format, include_text, owner)
        target.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            file = target / f"{name}.{format}"
            log.read(
                partial(_write_table, name=name, ids=ids, owner=owner, include_text=include_text, target=file)
            )
    except OSError as error:
        raise LogError(
            f"the export to {target} could not be written ({error.strerror}); choose a folder with room that"
            " you can write to"
        ) from error
    return target


def import_runs(
    log: RunSink,
    path: Path,
    *,
    owner: str | None = None,
    admit: Callable[[FinishedRun], None] = lambda _: None,
) -> int:
    """Take in the runs of an exported JSON file as `owner`'s; how many were new. A run whose id is taken is
    left as it stands.

    The whole file is checked, and each run shown to `admit`, which may raise, before the first enters. Raises
    MalformedRuns when anything in it is not as it should be.
    """
    return import_file(log, path, owner=owner, admit=admit)


def import_file(
    log: RunSink,
    path: Path,
    *,
    keep_owner: bool = False,
    owner: str | None = None,
    admit: Callable[[FinishedRun], None] = lambda _: None,
) -> int:
    """`import_runs`, or with `keep_owner` the runs of an inbox file as their own owner's."""
    for run in read_runs(path, keep_owner=keep_owner):
        admit(run)
    runs = read_runs(path, keep_owner=keep_owner)
    return sum(log.insert_finished(run if keep_owner else _taken_over(run, owner)) for run in runs)


def _taken_over(run: FinishedRun, owner: str | None) -> FinishedRun:
    """The run as `owner`'s. A visitor's is kept from now on, whenever the file says it ended."""
    return run.owned_by(owner) if owner is None else replace(run.owned_by(owner), finished_at=now())


def _ended(log: RunReader, run_ids: Sequence[str] | None, owner: str | None) -> list[str]:
    if run_ids is None:
        return log.read(lambda con: _ids(con, f"{MINE} AND status <> 'running'", {"owner": owner}))
    wanted = {"owner": owner, "ids": [storable(run_id) for run_id in run_ids]}
    ids = log.read(lambda con: _ids(con, f"{VISIBLE} AND list_contains($ids::VARCHAR[], run_id)", wanted))
    missing = set(run_ids) - set(ids)
    if missing:
        raise RunNotFound(f"there is no run {min(missing)[:64]!r} that you may open; check the id")
    running = log.read(
        lambda con: _ids(
            con, f"{VISIBLE} AND list_contains($ids::VARCHAR[], run_id) AND status = 'running'", wanted
        )
    )
    if running:
        raise LogError(f"run {running[0]} is still going on; export it when it has ended")
    return ids


def is_comparison(log: RunReader, run_ids: Sequence[str], owner: str | None) -> bool:
    """Whether runs fit on one page as columns: several, of one question over the same chunks."""
    if not 1 < len(set(run_ids)) <= MAX_COLUMNS:
        return False
    asked = f"""
        SELECT DISTINCT query, n_chunks, chunking::VARCHAR,
            (SELECT to_json(list(sha256 ORDER BY position))::VARCHAR FROM run_documents d WHERE d.run_id = r.run_id)
        FROM runs r WHERE {VISIBLE} AND list_contains($ids::VARCHAR[], run_id)"""
    values = {"owner": owner, "ids": [storable(run_id) for run_id in run_ids]}
    return len(log.read(lambda con: con.execute(asked, values).fetchall())) == 1


def _ids(con: Connection, where: str, values: dict[str, Any]) -> list[str]:
    return [
        run_id
        for (run_id,) in con.execute(
            f"SELECT run_id FROM runs WHERE {where} ORDER BY created_at DESC, run_id", values
        ).fetchall()
    ]


def send_runs(
    log: RunReader,
    run_ids: Sequence[str] | None,
    receiver: Receiver,
    *,
    include_text: bool = True,
    owner: str | None = None,
) -> int:
    """Send runs that have ended to a receiver of traces, see `export_runs`; returns how many. Raises LogError
    at the first that it doesn't take.
    """
    ids = _ended(log, run_ids, owner)
    for run in _runs(log, ids, include_text, owner):
        receiver.send(spans_of(run))
    return len(ids)


def _runs(log: RunReader, ids: Sequence[str], include_text: bool, owner: str | None) -> Iterator[FinishedRun]:
    for run_id in reversed(ids):  # oldest first: parents come before their children
        run = finished_run(log, run_id, owner)
        yield run if include_text else run.without_text()


def _json_lines(runs: Iterator[FinishedRun]) -> Iterator[str]:
    texts_written: set[str] = set()
    for run in runs:
        yield from run_lines(run, texts_written)


def finished_run(log: RunReader, run_id: str, owner: str | None) -> FinishedRun:
    """A run that has ended, whole. Raises RunNotFound, LogError for one that goes on."""
    run, documents = log.get(run_id, owner), log.documents(run_id, owner)
    if run.finished_at is None or run.status == "running":
        raise LogError(f"run {run.record.run_id} is still going on; export it when it has ended")
    return FinishedRun(
        run.record,
        documents,
        run.created_at,
        run.finished_at,
        run.status,
        run.message,
        run.events,
        details=run.details,
    )


def _write_files(
    log: RunReader,
    ids: Sequence[str],
    target: Path,
    format: ExportFormat,
    include_text: bool,
    owner: str | None,
) -> Path:
    one_file = target.suffix == FILES[format] and not target.is_dir()
    together = one_file and format == "html" and is_comparison(log, ids, owner)
    if one_file and len(ids) != 1 and not together:
        raise LogError(
            f"{len(ids)} runs are as many files, and {target} is one file; name a folder, one run, or for html up"
            f" to {MAX_COLUMNS} runs of one question over the same chunks"
        )
    (target.parent if one_file else target).mkdir(parents=True, exist_ok=True)
    if together:
        runs = [log.get(run_id, owner) for run_id in reversed(ids)]  # oldest first, as they were compared
        page = comparison_page(runs, log.documents(ids[0], owner), with_text=include_text)
        write_whole(target, page.encode())
        return target
    for run_id in ids:
        if format == "html":
            run, documents = log.get(run_id, owner), log.documents(run_id, owner)
            written = run_page(run, documents, with_text=include_text).encode()
        else:
            [whole] = _runs(log, [run_id], include_text, owner)
            written = graphml_of(whole)
        write_whole(target if one_file else target / f"run-{run_id}{FILES[format]}", written)
    return target


def _write_table(
    con: Connection, name: str, ids: list[str], owner: str | None, include_text: bool, target: Path
) -> None:
    text = "event->>'$.text'" if include_text else "''"
    select = TABLES[name].format(where=f"{VISIBLE} AND list_contains($ids::VARCHAR[], run_id)", text=text)
    values = {"owner": owner, "ids": ids}
    if target.suffix == ".parquet":
        con.execute(f"COPY ({select}) TO {literal(str(target))} (FORMAT parquet)", values)
        return
    cursor = con.execute(select, values)
    write_whole(target, _csv_lines([column[0] for column in cursor.description], iter(cursor.fetchone, None)))


def _csv_lines(header: Sequence[str], rows: Iterator[Sequence[Any]]) -> Iterator[str]:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    for row in (header, *rows):
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
