"""What all tests share."""

from __future__ import annotations

import fcntl
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright
from xdist.scheduler import LoadFileScheduling

from app.without_stubs import without_stubs
from tests.hub_stand_in import TOKEN, HubStandIn, serve_hub
from tests.settled import new_context

gc.disable()  # until all is imported, none of which ever goes: a third of the time of collecting
ROOT = Path(__file__).resolve().parents[1]
OpenPage = Callable[..., Page]
SERVERS = "QRAG_TEST_SERVERS"
"""Environment variable: folder of the servers that all workers of a run share."""


@dataclass(frozen=True)
class Counts:
    """How often the tests repeat what they draw at random."""

    examples: int
    """Of each property."""
    hostile_files: int
    """Read as documents."""
    kills: int
    """Of processes that record into the log."""
    payloads: int
    """Of markup, template and script in documents on a page."""
    forged_calls: int
    """Over HTTP, with arguments that no caller would give."""
    visitors: int
    """Of one public app, each after what all others have."""


CAMPAIGN = bool(os.environ.get("QRAG_CAMPAIGN"))
"""Whether this is `make campaign`, which takes its time, and not the run for every change."""
COUNTS = (
    Counts(
        examples=500,
        hostile_files=20_000,
        kills=200,
        payloads=200,
        forged_calls=2_000,
        visitors=20,
    )
    if CAMPAIGN
    else Counts(
        examples=10,
        hostile_files=100,
        kills=2,
        payloads=8,
        forged_calls=20,
        visitors=2,
    )
)


def few(cases: Iterable[Any], n: int = 2) -> list[Any]:
    """Cases that try one promise in several ways: all of them in the campaign, the first ones in `make test`."""
    return list(cases)[: None if CAMPAIGN else n]


settings.register_profile("qrag", max_examples=COUNTS.examples, deadline=None)  # a busy machine is no failure
settings.load_profile("qrag")

OF_NETWORKS = (
    "tests/core/answer/",
    "tests/core/cli/test_flags.py",
    "tests/core/cli/test_train_reader.py",
    "tests/core/encode/",
    "tests/core/lab/train/",
    "tests/core/lab/tune/",
    "tests/core/llm/test_constrained.py",
    "tests/core/llm/test_local.py",
)
"""Files that one worker takes together: transformers' models take seconds to import, and those of the reader
look at one training.
"""

LONG = (*OF_NETWORKS, "tests/core/lab/test_shipped_agents.py", "tests/core/cli/test_commands.py")
"""Files that come first, for their names would put them last; they compute all the time, while browsers beside
them wait.
"""

CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has no window to paint and takes a quarter less for a page."""
NOT_WANTED = (
    # suggestions of the address bar: two pages of Chromium's own in each window, a quarter of what a load
    # takes
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    # this and the following playwright switches off itself; of two such flags Chromium reads the last
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
"""Features of Chromium that no test uses, or that are in the way of being driven."""
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join(NOT_WANTED)}",
)


def pytest_configure(config: pytest.Config) -> None:
    """Sets the environment before any module of ours is imported; processes that tests start inherit it."""
    config.addinivalue_line(
        "markers", "campaign: tried by `make campaign` alone, since `make test` has to be quick"
    )
    home = tempfile.TemporaryDirectory(prefix="qrag-tests-")
    config.add_cleanup(home.cleanup)
    os.environ |= {
        "QRAG_HOME": home.name,
        "HF_HUB_OFFLINE": "1",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "TOKENIZERS_PARALLELISM": "false",
    }
    os.environ.setdefault(
        "QRAG_ENGINE", "torch"
    )  # measuring and compiling in every process and home folder would cost more than it saves
    os.environ.setdefault(
        "QRAG_READER", "small"
    )  # the large one takes two seconds and 0.4 GB to load, in each of some forty processes
    for name in (
        "SPACE_ID",
        "GRADIO_SERVER_NAME",
        "GRADIO_SERVER_PORT",
        "QRAG_LLM_URL",
        "QRAG_LLM_MODEL",
        "QRAG_LLM_KEY",
        "QRAG_LLM_REPLY_TOKENS",
        "QRAG_LLM_ALLOW",
        "QRAG_DATA",
    ):
        os.environ.pop(name, None)
    # tables of Unicode and of the code's own constants, which take seconds of each worker in a fresh clone
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(sys.prefix) / "hypothesis"))
    os.environ["OMP_NUM_THREADS"] = "1"  # threads of several workers on one core wait for each other
    if SERVERS not in os.environ:
        servers = tempfile.TemporaryDirectory(prefix="qrag-servers-")
        os.environ[SERVERS] = servers.name
        config.add_cleanup(servers.cleanup)
        config.add_cleanup(end_servers)  # runs first


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails a run in which a handler of a shared server broke, which its page may have shown to nobody."""
    if hasattr(session.config, "workerinput"):
        return
    for output in Path(os.environ[SERVERS]).glob("*/app.out"):
        said = output.read_text(errors="replace")
        if (at := said.find(", in process_events\n")) >= 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            print(f"\nA handler of the server {output.parent.name!r} broke:")
            print(said[max(0, at - 4_000) : at + 4_000])


def end_servers() -> None:
    """Ends the servers that workers shared."""
    pids = [json.loads(known.read_text())[-1] for known in Path(os.environ[SERVERS]).glob("*.json")]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 20
    for pid in pids:
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for its parent to ask how."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """A file or folder beside the servers that workers share. The worker that needs it first makes it."""
    path = Path(os.environ[SERVERS]) / name
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            make(path)
    return path


def core_command(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m core ...` with some variables more."""
    return subprocess.run(
        [sys.executable, "-m", "core", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """The first worker alone, which compiles all files with the asserts rewritten; the others find them so. That
    takes seconds of a core.
    """
    compiled = Path(os.environ[SERVERS]) / "compiled"
    if session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput"):
        if any((ROOT / "tests").rglob("test_*.pyc")):
            compiled.touch()
        return (yield)  # hands out tests, and collects none
    with (Path(os.environ[SERVERS]) / "collection.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if compiled.exists():
            fcntl.flock(lock, fcntl.LOCK_UN)
        with without_stubs():
            result = yield
        compiled.touch()
    return result


def pytest_collection_finish() -> None:
    """The collector of garbage leaves alone what is imported, and goes on with what tests make."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make test` leaves to the campaign what is marked so."""
    if not CAMPAIGN:
        left = [item for item in items if item.get_closest_marker("campaign")]
        items[:] = [item for item in items if not item.get_closest_marker("campaign")]
        config.hook.pytest_deselected(items=left)
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """With `--dist loadfile`, whole files, those of networks together."""
    return _NetworksTogether(config, log) if config.getvalue("dist") == "loadfile" else None


class _NetworksTogether(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return "networks" if nodeid.startswith(OF_NETWORKS) else str(super()._split_scope(nodeid))


ATTACK = "attack"
"""Name of the property under which a test leaves a row of the table at the end of a run."""
RecordAttack = Callable[[str, int, str], None]


@pytest.fixture
def record_attack(record_property: Callable[[str, object], None]) -> RecordAttack:
    """`record_attack("PDFs changed at random", 200, "150 read, 50 refused")`: what was tried, how often, and
    what came of it.

    For a test that attacks: it fails where an attack succeeds, and leaves this row where none did.
    """

    def record(attack: str, n_tried: int, outcome: str) -> None:
        record_property(ATTACK, [attack, n_tried, outcome])

    return record


def summed(rows: Iterable[Sequence[Any]]) -> list[tuple[str, int, str]]:
    """One row for an attack that several cases tried with the same outcome."""
    tried: Counter[tuple[str, str]] = Counter()
    for attack, n_tried, outcome in rows:
        tried[attack, outcome] += n_tried
    return [(attack, n_tried, outcome) for (attack, outcome), n_tried in tried.items()]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the table of attacks, in the Markdown of docs/security.md."""
    reports = [
        report
        for kind in ("passed", "failed")
        for report in terminalreporter.stats.get(kind, ())
        if report.when == "call"
    ]
    rows = sorted(
        summed(value for report in reports for name, value in report.user_properties if name == ATTACK)
    )
    if rows:
        terminalreporter.section("attacks")
        lines = [
            "| attack | tried | what came of it |",
            "|---|---|---|",
            *(f"| {attack} | {n_tried:,} | {outcome} |" for attack, n_tried, outcome in rows),
        ]
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture(scope="session", autouse=True)
def models_stay_in_use() -> Iterator[None]:
    """Commands and apps in this process load each model once: what a test loaded stays in use for the next.
    None is traced, which would take longer than all that most of them are asked here.
    """
    from core.encode import traced  # needs the environment as it is set above
    from core.encode.in_use import InUse

    kept, get = set(), InUse.get

    def get_and_keep(self: InUse[Any], folder: Path, device: Any) -> Any:
        model = get(self, folder, device)
        kept.add(model)
        return model

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InUse, "get", get_and_keep)
        patch.setattr(traced, "_WITHOUT", 10**6)
        yield


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of a Chromium: $CHROMIUM, else PATH, else the one playwright has or can install."""
    if named := os.environ.get("CHROMIUM"):
        return shutil.which(named) or pytest.fail(
            f"CHROMIUM={named} is not a program; point it to a Chromium or unset it", pytrace=False
        )
    for name in CHROMIUM_NAMES:
        if found := shutil.which(name):
            return found
    with sync_playwright() as playwright:
        bundled = playwright.chromium.executable_path
    if not Path(bundled).exists():
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False, timeout=600)
    if not Path(bundled).exists():
        pytest.fail(
            "no Chromium for the browser tests: install one (apt-get install chromium-headless-shell) or point CHROMIUM"
            " to it",
            pytrace=False,
        )
    return bundled


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[Playwright]:
    """Playwright's driver. While it lives, its event loop counts as running: tests run coroutines in
    `tests.coroutines.run`.
    """
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playwright_driver: Playwright, chromium_path: str) -> Iterator[Browser]:
    browser = playwright_driver.chromium.launch(executable_path=chromium_path, args=list(CHROMIUM_FLAGS))
    yield browser
    browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """`open_page(url, width=1280, height=900, colour_scheme="light")`: a page in a profile of its own, closed
    after the test.
    """
    yield from _opening(browser)


@pytest.fixture(scope="module")
def open_for_file(browser: Browser) -> Iterator[OpenPage]:
    """`open_page` for pages that all tests of a file share."""
    yield from _opening(browser)


def _opening(browser: Browser) -> Iterator[OpenPage]:
    contexts: list[BrowserContext] = []

    def open_(url: str, *, width: int = 1280, height: int = 900, colour_scheme: str = "light") -> Page:
        context = new_context(
            browser, viewport={"width": width, "height": height}, color_scheme=colour_scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def tiny() -> Path:
    """An imported checkpoint of that name, which embeds in milliseconds. Not to be written to."""

    def make(folder: Path) -> None:
        # takes seconds: browser tests do without
        from core.encode.checkpoint import read_spec, write_spec
        from core.encode.reference import import_checkpoint

        reference = ROOT / "tests" / "data" / "reference"
        source = reference / "checkpoints" / "relative10"
        import_checkpoint(str(source), folder / "tiny", base=str(reference / "tiny-bert"))
        write_spec(folder / "tiny", read_spec(folder / "tiny").model_copy(update={"name": "tiny"}))

    return made_once("checkpoint", make) / "tiny"


@pytest.fixture(scope="session")
def visited_home() -> Path:
    """A home folder where the sample of a first visit was open, with the agent that ships. To be copied."""

    def make(home: Path) -> None:
        from core.lab.tasks.samples import list_samples  # needs the environment as it is set for tests

        visit = ("--document", str(list_samples()[0].path), "--query", "Where was the blanket?", "--json")
        flags = ("--step-budget", "1", "--methods", "qrag")
        made = core_command({"QRAG_HOME": str(home)}, "compare", *visit, *flags)
        assert made.returncode == 0, made.stderr

    return made_once("visited-home", make)


@pytest.fixture(scope="session")
def tiny_causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal language model of a few kilobytes that has learned nothing; not to be written to."""
    from tests.tiny_causal import save_tiny_causal  # takes seconds

    return save_tiny_causal(tmp_path_factory.mktemp("causal") / "tiny-causal")


@pytest.fixture
def hub_stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    """A hub of the test's own, which huggingface_hub takes for the real one, with a valid token in the
    environment.
    """
    from huggingface_hub import constants

    with serve_hub() as hub:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.url)
        settings = {
            "ENDPOINT": hub.url,
            "HUGGINGFACE_CO_URL_TEMPLATE": template,
            "HF_HUB_OFFLINE": False,
            "HF_HUB_DISABLE_XET": True,
        }
        for name, value in settings.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub
