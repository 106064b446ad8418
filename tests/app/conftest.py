"""The app as a person starts it: `python app.py` in a process of its own, with a home folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import ROOT, core_command, made_once

if TYPE_CHECKING:
    from app.services.shared import Services

expect.set_options(timeout=15_000)  # workers share two cores, each with a browser
DATA = ROOT / "tests" / "data"


@dataclass(frozen=True)
class RunningApp:
    """A server that answers."""

    url: str
    home: Path
    """Command lines with the same home have the same log and caches."""
    pid: int

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`python -m core ...` beside the app."""
        return core_command({"QRAG_HOME": str(self.home)}, *arguments)


StartApp = Callable[..., RunningApp]


WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
PORTS = count(20_000 + 1_200 * (WORKER % 10) + os.getpid() % 1_100)


def free_port() -> int:
    """A port that no other worker offers its servers, and none that the system gives to whoever asks for any:
    a server binds it seconds later, and who finds it taken then would be answered by another's server.
    """
    for port in PORTS:
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
    raise AssertionError("unreachable: ports are tried without end")


def start_process(home: Path, *flags: str) -> tuple[RunningApp, subprocess.Popen[bytes]]:
    """`python app.py` that answers, and its process."""
    port = free_port()
    output = home / "app.out"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "app.py", "--port", str(port), *flags],
            cwd=ROOT,
            env={**os.environ, "QRAG_HOME": str(home)},
            stdout=stream,
            stderr=stream,
            umask=0o022,  # as most accounts have it
        )
    app = RunningApp(f"http://127.0.0.1:{port}", home, process.pid)
    until = time.monotonic() + 120
    while time.monotonic() < until:
        assert process.poll() is None, output.read_text()
        try:
            urllib.request.urlopen(app.url, timeout=5).close()
            return app, process
        except OSError:
            time.sleep(0.05)
    process.kill()
    raise AssertionError("the app did not answer within two minutes: " + output.read_text())


def end(process: subprocess.Popen[bytes]) -> None:
    """As a person ends it; one that does not hear is killed."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


def shared_app(name: str, *flags: str, visited: Path | None = None) -> RunningApp:
    """One server for all workers of a run, by its name; the process that began the run ends it.

    visited: a home folder to begin with.
    """

    def start(known: Path) -> None:
        home = known.with_suffix("")
        if visited is None:
            home.mkdir()
        else:
            shutil.copytree(visited, home)
        app, _ = start_process(home, *flags)
        known.write_text(json.dumps([app.url, str(app.home), app.pid]))

    url, home_path, pid = json.loads(made_once(f"{name}.json", start).read_text())
    return RunningApp(url, Path(home_path), pid)


@pytest.fixture
def start_app(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StartApp]:
    """Starts the app on the test's home folder; again after a stop, as after a restart."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(*flags: str, kill_last: bool = False) -> RunningApp:
        if "--checkpoint" not in flags and not processes:
            shutil.copytree(request.getfixturevalue("visited_home"), tmp_path, dirs_exist_ok=True)
        for process in processes:
            process.kill() if kill_last else process.terminate()
            process.wait(20)
        processes.clear()
        app, process = start_process(tmp_path, *flags)
        processes.append(process)
        return app

    yield start
    for process in processes:
        end(process)


@contextmanager
def served(home: Path, *flags: str) -> Iterator[RunningApp]:
    app, process = start_process(home, *flags)
    try:
        yield app
    finally:
        end(process)


@pytest.fixture(scope="session")
def running_app(visited_home: Path) -> RunningApp:
    """One app as it starts without flags, for all tests that neither restart it nor count what its log holds.

    Its tests share a log. What they open, run and choose is their page's own.
    """
    return shared_app("running", visited=visited_home)


@pytest.fixture(scope="session")
def tiny_app(tiny: Path) -> RunningApp:
    """As `running_app`, for tests that take nothing from the agents that ship: this one runs in milliseconds
    and never stops early. Methods beside it ask the base encoder, which embeds the sample when first asked.
    """
    return shared_app("tiny", "--checkpoint", str(tiny))


@pytest.fixture(scope="session")
def public_app(tiny: Path) -> RunningApp:
    """One public app with the tiny agent; its tests keep apart by visitors of their own."""
    return shared_app("public", "--public", "--checkpoint", str(tiny))


@pytest.fixture(scope="session")
def book() -> Path:
    return DATA / "real" / "angel.txt"


@pytest.fixture
def services(tiny: Path, tmp_path: Path) -> Iterator[Services]:
    """What a local app shares, over the tiny checkpoint, with a log of its own."""
    from app.services.settings import Settings
    from app.services.shared import Services  # takes seconds: browser tests do without

    with closing(Services(Settings(checkpoint=str(tiny), log=tmp_path / "log.duckdb"))) as made:
        yield made


@pytest.fixture(scope="module")
def services_of_file(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """`services` of all tests of a file: loading agents and reader takes seconds."""
    from app.services.settings import Settings
    from app.services.shared import Services

    log = tmp_path_factory.mktemp("log") / "log.duckdb"
    with closing(Services(Settings(checkpoint=str(tiny), log=log))) as made:
        yield made


@pytest.fixture
def began() -> datetime:
    """When the test did: earlier runs in the log are other tests'."""
    return datetime.now(UTC)


def wait_ready(page: Page, seconds: float = 60) -> None:
    """Until a document is open, and the sample's run is there."""
    expect(page.locator("#qx-header .qx-chip")).to_be_visible(timeout=1000 * seconds)
    expect(page.locator("#qx-strip [data-state=loading]")).to_have_count(0, timeout=1000 * seconds)
    expect(page.locator("#qx-opening progress")).to_have_count(0, timeout=1000 * seconds)


def choose_files(page: Page, field: str, *paths: Path) -> None:
    """Returns when the server has them. While they are on their way, the field names them already, but a button
    pressed then is sent without them.
    """
    page.locator(f"{field} input[type=file]").set_input_files([str(path) for path in paths])
    for path in paths:
        expect(page.locator(f"{field} .file-preview")).to_contain_text(path.stem[:12], timeout=30_000)


def upload(page: Page, *paths: Path, seconds: float = 60) -> None:
    """Opens files through the panel; returns when they are open or refused."""
    page.get_by_text("Change document").click()
    page.get_by_role("tab", name="Upload").click()
    choose_files(page, "#qx-files", *paths)
    before = page.locator("#qx-header .qx-doc-title").inner_text()
    page.locator("#qx-open-files").click()
    opened = (
        "([before]) => document.querySelector('#qx-change-notice .qx-error') || document.querySelector('#qx-header"
        " .qx-doc-title').innerText !== before"
    )
    page.wait_for_function(opened, arg=[before], timeout=1000 * seconds, polling=100)
