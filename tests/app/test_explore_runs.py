"""Explore, whole runs: other settings, the review, who sees a run, what a reload shows."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from core.encode.checkpoint import find_checkpoint, read_spec
from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import CARDS, chosen, press_run, run, run_id, set_number, show_settings
from tests.conftest import COUNTS, OpenPage
from tests.settled import settle

pytestmark = pytest.mark.campaign


def test_a_review_takes_back_what_a_later_choice_made_superfluous(
    running_app: RunningApp, open_page: OpenPage
) -> None:
    """Clara is told of twice and more: an earlier place is found first, then the last one, beside which the
    earlier is worth nothing.
    """
    page = open_page(running_app.url)
    wait_ready(page)
    page.locator("#qx-question textarea").fill("Where is Clara?")
    run(page, n_steps=2)
    first, last = chosen(page)
    stop, evidence = page.locator("#qx-steps .qx-stop"), page.locator("#qx-evidence .qx-link")
    threshold = read_spec(find_checkpoint("narrative")).review_threshold
    expect(stop).to_contain_text(
        f"Review: chunk {first:,} taken back, worth less than {threshold:.2f} beside the others."
    )
    expect(page.locator(CARDS).first).to_contain_text("taken back")
    expect(page.locator(CARDS).last).not_to_contain_text("taken back")
    expect(evidence).to_have_text([f"chunk {last:,}"])
    expect(page.locator("#qx-evidence")).to_contain_text("1 chunk taken back")

    page.locator("#qx-back").click()  # before the end nothing was reviewed
    expect(page.locator(CARDS)).to_have_count(1, timeout=20_000)
    expect(page.locator(CARDS)).not_to_contain_text("taken back")
    expect(evidence).to_have_text([f"chunk {first:,}"])

    show_settings(page)
    page.locator("#qx-reviews input").uncheck()
    expect(page.locator("#qx-standing")).to_contain_text("review", timeout=10_000)
    page.get_by_role("button", name="Run again").click()
    expect(stop).to_contain_text("Stopped", timeout=30_000)
    expect(stop).not_to_contain_text("Review")
    expect(evidence).to_have_text(
        [f"chunk {chunk_id:,}" for chunk_id in sorted((first, last))], timeout=20_000
    )


def test_a_visitor_s_run_is_others_only_once_it_is_shared(
    public_app: RunningApp, open_page: OpenPage
) -> None:
    page, other = open_page(public_app.url), open_page(public_app.url)
    wait_ready(page)
    press_run(page)
    expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=60_000)
    sharing = page.locator("#qx-sharing")
    page.locator("#qx-status").get_by_role("button", name="Share").click()
    expect(sharing).to_contain_text("Whoever has the link", timeout=20_000)
    other.goto(f"{public_app.url}/?run={run_id(page)}")
    expect(other.locator("#qx-notice")).to_contain_text("there is no run", timeout=60_000)
    sharing.get_by_role("button", name="Share it").click()
    expect(sharing.locator("a")).to_have_text(re.compile(r"\?run=[0-9a-f]{32}$"), timeout=20_000)
    other.goto(sharing.locator("a").inner_text())
    expect(other.locator(CARDS)).to_have_count(page.locator(CARDS).count(), timeout=60_000)


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
