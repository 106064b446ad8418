"""The log among real processes: one that is killed, one that owns it while others read and leave runs."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest

from core.base.errors import LogError, RunNotFound
from core.runs.log import ExperimentLog, InboxLog, open_log, open_reader
from core.runs.log import reader as reader_module
from core.runs.log.database import snapshot_of
from core.runs.log.lock import LogOwned
from tests.conftest import COUNTS, RecordAttack
from tests.core.runs.log.conftest import ROOT, Owner
from tests.core.runs.log.killing import kill_at_random_moments
from tests.core.runs.log.recording import DOCUMENT, log_run, make_record, step_taken


def test_killed_processes_lose_no_committed_step(path: Path, record_attack: RecordAttack) -> None:
    killed = list(kill_at_random_moments(path, COUNTS.kills, seed=5))
    assert [sentence for one in killed for sentence in one.wrong] == []
    assert sum(one.n_committed > 0 for one in killed) > COUNTS.kills / 2
    n_committed = sum(one.n_committed for one in killed)
    record_attack(
        "processes killed while they recorded into one log",
        len(killed),
        f"{n_committed:,} committed steps, none lost, with {sum(one.cut_off for one in killed)} checkpoints cut off",
    )


def test_a_second_process_uses_the_inbox_and_the_owner_takes_it_in(path: Path, owner: Owner) -> None:
    with pytest.raises(LogOwned, match=str(owner.process.pid)):
        ExperimentLog.open(path)
    inbox = open_log(path)
    assert isinstance(inbox, InboxLog)
    record = log_run(inbox, make_record(owner="a" * 64))
    assert owner.ask("import") == "1"
    assert owner.ask("import") == "0"
    owner.ask("close")
    with ExperimentLog.open(path) as log:
        run = log.get(record.run_id, "a" * 64)
        assert run.record == record
        assert run.trace.steps == tuple(step_taken(record.run_id, step) for step in (1, 2, 3))
        assert run.trace.steps[2].scores is not None
        assert log.documents(record.run_id, "a" * 64)[0].text == DOCUMENT.text
        with pytest.raises(RunNotFound):
            log.get(record.run_id)


def test_the_inbox_takes_finished_runs_only(path: Path) -> None:
    inbox = InboxLog(path)
    record = make_record()
    inbox.start(record, [DOCUMENT])
    inbox.record(record.run_id, step_taken(record.run_id, 1))
    with ExperimentLog.open(path) as log:
        assert log.import_inbox() == 0
        inbox.finish(record.run_id, "cancelled", "stopped by the person")
        assert log.import_inbox() == 1
        assert (log.get(record.run_id).status, log.get(record.run_id).n_steps) == ("cancelled", 1)
    with pytest.raises(RunNotFound):
        inbox.record(record.run_id, step_taken(record.run_id, 2))


def test_what_is_no_run_is_set_aside_and_the_rest_comes_in(log: ExperimentLog, path: Path) -> None:
    good = log_run(InboxLog(path), make_record())
    folder = Path(f"{path}.inbox")
    bad = {
        "a.jsonl": b"",
        "b.jsonl": b"\xff\xfe garbage",
        "c.jsonl": (folder / f"{good.run_id}.jsonl").read_bytes()[:-40],
    }
    for name, content in bad.items():
        (folder / name).write_bytes(content)
    assert log.import_inbox() == 1
    assert log.get(good.run_id).n_steps == 3
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        f"{name}.rejected": content for name, content in bad.items()
    }


def test_a_run_that_came_in_twice_is_there_once(log: ExperimentLog, path: Path) -> None:
    record = log_run(InboxLog(path), make_record())
    file = Path(f"{path}.inbox") / f"{record.run_id}.jsonl"
    content = file.read_bytes()
    assert log.import_inbox() == 1
    file.write_bytes(content)
    assert log.import_inbox() == 0
    assert not file.exists()
    assert log.search(owner=None).total == 1


def test_readers_see_the_snapshot_while_the_log_is_owned(
    path: Path, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = owner.ask("run")
    monkeypatch.setattr(reader_module, "READER_PATIENCE", 0.1)
    with pytest.raises(LogError, match="no snapshot yet"):
        open_reader(path)
    owner.ask("snapshot")
    second = owner.ask("run")
    with open_reader(path) as reader:
        assert reader.age_seconds >= 0
        assert "snapshot" in (reader.notice or "")
        assert reader.get(first).n_steps == 3
        with pytest.raises(RunNotFound):
            reader.get(second)
        owner.ask("snapshot")
    with open_reader(path) as reader:
        assert reader.get(second).n_steps == 3
    owner.ask("close")
    with open_reader(path) as reader:
        assert reader.notice is None
        assert reader.search(owner=None).total == 2


def test_a_reader_takes_in_what_waits_where_nobody_owns_the_log(path: Path) -> None:
    ExperimentLog.open(path).close()
    record = log_run(InboxLog(path), make_record())
    with open_reader(path) as reader:
        assert (reader.notice, reader.get(record.run_id).n_steps) == (None, 3)
    assert list(Path(f"{path}.inbox").iterdir()) == []


def test_a_reader_waits_for_one_that_takes_in_the_inbox(path: Path) -> None:
    with ExperimentLog.open(path) as log:
        log_run(log, make_record())
        closing = threading.Timer(0.2, log.close)
        closing.start()
        with open_reader(path) as reader:
            assert (reader.notice, reader.search(owner=None).total) == (None, 1)
        closing.join()


def test_where_nothing_can_be_taken_in_the_log_is_read_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ExperimentLog.open(path).close()
    log_run(InboxLog(path), make_record())

    def refuse(_: Path) -> ExperimentLog:
        raise LogError("the file may be read only")

    monkeypatch.setattr(ExperimentLog, "open", refuse)
    with open_reader(path) as reader:
        assert (reader.notice, reader.search(owner=None).total) == (None, 0)


def test_a_reader_closed_twice_closes_nothing_of_others(path: Path) -> None:
    ExperimentLog.open(path).close()
    reader = open_reader(path)
    reader.close()
    with path.open("rb") as other:  # takes the place of the lock, which has just been closed
        reader.close()
        assert other.read(1)
    assert reader.notice is None


def test_readers_see_what_a_killed_owner_committed(path: Path, owner: Owner) -> None:
    run_id = owner.ask("run")
    owner.process.kill()
    owner.process.wait()
    with open_reader(path) as reader:
        assert reader.notice is None
        assert reader.get(run_id).trace.steps[2] == step_taken(run_id, 3)


def test_a_reader_keeps_nobody_from_reading_and_the_owner_waits_for_it(path: Path) -> None:
    with ExperimentLog.open(path) as log:
        log_run(log, make_record())
    with open_reader(path) as reader, open_reader(path) as another:
        assert reader.search(owner=None).total == another.search(owner=None).total == 1
    code = (
        "import sys; from pathlib import Path; from core.runs.log import open_reader; r ="
        " open_reader(Path(sys.argv[1])); print('in', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "in\n"
        process.stdin.write("\n")
        process.stdin.flush()
        with ExperimentLog.open(path) as log:
            assert log.search(owner=None).total == 1


def test_a_snapshot_leaves_other_programs_locked_out(log: ExperimentLog, path: Path) -> None:
    """A process that closes a file of its own gives up DuckDB's lock on it, too."""
    log_run(log, make_record())
    log.snapshot()
    code = "import duckdb, sys; duckdb.connect(sys.argv[1])"
    other = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert "Conflicting lock" in other.stderr


@pytest.mark.campaign
def test_snapshots_made_while_runs_come_and_go(log: ExperimentLog, path: Path) -> None:
    """Each is whole, has what was committed before it, and none brings back what was deleted."""
    closing, seen, wrong = threading.Event(), list[int](), list[str]()
    snapshot = snapshot_of(path)

    def copy_on_and_on() -> None:
        while not closing.is_set():
            try:
                seen.append(len(_run_ids(log.snapshot())))
            except duckdb.IOException:  # a deletion dropped it
                continue

    copier = threading.Thread(target=copy_on_and_on)
    copier.start()
    kept = 0
    for number in range(60):
        record = log_run(log, make_record())
        if number % 3:
            kept += 1
            continue
        log.delete(record.run_id, None)
        copied = log.path.with_name("seen")
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(snapshot, copied)
            wrong += [record.run_id] if record.run_id in _run_ids(copied) else []
    closing.set()
    copier.join()
    assert wrong == []
    assert len(seen) > 5
    assert len(_run_ids(log.snapshot())) == kept


def test_a_snapshot_in_a_folder_with_quotes(tmp_path: Path) -> None:
    path = tmp_path / "o'brien \"; --" / "log.duckdb"
    with ExperimentLog.open(path) as log:
        log_run(log, make_record())
        snapshot = log.snapshot()
        assert snapshot.exists()
        assert sorted(file.name for file in path.parent.iterdir() if "snapshot" in file.name) == [
            snapshot.name
        ]


def _run_ids(path: Path) -> set[str]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return {run_id for (run_id,) in connection.execute("SELECT run_id FROM runs").fetchall()}
