"""How long Chromium's page is busy with a load, a run and a look at other tabs, against a page of one text
box.

Only the page's own thread is counted: the agent's and Chromium's other work is not in it. The first load is
not measured, since the sample is embedded and run during it.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import gradio as gr
from playwright.sync_api import Page, expect

from benchmarks import Row
from benchmarks.serving import answered, app_page, reset

TIMES = 5
TABS = ("Compare", "SPARC", "Experiments", "Explore")
REST = 1_500
"""Milliseconds after an action in which the page comes to rest."""
BARE = "a page of one text box"


def rows() -> list[Row]:
    """Busy seconds of the page, medians of `TIMES`."""
    with gr.Blocks() as blocks:
        gr.Textbox()
    _, bare, _ = blocks.launch(prevent_thread_lock=True, quiet=True)
    with app_page(1280, 900) as page:
        answered(page)
        loads = _loading(page, page.url.partition("?")[0], answered)
        runs, tabs = _acting(page, _run), _acting(page, _look_at_tabs)
        later = _acting(page, _run)
        one_box = _loading(page, bare, lambda page: expect(page.get_by_role("textbox")).to_be_visible())
    blocks.close(verbose=False)
    return [
        Row("a load of the app", loads, "s", BARE, loads / one_box),
        Row("a run of the sample's question", runs, "s", BARE, runs / one_box),
        Row("four tabs, one after another", tabs, "s", BARE, tabs / one_box),
        Row("a run after them", later, "s", "the first ones", later / runs),
    ]


def _busy(page: Page) -> Callable[[], float]:
    """Asks for the seconds since the page's address was opened."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def asked() -> float:
        page.wait_for_timeout(REST)
        told = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return float(told["TaskDuration"])

    return asked


def _loading(page: Page, url: str, ready: Callable[[Page], None]) -> float:
    browser, taken = page.context.browser, []
    assert browser is not None
    for _ in range(TIMES):
        opened = browser.new_page()
        busy = _busy(opened)
        opened.goto(url)
        ready(opened)
        taken.append(busy())
        opened.close()
    return median(taken)


def _acting(page: Page, act: Callable[[Page], None]) -> float:
    busy, taken = _busy(page), []
    for _ in range(TIMES):
        before = busy()
        act(page)
        taken.append(busy() - before)
    return median(taken)


def _run(page: Page) -> None:
    reset(page)
    page.locator("#qx-run").click()
    answered(page)


def _look_at_tabs(page: Page) -> None:
    for name in TABS:
        page.get_by_role("tab", name=name).first.click()
        page.wait_for_timeout(REST)
