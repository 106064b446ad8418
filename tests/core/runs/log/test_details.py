"""What lies beside a run's steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import LogError, RunNotFound
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog, InboxLog, MalformedRuns, RunLog, RunRecord, import_runs, open_reader
from core.runs.log.records import MAX_DETAIL_BYTES
from core.runs.log.wire import read_runs
from tests.core.runs.log.recording import DOCUMENT, log_run, make_record

A, B = "a" * 64, "b" * 64
ANSWER = {"text": "In the kitchen, \U0001f95b.", "citations": [3, 7]}
LONG = {"rounds": [{"note": "Mary went to the kitchen. " * 400, "round": number} for number in range(1, 4)]}


def running(log: RunLog, **changes: Any) -> RunRecord:
    record = make_record(**changes)
    log.start(record, [DOCUMENT])
    return record


def n_blobs(log: ExperimentLog) -> int:
    return int(
        log.read(lambda con: con.execute("SELECT count(DISTINCT blob_id) FROM blobs").fetchall())[0][0]
    )


def test_details_are_read_with_the_run_and_the_last_of_a_name_counts(log: ExperimentLog, path: Path) -> None:
    record = running(log)
    log.attach(record.run_id, "sparc", {"rounds": []}, None)
    log.attach(record.run_id, "sparc", LONG, None)
    log.attach(record.run_id, "answer", ANSWER, None)
    assert log.get(record.run_id).details == {"answer": ANSWER, "sparc": LONG}
    assert log.get(record.run_id).to_json()["details"]["answer"] == ANSWER
    assert log.read(
        lambda con: con.execute("SELECT value->>'$.text' FROM run_details WHERE name = 'answer'").fetchall()
    ) == [(ANSWER["text"],)]
    log.finish(record.run_id, "complete")
    log.close()
    with open_reader(path) as reader:
        assert reader.get(record.run_id).details == {"answer": ANSWER, "sparc": LONG}


def test_what_was_replaced_or_deleted_leaves_nothing(log: ExperimentLog) -> None:
    record = running(log)
    before = n_blobs(log)
    for number in range(3):
        log.attach(record.run_id, "sparc", {**LONG, "number": number}, None)
    assert n_blobs(log) == before + 1
    log.finish(record.run_id, "complete")
    log.delete(record.run_id, None)
    assert n_blobs(log) == 0
    assert log.read(lambda con: con.execute("SELECT count(*) FROM run_details").fetchall()) == [(0,)]


def test_an_ended_run_takes_an_answer_and_nothing_else(log: ExperimentLog) -> None:
    record = log_run(log, make_record())
    for answer in ({"text": ""}, ANSWER):
        log.attach(record.run_id, "answer", answer, None)
    with pytest.raises(LogError, match="is finished and takes no detail 'sparc'"):
        log.attach(record.run_id, "sparc", LONG, None)
    assert log.get(record.run_id).details == {"answer": ANSWER}


def test_only_the_owner_adds_to_a_run_and_a_failed_try_does_it_no_harm(log: ExperimentLog) -> None:
    record = running(log, owner=A)
    log.share(record.run_id, A)
    for other in (B, None, "' OR 1=1 --"):
        with pytest.raises(RunNotFound):
            log.attach(record.run_id, "answer", ANSWER, other)
    log.attach(record.run_id, "answer", ANSWER, A)
    log.finish(record.run_id, "complete")
    log.flush()
    assert (log.get(record.run_id, B).status, log.get(record.run_id, B).details) == (
        "complete",
        {"answer": ANSWER},
    )


def test_what_can_not_be_kept_is_one_sentence(log: ExperimentLog) -> None:
    record = running(log)
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for name, value in (
        ("secrets", {}),
        ("sparc", {"x": "y" * MAX_DETAIL_BYTES}),
        ("sparc", {"x": float("nan")}),
        ("sparc", {"x": object()}),
        ("sparc", deep),
    ):
        with pytest.raises(LogError) as caught:
            log.attach(record.run_id, name, value, None)  # type: ignore[arg-type]
        assert len(str(caught.value)) < 300
    assert log.get(record.run_id).details == {}


def test_a_killed_process_keeps_what_was_attached(log: ExperimentLog, path: Path) -> None:
    record = running(log)
    log.attach(record.run_id, "sparc", LONG, None)
    log.close()
    with ExperimentLog.open(path) as again:
        assert (again.get(record.run_id).status, again.get(record.run_id).details) == (
            "failed",
            {"sparc": LONG},
        )


def test_exports_carry_details_and_leave_them_behind_with_the_texts(
    log: ExperimentLog, tmp_path: Path
) -> None:
    record = running(log)
    log.attach(record.run_id, "sparc", LONG, None)
    log.attach(record.run_id, "answer", ANSWER, None)
    log.finish(record.run_id, "complete")
    file = export_runs(log, None, "json", tmp_path / "with.jsonl")
    bare = export_runs(log, None, "json", tmp_path / "without.jsonl", include_text=False)
    assert "kitchen" not in bare.read_text()
    for source, details in ((file, {"answer": ANSWER, "sparc": LONG}), (bare, {})):
        with ExperimentLog.open(tmp_path / f"{source.stem}.duckdb") as other:
            assert import_runs(other, source) == 1
            assert other.get(record.run_id).details == details


def test_details_go_through_the_inbox(log: ExperimentLog, path: Path) -> None:
    inbox = InboxLog(path)
    record = running(inbox, owner=A)
    with pytest.raises(RunNotFound):
        inbox.attach(record.run_id, "answer", ANSWER, B)
    inbox.attach(record.run_id, "sparc", LONG, A)
    inbox.attach(record.run_id, "answer", ANSWER, A)
    inbox.finish(record.run_id, "complete")
    with pytest.raises(RunNotFound):
        inbox.attach(record.run_id, "answer", ANSWER, A)
    assert log.import_inbox() == 1
    assert log.get(record.run_id, A).details == {"answer": ANSWER, "sparc": LONG}


@pytest.mark.parametrize(
    "line",
    [
        {"line": "detail", "name": "answer", "value": ["no object"]},
        {"line": "detail", "name": "secrets", "value": {}},
        {"line": "detail", "name": "sparc", "value": {"x": "y" * MAX_DETAIL_BYTES}},
        {"line": "detail", "name": "sparc", "value": {"x": float("nan")}},
        {"line": "detail", "name": "sparc", "value": {}, "surprise": 1},
        {"line": "detail", "name": "answer", "value": {}},  # the run has one already
    ],
    ids=["no object", "unknown name", "too long", "not a number", "unknown field", "twice"],
)
def test_hostile_details_are_refused(log: ExperimentLog, tmp_path: Path, line: dict[str, Any]) -> None:
    record = log_run(log, make_record())
    log.attach(record.run_id, "answer", ANSWER, None)
    file = export_runs(log, None, "json", tmp_path / "run.jsonl")
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:-1], json.dumps(line), lines[-1]]) + "\n")
    with pytest.raises(MalformedRuns):
        list(read_runs(file))
