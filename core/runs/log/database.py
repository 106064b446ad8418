"""One DuckDB file.

DuckDB gives up its whole instance when a checkpoint can't be written, even one that a commit started,
although the commit is safe in the write-ahead log. So automatic checkpoints are off; the writer calls
`checkpoint_if_due` between transactions, and an instance that gave up is closed and opened again, which needs
no disk space. A copy of the file's bytes between two checkpoints is a whole database; DuckDB's own `COPY FROM
DATABASE` takes twice as long, and is for a log in which something was deleted: DuckDB overwrites neither rows
nor blocks that it lets go of, so that their words could still be read in the file.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import re
import shutil
import threading
from collections.abc import Callable
from os.path import realpath
from pathlib import Path
from typing import TypeAlias, TypeVar

import duckdb

from core.base.errors import LogError
from core.runs.log.atomic import replace_for_good, sync, write_whole
from core.runs.log.lock import LogOwned
from core.runs.log.undo import HEADER_BYTES, keep_blocks, put_blocks_back, undo_of

T = TypeVar("T")
Connection: TypeAlias = duckdb.DuckDBPyConnection

CHECKPOINT_BYTES = 4 << 20
"""Length from which the write-ahead log is folded into the file: until then it lies in memory."""

IDLE_MEMORY = "8MB"
"""What DuckDB keeps of the file in memory after folding; by itself it keeps all, up to its limit."""

CATALOG = "log"
"""Name of the log inside DuckDB; user SQL may say log.runs or runs."""

_ROW_GROUPS = "ROW_GROUP_SIZE 2048"
"""Small ones keep checkpoints short, see migrations."""

_COPIED_AT_ONCE = 1 << 20

_REWRITING_MEMORY = "512MB"
"""What DuckDB may take while it writes the log anew; by itself it would take all."""

_SETTINGS = {
    "threads": 2,
    "memory_limit": "2GB",
    "checkpoint_threshold": "1TB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

_logger = logging.getLogger(__name__)


class Database:
    """The connection of one process to the log file. One thread writes, any thread reads."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._file = Path(realpath(path))  # its name may be a link
        self._ahead = Path(f"{self._file}.wal")
        self._read_only = read_only
        self._connection = self._connect()
        self._bytes = path.open("rb", buffering=0)
        """Open as long as the connection: closing a file gives up all of the process's locks on it."""
        self._settled = threading.RLock()
        """Held while the file changes, and while it must not."""
        self._deleted = Path(f"{self._file}.deleted")
        self.unclean: LogError | None = None
        """Why the file may still say what was deleted, if the last try to write it anew failed."""
        self._checkpoint_at = CHECKPOINT_BYTES
        self._readers = 0
        self._idle = threading.Condition()

    def write(self, work: Callable[[Connection], T]) -> T:
        """`work` in one transaction: committed on return, undone when it raises. One thread at a time."""
        try:
            return self._transaction(work)
        # the instance gave up, or could not be opened again after an earlier failure
        except (duckdb.FatalException, duckdb.ConnectionException):
            self._reopen()
            return self._transaction(work)

    def read(self, work: Callable[[Connection], T]) -> T:
        """`work` with a cursor of its own. Raises LogError with a sentence where DuckDB fails."""
        try:
            try:
                return self._with_cursor(work)
            except duckdb.FatalException:  # the instance gave up; the writer opens the file again
                return self._with_cursor(work)
        except duckdb.Error as error:
            raise explain(error, self.path) from error

    def checkpoint_if_due(self, *, force: bool = False) -> None:
        """Fold the write-ahead log into the file when it is long; after a failure, when it has grown as much
        again. While the file is being copied nothing is folded, unless `force`, which waits. For the thread
        that writes.
        """
        size = self._ahead.stat().st_size if self._ahead.exists() else 0
        is_due = size > (0 if force else self._checkpoint_at)
        if not is_due or not self._settled.acquire(blocking=force):
            return
        try:
            self._checkpoint()
        except (duckdb.Error, OSError):
            self._checkpoint_at = size + CHECKPOINT_BYTES
            self._reopen()
        finally:
            self._settled.release()

    def _checkpoint(self) -> None:
        keep_blocks(self._connection, CATALOG, self._bytes, undo_of(self._file))
        self._connection.execute(f"CHECKPOINT {CATALOG}")
        undo_of(self._file).unlink()
        self._checkpoint_at = CHECKPOINT_BYTES
        self._empty_cache()

    def note_deletion(self) -> None:
        """Makes `rewrite_if_due` due, for the next process, too: call it before the commit. Raises OSError."""
        write_whole(self._deleted, b"")

    def rewrite_if_due(self) -> None:
        """Write the file anew where something was deleted; readers wait for the swap only. After a failure,
        told in the process's log, the file is as it was. For the thread that writes.
        """
        if not self._deleted.exists():
            return
        fresh = Path(f"{self._file}.fresh")
        with self._settled:
            try:
                self._checkpoint()
                _remove(fresh)  # of a process that was killed
                self._write_anew(fresh)
                self._reopen(fresh)
                for copy in self._left_behind():
                    copy.unlink(missing_ok=True)
                self._deleted.unlink()
                self.unclean = None
            except (duckdb.Error, OSError, LogError) as error:
                self._reopen()
                self.unclean = explain(error, self.path)
                _logger.warning("what was deleted can still be read in the file: %s", self.unclean)
            finally:
                _remove(fresh)

    def _left_behind(self) -> list[Path]:
        """What a process that was killed may have left with words that were deleted since."""
        unfinished = self._file.parent.glob(f".{glob.escape(self._file.name)}.*.tmp")
        return [snapshot_of(self.path), unfinished_snapshot_of(self.path), *unfinished]

    def _write_anew(self, fresh: Path) -> None:
        self._connection.execute(f"SET memory_limit = '{_REWRITING_MEMORY}'")
        self._connection.execute(f"ATTACH {literal(str(fresh))} AS fresh (TYPE duckdb, {_ROW_GROUPS})")
        shutil.copymode(self.path, fresh)
        self._connection.execute(f"COPY FROM DATABASE {CATALOG} TO fresh")
        self._connection.execute("CHECKPOINT fresh")
        self._connection.execute("DETACH fresh")
        sync(fresh)

    def copy_to(self, target: Path) -> None:
        """Copy the file as the last checkpoint left it, while others read and write. Raises OSError."""
        with self._settled, target.open("wb") as file:
            self._bytes.seek(0)
            shutil.copyfileobj(self._bytes, file, _COPIED_AT_ONCE)

    def _empty_cache(self) -> None:
        """Lets go of blocks of the file, unless somebody reads, whom the limit would stop."""
        with self._idle:
            if self._readers:
                return
            with contextlib.suppress(duckdb.Error):  # more than that is in use
                self._connection.execute(f"SET memory_limit = '{IDLE_MEMORY}'")
            self._connection.execute(f"SET memory_limit = '{_SETTINGS['memory_limit']}'")

    def close(self, *, tidy: bool = True) -> None:
        """Let go of the file, with its write-ahead log folded into it if `tidy`."""
        if tidy and not self._read_only:
            with contextlib.suppress(LogError, duckdb.Error):
                self.checkpoint_if_due(force=True)
                self.rewrite_if_due()
        with self._settled:
            self._connection.close()
            self._bytes.close()

    def _transaction(self, work: Callable[[Connection], T]) -> T:
        self._connection.execute("BEGIN")
        try:
            result = work(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(duckdb.Error):  # a failed commit has rolled back already
                self._connection.execute("ROLLBACK")
            raise
        return result

    def _with_cursor(self, work: Callable[[Connection], T]) -> T:
        with self._idle:
            self._readers += 1
            cursor = self._connection.cursor()
        try:
            cursor.execute(f"USE {CATALOG}")
            return work(cursor)
        finally:
            cursor.close()
            with self._idle:
                self._readers -= 1
                self._idle.notify_all()

    def _connect(self) -> Connection:
        # else what doesn't fit in memory goes to the folder that the program was started in
        beside = {"temp_directory": f"{self.path}.tmp"}
        connection = duckdb.connect(":memory:", config=_SETTINGS | beside)
        # else closing folds the write-ahead log, without a way back and into what should stay as it is
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        try:
            if not self._read_only:
                self._check_alone()
                put_blocks_back(self._file)
            mode = "READ_ONLY" if self._read_only else _ROW_GROUPS
            connection.execute(f"ATTACH {literal(str(self.path))} AS {CATALOG} (TYPE duckdb, {mode})")
            connection.execute(f"USE {CATALOG}")
            self._check_whole(connection)
        except (duckdb.Error, OSError, LogError) as error:
            connection.close()
            raise error if isinstance(error, LogError) else explain(error, self.path) from error
        return connection

    def _check_alone(self) -> None:
        """Raises LogError where the log is gone and a killed process's other parts of it are not: DuckDB would
        delete them.
        """
        left = [part.name for part in (self._ahead, undo_of(self._file)) if part.exists()]
        if left and not self._file.exists():
            raise LogError(
                f"there is no log {self.path}, but its folder has {' and '.join(left)} with steps of one; move"
                " what is left to where that log is now, or delete it"
            )

    def _check_whole(self, connection: Connection) -> None:
        """Raises LogError when the file ends before its last block in use, over which DuckDB would write.

        DuckDB cuts unused blocks off without a note, so a file may be shorter than it says; only then is each
        table asked.
        """
        [(n_blocks, n_used, block_bytes)] = connection.execute(
            "SELECT total_blocks, used_blocks, block_size FROM pragma_database_size() WHERE database_name ="
            " current_database()"
        ).fetchall()
        n_there = (self.path.stat().st_size - HEADER_BYTES) // block_bytes if block_bytes else 0
        if n_there >= n_blocks:
            return
        n_needed = n_used
        for name in table_names(connection):
            last = f"SELECT coalesce(max(block_id), -1) FROM pragma_storage_info({literal(name)})"
            [(block,)] = connection.execute(last).fetchall()
            n_needed = max(n_needed, 1 + block)
        if n_there < n_needed:
            raise _cut_short(self.path, f"it has {n_there:,} blocks of the {n_needed:,} that it uses")

    def _reopen(self, fresh: Path | None = None) -> None:
        """fresh: what takes the file's place. Raises OSError, LogError."""
        # two instances on one file would destroy it: the last reader of the old one leaves first
        with self._settled, self._idle:
            self._idle.wait_for(lambda: self._readers == 0)
            self._connection.close()
            self._bytes.close()
            if fresh is not None:
                if self._ahead.exists():  # which would be added to the new file, too
                    raise LogError("its write-ahead log could not be folded into it")
                replace_for_good(fresh, self._file)
            self._connection = self._connect()
            self._bytes = self.path.open("rb", buffering=0)


def snapshot_of(path: Path) -> Path:
    """Where the snapshot of a log lies."""
    return Path(f"{path}.snapshot")


def unfinished_snapshot_of(path: Path) -> Path:
    """Where it is written."""
    return Path(f"{path}.snapshot.tmp")


def table_names(connection: Connection) -> list[str]:
    """Of the database in use."""
    names = "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
    return [name for (name,) in connection.execute(names).fetchall()]


def _remove(file: Path) -> None:
    for name in (file, Path(f"{file}.wal")):
        name.unlink(missing_ok=True)


def explain(error: Exception, path: Path) -> LogError:
    """An error of DuckDB or the system as one sentence with a remedy."""
    message = str(error).strip()
    first_line = (message.splitlines() or [type(error).__name__])[0]
    if "Conflicting lock" in message:
        return LogOwned(
            f"the log {path} is in use by another process; close it there or pass another file with --log"
        )
    if re.search("No space left|File too large|Disk quota", message):
        return LogError(
            f"the log {path} could not be written because the disk is full; make room, later runs will be"
            " logged again"
        )
    if "Could not read enough bytes" in message:
        return _cut_short(path, first_line[:200])
    if re.search("not a valid DuckDB|[Cc]orrupt|replaying WAL|checksum", message):
        return LogError(
            f"the log {path} is damaged and was left as it is ({first_line[:200]}); move it aside or pass"
            " another file with --log"
        )
    return LogError(
        f"the log {path} could not be used ({first_line[:300]}); move it aside or pass another file with"
        " --log"
    )


def _cut_short(path: Path, how: str) -> LogError:
    return LogError(
        f"the log {path} was cut short and left as it is ({how}); copy the whole file here again, move it"
        " aside or pass another with --log"
    )


def storable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair, which DuckDB refuses."""
    return text.encode("utf-8", "replace").decode()


def literal(text: str) -> str:
    """A string inside a statement, for the few places where DuckDB takes no parameter."""
    return "'" + text.replace("'", "''") + "'"
