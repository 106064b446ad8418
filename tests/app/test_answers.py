"""A run in Chromium ends in an answer, which points into its chunk and comes back out of the log; every column of Compare has one."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.app.conftest import RunningApp, wait_ready
from tests.conftest import OpenPage

ANSWER = "#qx-answer .qx-answer-text"


def test_a_run_ends_in_an_answer(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    expect(page.locator(ANSWER)).to_have_count(0)
    page.locator("#qx-run").click()
    expect(page.locator(ANSWER)).to_have_text("stable", timeout=60_000)
    expect(page.locator("#qx-answer")).to_contain_text(re.compile(r"confidence \d+ %"))
    expect(page.locator("#qx-evidence mark")).to_have_text("stable")
    page.locator("#qx-answer .qx-link").click()
    expect(page.locator("#qx-reading .qx-marked")).to_contain_text("stable", timeout=20_000)

    page.locator("#qx-back").click()
    expect(page.locator(ANSWER)).to_have_count(0, timeout=20_000)  # another evidence is in view
    page.wait_for_url(re.compile(r"run=[0-9a-f]{32}"))
    page.reload()
    wait_ready(page)
    expect(page.locator(ANSWER)).to_have_text("stable", timeout=60_000)


def test_every_column_has_an_answer(running_app: RunningApp, open_page: OpenPage) -> None:
    page: Page = open_page(running_app.url)
    wait_ready(page)
    page.get_by_role("tab", name="Compare").click()
    page.locator("#qx-compare-run").click()
    answers = page.locator(".qx-column .qx-column-answer")
    expect(page.locator(".qx-column")).to_have_count(4, timeout=120_000)
    expect(answers).to_have_count(4)
    expect(answers.first).to_contain_text("stable")
    expect(answers.first).to_contain_text(re.compile(r"\d+ % sure"))
