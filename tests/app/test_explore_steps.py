"""Explore, step by step: Step, Back, other choices, the keyboard, the strip."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import CARDS, chosen, run, run_id
from tests.conftest import OpenPage
from tests.settled import settle


def test_five_quick_clicks_on_step_make_five_steps(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    page.locator("#qx-budget input[type=number]").fill("7")
    page.locator("#qx-budget input[type=number]").press("Tab")
    page.locator("#qx-stops input").uncheck()
    for _ in range(5):
        page.locator("#qx-step").click()
    expect(page.locator(CARDS)).to_have_count(5, timeout=30_000)
    settle(page)
    assert len(chosen(page)) == 5 == len(set(chosen(page)))


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
    expect(page.locator("#qx-standing")).to_contain_text("made with other settings")
    page.get_by_role("button", name="Run again").click()
    expect(page.locator(f"{CARDS} .qx-link").nth(1)).to_have_text(f"chunk {before[1]:,}", timeout=30_000)


def test_keyboard_runs_steps_back_and_can_be_switched_off(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    page.locator("#qx-title").click()
    page.keyboard.press("s")
    expect(page.locator(CARDS)).to_have_count(1, timeout=20_000)
    page.keyboard.press("s")
    expect(page.locator(CARDS)).to_have_count(2, timeout=20_000)
    page.keyboard.press("[")
    expect(page.locator(CARDS).first).to_have_class(re.compile("qx-on"))
    page.keyboard.press("b")
    expect(page.locator(CARDS)).to_have_count(1)
    page.locator("#qx-question textarea").press_sequentially("s")
    settle(page)
    expect(page.locator(CARDS)).to_have_count(1)
    page.locator("#qx-title").click()
    page.keyboard.press("?")
    page.locator(".qx-keys input").uncheck()
    page.locator(".qx-keys button").click()
    page.keyboard.press("s")
    settle(page)
    expect(page.locator(CARDS)).to_have_count(1)


def test_a_strip_click_opens_the_chunk_it_points_at(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    run(page, n_steps=3)
    canvas = page.locator("#qx-strip canvas[tabindex='0']").first
    canvas.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#qx-reading .qx-crumb")).to_contain_text("chunk 1 of", timeout=10_000)
