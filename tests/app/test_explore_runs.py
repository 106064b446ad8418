"""Explore, whole runs: other settings, the review, who sees a run, what a reload shows."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import CARDS, chosen, set_number
from tests.conftest import COUNTS, OpenPage
from tests.settled import settle

pytestmark = pytest.mark.campaign


def test_what_streams_in_is_what_a_reload_shows(running_app: RunningApp, open_page: OpenPage) -> None:
    """Panels that grow and shrink while a run streams end up as the log has them."""
    page = open_page(running_app.url)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    wait_ready(page)
    for seed in range(10, 10 + COUNTS.streams):
        set_number(page, "#qx-budget", 8)
        set_number(page, "#qx-temperature", 0.1)
        page.locator("#qx-stops input").uncheck()
        set_number(page, "#qx-seed", seed)
        before = page.url.partition("run=")[2] or "none"
        page.locator("#qx-run").click()
        page.wait_for_function(
            "old => /run=/.test(location.search) && !location.search.includes(old)",
            arg=before,
            timeout=30_000,
        )
        expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=60_000)
        expect(page.locator("#qx-answer [class*=qx-is-]")).to_be_visible(timeout=30_000)
        settle(page)  # a reload before would tear the stream
        shown = {
            panel: page.locator(panel).inner_text() for panel in ("#qx-steps", "#qx-evidence", "#qx-reading")
        }
        assert len(chosen(page)) == 8
        page.reload()
        wait_ready(page)
        expect(page.locator(CARDS)).to_have_count(8, timeout=30_000)
        assert {panel: page.locator(panel).inner_text() for panel in shown} == shown
    assert errors == []
