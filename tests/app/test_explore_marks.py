"""A question of one's own in the browser: its marks are its support, and what it lacks is explained by them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.axe import grave_faults
from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import CARDS, chosen, open_pasted, run, set_number
from tests.conftest import OpenPage

TEXT = " ".join(f"{name} travelled to the garden on day {i} ." for i, name in enumerate(["John", "Mary"] * 2))
QUESTION = "Where did Mary go on day 1?"


@pytest.fixture(scope="module")
def page(tiny_app: RunningApp, open_for_file: OpenPage) -> Page:
    page = open_for_file(tiny_app.url, width=1000, height=500)
    wait_ready(page)
    open_pasted(page, TEXT, most_tokens=12)
    expect(page.locator("#qx-header")).to_contain_text("4 chunks")
    page.locator("#qx-question textarea").fill(QUESTION)
    set_number(page, "#qx-budget", 1)
    page.keyboard.press("Escape")
    run(page, n_steps=1)
    return page


def test_a_mark_is_the_support_of_the_run_in_view_and_of_the_next(page: Page) -> None:
    [found] = chosen(page)
    expect(page.locator("#qx-evidence")).not_to_contain_text("support")
    belongs = page.locator(CARDS).get_by_role("button", name="belongs to the answer")
    belongs.first.click()
    expect(belongs.first).to_have_attribute("aria-pressed", "true", timeout=20_000)
    expect(page.locator(f"{CARDS} .qx-hit")).to_have_text("support")
    expect(page.locator("#qx-evidence")).to_contain_text("1 of 1 support chunk found")
    key = page.locator("#qx-strip [data-part=key]")
    expect(key).to_contain_text("support")
    expect(key).to_contain_text("marked: belongs")
    page.locator("#qx-reset").click()
    expect(page.locator(CARDS)).to_have_count(0, timeout=20_000)
    run(page, n_steps=1)
    assert chosen(page) == [found]
    expect(page.locator("#qx-evidence")).to_contain_text("1 of 1 support chunk found")

    page.locator("#qx-own").get_by_role("button", name="Questions of my own · 1").click()
    expect(page.get_by_role("button", name="Import JSONL")).to_be_visible(timeout=20_000)
    page.locator("#qx-own-list").get_by_role("button", name="Edit answer").first.click()
    page.locator("#qx-own-answer textarea").fill("the garden")
    page.locator("#qx-own-save").click()
    expect(page.locator("#qx-answer .qx-judged")).to_be_visible(timeout=20_000)
    page.locator("#qx-own-list").get_by_role("button", name="Ask").first.click()
    expect(page.locator("#qx-run")).to_be_focused(timeout=20_000)
    expect(page.locator("#qx-run")).to_be_in_viewport()
    assert grave_faults(page, "#qx-own-list") == []


@pytest.mark.campaign
def test_what_lies_beside_a_choice_is_found_by_a_larger_chunk_with_a_click(page: Page) -> None:
    [found] = chosen(page)
    beside = found ^ 1
    page.locator("#qx-find textarea, #qx-find input").first.fill(f"#{beside}")
    page.locator("#qx-find-next").click()
    page.locator("#qx-reading").get_by_role("button", name="This chunk belongs").click()
    why = page.locator("#qx-diagnosis")
    expect(why).to_contain_text(re.compile("It lies one chunk (past|before) chunk"), timeout=30_000)
    expect(page.locator("#qx-story .qx-miss")).to_have_count(1)
    cut = why.get_by_role("button", name=re.compile("Cut at (32|64) tokens"))
    expect(cut).to_contain_text("found 1 → 2 of 2", timeout=30_000)
    cut.click()
    expect(page.locator("#qx-header")).to_contain_text(
        re.compile("· [12] chunks? · sentences, (32|64) tokens"), timeout=30_000
    )
    expect(page.locator("#qx-question textarea")).to_have_value(QUESTION)
    expect(page.locator("#qx-evidence")).to_contain_text("1 of 1 support chunk found", timeout=30_000)
    expect(why.locator(".qx-diagnosis")).to_have_count(0)
    expect(page.locator("#qx-budget input[type=number]")).to_have_value("1")
