"""The inbox.

Where a process leaves its finished runs when another one owns the log, which takes them in with
`ExperimentLog.import_inbox`. A run is kept in memory while it goes and written when it ends: a killed process
leaves nothing half done.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.base.errors import LogError, RunNotFound
from core.base.events import Event, RunStarted
from core.base.types import ChunkTable, Document
from core.runs.log.atomic import write_whole
from core.runs.log.measurements import Evaluation, Training, inbox_file
from core.runs.log.otlp import Sender
from core.runs.log.records import (
    DetailName,
    FinalStatus,
    LoggedRun,
    RunRecord,
    detail_json,
    logged_documents,
    not_recorded,
    now,
)
from core.runs.log.wire import run_lines


def inbox_of(path: Path) -> Path:
    """The folder of runs that wait for the owner of the log at `path`."""
    return Path(f"{path}.inbox")


class InboxLog:
    """A `RunLog` whose runs wait in files."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()
        self.sender: Sender | None = None
        """What sends finished runs on as traces, if anything does."""
        self._runs: dict[str, LoggedRun] = {}
        self._lock = threading.Lock()

    def start(
        self, record: RunRecord, documents: Sequence[Document], tables: Sequence[ChunkTable] | None = None
    ) -> None:
        """Begin a run."""
        logged = logged_documents(record, documents, tables)
        with self._lock:
            self._runs[record.run_id] = LoggedRun(record=record, documents=logged, created_at=now())

    def record(self, run_id: str, event: Event) -> None:
        """Add one event with its scores."""
        if isinstance(event, RunStarted):
            return
        with self._lock:
            run = self._run(run_id)
            self._runs[run_id] = replace(run, events=(*run.events, event))

    def attach(self, run_id: str, name: DetailName, value: dict[str, Any], owner: str | None) -> None:
        """Put a JSON object beside a run that goes on, instead of an earlier one of that name."""
        detail_json(name, value)
        with self._lock:
            run = self._run(run_id)
            if run.record.owner != owner:
                raise RunNotFound(f"there is no run {run_id[:64]!r} of yours to add to")
            self._runs[run_id] = replace(run, details={**run.details, name: value})

    def finish(self, run_id: str, status: FinalStatus, message: str | None = None) -> None:
        """End a run and write it. Raises LogError when it can't be written."""
        with self._lock:
            run = replace(self._run(run_id), status=status, message=message, finished_at=now())
            del self._runs[run_id]
        if self.sender is not None and run.record.owner is None:
            self.sender.offer(lambda: run)
        self.leave(f"{run_id}.jsonl", run_lines(run, set(), with_owner=True))

    def keep(self, measurement: Evaluation | Training) -> None:
        """Write an evaluation or a training. Raises LogError when it can't be written."""
        name, text = inbox_file(measurement)
        self.leave(name, [text])

    def flush(self, run_ids: Collection[str] | None = None) -> None:
        """Nothing waits: `finish` and `keep` write."""

    def close(self) -> None:
        """Runs that did not finish are forgotten."""
        if self.sender is not None:
            self.sender.close()
        self._runs.clear()

    def leave(self, name: str, text: Iterable[str]) -> None:
        """Write a file for the owner to take in. Raises LogError when it can't be written."""
        folder = inbox_of(self.path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, text)
        except (OSError, ValueError) as error:
            raise LogError(
                f"{name} could not be left in {folder} ({error}); make room or pass another file with --log"
            ) from error

    def _run(self, run_id: str) -> LoggedRun:
        if run_id not in self._runs:
            raise not_recorded(run_id)
        return self._runs[run_id]
