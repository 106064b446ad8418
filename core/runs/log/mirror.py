"""Whole logs on their way to a copy and back.

Files of runs with their owners, tables of all runs, and what a copy was given before. A copy has every run
that has ended, whoever owns it. Only whoever runs the program may make one or take one in: visitors'
exports and imports know no owner but the caller. The log remembers which runs a copy was given: one of
these that is gone from the log was deleted and must go from the copy, any other was put there by somebody
else.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from core.base.errors import LogError
from core.runs.log.database import literal
from core.runs.log.queries import RunReader
from core.runs.log.store import ExperimentLog
from core.runs.log.transfer import TABLES, finished_run, import_runs
from core.runs.log.wire import check_lines, run_lines

SHARD_BYTES = 8 << 20
"""Length from which a file of runs takes no more; text of up to 10 MB can be removed from git for good."""

_logger = logging.getLogger(__name__)


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


def write_shard(log: RunReader, runs: Iterator[EndedRun], path: Path) -> list[str]:
    """Take runs from `runs` into one file until it has SHARD_BYTES; their ids, none when there were no more.

    Runs that were deleted in the meantime, or can't be read, or not read back, are left out: one of them must
    not cost the others. Raises OSError.
    """
    written: list[str] = []
    texts: set[str] = set()
    with path.open("wb") as file:
        for run in runs:
            try:
                with_texts = set(texts)
                lines = list(run_lines(finished_run(log, run.run_id, run.owner), with_texts, with_owner=True))
                check_lines(lines)
            except LogError as error:
                _logger.warning("left out of the copy: %s", error)
                continue
            file.writelines(line.encode() for line in lines)
            texts = with_texts
            written.append(run.run_id)
            if file.tell() >= SHARD_BYTES:
                break
    return written


def write_tables(log: RunReader, folder: Path) -> list[Path]:
    """`runs.parquet` and `steps.parquet` of every run that has ended, without owners."""
    paths = []
    for name, table in TABLES.items():
        path = folder / f"{name}.parquet"
        select = table.format(where="status <> 'running'", text="event->>'$.text'")
        statement = f"COPY ({select}) TO {literal(str(path))} (FORMAT parquet)"
        log.rows(statement)
        paths.append(path)
    return paths


def take_in_shard(
    log: ExperimentLog, path: Path, *, shared: Collection[str], deleted: Collection[str]
) -> int:
    """Take in a file of `write_shard`, each run as its owner's and shared if it is among `shared`; how many
    were new.

    What was `deleted` here stays so, but enters for a moment: it may bring the text of a document that later
    runs of the file read. Raises MalformedRuns, and takes in nothing, when the file is not as it should be.
    """
    before = {run.run_id for run in ended_runs(log)}
    n_new = import_runs(log, path, keep_owner=True)
    for run in ended_runs(log):
        if run.run_id in before:
            continue
        if run.run_id in deleted:
            log.delete(run.run_id, run.owner)
            n_new -= 1
        elif run.run_id in shared:
            log.share(run.run_id, run.owner)
    return n_new


def known_to_copy(log: RunReader, copy: str) -> set[str]:
    """Runs that a copy was given, or that came from it."""
    return {
        row["run_id"] for row in log.rows("SELECT run_id FROM copied_runs WHERE copy = $copy", {"copy": copy})
    }


def remember_copied(log: ExperimentLog, copy: str, run_ids: Collection[str]) -> None:
    """Add to what a copy knows, for good: a deleted run that somebody else gives it again is not to come
    back. Remembering one too many does no harm.
    """
    statement = "INSERT OR IGNORE INTO copied_runs SELECT ?, unnest(?::VARCHAR[])"
    log.write(lambda con: con.execute(statement, [copy, sorted(run_ids)]))
