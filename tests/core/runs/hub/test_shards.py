"""What a copy of the log is made of; tests/core/runs/hub/test_export.py sends it round the world and back."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from core.runs.hub.export import known_to_copy, remember_copied, take_in_shard, write_shard
from core.runs.log import ExperimentLog
from core.runs.log.transfer import ended_runs
from tests.core.runs.log.recording import DOCUMENT, log_run, make_record

A = "a" * 64


def test_every_owners_ended_runs_are_listed_oldest_first(log: ExperimentLog) -> None:
    records = [log_run(log, make_record(owner=owner)) for owner in (A, None, "b" * 64)]
    log.start(make_record(owner=A), [DOCUMENT])
    assert [(run.run_id, run.owner, run.shared) for run in ended_runs(log)] == [
        (record.run_id, record.owner, False) for record in records
    ]


def test_a_run_that_can_not_be_read_keeps_no_other_out(
    log: ExperimentLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    strange, deleted, good = (log_run(log, make_record(owner=A)) for _ in range(3))
    log.write(
        lambda con: con.execute(
            "UPDATE runs SET config = '{\"surprise\": 1}' WHERE run_id = ?", [strange.run_id]
        )
    )
    runs = ended_runs(log)
    log.delete(deleted.run_id, A)
    with caplog.at_level(logging.WARNING):
        assert write_shard(log, iter(runs), tmp_path / "shard.jsonl") == [good.run_id]
    assert [
        strange.run_id in record.getMessage() or deleted.run_id in record.getMessage()
        for record in caplog.records
    ] == [True, True]
    with ExperimentLog.open(tmp_path / "other.duckdb") as other:
        assert take_in_shard(other, tmp_path / "shard.jsonl", shared=(), deleted=()) == 1
        assert other.get(good.run_id, A).record.owner == A


def test_a_child_whose_parent_has_fewer_steps_than_it_keeps_is_copied_without_a_gap(
    log: ExperimentLog, tmp_path: Path
) -> None:
    """A file may hold such a pair; what the log makes of it has to be readable, or a copy's whole file would
    be lost with it.
    """
    parent, good = log_run(log, make_record(owner=A)), log_run(log, make_record(owner=A))
    child = log_run(log, make_record(owner=A, parent_run_id=parent.run_id, fork_step=2))
    shard = tmp_path / "shard.jsonl"
    assert write_shard(log, iter(ended_runs(log)), shard) == [parent.run_id, good.run_id, child.run_id]
    runs: list[list[dict[str, Any]]] = []
    for line in map(json.loads, shard.read_text().splitlines()):
        runs += [[]] if line["line"] == "run" else []
        runs[-1].append(line)
    for lines, gone in ((runs[0], (2, 3)), (runs[2], (1, 2))):
        kept = [line for line in lines if not (line["line"] == "event" and line["event"].get("step") in gone)]
        kept = [
            line for line in kept if not (line["line"] == "event" and line["event"]["event"] == "stopped")
        ]
        kept[-1]["n_events"] = sum(line["line"] == "event" for line in kept)
        lines[:] = kept
    shard.write_text("".join(json.dumps(line) + "\n" for lines in runs for line in lines))
    again = tmp_path / "again.jsonl"
    with ExperimentLog.open(tmp_path / "other.duckdb") as other:
        assert take_in_shard(other, shard, shared=(), deleted=()) == 3
        assert other.get(child.run_id, A).trace.steps[0].step == 3
        assert len(write_shard(other, iter(ended_runs(other)), again)) == 3
    with ExperimentLog.open(tmp_path / "third.duckdb") as third:
        assert take_in_shard(third, again, shared=(), deleted=()) == 3


def test_a_run_that_could_not_be_read_back_is_left_out(
    log: ExperimentLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_run(log, make_record(owner=A))
    monkeypatch.setattr("core.runs.log.wire.MAX_SCORES", 199)
    assert write_shard(log, iter(ended_runs(log)), tmp_path / "shard.jsonl") == []


def test_copies_know_what_they_were_given_and_no_more(log: ExperimentLog) -> None:
    remember_copied(log, "one", ["1", "2"])
    remember_copied(log, "one", ["2", "3"])
    remember_copied(log, "other", ["4"])
    log.close()
    with ExperimentLog.open(log.path) as again:
        assert known_to_copy(again, "one").keys() == {"1", "2", "3"}
        assert known_to_copy(again, "other").keys() == {"4"}
        assert not known_to_copy(again, "none")
