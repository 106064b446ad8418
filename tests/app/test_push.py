"""Runs that another machine pushes, over real HTTP: taken once, and nothing else is."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path

import gradio as gr
import httpx
import pytest
from pydantic import SecretStr

from app.calls.endpoints import server_options
from app.services.settings import Settings
from app.services.shared import Services
from core.base.errors import LogError
from core.cli import main
from core.runs.log import ExperimentLog, open_reader
from core.runs.log.push import MAX_PUSH_BYTES, PUSH, WANTED, signed_headers
from core.runs.log.transfer import finished_run
from core.runs.log.wire import run_lines
from tests.app.conftest import RunningApp
from tests.app.conftest import served as served_app
from tests.app.served import served
from tests.conftest import RecordAttack
from tests.core.runs.log.recording import log_run, make_record
from tests.waiting import wait_until

TOKEN = "canary-of-both-machines"


@pytest.fixture(scope="module")
def taking_app(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Iterator[RunningApp]:
    """A public server of this process, for strangers, that takes runs."""
    home = tmp_path_factory.mktemp("home")
    settings = Settings(
        public=True, checkpoint=str(tiny), log=home / "log.duckdb", push_token=SecretStr(TOKEN)
    )
    services = Services(settings)
    with gr.Blocks() as blocks:
        gr.Textbox()
    with served(blocks, app_kwargs=server_options(settings, services)) as url:
        yield RunningApp(url, home, os.getpid())
    services.close()


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A log with two runs and a visitor's."""
    path = tmp_path / "mine.duckdb"
    with ExperimentLog.open(path) as log:
        parent = log_run(log, make_record(query="Where is the milk?"))
        log_run(log, make_record(parent_run_id=parent.run_id, fork_step=1), first_step=2)
        log_run(log, make_record(owner="a" * 64))
    return path


Push = Callable[[RunningApp, Path], dict[str, int]]


@pytest.fixture
def push(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Push:
    """What `runs push` says it has done."""
    monkeypatch.setenv("QRAG_PUSH_TOKEN", TOKEN)

    def push(app: RunningApp, log: Path) -> dict[str, int]:
        assert main(["runs", "push", app.url, "--log", str(log), "--json"]) == 0
        said = capsys.readouterr()
        assert TOKEN not in said.out + said.err
        counts: dict[str, int] = json.loads(said.out)
        return counts

    return push


def post(app: RunningApp, asked: str, body: bytes, token: str = TOKEN, **headers: str) -> httpx.Response:
    signed = signed_headers(SecretStr(token), asked, body, time.time())  # type: ignore[arg-type]
    return httpx.post(app.url + asked, content=body, headers={**signed, **headers}, timeout=60)


def lines(log: Path) -> bytes:
    """The oldest run."""
    with ExperimentLog.open(log) as opened:
        [run_id] = opened.read(
            lambda con: con.execute("SELECT run_id FROM runs ORDER BY created_at LIMIT 1").fetchone()
        )
        return "".join(run_lines(finished_run(opened, run_id, None), set())).encode()


def test_runs_come_once_and_as_they_were(taking_app: RunningApp, mine: Path, push: Push) -> None:
    assert push(taking_app, mine) == {"pushed": 2, "there": 0, "refused": 0}
    assert push(taking_app, mine) == {"pushed": 0, "there": 2, "refused": 0}
    with ExperimentLog.open(mine) as log:
        known = {row.run_id: finished_run(log, row.run_id, None) for row in log.search(owner=None).rows}
        added = log_run(log, make_record(query="Who has the key?"))
    assert push(taking_app, mine) == {"pushed": 1, "there": 2, "refused": 0}
    again = post(taking_app, PUSH, lines(mine))
    assert (again.status_code, again.json()) == (200, {"new": False})
    wait_until(lambda: {*known, added.run_id} <= listed(taking_app))  # readers see it with the next snapshot
    with open_reader(taking_app.home / "log.duckdb") as reader:
        for run_id, run in known.items():
            assert finished_run(reader, run_id, None).events == run.events
            assert reader.get(run_id).record == run.record


def listed(app: RunningApp) -> set[str]:
    """Runs that the app's log shows to programs beside it."""
    try:
        with open_reader(app.home / "log.duckdb") as reader:
            return {row.run_id for row in reader.search(owner=None).rows}
    except LogError:
        return set()


@pytest.mark.campaign
def test_an_app_started_with_a_token_takes_runs_and_keeps_it_secret(
    tmp_path: Path, tiny: Path, mine: Path, push: Push
) -> None:
    with served_app(tmp_path, "--public", "--checkpoint", str(tiny)) as app:
        assert push(app, mine) == {"pushed": 2, "there": 0, "refused": 0}
    assert TOKEN not in (tmp_path / "app.out").read_text()


def test_what_is_no_run_is_refused_in_a_sentence(
    taking_app: RunningApp, mine: Path, record_attack: RecordAttack
) -> None:
    whole = lines(mine)
    run = json.loads(whole.splitlines()[0])
    owned = json.dumps(run | {"owner": "a" * 64}).encode() + b"\n" + whole.partition(b"\n")[2]
    bodies = (
        (b"", "the file is empty"),
        (b"{}\n", "line 1"),
        (b"\xff\xfe", "line 1"),
        (whole[:-20], "line"),
        (whole + whole, "more than one run"),
        (owned, "names an owner"),
        (whole.replace(b'"n_chunks": 50', b'"n_chunks": 5000000000'), "n_chunks"),
    )
    for body, sentence in bodies:
        answer = post(taking_app, PUSH, body)
        assert answer.status_code == 422, body[:80]
        assert sentence in answer.json()["detail"]
        assert "/tmp" not in answer.json()["detail"]
    asked = (b"", b"7", b'["x"]', json.dumps(["a" * 32] * 1_001).encode())
    for body in asked:
        assert post(taking_app, WANTED, body).status_code == 422
    missing = "0" * 32
    assert post(taking_app, WANTED, json.dumps([missing]).encode()).json() == {"wanted": [missing]}
    record_attack(
        "bodies of pushes over HTTP, malformed", len(bodies) + len(asked), "all refused in a sentence"
    )


def test_nobody_else_gets_in(
    taking_app: RunningApp,
    tiny_app: RunningApp,
    mine: Path,
    capsys: pytest.CaptureFixture[str],
    record_attack: RecordAttack,
) -> None:
    whole = lines(mine)
    signed = signed_headers(SecretStr(TOKEN), PUSH, whole, time.time())
    url = taking_app.url + PUSH
    refused = [
        httpx.post(url, content=whole, timeout=30),
        post(taking_app, PUSH, whole, "another-token-as-long"),
        httpx.post(taking_app.url + WANTED, content=whole, headers=signed, timeout=30),
        httpx.post(url, content=whole.replace(b"milk", b"silk"), headers=signed, timeout=30),
        httpx.post(url, content=whole, headers=signed, timeout=30),  # the same headers once more
        post(taking_app, PUSH, whole, Origin="https://evil.example"),
        post(tiny_app, PUSH, whole),  # it has no token
    ]
    assert [answer.status_code for answer in refused] == [401, 401, 401, 401, 409, 403, 404]
    assert post(
        taking_app, WANTED, json.dumps([json.loads(whole.splitlines()[0])["record"]["run_id"]]).encode()
    )
    assert main(["runs", "push", tiny_app.url, "--log", str(mine)]) == 2
    assert "QRAG_PUSH_TOKEN is not set" in capsys.readouterr().err
    record_attack(
        "pushes over HTTP, forged, replayed or from a page", len(refused), "all refused in a sentence"
    )


@pytest.mark.campaign
def test_a_body_without_end_is_cut_off(taking_app: RunningApp, record_attack: RecordAttack) -> None:
    """No length is announced."""
    blocks = repeat(b"x" * (1 << 20), MAX_PUSH_BYTES // (1 << 20) + 2)
    signed = signed_headers(SecretStr(TOKEN), PUSH, b"", time.time())
    answer = httpx.post(taking_app.url + PUSH, content=blocks, headers=signed, timeout=60)
    assert answer.status_code == 413
    assert f"more than {MAX_PUSH_BYTES:,} bytes" in answer.json()["detail"]
    record_attack("bodies of pushes over HTTP, without end", 1, f"cut off at {MAX_PUSH_BYTES >> 20} MiB")


def test_the_token_is_a_secret_of_the_settings() -> None:
    settings = Settings.from_args([], {"QRAG_PUSH_TOKEN": TOKEN})
    assert settings.push_token == SecretStr(TOKEN)
    assert "canary" not in repr(settings)
    assert Settings.from_args([], {}).push_token is None
