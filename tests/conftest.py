"""What all tests share: an environment that touches neither the network nor the person's own data, and a Chromium to look at pages with.

Decides where Chromium comes from; none at all is a failure, because a browser test that did not run has shown nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.hub_stand_in import TOKEN, HubStandIn, serve_hub
from tests.settled import new_context

OpenPage = Callable[..., Page]

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_configure(config: pytest.Config) -> None:
    """Sets the environment before any module of ours is imported; processes that tests start inherit it."""
    home = tempfile.TemporaryDirectory(prefix="qrag-tests-")
    config.add_cleanup(home.cleanup)
    os.environ |= {"QRAG_HOME": home.name, "HF_HUB_OFFLINE": "1", "GRADIO_ANALYTICS_ENABLED": "False", "TOKENIZERS_PARALLELISM": "false"}
    for name in ("SPACE_ID", "GRADIO_SERVER_NAME", "GRADIO_SERVER_PORT", "QRAG_LLM_URL", "QRAG_LLM_MODEL", "QRAG_LLM_KEY", "QRAG_LLM_ALLOW"):
        os.environ.pop(name, None)
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ["OMP_NUM_THREADS"] = "1"  # workers share the cores; threads of several on one core wait for each other


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of a Chromium: $CHROMIUM, else PATH, else the one playwright has or can install."""
    if named := os.environ.get("CHROMIUM"):
        return shutil.which(named) or pytest.fail(f"CHROMIUM={named} is not a program; point it to a Chromium or unset it", pytrace=False)
    for name in CHROMIUM_NAMES:
        if found := shutil.which(name):
            return found
    with sync_playwright() as playwright:
        bundled = playwright.chromium.executable_path
    if not Path(bundled).exists():
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False, timeout=600)
    if not Path(bundled).exists():
        pytest.fail("no Chromium for the browser tests: install one (apt-get install chromium) or point CHROMIUM to it", pytrace=False)
    return bundled


@pytest.fixture(scope="session")
def playwright_driver() -> Iterator[Playwright]:
    """Playwright's driver. While it lives, its event loop counts as running: tests run coroutines in `tests.coroutines.run`."""
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playwright_driver: Playwright, chromium_path: str) -> Iterator[Browser]:
    """A headless Chromium."""
    browser = playwright_driver.chromium.launch(executable_path=chromium_path, args=list(CHROMIUM_FLAGS))
    yield browser
    browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """`open_page(url, width=1280, height=900, colour_scheme="light")`: a page in a profile of its own, closed after the test."""
    contexts: list[BrowserContext] = []

    def open_(url: str, *, width: int = 1280, height: int = 900, colour_scheme: str = "light") -> Page:
        context = new_context(browser, viewport={"width": width, "height": height}, color_scheme=colour_scheme)
        contexts.append(context)
        page = context.new_page()
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def tiny_causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal language model of a few kilobytes that has learned nothing; not to be written to."""
    from tests.tiny_causal import save_tiny_causal  # takes seconds

    return save_tiny_causal(tmp_path_factory.mktemp("causal") / "tiny-causal")


@pytest.fixture(scope="session")
def roomy_causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another one, which reads prompts of several chunks; not to be written to."""
    from tests.tiny_causal import save_tiny_causal  # takes seconds

    return save_tiny_causal(tmp_path_factory.mktemp("causal") / "roomy-causal", window=16_384)


@pytest.fixture
def hub_stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubStandIn]:
    """A hub of the test's own, which huggingface_hub takes for the real one, with a valid token in the environment."""
    from huggingface_hub import constants

    with serve_hub() as hub:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.url)
        settings = {"ENDPOINT": hub.url, "HUGGINGFACE_CO_URL_TEMPLATE": template, "HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True}
        for name, value in settings.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub
