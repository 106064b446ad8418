"""What tests of the Explore page read there and do there."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

CARDS = "#qx-steps .qx-step"
IN_VIEW = """() => document.querySelector("#qx-steps .qx-stop")?.innerText.includes("Stopped")
  ? document.querySelector("#qx-evidence [data-act=copy-link]")?.dataset.arg : ''"""
"""The run that has ended; empty where none has."""
AT_REST = """() => !document.querySelector(".qx-sent, #qx-opening progress, #qx-run:disabled")"""


def run_id(page: Page) -> str:
    page.wait_for_url(re.compile(r"run=[0-9a-f]{32}"), timeout=20_000)
    return re.search(r"run=([0-9a-f]{32})", page.url).group(1)


def chosen(page: Page) -> list[int]:
    return [
        int(text.split()[1].replace(",", ""))
        for text in page.locator(f"{CARDS} .qx-step-head .qx-link").all_inner_texts()
    ]


def press_run(page: Page, seconds: float = 60) -> None:
    """Presses Run and waits until nothing is at work any more; where a run had ended, until there is another."""
    before = page.evaluate(IN_VIEW)
    page.locator("#qx-run").click()
    page.wait_for_function(
        f"before => ({AT_REST})() && (!before || ({IN_VIEW})() !== before)",
        arg=before,
        timeout=1000 * seconds,
    )


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
