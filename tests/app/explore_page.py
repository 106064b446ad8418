"""What tests of the Explore page read there and do there."""

from __future__ import annotations

import re

from playwright.sync_api import Page, TimeoutError, expect

from core.lab.tasks.samples import list_samples

CARDS = "#qx-steps .qx-step"
IN_VIEW = """() => document.querySelector("#qx-steps .qx-stop")?.innerText.includes("Stopped")
  ? document.querySelector("#qx-evidence [data-act=copy-link]")?.dataset.arg : ''"""
"""The run that has ended; empty where none has."""
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
AT_REST = """() => !document.querySelector(".qx-sent, #qx-opening progress, #qx-run:disabled")"""


def run_id(page: Page) -> str:
    page.wait_for_url(re.compile(r"run=[0-9a-f]{32}"), timeout=20_000)
    return re.search(r"run=([0-9a-f]{32})", page.url).group(1)


def chosen(page: Page) -> list[int]:
    return [
        int(text.split()[1].replace(",", ""))
        for text in page.locator(f"{CARDS} .qx-step-head .qx-link").all_inner_texts()
    ]


def press_run(page: Page) -> None:
    """Presses Run and waits until nothing is at work; where a run had ended, until there is another."""
    before = page.evaluate(IN_VIEW)
    ended = f"before => ({AT_REST})() && (!before || ({IN_VIEW})() !== before)"
    page.locator("#qx-run").click()
    try:
        page.wait_for_function(ended, arg=before, timeout=60_000)
    except TimeoutError as error:
        stands = [page.evaluate(AT_REST), before, page.evaluate(IN_VIEW)]
        stands += [page.locator(part).inner_text() for part in ("#qx-controls", "#qx-steps")]
        raise AssertionError(f"no new run came to its end: {stands}") from error


def run(page: Page, n_steps: int = 4) -> None:
    press_run(page)
    expect(page.locator(CARDS)).to_have_count(n_steps, timeout=60_000)
    expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=30_000)


def show_figures(page: Page) -> None:
    """Comes near them, as a reader does who scrolls down."""
    page.locator("#qx-near").evaluate("mark => mark.scrollIntoView()")
    expect(page.locator("#qx-best .js-plotly-plot")).to_be_visible(timeout=30_000)


def show_settings(page: Page) -> None:
    if not page.locator("#qx-settings").is_visible():
        page.locator(".qx-set-line").click()


def set_number(page: Page, control: str, value: float) -> None:
    show_settings(page)
    field = page.locator(f"{control} input[type=number]")
    field.fill(str(value))
    field.press("Tab")


def excerpt(n_characters: int = 5_000) -> str:
    """Some of the first sample's story, which the base encoder reads in a second."""
    text = list_samples()[0].path.read_text(encoding="utf-8")
    at = text.index("Ruth set down the blanket")
    return text[at - 1_000 : at - 1_000 + n_characters]


def paste(page: Page, text: str, *, most_tokens: int | None = None, button: str = "#qx-open-pasted") -> None:
    page.locator("#qx-change-button").click()
    page.get_by_role("tab", name="Paste").click()
    page.locator("#qx-pasted textarea").fill(text)
    if most_tokens is not None:
        page.get_by_role("button", name="Chunking").click()
        field = page.get_by_label("Most tokens of a chunk")
        for _ in range(3):  # a field that has just appeared may yet be set to what was said of it before
            field.fill(str(most_tokens))
            field.press("Tab")
            page.evaluate(TWO_FRAMES)
            if field.input_value() == str(most_tokens):
                break
    page.locator(button).click()


def open_pasted(page: Page, text: str, *, most_tokens: int | None = None) -> None:
    """Returns when it can be asked: the title comes first, then the question of the document before goes."""
    paste(page, text, most_tokens=most_tokens)
    expect(page.locator("#qx-header .qx-doc-title")).to_contain_text("Pasted text", timeout=60_000)
    expect(page.locator("#qx-run")).to_be_enabled(timeout=30_000)
