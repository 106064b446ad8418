"""From the click that opens a long text to its first runs, in Chromium against the real app.

Novels, a million tokens of them (--n takes others), uploaded before the clock starts. The question is asked
as soon as the page says that a part can be asked; the run is made again over all chunks by itself. The app
starts in an empty home folder, and is asked about a small text first, which loads the agent. One time each:
opening the same text again would find its vectors.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, expect

from benchmarks import Row
from benchmarks.prose import novels
from benchmarks.serving import app_page

QUESTION = "Who carried the letter down to the river?"
PATIENCE = 540_000.0
"""Milliseconds."""
PREVIEW = "#qx-standing .qx-chip-bad"
SEEN = {
    "the first choice of the preview": f"$('{PREVIEW}') && $('#qx-steps .qx-step')",
    "the end of the preview": f"$('{PREVIEW}') && $('#qx-steps .qx-stop')",
    "the end of the run over all chunks": f"!$('{PREVIEW}') && $('#qx-steps .qx-stop')",
}


def rows(n: int = 1_000_000) -> list[Row]:
    """Seconds from the click, each to something that the page shows."""
    with tempfile.TemporaryDirectory() as folder, app_page(1440, 900) as page:
        small, path = Path(folder, "small.txt"), Path(folder, "novels.txt")
        small.write_bytes(novels(2_000))
        path.write_bytes(novels(n))
        page.set_default_timeout(PATIENCE)
        expect(page.locator("#qx-header .qx-chip")).to_be_visible(timeout=PATIENCE)
        _open(page, small)
        expect(page.locator("#qx-header")).to_contain_text(small.stem, timeout=PATIENCE)
        _ask(page)
        expect(page.locator("#qx-answer")).to_contain_text(re.compile("answer", re.I), timeout=PATIENCE)
        seconds = _asked(page, path)
        size = page.locator("#qx-header p").first.text_content() or ""
    n_tokens, n_chunks = (float(number.replace(",", "")) for number in re.findall(r"([\d,]+) [tc]", size)[:2])
    return [
        Row("text", n_tokens, "tokens"),
        Row("text", n_chunks, "chunks"),
        *(Row(f"click to {event}", took, "s") for event, took in seconds.items()),
    ]


def _asked(page: Page, path: Path) -> dict[str, float]:
    _open(page, path)
    began, seconds = time.perf_counter(), {}

    def seen(event: str) -> None:
        seconds[event] = time.perf_counter() - began
        print(f"{seconds[event]:.1f} s to {event}", file=sys.stderr, flush=True)

    expect(page.locator("#qx-opening")).to_contain_text("You can ask now", timeout=PATIENCE)
    seen("the offer to ask")
    _ask(page)
    for event, condition in SEEN.items():
        page.wait_for_function(condition.replace("$(", "document.querySelector("))
        seen(event)
    return seconds


def _ask(page: Page) -> None:
    page.locator("#qx-question textarea").fill(QUESTION)
    page.locator("#qx-run").click()


def _open(page: Page, path: Path) -> None:
    page.get_by_text("Change document").click()
    page.get_by_role("tab", name="Upload").click()
    page.locator("#qx-files input[type=file]").set_input_files(str(path))
    expect(page.locator("#qx-files")).to_contain_text(path.stem, timeout=PATIENCE)
    page.locator("#qx-open-files").click()
