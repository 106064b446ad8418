"""A language model's answer to a run in Chromium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.app.axe import grave_faults_in_both
from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import open_pasted, run
from tests.app.test_sparc_tab import set_model
from tests.conftest import OpenPage
from tests.llm_server import Answers, Hangs, LlmServer, Says, serve_llm
from tests.settled import settle

TEXT = (
    "Ruth carried the blanket to the stable that evening. Anna left the lamp up in the attic. On Tuesday it"
    " rained over the hills all day long."
)
SAID = (
    "<think>Was it [3]? <i>No.</i></think>The blanket was in the stable [1] [2] [3]. Queen Wilhelmina embroidered it in Paris [1]. <b>So they say</b>"
    " [9]."
)


@pytest.fixture(scope="module")
def server() -> Iterator[LlmServer]:
    with serve_llm(lambda _: SAID) as made:
        yield made


@pytest.fixture(scope="module")
def page(tiny_app: RunningApp, open_for_file: OpenPage) -> Page:
    page = open_for_file(tiny_app.url)
    wait_ready(page)
    open_pasted(page, TEXT, most_tokens=40)
    expect(page.locator("#qx-header")).to_contain_text("3 chunks")
    page.locator("#qx-question textarea").fill("Where was the blanket?")
    run(page, n_steps=3)
    expect(page.locator("#qx-answer .qx-answer-text")).to_have_text("stable", timeout=60_000)
    return page


def test_a_language_model_cites_chunks_which_the_reader_checks(page: Page, server: LlmServer) -> None:
    cited = page.locator("#qx-cited")
    page.locator("#qx-cite").click()
    expect(cited).to_contain_text("no language model is set", timeout=20_000)

    page.get_by_role("tab", name="SPARC", exact=True).click()
    set_model(page, server.url)
    page.get_by_role("tab", name="Explore", exact=True).click()
    page.locator("#qx-cite").click()
    sentences = cited.locator(".qx-answer-cited")
    expect(sentences).to_have_count(3, timeout=60_000)
    # two of its three chunks hold nothing of it
    expect(sentences.nth(0).locator(".qx-crossed")).to_have_count(2)
    expect(sentences.nth(0)).not_to_contain_text("not borne out")
    expect(sentences.nth(1)).to_contain_text("not borne out")
    expect(sentences.nth(2)).to_contain_text("cites no chunk")
    expect(cited).to_contain_text("cites passage 9, which it was not given")
    expect(cited).to_contain_text("<b>So they say</b>")
    thoughts = cited.locator("details pre")
    expect(thoughts).to_be_hidden()
    cited.locator("summary").click()
    expect(thoughts).to_have_text("Was it [3]? <i>No.</i>")
    link = cited.locator(".qx-link").nth(1)
    link.click()
    expect(page.locator("#qx-reading .qx-crumb")).to_contain_text(
        f"chunk {int(link.get_attribute('data-arg') or ''):,} of", timeout=20_000
    )
    expect(page.locator("#qx-reading .qx-marked")).to_be_visible()
    page.get_by_role("button", name="Evidence in place").click()
    expect(page.locator("#qx-evidence")).to_be_visible(timeout=20_000)


@pytest.mark.campaign
def test_what_was_said_stays_where_no_answer_comes(page: Page, server: LlmServer) -> None:
    cited = page.locator("#qx-cited")
    told = cited.locator(".qx-answer-cited").all_inner_texts()
    assert len(told) == 3
    server.answer(Answers(429, headers={"Retry-After": "3600"}))
    page.locator("#qx-cite").click()
    expect(cited).to_contain_text("scripted-7b at", timeout=20_000)
    assert cited.locator(".qx-answer-cited").all_inner_texts() == told
    server.answer(Says("<think>It may be the attic.", finish="length"))
    page.locator("#qx-cite").click()
    expect(cited).to_contain_text("spent its 7 tokens thinking; allow longer replies", timeout=20_000)
    expect(cited.locator("details pre").first).to_have_text("It may be the attic.")
    assert cited.locator(".qx-answer-cited").all_inner_texts() == told

    server.answer(Hangs())
    page.locator("#qx-cite").click()
    expect(cited).to_contain_text("Asking", timeout=20_000)
    page.locator("#qx-cancel").click()
    expect(page.locator("#qx-notice")).to_contain_text("Cancelled", timeout=20_000)
    settle(page)
    assert cited.locator(".qx-answer-cited").all_inner_texts() == told


@pytest.mark.campaign
def test_what_was_said_can_be_read_by_everybody_and_comes_back(page: Page) -> None:
    cited = page.locator("#qx-cited")
    assert grave_faults_in_both(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    told = cited.locator(".qx-answer-cited").all_inner_texts()
    page.reload()
    wait_ready(page)
    expect(cited.locator(".qx-answer-cited")).to_have_count(3, timeout=60_000)
    expect(cited.locator("details pre")).to_have_text("Was it [3]? <i>No.</i>")
    assert cited.locator(".qx-answer-cited").all_inner_texts() == told
