"""The app as a person starts it: `python app.py` in a process of its own, with a home folder of its own."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright._impl.assertions import LocatorAssertions
from playwright.sync_api import Error, Page, expect

from app.gradio_internals.imports import import_gradio
from core.tasks.narrative import generate_narrative
from tests.app import forked
from tests.app.forked import ROOT, Forked, forked_command
from tests.conftest import home_after_a_visit

if TYPE_CHECKING:
    from app.services import Services

import_gradio()  # as a server does it: each worker would parse the stubs of all components
expect.set_options(
    timeout=15_000
)  # playwright's five seconds are short for two workers with a browser each on two cores
_EXPECT = LocatorAssertions._call_expect


async def _expect_once_there(self: LocatorAssertions, expression: str, options: Any, title: Any) -> Any:
    """For the message of a failure, Playwright describes the whole page each time that it looks for an
    element and finds none: a seventh of what pages take that are waited for. It looks again once there
    is one.
    """
    awaited = not self._is_not and not expression.endswith((".array", ".count", ".hidden", ".detached"))
    begun = time.monotonic()
    if awaited:
        with suppress(Error):  # the expectation says what is wrong
            await self._actual_locator.wait_for(state="attached", timeout=options["timeout"])
        options["timeout"] = max(1, options["timeout"] - 1000 * (time.monotonic() - begun))
    return await _EXPECT(self, expression, options, title)


LocatorAssertions._call_expect = _expect_once_there  # type: ignore[method-assign]
DATA = Path(os.environ.get("QRAG_DATA") or ROOT.parent / "shared" / "data")


@dataclass(frozen=True)
class RunningApp:
    """A server that answers."""

    url: str
    environment: dict[str, str]
    """For command lines beside it: same home, so same log and caches."""
    home: Path
    pid: int

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`python -m core ...` beside the app."""
        return forked_command(self.environment, *arguments)


StartApp = Callable[..., RunningApp]


Server = Forked | subprocess.Popen[bytes]


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


def start_process(home: Path, *flags: str, imported: bool = True) -> tuple[RunningApp, Server]:
    """A server that answers, and its process: `python app.py`, or the same as a fork of a process that has
    imported all of it.
    """
    port = free_port()
    environment = {**os.environ, "QRAG_HOME": str(home)}
    output = home / "app.out"
    output.write_bytes(b"")
    process: Server
    if imported:
        process = Forked(forked.serve, ("--port", str(port), *flags), environment, output)
    else:
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "app.py", "--port", str(port), *flags],
                cwd=ROOT,
                env=environment,
                stdout=stream,
                stderr=stream,
                umask=0o022,  # as most accounts have it
            )
    app = RunningApp(f"http://127.0.0.1:{port}", environment, home, process.pid)
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


@pytest.fixture
def start_app(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[StartApp]:
    """Starts the app on the test's home folder; again after a stop, as after a restart."""
    processes: list[Server] = []

    def start(*flags: str, kill_last: bool = False, imported: bool = True) -> RunningApp:
        if "--checkpoint" not in flags and not processes:
            shutil.copytree(request.getfixturevalue("visited_home"), tmp_path, dirs_exist_ok=True)
        for process in processes:
            process.kill() if kill_last else process.terminate()
            process.wait(20)
        processes.clear()
        app, process = start_process(tmp_path, *flags, imported=imported)
        processes.append(process)
        return app

    yield start
    for process in processes:
        process.kill()
        process.wait(20)


@contextmanager
def served(home: Path, *flags: str, imported: bool = True) -> Iterator[RunningApp]:
    """One app until the block is left."""
    app, process = start_process(home, *flags, imported=imported)
    try:
        yield app
    finally:
        process.kill()
        process.wait(20)


@pytest.fixture(scope="session")
def running_app(tmp_path_factory: pytest.TempPathFactory, visited_home: Path) -> Iterator[RunningApp]:
    """One app as it starts without flags, for all tests that neither restart it nor count what its log holds.

    Its tests share a log. What they open, run and choose is their page's own.
    """
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(visited_home, home, dirs_exist_ok=True)
    with served(home) as app:
        yield app


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An imported checkpoint of that name, which embeds in milliseconds."""
    from core.encode.checkpoint import read_spec, write_spec  # takes seconds: browser tests do without
    from core.encode.reference import import_checkpoint

    reference, folder = ROOT / "tests" / "data" / "reference", tmp_path_factory.mktemp("checkpoint") / "tiny"
    import_checkpoint(
        str(reference / "checkpoints" / "relative10"), folder, base=str(reference / "tiny-bert")
    )
    write_spec(folder, read_spec(folder).model_copy(update={"name": "tiny"}))
    return folder


@pytest.fixture(scope="session")
def tiny_app(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Iterator[RunningApp]:
    """As `running_app`, for tests that take nothing from the agents that ship: this one runs in milliseconds
    and never stops early. Methods beside it ask the base encoder, which does not.
    """
    home = tmp_path_factory.mktemp("home")
    checkpoint = ("--checkpoint", str(tiny))
    shutil.copytree(home_after_a_visit(tmp_path_factory, "tiny-home", *checkpoint), home, dirs_exist_ok=True)
    with served(home, *checkpoint) as app:
        yield app


@pytest.fixture(scope="session")
def public_app(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Iterator[RunningApp]:
    """One public app with the tiny agent; its tests keep apart by visitors of their own."""
    with served(tmp_path_factory.mktemp("home"), "--public", "--checkpoint", str(tiny)) as app:
        yield app


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some chapters of a book: a real novel where the data sets are, else a generated story of that size."""
    path = tmp_path_factory.mktemp("book") / "angel.txt"
    novel = DATA / "books" / "eval" / "Trollope_Angel_1881.txt.gz"
    path.write_bytes(
        gzip.decompress(novel.read_bytes())[:60_000]
        if novel.exists()
        else generate_narrative(14_000).text.encode()
    )
    return path


@pytest.fixture(scope="session")
def messy_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page as it was served, scripts and navigation and all; the project's own sample page where the data
    sets are not.
    """
    path = tmp_path_factory.mktemp("page") / "page.html"
    real = DATA / "html" / "en-wikipedia-org-18.html.gz"
    path.write_bytes(
        gzip.decompress(real.read_bytes())
        if real.exists()
        else (ROOT / "sample_docs" / "harbour-almanac.html").read_bytes()
    )
    return path


@pytest.fixture
def services(tiny: Path, tmp_path: Path) -> Iterator[Services]:
    """What a local app shares, over the tiny checkpoint, with a log of its own."""
    from app.services import Services  # takes seconds: browser tests do without
    from app.settings import Settings

    made = Services(Settings(checkpoint=str(tiny), log=tmp_path / "log.duckdb"))
    yield made
    made.close()


def wait_ready(page: Page, seconds: float = 60) -> None:
    """Until a document is open."""
    expect(page.locator("#qx-header .qx-chip")).to_be_visible(timeout=1000 * seconds)
    expect(page.locator("#qx-opening progress")).to_have_count(0, timeout=1000 * seconds)


def upload(page: Page, *paths: Path, seconds: float = 60) -> None:
    """Opens files through the panel; returns when they are open or refused."""
    page.get_by_text("Change document").click()
    page.get_by_role("tab", name="Upload").click()
    page.locator("#qx-files input[type=file]").set_input_files([str(path) for path in paths])
    for path in paths:
        expect(page.locator("#qx-files")).to_contain_text(path.stem[:12], timeout=30_000)
    before = page.locator("#qx-header .qx-doc-title").inner_text()
    page.locator("#qx-open-files").click()
    opened = (
        "([before]) => document.querySelector('#qx-change-notice .qx-error') || document.querySelector('#qx-header"
        " .qx-doc-title').innerText !== before"
    )
    page.wait_for_function(opened, arg=[before], timeout=1000 * seconds, polling=100)
