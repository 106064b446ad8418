"""What visitors left behind goes after its time, with the documents that nobody else refers to."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from core.base.errors import LogError, RunNotFound
from core.runs.log import ExperimentLog, list_evaluations, new_evaluation
from core.runs.log.marks import delete_question, keep_questions, new_question
from core.runs.log.records import now
from tests.core.lab.evaluate.rows import make_row
from tests.core.runs.log.disk_full import full_disk
from tests.core.runs.log.recording import DOCUMENT, log_run, make_record, step_taken

A, B = "a" * 64, "b" * 64
COUNTS = (
    "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM documents), (SELECT count(*) FROM"
    " chunk_tables), (SELECT count(*) FROM blobs)"
)


def counts(log: ExperimentLog) -> tuple[int, ...]:
    """Rows of events, documents, chunk tables and parts of blobs."""
    return tuple(log.read(lambda con: con.execute(COUNTS).fetchall())[0])


def test_old_runs_of_visitors_go_and_take_their_documents_along(log: ExperimentLog) -> None:
    old = [log_run(log, make_record(owner=owner)).run_id for owner in (A, B)]
    log.share(old[1], B)
    snapshot = log.snapshot()
    assert log.expire(now() - timedelta(hours=1)) == frozenset()
    assert snapshot.exists()
    assert log.expire(now()) == frozenset(old)
    assert not snapshot.exists(), "the copy for readers holds them too"
    for run_id in old:
        for owner in (A, B, None):
            with pytest.raises(RunNotFound):
                log.get(run_id, owner)
    assert counts(log) == (0, 0, 0, 0)


def test_a_document_stays_while_somebody_refers_to_it(log: ExperimentLog) -> None:
    old = log_run(log, make_record(owner=A)).run_id
    between = now()
    young, own = log_run(log, make_record(owner=B)).run_id, log_run(log, make_record()).run_id
    assert log.expire(between) == frozenset([old])
    assert log.documents(young, B)[0].text == DOCUMENT.text
    assert log.get(young, B).n_steps == 3
    assert log.expire(now()) == frozenset([young])
    assert log.documents(own)[0].text == DOCUMENT.text, "made without an owner, it stays for good"
    assert log.get(own).n_steps == 3


def test_age_counts_from_the_end_and_for_abandoned_runs_from_the_beginning(log: ExperimentLog) -> None:
    long = make_record(owner=A)
    log.start(long, [DOCUMENT])
    abandoned = make_record(owner=A)
    log.start(abandoned, [DOCUMENT])
    between = now()
    log.record(long.run_id, step_taken(long.run_id, 1))
    log.finish(long.run_id, "complete")
    assert log.expire(between) == frozenset([abandoned.run_id])
    assert log.get(long.run_id, A).n_steps == 1


def test_a_child_keeps_the_steps_of_its_expired_parent(log: ExperimentLog) -> None:
    parent = log_run(log, make_record(owner=A))
    log.share(parent.run_id, A)
    between = now()
    child = log_run(log, make_record(owner=B, parent_run_id=parent.run_id, fork_step=2), first_step=3)
    assert log.expire(between) == frozenset([parent.run_id])
    assert [step.step for step in log.get(child.run_id, B).trace.steps] == [1, 2, 3]


def test_evaluations_of_visitors_go_too(log: ExperimentLog) -> None:
    for owner in (A, None):
        log.keep(new_evaluation([make_row()], {}, owner))
    assert log.expire(now()) == frozenset()
    assert list_evaluations(log, A) == []
    assert len(list_evaluations(log, None)) == 1
    assert log.read(lambda con: con.execute("SELECT count(*) FROM episode_rows").fetchone()) == (1,)


SECRET = "Unrepeatable question of the one who asked"


@pytest.mark.parametrize("cut_off", [False, True], ids=["", "cut off"])
def test_what_was_deleted_is_in_no_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, cut_off: bool
) -> None:
    with ExperimentLog.open(path) as log:
        gone, stays = log_run(log, make_record(query=SECRET)), log_run(log, make_record())
        log.snapshot()
        path.chmod(0o640)
        log.delete(gone.run_id, None)
        if cut_off:  # as by a full disk: the log says so, and is copied no more
            monkeypatch.setattr(os, "replace", full_disk)
            with pytest.raises(LogError, match=r"would hold what was deleted: .* disk is full; make room"):
                log.snapshot()
            assert log.get(stays.run_id).n_steps == 3
        else:
            assert SECRET.encode() not in log.snapshot().read_bytes()
            assert SECRET.encode() not in path.read_bytes()
    monkeypatch.undo()
    assert (SECRET.encode() in path.read_bytes()) is cut_off
    with ExperimentLog.open(path) as log:
        assert SECRET.encode() not in path.read_bytes()
        assert [row.run_id for row in log.search(owner=None).rows] == [stays.run_id]
        log_run(log, make_record(query="asked later"))
        assert log.documents(stays.run_id)[0].text == DOCUMENT.text
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(file.name for file in path.parent.iterdir()) == sorted(
        [path.name, f"{path.name}.lock", *([] if cut_off else [f"{path.name}.snapshot"])]
    )


def test_what_a_killed_process_left_goes_with_what_was_deleted(path: Path) -> None:
    with ExperimentLog.open(path) as log:
        gone = log_run(log, make_record(query=SECRET))
        copy = log.snapshot().read_bytes()
        log.delete(gone.run_id, None)
        left = [
            Path(f"{path}.snapshot"),
            Path(f"{path}.snapshot.tmp"),
            path.with_name(f".{path.name}.undo.7.tmp"),
        ]
        for file in left:
            file.write_bytes(copy)
    assert [file.name for file in left if file.exists()] == []


def test_a_deleted_question_leaves_the_snapshot_too(log: ExperimentLog) -> None:
    question = new_question("Handbook", DOCUMENT.sha256, SECRET)
    keep_questions(log, [question], A)
    snapshot = log.snapshot()
    delete_question(log, question.question_id, B)
    assert snapshot.exists()
    delete_question(log, question.question_id, A)
    assert not snapshot.exists()
    assert SECRET.encode() not in log.snapshot().read_bytes()
