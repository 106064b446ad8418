"""Deleting what visitors left behind.

Their runs and evaluations of long ago, and the documents that nobody refers to any more. Age counts from a
run's end, or from its beginning while nobody ended it; sharing doesn't lengthen it. What has no owner was
made in local mode and stays for good. The caller says what is too old.
"""

from __future__ import annotations

from datetime import UTC, datetime

from core.runs.log.database import Connection
from core.runs.log.statements import drop_unused
from core.runs.log.store import ExperimentLog


def expire(log: ExperimentLog, before: datetime) -> frozenset[str]:
    """Deletes visitors' runs that ended, and evaluations, trainings and marked questions that were made,
    before a moment (with its time zone); the ids of the runs.

    The snapshot goes with them. Raises LogError when the log can't be written.
    """
    moment = before.astimezone(UTC).replace(tzinfo=None)
    if not any(
        log.rows(f"SELECT 1 FROM {table} WHERE {old} LIMIT 1", {"before": moment})
        for table, old in _OLD.items()
    ):
        return frozenset()
    expired = log.write(lambda con: _expire(con, moment))
    log.drop_snapshot()
    return expired


_OLD = {"runs": "owner IS NOT NULL AND coalesce(finished_at, created_at) < $before"} | dict.fromkeys(
    ("evaluations", "trainings", "marked_questions"), "owner IS NOT NULL AND created_at < $before"
)


def _expire(con: Connection, before: datetime) -> frozenset[str]:
    select = f"SELECT run_id FROM runs WHERE {_OLD['runs']}"
    runs = con.execute(select, {"before": before}).fetchall()
    for table, old in _OLD.items():
        con.execute(f"DELETE FROM {table} WHERE {old}", {"before": before})
    con.execute("DELETE FROM episode_rows WHERE evaluation_id NOT IN (SELECT evaluation_id FROM evaluations)")
    con.execute("DELETE FROM training_events WHERE training_id NOT IN (SELECT training_id FROM trainings)")
    drop_unused(con)
    return frozenset(run_id for (run_id,) in runs)
