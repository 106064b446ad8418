"""Evaluations and trainings go into the log as they are, through the inbox too."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import LogError, RunNotFound
from core.base.rows import EpisodeRow
from core.runs.log import (
    ExperimentLog,
    InboxLog,
    RunReader,
    list_evaluations,
    new_evaluation,
    new_run_id,
    open_reader,
    read_evaluation,
)
from core.runs.log.database import Connection
from core.runs.log.inbox import inbox_of
from core.runs.log.measurements import Training
from tests.core.lab.evaluate.rows import make_row
from tests.core.runs.log.conftest import Owner
from tests.core.runs.log.recording import log_run, make_record

ROWS: tuple[EpisodeRow, ...] = (
    make_row(id="q1"),
    make_row(
        id="q2 ☃",
        length=None,
        chosen=(),
        best_q=(0.125,),
        stop_threshold=None,
        trained_on=None,
        top_k_actions=5,
    ),
    make_row(id="q3", chunk_tokens=96),
)
EVENTS = (
    {"event": "started", "config": {"alpha": 0.03}},
    {"event": "update", "update": 1, "q": [0.25, 0.5]},
    {"event": "finished"},
)


def make_training(n_events: int, training_id: str, owner: str | None = None) -> Training:
    return Training(
        training_id=training_id,
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        folder="runs/a",
        config={"updates": 2},
        events=EVENTS[:n_events],
        owner=owner,
    )


def logged_training(log: RunReader) -> Training:
    [head] = log.rows("SELECT * FROM trainings")
    events = log.rows("SELECT event FROM training_events ORDER BY position")
    changed = {"config": json.loads(head["config"]), "created_at": head["created_at"].replace(tzinfo=UTC)}
    return Training(**head | changed, events=tuple(json.loads(row["event"]) for row in events))


def test_an_evaluation_comes_back_as_it_was(log: ExperimentLog) -> None:
    evaluation = new_evaluation(ROWS, {"split": "test", "n": 3})
    log.keep(evaluation)
    log.keep(evaluation)  # again changes nothing
    assert read_evaluation(log, evaluation.evaluation_id) == evaluation
    (entry,) = list_evaluations(log)
    assert (entry.task, entry.method, entry.checkpoint, entry.n, entry.config) == (
        "qa2",
        "qrag",
        "agent",
        3,
        {"split": "test", "n": 3},
    )
    assert log.read(
        lambda con: con.execute("SELECT sum(len(chosen)), max(q_values[1]) FROM episode_rows").fetchall()
    ) == [(6, 0.9)]


def test_an_evaluation_needs_rows() -> None:
    with pytest.raises(LogError, match="without rows"):
        new_evaluation([], {})


def test_the_newest_stands_first(log: ExperimentLog) -> None:
    first, second = new_evaluation(ROWS, {}), new_evaluation(ROWS[:1], {})
    for evaluation in (first, second):
        log.keep(evaluation)
    assert [entry.evaluation_id for entry in list_evaluations(log)] == [
        second.evaluation_id,
        first.evaluation_id,
    ]


def test_a_training_grows(log: ExperimentLog) -> None:
    training_id = new_run_id()
    for n in (1, 2, 2, 3, 1):
        log.keep(make_training(n, training_id))
    assert logged_training(log) == make_training(3, training_id)


def test_only_the_owner_reads_an_evaluation_and_adds_to_a_training(log: ExperimentLog) -> None:
    evaluation = new_evaluation(ROWS, {}, owner="anna")
    training = make_training(2, new_run_id(), owner="anna")
    log.keep(evaluation)
    log.keep(training)
    with pytest.raises(RunNotFound, match="another's"):
        log.keep(make_training(3, training.training_id, owner="bert"))
    for stranger in (None, "bert"):
        assert list_evaluations(log, stranger) == []
        with pytest.raises(RunNotFound):
            read_evaluation(log, evaluation.evaluation_id, stranger)
    assert logged_training(log) == training


def test_through_the_inbox_of_another_process(path: Path, owner: Owner) -> None:
    inbox = InboxLog(path)
    evaluation = new_evaluation(ROWS, {"split": "test"}, owner="anna")
    training = make_training(2, new_run_id())
    inbox.keep(evaluation)
    inbox.keep(training)
    assert owner.ask("import") == "2"
    inbox.keep(make_training(3, training.training_id))
    assert owner.ask("import") == "1"
    assert owner.ask("close") == "closed"
    assert list(inbox_of(path).iterdir()) == []
    with open_reader(path) as reader:
        assert read_evaluation(reader, evaluation.evaluation_id, "anna") == evaluation
        assert logged_training(reader) == make_training(3, training.training_id)


def test_what_is_left_anew_while_it_comes_in_comes_with_the_next(
    log: ExperimentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, training_id = InboxLog(log.path), new_run_id()
    inbox.keep(make_training(1, training_id))
    write = log.write

    def late(work: Callable[[Connection], Any]) -> Any:
        inbox.keep(make_training(3, training_id))
        return write(work)

    monkeypatch.setattr(log, "write", late)
    log.import_inbox()
    monkeypatch.undo()
    log.import_inbox()
    assert logged_training(log) == make_training(3, training_id)
    assert list(inbox_of(log.path).iterdir()) == []


def test_a_file_that_can_not_come_in_does_not_keep_the_others_out(
    log: ExperimentLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Another's training is set aside; what the log has no room for stays."""
    inbox, taken = InboxLog(log.path), "0" * 32
    log.keep(make_training(1, taken))
    inbox.keep(make_training(2, taken, owner="bert"))
    run_id = log_run(inbox, make_record()).run_id
    assert log.import_inbox() == 1
    assert log.get(run_id).n_steps == 3
    log.write(lambda con: con.execute("DROP TABLE evaluations"))
    left = new_evaluation(ROWS, {})
    inbox.keep(left)
    inbox.keep(make_training(1, new_run_id()))
    assert log.import_inbox() == 1
    assert {path.name for path in inbox_of(log.path).iterdir()} == {
        f"{taken}.training.rejected",
        f"{left.evaluation_id}.evaluation",
    }
    assert [f"{left.evaluation_id}.evaluation stays: " in line for line in caplog.messages] == [False, True]


def test_a_broken_inbox_file_is_set_aside(log: ExperimentLog) -> None:
    inbox = inbox_of(log.path)
    inbox.mkdir()
    (inbox / "x.evaluation").write_text('{"kind": "evaluation"}')
    (inbox / "y.training").write_bytes(b"\xff")
    assert log.import_inbox() == 0
    assert sorted(path.name for path in inbox.iterdir()) == ["x.evaluation.rejected", "y.training.rejected"]
