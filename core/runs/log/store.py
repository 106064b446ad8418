"""`ExperimentLog`: the log as its one owner process sees it.

What is recorded, shared or deleted goes through one queue, and reads wait for what was queued before them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import duckdb

from core.base.errors import LogError, RunNotFound
from core.base.events import Event, RunStarted
from core.base.home import home
from core.base.types import ChunkTable, Document
from core.runs.log import statements
from core.runs.log.database import Connection, Database, explain, snapshot_of, unfinished_snapshot_of
from core.runs.log.inbox import InboxLog, inbox_of
from core.runs.log.lock import LogOwned, lock_as_owner
from core.runs.log.measurements import Evaluation, Training, insert, take_in
from core.runs.log.migrations import migrate
from core.runs.log.otlp import Receiver, Sender
from core.runs.log.queries import WritableLog
from core.runs.log.records import (
    DetailName,
    FinalStatus,
    LoggedRun,
    RunRecord,
    detail_json,
    logged_documents,
    now,
)
from core.runs.log.transfer import finished_run, import_runs
from core.runs.log.wire import MalformedRuns
from core.runs.log.writer import QueuedWork, Writer

T = TypeVar("T")

KINDS = ("jsonl", "evaluation", "training")
"""How names of inbox files end."""

_logger = logging.getLogger(__name__)


def default_log_path() -> Path:
    """`log.duckdb` in $QRAG_HOME, or in ~/.local/share/qrag-explorer."""
    return home() / "log.duckdb"


class ExperimentLog(WritableLog):
    """The log file, owned. Every method may be called from any thread."""

    def __init__(self, path: Path, database: Database, lock: int) -> None:
        self.path = path
        self._database = database
        self._lock = lock
        self._writer = Writer(database)
        self.sender: Sender | None = None
        """What sends finished runs on as traces, if anything does."""
        self._snapshot = threading.Lock()
        """Held while a snapshot is made or dropped, so that none brings back what was deleted."""

    @classmethod
    def open(cls, path: Path) -> ExperimentLog:
        """Become the owner; the file is made or migrated as needed, and runs that a dead process left open
        are marked failed.

        Raises LogOwned when another process owns it, LogError when it is damaged (it is left as it is) or of
        a newer version.
        """
        path = Path(path).absolute()
        lock = lock_as_owner(path)
        try:
            database = Database(path)
            try:
                database.read(lambda con: migrate(con, path))
                database.write(lambda con: statements.fail_interrupted(con, now()))
                database.rewrite_if_due()
            except (LogError, duckdb.Error) as error:
                database.close(tidy=False)
                raise error if isinstance(error, LogError) else explain(error, path) from error
        except BaseException:
            os.close(lock)
            raise
        return cls(path, database, lock)

    def close(self) -> None:
        """Commit what is queued and give the file up. Further calls do nothing."""
        if self.sender is not None:
            self.sender.close()
        self._writer.close()
        if self._lock >= 0:
            self._database.close()
            os.close(self._lock)
            self._lock = -1

    def start(
        self, record: RunRecord, documents: Sequence[Document], tables: Sequence[ChunkTable] | None = None
    ) -> None:
        """Begin a run; returns at once. A child gets copies of the steps it keeps of a parent."""
        logged, created_at = logged_documents(record, documents, tables), now()

        def apply(con: Connection) -> None:
            statements.insert_run(con, record, logged, created_at)
            statements.copy_parent_steps(con, record)

        self._writer.submit(QueuedWork(apply, record.run_id))

    def record(self, run_id: str, event: Event) -> None:
        """Add one event with its scores; returns at once. The first says nothing new, and is not kept."""
        if not isinstance(event, RunStarted):
            self._writer.submit(QueuedWork(lambda con: statements.insert_event(con, run_id, event), run_id))

    def attach(self, run_id: str, name: DetailName, value: dict[str, Any], owner: str | None) -> None:
        """Put a JSON object beside a run of `owner`, instead of an earlier one of that name, and wait for the
        commit. Raises RunNotFound, LogError when it is too long or, for a SPARC trace, the run is over.
        """
        text = detail_json(name, value)
        self.write(lambda con: statements.attach_detail(con, run_id, name, text, owner))

    def finish(self, run_id: str, status: FinalStatus, message: str | None = None) -> None:
        """End a run; returns at once. A run of which something could not be written ends as failed."""
        finished_at = now()

        def apply(con: Connection) -> None:
            broken = self._writer.broken.get(run_id)
            if broken is None:
                statements.finish_run(con, run_id, status, message, finished_at)
            else:
                with contextlib.suppress(RunNotFound):  # its very start may be what could not be written
                    statements.finish_run(con, run_id, "failed", broken, finished_at)

        self._writer.submit(QueuedWork(apply, run_id, last=True))
        if self.sender is not None:
            self.sender.offer(lambda: finished_run(self, run_id, None))  # None: a visitor's is not found

    def keep(self, measurement: Evaluation | Training) -> None:
        """Keep an evaluation or a training, and wait for the commit; nothing happens when all of it is there.
        Raises RunNotFound for another's training, LogError.
        """
        self.write(lambda con: insert(con, measurement))

    def flush(self, run_ids: Collection[str] | None = None) -> None:
        """Waits until all that was queued is committed. Raises the first LogError of these runs, or of any run,
        that was not raised before.
        """
        self._settle()
        failure = self._writer.take_failure(run_ids)
        if failure is not None:
            raise failure

    def read(self, work: Callable[[Connection], T]) -> T:
        """`work` with a cursor, after everything queued before."""
        self._settle()
        return self._database.read(work)

    def write(self, work: Callable[[Connection], T]) -> T:
        """`work` in a transaction behind what was queued; its result, or what it raised. Raises LogError."""
        return self._writer.call(work)

    def remove(self, work: Callable[[Connection], T | None]) -> T | None:
        """See `WritableLog`. What it deletes leaves the snapshot at once, and the file when that is next
        copied, closed or opened.
        """

        def apply(con: Connection) -> T | None:
            removed = work(con)
            if removed is not None:
                self._database.note_deletion()
            return removed

        removed = self.write(apply)
        if removed is not None:
            with self._snapshot:
                snapshot_of(self.path).unlink(missing_ok=True)
        return removed

    def share(self, run_id: str, owner: str | None) -> None:
        """Lets anyone with its id open the run, its documents and numbers. Raises RunNotFound."""
        self.write(lambda con: statements.share_run(con, run_id, owner))

    def delete(self, run_id: str, owner: str | None) -> None:
        """Removes a run of `owner`, and the snapshot. Raises RunNotFound unless it is `owner`'s."""
        self.remove(lambda con: statements.delete_run(con, run_id, owner))

    def expire(self, before: datetime) -> frozenset[str]:
        """Deletes visitors' runs that ended (or began, where nobody ended them) before a moment with its time
        zone, and their evaluations, trainings and marked questions; the ids of the runs. Sharing doesn't
        lengthen a run's life. Documents that nobody refers to any more go, and the snapshot. Raises LogError.
        """
        return self.remove(lambda con: statements.expire(con, before)) or frozenset()

    def snapshot(self) -> Path:
        """Copy the log to `<log>.snapshot` for readers in other processes, with everything queued before;
        where the disk is too full to fold that into the log, only what was folded earlier. The old one is
        replaced when the new one is whole; what was deleted is not in it. Raises LogError.
        """
        target, fresh = snapshot_of(self.path), unfinished_snapshot_of(self.path)
        with self._snapshot:
            self._writer.fold()
            if self._database.unclean is not None:
                raise LogError(
                    f"no copy was made, which would hold what was deleted: {self._database.unclean}"
                )
            try:
                self._database.copy_to(fresh)
                os.replace(fresh, target)
            except (OSError, ValueError) as error:  # the second: the log could not be opened again
                raise explain(error, target) from error
            finally:
                fresh.unlink(missing_ok=True)
        return target

    def insert_finished(self, run: LoggedRun) -> bool:
        """Takes in a whole run in one transaction, and waits; False, unchanged, when its id is taken."""
        return self.write(lambda con: statements.insert_finished(con, run))

    def import_inbox(self) -> int:
        """Take in what other processes left in the inbox: runs, evaluations, trainings; how many were new.

        A file that is none of these is set aside as `*.rejected`; one that the log can't take in now stays,
        and the others come in all the same. Both are told in the process's log.
        """
        count = 0
        for path in sorted(path for kind in KINDS for path in inbox_of(self.path).glob(f"*.{kind}")):
            try:
                count += self._take_in(path)
            except Exception as error:  # whatever it is, the next file may be better
                _logger.warning("%s stays: %s", path, error, exc_info=not isinstance(error, LogError))
        return count

    def _take_in(self, path: Path) -> int:
        read = _version(path)
        try:
            is_runs = path.suffix == ".jsonl"
            count = import_runs(self, path, keep_owner=True) if is_runs else take_in(self, path)
        except (MalformedRuns, RunNotFound) as error:  # or another's training
            _logger.warning("set aside as %s.rejected: %s", path, error)
            os.replace(path, f"{path}.rejected")
            return 0
        if _version(path) == read:  # else it was left anew since
            path.unlink()
        return count

    def _settle(self) -> None:
        self._writer.call(lambda _: None)


def _version(path: Path) -> tuple[int, int]:
    """Of a file that is only ever replaced."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns


RunLog: TypeAlias = ExperimentLog | InboxLog
"""What runs are recorded in, from any thread."""


def open_log(path: Path) -> RunLog:
    """The log itself if nobody owns it, else its inbox; either sends finished runs on where the environment
    names a receiver of traces. Raises BadRequest where it names none that could be one.
    """
    receiver = Receiver.of_environment()
    try:
        log: RunLog = ExperimentLog.open(path)
    except LogOwned:
        log = InboxLog(path)
    log.sender = None if receiver is None else Sender(receiver)
    return log
