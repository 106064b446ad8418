"""Kills processes that record into one log, at random moments."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.base.errors import RunNotFound
from core.runs.log import ExperimentLog, LoggedRun
from core.runs.log.statements import INTERRUPTED
from core.runs.log.undo import HEADER_BYTES, kept_blocks, undo_of
from tests.core.runs.log.killed import DELETED, N_CHUNKS
from tests.core.runs.log.recording import DOCUMENT, q_values, step_taken

ROOT = Path(__file__).resolve().parents[4]
MOST_LINES = 40
"""Committed steps that a process is left before its last moments, at most."""
LAST_SECONDS = 0.03
"""And of those, at most: some steps' time."""


@dataclass(frozen=True)
class Killed:
    """One process and its log afterwards."""

    n_committed: int
    """Steps that it said were committed."""
    opening_seconds: float
    """Until the log was open again."""
    wrong: tuple[str, ...]
    """What the log lacks or has otherwise than it was recorded; empty when it holds."""
    cut_off: bool
    """Whether it died in a checkpoint, of whose blocks none was left whole."""


def kill_at_random_moments(path: Path, n: int, seed: int) -> Iterator[Killed]:
    """One after the other, all on the same log. Raises LogError when it does not open again."""
    rng = random.Random(seed)
    command = [sys.executable, "-m", "tests.core.runs.log.killed", str(path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as forker:
        for _ in range(n):
            committed = _kill_one(forker, rng)
            cut_off = _tear(path)
            began = time.perf_counter()
            with ExperimentLog.open(path) as log:
                seconds = time.perf_counter() - began
                yield Killed(sum(committed.values()), seconds, tuple(_wrong(log, committed)), cut_off)
        forker.stdin.close()


def _kill_one(forker: subprocess.Popen[str], rng: random.Random) -> dict[str, int]:
    """Let a process record and kill it; the last committed step of each of its runs, DELETED where that was
    asked for.
    """
    forker.stdin.write("go\n")
    forker.stdin.flush()
    pid = int(forker.stdout.readline().split()[1])
    lines = [forker.stdout.readline() for _ in range(rng.randrange(MOST_LINES))]
    time.sleep(rng.random() * LAST_SECONDS)
    os.kill(pid, signal.SIGKILL)
    lines += iter(forker.stdout.readline, "dead\n")
    return {run_id: int(step) for run_id, step in (line.split() for line in lines)}


def _tear(path: Path) -> bool:
    """Leave of each block that DuckDB would have written anew a part, as a kill inside of that write does."""
    if not undo_of(path).exists():
        return False
    kept = undo_of(path).read_bytes()
    with path.open("r+b") as file:
        if file.read(HEADER_BYTES) != kept[:HEADER_BYTES]:
            return False
        for offset, _ in kept_blocks(kept):
            file.seek(offset)
            file.write(os.urandom(4096))
    return True


def _wrong(log: ExperimentLog, committed: dict[str, int]) -> Iterator[str]:
    """A sentence for each committed step that is not there as it was, and for what else the log should not
    hold.
    """
    for run_id, last in committed.items():
        try:
            run = log.get(run_id)
        except RunNotFound:
            if last != DELETED:
                yield f"run {run_id} is gone with {last} committed steps"
            continue
        if run.n_steps < last:
            yield f"run {run_id} has {run.n_steps} of {last} committed steps"
        if not _as_recorded(run):
            yield f"run {run_id} is not as it was recorded"
    if log.search(owner=None, status="running").total:
        yield "a run of the dead process still counts as running"
    for row in log.search(owner=None, limit=3).rows:
        if log.get(row.run_id).n_steps != row.n_steps or log.documents(row.run_id)[0].text != DOCUMENT.text:
            yield f"run {row.run_id} is not whole"


def _as_recorded(run: LoggedRun) -> bool:
    run_id, steps = run.record.run_id, run.trace.steps
    if steps != tuple(step_taken(run_id, step, N_CHUNKS) for step in range(1, run.n_steps + 1)):
        return False
    scores = all(
        step.scores is not None
        and step.scores.q_values.tobytes() == q_values(run_id, step.step, N_CHUNKS).tobytes()
        for step in steps
    )
    return scores and (run.status == "complete" or (run.status, run.message) == ("failed", INTERRUPTED))
