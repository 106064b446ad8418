"""Processes that record until they are killed."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from core.runs.log import ExperimentLog, database
from tests.core.runs.log.recording import DOCUMENT, make_record, step_taken

N_CHUNKS = 3000
RECORDERS = 3
CHECKPOINT_BYTES = 256 << 10
"""Some twenty steps."""


def record_until_killed(path: Path) -> None:
    """Record runs of six steps without end."""
    say(f"pid {os.getpid()}")
    database.CHECKPOINT_BYTES = CHECKPOINT_BYTES
    log = ExperimentLog.open(path)
    for work in (*[record] * RECORDERS, copy):
        threading.Thread(target=work, args=[log], daemon=True).start()
    threading.Event().wait()


def record(log: ExperimentLog) -> None:
    """Runs of six steps; every third is deleted before its next one begins."""
    n_runs = 0
    while True:
        made = make_record(n_chunks=N_CHUNKS)
        log.start(made, [DOCUMENT])
        for step in range(1, 7):
            log.record(made.run_id, step_taken(made.run_id, step, N_CHUNKS))
            log.flush()
            say(f"{made.run_id} {step}")
        log.finish(made.run_id, "complete")
        n_runs += 1
        if n_runs % 3 == 0:
            say(f"{made.run_id} {DELETED}")
            log.delete(made.run_id, None)


DELETED = 0
"""In the place of a step: the run may be gone from now on."""


def copy(log: ExperimentLog) -> None:
    while True:
        log.snapshot()


def say(line: str) -> None:
    """One line in one write, so that a kill can't cut it."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


if __name__ == "__main__":
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            record_until_killed(Path(sys.argv[1]))
        os.waitpid(child, 0)
        say("dead")
