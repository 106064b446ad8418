"""A run in Chromium ends in an answer, which points into its chunk and comes back out of the log; every
column of Compare has one.
"""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.app.axe import grave_faults
from tests.app.conftest import RunningApp, wait_ready
from tests.conftest import OpenPage
from tests.llm_server import Answers, Hangs, serve_llm
from tests.settled import settle

ANSWER = "#qx-answer .qx-answer-text"


def test_every_column_has_an_answer(running_app: RunningApp, open_page: OpenPage) -> None:
    page: Page = open_page(running_app.url)
    wait_ready(page)
    page.get_by_role("tab", name="Compare").click()
    expect(page.locator("#qx-compare-question textarea")).not_to_have_value("", timeout=30_000)
    page.locator("#qx-compare-run").click()
    answers = page.locator(".qx-column .qx-column-answer")
    expect(page.locator(".qx-column")).to_have_count(4, timeout=120_000)
    expect(answers).to_have_count(4)
    expect(answers.first).to_contain_text("stable")
    expect(answers.first).to_contain_text(re.compile(r"\d+ % sure"))
    expect(answers.first.locator(".qx-right")).to_have_text("✓ right")


def test_a_language_model_cites_chunks_which_the_reader_checks(
    running_app: RunningApp, open_page: OpenPage
) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    page.locator("#qx-run").click()
    expect(page.locator(ANSWER)).to_have_text("stable", timeout=60_000)
    cited = page.locator("#qx-cited")
    page.locator("#qx-cite").click()
    expect(cited).to_contain_text("no language model is set", timeout=20_000)

    evidence = page.locator("#qx-evidence").inner_text()
    assert "stable" in evidence
    with serve_llm(
        lambda _: (
            "The blanket was in the stable [1] [2] [3]. Queen Wilhelmina embroidered it in Paris [1]. <b>So"
            " they say</b> [9]."
        )
    ) as server:
        page.get_by_role("tab", name="SPARC", exact=True).click()
        page.locator("#qx-sparc-set .qx-set-line").click()
        page.locator("#qx-sparc-llm button").first.click()
        address = page.locator("#qx-sparc-llm-address input")
        expect(address).to_be_visible()
        settle(page)  # what an opened panel holds is made piece by piece
        address.fill(server.url)
        page.locator("#qx-sparc-llm-model input").fill("scripted-7b")
        page.locator("#qx-sparc-llm-save").click()
        expect(page.locator("#qx-sparc-llm")).to_contain_text("scripted-7b at", timeout=20_000)
        page.get_by_role("tab", name="Explore", exact=True).click()
        page.locator("#qx-cite").click()
        expect(cited.locator(".qx-answer-cited")).to_have_count(3, timeout=60_000)
        # one of its three chunks holds nothing of it
        expect(cited.locator(".qx-answer-cited").nth(0).locator(".qx-crossed")).to_have_count(1)
        expect(cited.locator(".qx-answer-cited").nth(0)).not_to_contain_text("not borne out")
        expect(cited.locator(".qx-answer-cited").nth(1)).to_contain_text("not borne out")
        expect(cited.locator(".qx-answer-cited").nth(2)).to_contain_text("cites no chunk")
        expect(cited).to_contain_text("cites passage 9, which it was not given")
        expect(cited).to_contain_text("<b>So they say</b>")
        told = cited.locator(".qx-answer-cited").all_inner_texts()
        link = cited.locator(".qx-link").nth(1)
        link.click()
        expect(page.locator("#qx-reading .qx-crumb")).to_contain_text(
            f"chunk {int(link.get_attribute('data-arg') or ''):,} of", timeout=20_000
        )
        expect(page.locator("#qx-reading .qx-marked")).to_be_visible()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            settle(page)  # colours fade
            assert grave_faults(page) == []
        page.set_viewport_size({"width": 360, "height": 740})
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.set_viewport_size({"width": 1280, "height": 900})

        page.get_by_role("button", name="Evidence in place").click()
        server.answer(Answers(429, headers={"Retry-After": "3600"}))
        page.locator("#qx-cite").click()
        expect(cited).to_contain_text("no answer came: scripted-7b at", timeout=20_000)
        assert cited.locator(".qx-answer-cited").all_inner_texts() == told, "what was there stays"

        server.answer(Hangs())
        page.locator("#qx-cite").click()
        expect(cited).to_contain_text("Asking", timeout=20_000)
        page.locator("#qx-cancel").click()
        expect(page.locator("#qx-notice")).to_contain_text("Cancelled", timeout=20_000)
    page.reload()
    wait_ready(page)
    expect(cited.locator(".qx-answer-cited")).to_have_count(3, timeout=60_000)
    assert cited.locator(".qx-answer-cited").all_inner_texts() == told
