"""The thread that serves readers of the log goes on, whatever fails in it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing, suppress
from pathlib import Path

import pytest

from app.services.settings import Settings
from app.services.shared import Services
from core.base.errors import LogError
from core.runs.log import InboxLog, open_reader
from tests.core.runs.log.recording import log_run, make_record
from tests.waiting import wait_until


def test_whatever_fails_at_a_look_the_next_run_comes_in_and_readers_see_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.shared._SNAPSHOT_PAUSE", 0.05)
    monkeypatch.setattr("app.services.shared._EXPIRY_PAUSE", 0.0)
    path = tmp_path / "log.duckdb"

    def fail(_: Collection[str]) -> None:
        raise OverflowError("date value out of range")

    with closing(Services(Settings(log=path))) as services:
        services.forgets.append(fail)
        wait_until(lambda: "OverflowError" in caplog.text)
        run_id = log_run(InboxLog(path), make_record()).run_id
        wait_until(lambda: services.own_log.search(owner=None).total == 1)
        wait_until(lambda: sees(path, run_id))


def sees(path: Path, run_id: str) -> bool:
    """Whether another process finds the run, once there is a snapshot to read."""
    with suppress(LogError), open_reader(path) as reader:
        return any(row.run_id == run_id for row in reader.search(owner=None).rows)
    return False
