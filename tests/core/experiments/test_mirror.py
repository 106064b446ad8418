"""What a copy of the log is made of; tests/core/hub/test_export.py sends it round the world and back."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from core.experiments import ExperimentLog
from core.experiments.mirror import ended_runs, known_to_copy, remember_copied, take_in_shard, write_shard
from tests.core.experiments.recording import DOCUMENT, log_run, make_record

A = "a" * 64


def test_every_owners_ended_runs_are_listed_oldest_first(log: ExperimentLog) -> None:
    records = [log_run(log, make_record(owner=owner)) for owner in (A, None, "b" * 64)]
    log.start(make_record(owner=A), [DOCUMENT])
    assert [(run.run_id, run.owner, run.shared) for run in ended_runs(log)] == [(record.run_id, record.owner, False) for record in records]


def test_a_run_that_can_not_be_read_keeps_no_other_out(log: ExperimentLog, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    strange, deleted, good = (log_run(log, make_record(owner=A)) for _ in range(3))
    log.write(lambda con: con.execute("UPDATE runs SET config = '{\"surprise\": 1}' WHERE run_id = ?", [strange.run_id]))
    runs = ended_runs(log)
    log.delete(deleted.run_id, A)
    with caplog.at_level(logging.WARNING):
        assert write_shard(log, iter(runs), tmp_path / "shard.jsonl") == [good.run_id]
    assert [strange.run_id in record.getMessage() or deleted.run_id in record.getMessage() for record in caplog.records] == [True, True]
    with ExperimentLog.open(tmp_path / "other.duckdb") as other:
        assert take_in_shard(other, tmp_path / "shard.jsonl", shared=(), deleted=()) == 1
        assert other.get(good.run_id, A).record.owner == A


def test_copies_know_what_they_were_given_and_no_more(log: ExperimentLog, path: Path) -> None:
    remember_copied(log, "one", ["1", "2"])
    remember_copied(log, "one", ["2", "3"])
    remember_copied(log, "other", ["4"])
    log.close()
    with ExperimentLog.open(path) as again:
        assert known_to_copy(again, "one") == {"1", "2", "3"}
        assert known_to_copy(again, "other") == {"4"}
        assert known_to_copy(again, "none") == set()
