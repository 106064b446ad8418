"""What one visitor may do with another's runs: nothing, until they are shared; then look."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from core.base.errors import RunNotFound
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog, import_runs
from tests.conftest import few
from tests.core.runs.log.recording import log_run, make_record

A, B = "a" * 64, "b" * 64
OTHERS = few([B, None, "' OR 1=1 --", "", "NULL"], 3)


@pytest.fixture
def run_id(log: ExperimentLog) -> str:
    return log_run(log, make_record(owner=A)).run_id


@pytest.mark.parametrize("other", OTHERS)
def test_others_get_nothing(log: ExperimentLog, run_id: str, other: str | None, tmp_path: Path) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: log.get(run_id, other),
        lambda: log.documents(run_id, other),
        lambda: log.share(run_id, other),
        lambda: log.delete(run_id, other),
        lambda: export_runs(log, [run_id], "json", tmp_path / "out.jsonl", owner=other),
        lambda: export_runs(log, [run_id], "csv", tmp_path / "out", owner=other),
    ]
    for attempt in attempts:
        with pytest.raises(RunNotFound):
            attempt()
    assert log.search(owner=other).total == 0
    assert log.search(owner=other, text="milk", document="Handbook").rows == ()
    assert log.get(run_id, A).record.owner == A
    assert log.search(owner=A).total == 1


@pytest.mark.parametrize("other", OTHERS)
def test_a_shared_run_opens_by_its_id_and_nothing_more(
    log: ExperimentLog, run_id: str, other: str | None, tmp_path: Path
) -> None:
    log.share(run_id, A)
    run = log.get(run_id, other)
    assert run.shared
    assert run.n_steps == 3
    assert run.record.owner is None
    assert log.documents(run_id, other)[0].text
    assert "a" * 64 not in export_runs(log, [run_id], "json", tmp_path / "out.jsonl", owner=other).read_text()
    assert log.search(owner=other).total == 0
    export_runs(log, None, "csv", tmp_path / "all", owner=other)
    assert run_id not in (tmp_path / "all" / "runs.csv").read_text()
    for attempt in (lambda: log.delete(run_id, other), lambda: log.share(run_id, other)):
        with pytest.raises(RunNotFound):
            attempt()


def test_children_of_others_are_not_listed(log: ExperimentLog, run_id: str) -> None:
    log.share(run_id, A)
    child = log_run(log, make_record(owner=B, parent_run_id=run_id, fork_step=1), first_step=2)
    assert log.get(child.run_id, B).n_steps == 3
    assert log.get(run_id, A).children == ()
    assert log.get(run_id, B).children == (child.run_id,)


def test_forking_an_unseen_run_reveals_nothing(log: ExperimentLog, run_id: str) -> None:
    child = make_record(owner=B, parent_run_id=run_id, fork_step=3)
    log_run(log, child, first_step=4, n_steps=4)
    assert [step.step for step in log.get(child.run_id, B).trace.steps] == [4]


def test_deleting_takes_the_snapshot_with_it(log: ExperimentLog, run_id: str) -> None:
    snapshot = log.snapshot()
    log.delete(run_id, A)
    assert not snapshot.exists()
    with pytest.raises(RunNotFound):
        log.get(run_id, A)


def test_an_import_belongs_to_the_importer(log: ExperimentLog, run_id: str, tmp_path: Path) -> None:
    file = export_runs(log, None, "json", tmp_path / "out.jsonl", owner=A)
    log.delete(run_id, A)
    assert import_runs(log, file, owner=B) == 1
    assert log.get(run_id, B).record.owner == B
    with pytest.raises(RunNotFound):
        log.get(run_id, A)


def test_an_import_of_anothers_runs_comes_in_beside_them(
    log: ExperimentLog, run_id: str, tmp_path: Path
) -> None:
    child = log_run(log, make_record(owner=A, parent_run_id=run_id, fork_step=1), first_step=2).run_id
    file = export_runs(log, None, "json", tmp_path / "out.jsonl", owner=A)
    assert import_runs(log, file, owner=B) == 2
    assert import_runs(log, file, owner=B) == import_runs(log, file, owner=A) == 0
    mine = {row.run_id: row.parent_run_id for row in log.search(owner=B).rows}
    [parent] = {*mine.values()} - {None}
    assert parent in mine
    assert mine.keys().isdisjoint({run_id, child})
    assert {row.run_id for row in log.search(owner=A).rows} == {run_id, child}
    assert log.get(parent, B).trace.chosen == log.get(run_id, A).trace.chosen
