"""Processes that record until they are killed; run by test_processes.

Usage: python -m tests.core.experiments.killed LOG. For each line on stdin a fresh process is forked that owns the log and records
runs; it prints "pid N" first, then "RUN_ID STEP" when a step is committed. Once it is dead the line "dead" follows.
Forking from a process that has imported everything, but opened nothing, makes a round cost milliseconds.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from core.experiments import ExperimentLog
from tests.core.experiments.recording import DOCUMENT, make_record, step_taken

N_CHUNKS = 3000


def record_until_killed(path: Path) -> None:
    """Record runs of six steps without end."""
    say(f"pid {os.getpid()}")
    log = ExperimentLog.open(path)
    while True:
        record = make_record(n_chunks=N_CHUNKS)
        log.start(record, [DOCUMENT])
        for step in range(1, 7):
            log.record(record.run_id, step_taken(record.run_id, step, N_CHUNKS))
            log.flush()
            say(f"{record.run_id} {step}")
        log.finish(record.run_id, "complete")


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
