"""Explore, step by step: Step, Back, other choices, the keyboard, the strip."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import CARDS, chosen, run, run_id
from tests.conftest import OpenPage


def test_forbidding_a_chosen_chunk_forks_the_run(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    run(page, n_steps=3)
    before, parent = chosen(page), run_id(page)
    page.locator(CARDS).nth(1).get_by_role("button", name="Never this chunk").press("Enter")
    page.wait_for_function("old => !location.search.includes(old)", arg=parent, timeout=20_000)
    expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=30_000)
    after = chosen(page)
    assert after[0] == before[0]
    assert before[1] not in after
    page.locator("#qx-standing").get_by_role("button", name=f"chunk {before[1]:,}").click()
    expect(page.locator("#qx-standing")).to_contain_text("Changed since this run: forbidden chunks")
    page.get_by_role("button", name="Run again").click()
    expect(page.locator(f"{CARDS} .qx-link").nth(1)).to_have_text(f"chunk {before[1]:,}", timeout=30_000)
