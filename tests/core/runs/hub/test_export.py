"""A log's copy on a hub on this machine."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
import yaml

from core.base.errors import RunNotFound
from core.cli import main
from core.runs.hub.client import HubError, HubMissing, connect
from core.runs.hub.export import LogCopy, Pulled, Pushed
from core.runs.log import ExperimentLog, MalformedRuns, import_runs
from core.runs.log.marks import relabel_run
from tests.conftest import few
from tests.core.runs.log.recording import DOCUMENT, empty_log, log_run, make_record
from tests.hub_stand_in import TOKEN, HubStandIn, Refused, Repository

NAME = "someone/runs"
A, B = "a" * 64, "b" * 64
OpenLog = Callable[[str], ExperimentLog]
Dataset = Callable[[], Repository]


@pytest.fixture
def open_log(tmp_path: Path) -> Iterator[OpenLog]:
    """`open_log(name)`: a log of that name, empty at first, the same one after a restart."""

    def opened(name: str) -> ExperimentLog:
        path = tmp_path / f"{name}.duckdb"
        if not path.exists():
            path.write_bytes(empty_log())
        return stack.enter_context(ExperimentLog.open(path))

    with contextlib.ExitStack() as stack:
        yield opened


@pytest.fixture
def log(open_log: OpenLog) -> ExperimentLog:
    return open_log("log")


@pytest.fixture
def copy(hub_stand_in: HubStandIn) -> LogCopy:  # noqa: ARG001
    return LogCopy(connect(), NAME)


@pytest.fixture
def dataset(hub_stand_in: HubStandIn) -> Dataset:
    return lambda: hub_stand_in.dataset(NAME)


def shards(repository: Repository) -> list[str]:
    return sorted(name for name in repository.files if name.startswith("runs/"))


def everything(repository: Repository) -> bytes:
    """All that anybody could get out of the data set, history included."""
    history = json.dumps(repository.payloads).encode()
    return b"".join([*repository.files.values(), *repository.stored.values(), history])


def test_what_was_pushed_comes_back_on_an_empty_disk(
    log: ExperimentLog, open_log: OpenLog, copy: LogCopy, dataset: Dataset
) -> None:
    parent = log_run(log, make_record(owner=A, label={"support": [3]}))
    child = log_run(log, make_record(owner=A, parent_run_id=parent.run_id, fork_step=1), first_step=2)
    shared, nobodys = log_run(log, make_record(owner=B)), log_run(log, make_record())
    log.share(shared.run_id, B)
    log.start(running := make_record(owner=A), [DOCUMENT])
    assert copy.commit() is None
    with pytest.raises(HubMissing, match=f"there is no data set {NAME}"):
        copy.pull(log)
    assert copy.push(log) == Pushed(4, 0)
    assert dataset().private

    fresh = open_log("fresh")
    assert copy.pull(fresh) == Pulled(4, 3, ())
    for record, owner in ((parent, A), (child, A), (shared, B), (nobodys, None)):
        before, after = log.get(record.run_id, owner), fresh.get(record.run_id, owner)
        assert after == before
        for look in range(1, before.trace.n_looks + 1):
            scores = after.trace.scores_at(look).q_values
            np.testing.assert_array_equal(scores, before.trace.scores_at(look).q_values)
        assert fresh.documents(record.run_id, owner)[0].document() == DOCUMENT
    assert {row.run_id for row in fresh.search(owner=A).rows} == {parent.run_id, child.run_id}
    assert fresh.get(shared.run_id, A).shared
    for run_id, owner in ((parent.run_id, B), (nobodys.run_id, B), (running.run_id, A)):
        with pytest.raises(RunNotFound):
            fresh.get(run_id, owner)
    assert copy.pull(fresh) == Pulled(0, 0, ())
    assert copy.push(fresh) == Pushed(0, 0)


def test_a_push_sends_what_is_new_and_two_tables_without_owners(
    log: ExperimentLog, copy: LogCopy, dataset: Dataset
) -> None:
    old = log_run(log, make_record())
    copy.push(log)
    [first] = shards(dataset())
    before, n_commits = dataset().files[first], len(dataset().commits)
    assert copy.push(log) == Pushed(0, 0)
    assert len(dataset().commits) == n_commits
    new = log_run(log, make_record(owner=A))
    assert copy.push(log) == Pushed(1, 0)
    [second] = set(shards(dataset())) - {first}
    assert dataset().files[first] == before
    assert new.run_id.encode() in dataset().files[second]
    log.share(new.run_id, A)
    assert copy.push(log) == Pushed(0, 0)
    assert json.loads(dataset().files["index.json"])["shared"] == [new.run_id]

    card = yaml.safe_load(dataset().files["README.md"].decode().split("---")[1])
    tables = {config["config_name"]: dataset().files[config["data_files"]] for config in card["configs"]}
    with contextlib.closing(duckdb.connect()) as connection:
        runs, steps = (connection.from_parquet(io.BytesIO(tables[name])) for name in ("runs", "steps"))
        assert {*runs.project("run_id, n_steps").fetchall()} == {(old.run_id, 3), (new.run_id, 3)}
        assert steps.project("step").order("step").fetchall() == [(1,), (1,), (2,), (2,), (3,), (3,)]
    assert A.encode() not in tables["runs"] + tables["steps"]


def test_what_is_added_to_a_run_later_gets_there_too(
    log: ExperimentLog, open_log: OpenLog, copy: LogCopy, dataset: Dataset
) -> None:
    run_id = log_run(log, make_record(owner=A)).run_id
    copy.push(log)
    fresh = open_log("fresh")
    copy.pull(fresh)
    for text, label in (("short", {"support": [3]}), ("long" * 2_000, None)):
        log.attach(run_id, "answer", {"text": text}, A)
        relabel_run(log, run_id, label, A)
        assert copy.push(log) == Pushed(0, 0)
        n_commits = len(dataset().commits)
        assert copy.push(log) == copy.push(fresh) == Pushed(0, 0), "what a copy gave is not a change"
        assert len(dataset().commits) == n_commits
        copy.pull(again := open_log(text[:5]))
        assert again.get(run_id, A) == log.get(run_id, A)
    assert len(shards(dataset())) == 1
    assert dataset().squashed == 0


def test_deleted_means_deleted(
    log: ExperimentLog, open_log: OpenLog, copy: LogCopy, dataset: Dataset
) -> None:
    gone = log_run(log, make_record(owner=A, query="What is SECRET?"))
    stays = log_run(log, make_record(owner=B))
    copy.push(log)
    log.delete(gone.run_id, A)
    assert copy.push(log) == Pushed(0, 1)
    left = everything(dataset())
    assert gone.run_id.encode() not in left
    assert b"SECRET" not in left
    assert stays.run_id.encode() in left
    assert dataset().squashed == 1
    fresh = open_log("fresh")
    assert copy.pull(fresh) == Pulled(1, 1, ())
    assert fresh.documents(stays.run_id, B)[0].document() == DOCUMENT, "it came with the run that is gone"
    log.delete(stays.run_id, B)
    assert copy.push(log) == Pushed(0, 1)
    assert shards(dataset()) == []


def test_a_deletion_that_is_cut_off_is_finished_by_the_next_push(
    log: ExperimentLog, copy: LogCopy, dataset: Dataset, hub_stand_in: HubStandIn
) -> None:
    gone = log_run(log, make_record(owner=A))
    copy.push(log)
    log.delete(gone.run_id, A)

    def fail(path: str) -> None:
        if "super-squash" in path:
            raise Refused(503, "out of order")

    hub_stand_in.before = fail
    with pytest.raises(HubError, match="could not clear the history"):
        copy.push(log)
    hub_stand_in.before = lambda _: None
    assert gone.run_id.encode() in everything(dataset())
    assert copy.push(log) == Pushed(0, 0)
    assert gone.run_id.encode() not in everything(dataset())
    n_commits = len(dataset().commits)
    copy.push(log)
    assert len(dataset().commits) == n_commits


def test_a_deleted_run_does_not_come_back(
    log: ExperimentLog, open_log: OpenLog, copy: LogCopy, dataset: Dataset
) -> None:
    gone, later = log_run(log, make_record(owner=A)), make_record(owner=A)
    copy.push(log)
    rival = open_log("rival")
    copy.pull(rival)
    log.delete(gone.run_id, A)
    copy.push(log)
    log_run(rival, later)
    assert copy.push(rival) == Pushed(2, 0), "it still has it, and gives it again in one file with a new run"
    assert copy.pull(log) == Pulled(1, 1, ())
    with pytest.raises(RunNotFound):
        log.get(gone.run_id, A)
    assert log.documents(later.run_id, A)[0].document() == DOCUMENT
    assert copy.push(log) == Pushed(0, 1)
    assert gone.run_id.encode() not in everything(dataset())


def test_what_another_log_put_there_stays(
    log: ExperimentLog, open_log: OpenLog, copy: LogCopy, dataset: Dataset
) -> None:
    theirs = log_run(other := open_log("other"), make_record(owner=B))
    other.share(theirs.run_id, B)
    copy.push(other)
    ours = log_run(log, make_record(owner=A))
    assert copy.push(log) == Pushed(1, 0)
    log.delete(ours.run_id, A)
    assert copy.push(log) == Pushed(0, 1)
    index = json.loads(dataset().files["index.json"])
    assert list(index["shards"].values()) == [[theirs.run_id]]
    assert index["shared"] == [theirs.run_id]


def test_a_long_log_goes_in_several_files_and_a_push_that_is_cut_off_is_finished_by_the_next(
    log: ExperimentLog,
    open_log: OpenLog,
    copy: LogCopy,
    hub_stand_in: HubStandIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core.runs.hub.export.SHARD_BYTES", 1)
    ids = {log_run(log, make_record()).run_id for _ in range(2)}

    def fail_second(path: str) -> None:
        if path.endswith("/commit/main") and hub_stand_in.dataset(NAME).payloads:
            raise Refused(503, "out of order")

    hub_stand_in.before = fail_second
    said = r"push to the data set someone/runs: the hub answered 503 \(out of order\); try again later"
    with pytest.raises(HubError, match=said):
        copy.push(log)
    hub_stand_in.before = lambda _: None
    assert copy.push(log) == Pushed(1, 0)
    assert len(shards(hub_stand_in.dataset(NAME))) == 2
    fresh = open_log("fresh")
    assert copy.pull(fresh) == Pulled(2, 0, ())
    assert {row.run_id for row in fresh.search(owner=None).rows} == ids


def test_two_that_push_at_once_do_not_overwrite_each_other(
    log: ExperimentLog, open_log: OpenLog, copy: LogCopy, hub_stand_in: HubStandIn
) -> None:
    rival = open_log("rival")
    rivals, ours = log_run(rival, make_record()), log_run(log, make_record())

    def be_quicker(path: str) -> None:
        if path.endswith("/commit/main"):
            hub_stand_in.before = lambda _: None
            copy.push(rival)

    hub_stand_in.before = be_quicker
    with pytest.raises(HubError, match=r"412 .*at the same moment, try again"):
        copy.push(log)
    assert copy.push(log) == Pushed(1, 0)
    index = json.loads(hub_stand_in.dataset(NAME).files["index.json"])
    there = {run_id for run_ids in index["shards"].values() for run_id in run_ids}
    assert there == {rivals.run_id, ours.run_id}


def test_a_damaged_file_keeps_no_other_out(
    log: ExperimentLog, open_log: OpenLog, copy: LogCopy, dataset: Dataset
) -> None:
    good = log_run(log, make_record())
    copy.push(log)
    [first] = shards(dataset())
    log_run(log, make_record())
    copy.push(log)
    [second] = set(shards(dataset())) - {first}
    dataset().files[second] = dataset().files[second][:-50]
    fresh = open_log("fresh")
    pulled = copy.pull(fresh)
    assert (pulled.n_new, fresh.search(owner=None).rows[0].run_id) == (1, good.run_id)
    [sentence] = pulled.damaged
    assert sentence.startswith(f"{second} of {NAME} could not be taken in: ")


def test_a_hostile_index_is_one_sentence(log: ExperimentLog, copy: LogCopy, dataset: Dataset) -> None:
    log_run(log, make_record())
    copy.push(log)
    hostile = [
        b"{",
        b'{"format": 1, "shards": {"../../etc/passwd": []}}',
        b'{"format": 1, "shards": {"runs/x.jsonl": ["\' OR 1=1"]}}',
        b'{"format": 2}',
        b'{"format": 1, "surprise": 1}',
        b'{"format": 1, "shards": {"runs/../x.jsonl": []}}',
        b'{"format": 1, "shared": [7]}',
    ]
    for index in few(hostile, 3):
        dataset().files["index.json"] = index
        for attempt in (copy.pull, copy.push):
            with pytest.raises(HubError, match=rf"index\.json of {NAME} is not as it should be") as caught:
                attempt(log)
            assert len(str(caught.value).splitlines()) == 1
    del dataset().files["index.json"]
    with pytest.raises(HubError, match="no copy of a log; choose another name"):
        copy.push(log)


def test_nobody_but_the_operator_takes_in_owners(
    log: ExperimentLog, open_log: OpenLog, copy: LogCopy, dataset: Dataset, tmp_path: Path
) -> None:
    record = log_run(log, make_record(owner=A))
    copy.push(log)
    file = tmp_path / "pushed.jsonl"
    file.write_bytes(dataset().files[shards(dataset())[0]])
    visited = open_log("visited")
    for owner in (None, A, B):
        with pytest.raises(MalformedRuns, match="names an owner"):
            import_runs(visited, file, owner=owner)
    file.write_text(file.read_text().replace(f'"owner": "{A}"', '"owner": null'))
    assert import_runs(visited, file, owner=B) == 1
    assert visited.get(record.run_id, B).record.owner == B
    with pytest.raises(RunNotFound):
        visited.get(record.run_id, A)


def test_the_commands(
    tmp_path: Path,
    hub_stand_in: HubStandIn,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log that nobody owns, with a visitor's run."""

    def told(
        command: str, name: str = NAME, path: Path = tmp_path / "commands.duckdb"
    ) -> tuple[int, str, str]:
        to = "--to" if command == "push" else "--from"
        status = main(["runs", command, to, name, "--log", str(path), "--json"])
        return status, *capsys.readouterr()

    with ExperimentLog.open(tmp_path / "commands.duckdb") as log:
        record = log_run(log, make_record(owner=A))
    for command, name, token, reason in (
        ("pull", "team/else", TOKEN, "there is no data set team/else"),
        ("push", "nobodys/runs", TOKEN, "could not make the data set nobodys/runs: the hub answered 403"),
        ("push", "team/else", "hf_Canary", "answered 401"),
    ):
        monkeypatch.setenv("HF_TOKEN", token)
        status, _, said = told(command, name)
        assert (status, reason in said, len(said.splitlines()), token in said) == (2, True, 1, False)
    assert hub_stand_in.repositories == {}
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    status, out, _ = told("push")
    assert (status, json.loads(out)) == (0, {"pushed": 1, "removed": 0})
    status, out, said = told("pull", path=tmp_path / "fresh.duckdb")
    assert (status, json.loads(out)) == (0, {"pulled": 1, "visitors": 1})
    assert "belong to visitors" in said
    with ExperimentLog.open(tmp_path / "commands.duckdb") as log:
        log.delete(record.run_id, A)
    assert json.loads(told("push")[1]) == {"pushed": 0, "removed": 1}
    assert TOKEN.encode() not in everything(hub_stand_in.dataset(NAME))
