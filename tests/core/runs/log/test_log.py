"""Recording and reading runs in one process."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.base.errors import LogError, RunNotFound
from core.base.events import RunStarted, StepScores, Stopped
from core.base.types import Document
from core.runs.log import ExperimentLog, new_run_id
from core.runs.log.lock import LogOwned
from tests.core.runs.log.recording import (
    DOCUMENT,
    N_CHUNKS,
    chunk_table,
    log_run,
    make_record,
    q_values,
    step_taken,
    stopped,
)

HOSTILE = "'); DROP TABLE runs; -- \" $owner {x} %_ \0 =cmd|' /C calc'!A0 <img onerror=alert(1)> \ud800 語"


def test_a_run_comes_back_whole(log: ExperimentLog) -> None:
    record = make_record(label={"support": [1, 2], "answer": "kitchen"})
    log_run(log, record)
    run = log.get(record.run_id)
    assert run.record == record
    assert (run.status, run.message, run.shared, run.n_steps, run.children) == (
        "complete",
        None,
        False,
        3,
        (),
    )
    assert run.finished_at is not None
    assert run.finished_at >= run.created_at
    assert run.trace.steps == tuple(step_taken(record.run_id, step) for step in (1, 2, 3))
    assert run.trace.stopped == stopped(record.run_id, 3)
    assert run.trace.started.config.to_json() == record.config
    for look in (1, 2, 3, 4):
        scores = run.trace.scores_at(look)
        assert scores.positions is None
        np.testing.assert_array_equal(scores.q_values, q_values(record.run_id, look))


def test_documents_come_back_and_are_stored_once(log: ExperimentLog) -> None:
    first, second = log_run(log, make_record()), log_run(log, make_record())
    [document] = log.documents(first.run_id)
    assert (document.title, document.document().text, document.sha256) == (
        DOCUMENT.title,
        DOCUMENT.text,
        DOCUMENT.sha256,
    )
    np.testing.assert_array_equal(document.table.end, chunk_table().end)
    counts = (
        "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunk_tables), (SELECT count(*) FROM"
        " blobs)"
    )
    assert log.read(lambda con: con.execute(counts).fetchall()) == [(1, 1, 2 + 2 * 4)]
    log.delete(first.run_id, None)
    assert log.documents(second.run_id)[0].text == DOCUMENT.text
    log.delete(second.run_id, None)
    assert log.read(lambda con: con.execute(counts).fetchall()) == [(0, 0, 0)]


def test_titles_belong_to_the_run_not_to_the_text(log: ExperimentLog) -> None:
    mine, theirs = log_run(log, make_record()), make_record()
    log.start(theirs, [replace(DOCUMENT, title="Another name")])
    assert [log.documents(run.run_id)[0].title for run in (mine, theirs)] == ["Handbook", "Another name"]


def test_several_documents_keep_their_order(log: ExperimentLog) -> None:
    documents = [Document(name, f"Text {name}.", "text") for name in "cab"]
    record = make_record(document_hashes=tuple(document.sha256 for document in documents))
    log.start(record, documents)
    assert log.get(record.run_id).record.document_hashes == record.document_hashes
    assert [document.document() for document in log.documents(record.run_id)] == documents
    with pytest.raises(ValueError, match="document_hashes"):
        log.start(make_record(), documents)


def test_every_step_is_durable_by_itself(log: ExperimentLog) -> None:
    record = make_record()
    log.start(record, [DOCUMENT])
    assert log.get(record.run_id).status == "running"
    for step in (1, 2, 3):
        log.record(record.run_id, step_taken(record.run_id, step))
        assert log.get(record.run_id).n_steps == step


def test_a_child_keeps_the_steps_before_the_fork_and_survives_its_parent(log: ExperimentLog) -> None:
    parent = log_run(log, make_record())
    child = log_run(log, make_record(parent_run_id=parent.run_id, fork_step=2), first_step=3)
    expected = (step_taken(parent.run_id, 1), step_taken(parent.run_id, 2), step_taken(child.run_id, 3))
    assert log.get(parent.run_id).children == (child.run_id,)
    log.delete(parent.run_id, None)
    run = log.get(child.run_id)
    assert run.trace.steps == expected
    assert run.trace.scores_at(2) is not None
    np.testing.assert_array_equal(run.trace.steps[1].scores.q_values, q_values(parent.run_id, 2))  # type: ignore[union-attr]


def test_a_child_may_tell_the_kept_steps_again(log: ExperimentLog) -> None:
    parent = log_run(log, make_record())
    child = log_run(log, make_record(parent_run_id=parent.run_id, fork_step=2))
    assert log.get(child.run_id).n_steps == 3


def test_a_finished_run_never_changes(log: ExperimentLog) -> None:
    record = log_run(log, make_record())
    before = log.get(record.run_id)
    log.record(record.run_id, step_taken(record.run_id, 9))
    with pytest.raises(LogError, match="never changes"):
        log.flush()
    assert log.get(record.run_id).events == before.events


def test_a_run_is_finished_once(log: ExperimentLog) -> None:
    record = log_run(log, make_record())
    log.finish(record.run_id, "failed", "too late")
    with pytest.raises(LogError, match="finished already"):
        log.flush()
    assert log.get(record.run_id).status == "complete"


@pytest.mark.parametrize(
    "bad",
    [
        lambda run_id: replace(step_taken(run_id, 2), q_value=float("nan")),
        lambda run_id: replace(step_taken(run_id, 2), scores=StepScores(np.ones(3, np.float32), None)),
        lambda run_id: step_taken(run_id, 1),
        lambda run_id: replace(step_taken(run_id, 2), text=object()),
        lambda _: step_taken(new_run_id(), 1),
    ],
    ids=["not a number", "other length", "twice", "no JSON", "unknown run"],
)
def test_a_bad_event_breaks_its_own_run_only(log: ExperimentLog, bad: object) -> None:
    good, broken = make_record(), make_record()
    for record in (good, broken):
        log.start(record, [DOCUMENT])
        log.record(record.run_id, step_taken(record.run_id, 1))
    event = bad(broken.run_id)  # type: ignore[operator]
    log.record(broken.run_id if event.scores.q_values.size else "", event)
    log.record(good.run_id, step_taken(good.run_id, 2))
    log.finish(good.run_id, "complete")
    log.record(broken.run_id, step_taken(broken.run_id, 3))
    log.finish(broken.run_id, "complete")
    assert log.get(good.run_id).n_steps == 2
    assert log.get(good.run_id).status == "complete"
    assert log.get(broken.run_id).n_steps >= 1
    log.flush([good.run_id])
    with pytest.raises(LogError):  # the last kind of bad event belongs to no run
        log.flush([broken.run_id] if event.scores.q_values.size else None)
    log.flush()


def test_a_run_with_a_gap_ends_as_failed_and_says_why(log: ExperimentLog) -> None:
    record = make_record()
    log.start(record, [DOCUMENT])
    log.record(record.run_id, step_taken(record.run_id, 1))
    log.record(record.run_id, replace(step_taken(record.run_id, 2), q_value=float("inf")))
    log.record(record.run_id, step_taken(record.run_id, 3))
    log.finish(record.run_id, "complete")
    with pytest.raises(LogError):
        log.flush()
    log.flush()
    run = log.get(record.run_id)
    assert (run.status, run.n_steps) == ("failed", 1)
    assert run.message


@pytest.mark.campaign
def test_eight_threads_record_at_once(log: ExperimentLog) -> None:
    records = [make_record(query=f"question {number}") for number in range(24)]

    def record_some(mine: list) -> None:
        for record in mine:
            log_run(log, record, n_steps=5)

    threads = [threading.Thread(target=record_some, args=(records[number::8],)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.flush()
    assert log.search(owner=None).total == 24
    for record in records:
        run = log.get(record.run_id)
        assert run.record == record
        assert run.trace.steps == tuple(step_taken(record.run_id, step) for step in range(1, 6))


def test_search_filters(log: ExperimentLog) -> None:
    milk = log_run(log, make_record())
    bm25 = log_run(log, make_record(method="bm25", query="100% of what?", checkpoint="other"))
    other = make_record(document_hashes=(Document("Manual", "x", "text").sha256,))
    log.start(other, [Document("Manual", "x", "text")])

    def found(**filters: str) -> set[str]:
        page = log.search(owner=None, **filters)  # type: ignore[arg-type]
        assert page.total == len(page.rows)
        return {row.run_id for row in page.rows}

    assert found(text="MILK") == {milk.run_id, other.run_id}
    assert found(text="%") == {bm25.run_id}
    assert found(method="bm25", checkpoint="other") == {bm25.run_id}
    assert found(document="manu") == found(status="running") == {other.run_id}
    assert found(document=DOCUMENT.sha256) == {milk.run_id, bm25.run_id}
    assert found(text="nothing like it") == set()
    row = log.search(owner=None, method="bm25").rows[0]
    assert (row.n_steps, row.titles, row.n_chunks, row.status) == (3, ("Handbook",), N_CHUNKS, "complete")


def test_hostile_strings_are_data(log: ExperimentLog) -> None:
    shown = HOSTILE.replace("\ud800", "?")
    document = Document(HOSTILE, "text \ud800", "text")
    record = make_record(
        query=HOSTILE,
        method=HOSTILE,
        checkpoint=HOSTILE,
        document_hashes=(document.sha256,),
        label={"answer": HOSTILE},
    )
    log.start(record, [document])
    log.record(record.run_id, step_taken(record.run_id, 1, text=HOSTILE))
    log.finish(record.run_id, "failed", HOSTILE)
    log.flush()
    run = log.get(record.run_id)
    assert (run.record.query, run.record.method, run.message, run.trace.steps[0].text) == (
        shown,
        shown,
        shown,
        shown,
    )
    assert log.documents(record.run_id)[0].title == shown
    assert log.documents(record.run_id)[0].text is None
    assert [
        row.query for row in log.search(owner=None, text=HOSTILE, document=HOSTILE, method=HOSTILE).rows
    ] == [shown]
    with pytest.raises(RunNotFound):
        log.get(HOSTILE)
    with pytest.raises(RunNotFound):
        log.delete(HOSTILE, None)


def test_the_first_event_is_in_the_record_already(log: ExperimentLog) -> None:
    record = make_record()
    log.start(record, [DOCUMENT])
    run = log.get(record.run_id)
    log.record(record.run_id, run.trace.started)
    assert isinstance(run.trace.started, RunStarted)
    log.record(record.run_id, Stopped("exhausted", 0))
    log.flush()
    assert log.get(record.run_id).trace.stopped == Stopped("exhausted", 0)


@pytest.mark.parametrize("changes", [{"run_id": "../../x"}, {"seed": 2**63}, {"seed": -1}, {"fork_step": 2}])
def test_records_are_checked_at_the_door(changes: dict) -> None:
    with pytest.raises(LogError):
        make_record(**changes)


def test_one_owner_at_a_time(path: Path) -> None:
    log = ExperimentLog.open(path)
    with pytest.raises(LogOwned, match="in use by process"):
        ExperimentLog.open(path)
    log.close()
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.start(make_record(), [DOCUMENT])
    ExperimentLog.open(path).close()
