"""A process whose files may not grow past a bound, which is what a full disk looks like."""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
from pathlib import Path
from typing import NoReturn

from core.base.errors import LogError
from core.runs.log import ExperimentLog
from tests.core.runs.log.recording import DOCUMENT, make_record, step_taken

N_CHUNKS = 500_000


def full_disk(*_: object) -> NoReturn:
    """In the place of a call that writes."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def limit_files(n_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def record_run(log: ExperimentLog, n_steps: int) -> tuple[str, str | None]:
    record = make_record(n_chunks=N_CHUNKS)
    log.start(record, [DOCUMENT])
    failures = []
    for step in range(1, n_steps + 1):
        log.record(record.run_id, step_taken(record.run_id, step, N_CHUNKS))
        try:
            log.flush()
        except LogError as error:
            failures.append(str(error))
    log.finish(record.run_id, "complete")
    log.flush()
    return record.run_id, next(iter(failures), None)


def main(path: Path, n_steps: int, n_bytes: int) -> None:
    """A run that fits, one that does not, one when there is room again."""
    with ExperimentLog.open(path) as log:
        runs = {"before": record_run(log, 2)}
        limit_files(n_bytes)
        runs["full"] = record_run(log, n_steps)
        reading = log.get(runs["before"][0]).n_steps
        limit_files(resource.RLIM_INFINITY)
        runs["after"] = record_run(log, 2)
        outcome = {
            name: (run_id, failure, log.get(run_id).status, log.get(run_id).n_steps)
            for name, (run_id, failure) in runs.items()
        }
        write_ahead_bytes = Path(f"{path}.wal").stat().st_size
    print(json.dumps({"runs": outcome, "reading": reading, "write_ahead_bytes": write_ahead_bytes}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
