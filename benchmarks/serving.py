"""The app in a process of its own, and a Chromium that looks at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from playwright.sync_api import Page, expect, sync_playwright

from benchmarks import ROOT
from tests.conftest import CHROMIUM_NAMES

PATIENCE = 180_000.0
"""Milliseconds: on two cores the larger reader takes ten seconds, and the sample is embedded first."""
_START_SECONDS = 120.0


@dataclass(frozen=True)
class Served:
    """A server that answers."""

    url: str
    pid: int


@contextmanager
def served_app(*flags: str) -> Iterator[Served]:
    """`python app.py FLAGS` on a free port, with a home folder of its own. Raises RuntimeError when it does
    not answer.
    """
    with tempfile.TemporaryDirectory() as home, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        output = Path(home, "app.out")
        with output.open("wb") as file:
            command = [sys.executable, "app.py", "--port", str(port), *flags]
            environment = {**os.environ, "QRAG_HOME": home}
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file, stderr=file)
        try:
            url, began = f"http://127.0.0.1:{port}", time.monotonic()
            while not _answers(url):
                if process.poll() is not None or time.monotonic() - began > _START_SECONDS:
                    said = output.read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"the app did not answer: {said}")
                time.sleep(0.2)
            yield Served(url, process.pid)
        finally:
            process.terminate()
            process.wait(60)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).is_success
    except httpx.HTTPError:
        return False


def answered(page: Page) -> None:
    """Waits for the sample's answer."""
    for place in ("#qx-header .qx-chip", "#qx-story .qx-part-answer"):
        expect(page.locator(place)).to_be_visible(timeout=PATIENCE)


def reset(page: Page) -> None:
    """Takes all steps back."""
    page.locator("#qx-reset").click()
    expect(page.locator("#qx-steps .qx-step")).to_have_count(0, timeout=PATIENCE)


@contextmanager
def app_page(width: int, height: int) -> Iterator[Page]:
    """The app's page in Chromium: that of `$CHROMIUM`, of the PATH or of playwright."""
    chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    with served_app() as app, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(app.url, wait_until="commit")
        yield page
        browser.close()
