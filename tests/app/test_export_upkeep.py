"""The log's copy while the app runs."""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path

import pytest
from huggingface_hub import constants

from app.services.export_upkeep import ExportUpkeep
from app.services.settings import Settings
from app.services.shared import Services
from core.runs.hub.client import HubError, connect
from core.runs.hub.export import LogCopy, Pulled
from core.runs.log import ExperimentLog
from tests.core.runs.log.recording import log_run, make_record
from tests.hub_stand_in import TOKEN, HubStandIn, Refused
from tests.waiting import wait_until

NAME = "team/runs"
A = "a" * 64


def n_pushed(hub: HubStandIn) -> int:
    files = hub.repositories["datasets", NAME].files if ("datasets", NAME) in hub.repositories else {}
    return sum(
        content.count(b'{"line": "end"') for name, content in files.items() if name.startswith("runs/")
    )


def test_a_space_that_starts_anew_finds_its_runs(hub_stand_in: HubStandIn, tmp_path: Path) -> None:
    settings = [
        Settings.from_args(["--log", str(tmp_path / name / "log.duckdb")], {"QRAG_EXPORT_REPO": NAME})
        for name in ("old", "new")
    ]
    old = Services(settings[0])
    run_id = log_run(old.own_log, make_record(owner=A)).run_id
    old.own_log.share(run_id, A)
    old.close()
    assert n_pushed(hub_stand_in) == 1, "closing pushes"
    with closing(Services(settings[1])) as new:
        assert new.own_log.get(run_id, A).shared
        assert new.own_log.get(run_id, "b" * 64).record.owner is None
        assert new.own_log.search(owner="b" * 64).total == 0


def test_without_the_variable_nobody_is_asked(hub_stand_in: HubStandIn, tmp_path: Path) -> None:
    services = Services(Settings.from_args(["--log", str(tmp_path / "log.duckdb")], {}))
    services.close()
    assert hub_stand_in.requests == []


def test_a_hub_that_is_away_is_tried_again(
    hub_stand_in: HubStandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ExperimentLog.open(tmp_path / "log.duckdb") as log:
        log_run(log, make_record(owner=A))
        hub_stand_in.refuse_next = Refused(503, f"away {TOKEN}")
        with (
            caplog.at_level(logging.WARNING),
            closing(ExportUpkeep(log, LogCopy(connect(), NAME), pause=0.1)),
        ):
            wait_until(lambda: n_pushed(hub_stand_in) == 1)
            log_run(log, make_record())
            wait_until(lambda: n_pushed(hub_stand_in) == 2)
    [told] = [record.getMessage() for record in caplog.records]
    assert (
        told
        == "the copy of the log: could not look at the data set team/runs: the hub answered 503 (away ***);"
        " try again later (next try in 0 s)"
    )


def test_a_look_that_fails_in_an_unknown_way_is_not_the_last(
    hub_stand_in: HubStandIn,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ExperimentLog.open(tmp_path / "log.duckdb") as log:
        log_run(log, make_record())
        with closing(ExportUpkeep(log, LogCopy(connect(), NAME), pause=0.05)):
            wait_until(lambda: n_pushed(hub_stand_in) == 1)
            with monkeypatch.context() as patch:
                patch.setattr("core.runs.hub.export._MAX_INDEX_BYTES", "no number")
                log_run(log, make_record())
                wait_until(lambda: "TypeError" in caplog.text)
            wait_until(lambda: n_pushed(hub_stand_in) == 2)


def test_nothing_new_asks_for_the_commit_and_no_more(hub_stand_in: HubStandIn, tmp_path: Path) -> None:
    with ExperimentLog.open(tmp_path / "log.duckdb") as log:
        log_run(log, make_record())
        with closing(ExportUpkeep(log, LogCopy(connect(), NAME), pause=0.05)):
            wait_until(lambda: n_pushed(hub_stand_in) == 1)
            asked = [("GET", f"/api/datasets/{NAME}")] * 8  # a look with anything to do asks for more
            wait_until(lambda: hub_stand_in.requests[-8:] == asked)


@pytest.mark.usefixtures("hub_stand_in")
def test_what_another_app_pushes_in_the_middle_of_a_look_comes_in_at_the_next(tmp_path: Path) -> None:
    with (
        ExperimentLog.open(tmp_path / "new.duckdb") as new,
        ExperimentLog.open(tmp_path / "old.duckdb") as old,
    ):
        LogCopy(connect(), NAME).push(old)
        late = log_run(old, make_record(owner=A))

        class Overtaken(LogCopy):
            def pull(self, log: ExperimentLog) -> Pulled:
                pulled = super().pull(log)
                LogCopy(connect(), NAME).push(old)
                return pulled

        with closing(ExportUpkeep(new, Overtaken(connect(), NAME), pause=0.05)):
            wait_until(lambda: new.search(owner=A).total == 1)
        assert new.get(late.run_id, A).n_steps == 3


def test_a_hub_that_can_not_be_reached_does_not_hold_the_app_up(
    hub_stand_in: HubStandIn,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    services = Services(Settings(log=tmp_path / "log.duckdb", export_repository=NAME))
    services.close()
    assert [
        record.getMessage().splitlines()
        for record in caplog.records
        if "can't be reached" in record.getMessage()
    ]
    assert hub_stand_in.requests == []


def test_an_app_that_could_never_push_does_not_start(
    hub_stand_in: HubStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(HubError, match="set HF_TOKEN"):
        Services(Settings(log=tmp_path / "log.duckdb", export_repository=NAME))
    assert hub_stand_in.requests == []
