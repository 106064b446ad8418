"""`kill -9` of processes that log runs under load.

200 times at random moments, and the log opened after each. A process records from three threads at once,
deletes runs, folds its write-ahead log and copies snapshots all the time. What it says is committed is then
looked for, Q of all chunks included. All processes share one log, so that a mistake would be found later,
too.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import Row
from tests.core.runs.log.killing import kill_at_random_moments


def rows(n: int = 200) -> list[Row]:
    """`n`: processes killed. Raises LogError when the log does not open again."""
    with tempfile.TemporaryDirectory() as folder:
        killed = list(kill_at_random_moments(Path(folder, "log.duckdb"), n, seed=0))
    wrong = [sentence for one in killed for sentence in one.wrong]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    opening = [1000 * one.opening_seconds for one in killed]
    return [
        Row("processes killed, and logs that opened again", len(killed), "logs"),
        Row("steps they had committed", sum(one.n_committed for one in killed), "steps"),
        Row("faults: a committed step that was lost, or a run otherwise than recorded", len(wrong), "faults"),
        Row("opening the log after a kill, median", statistics.median(opening), "ms"),
        Row("opening the log after a kill, longest", max(opening), "ms"),
    ]
