"""What everybody must be able to use."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.app.axe import grave_faults
from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import press_run, show_figures
from tests.conftest import CAMPAIGN, OpenPage
from tests.settled import settle

TABS = ("Explore", "Compare", "SPARC", "Evidence sets", "Experiments", "Evaluate", "Train")
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}

CUT_OFF = """() => [...document.querySelectorAll("button, input, textarea, canvas, svg, h3, p, label, .qx-notice")]
  .filter((part) => part.checkVisibility() && !part.closest(".qx-scroll, .qx-strip .qx-seg, .qx-read, .qx-pre, .qx-unseen, #js-plotly-tester"))
  .filter((part) => part.getBoundingClientRect().width > 1)
  .map((part) => [part.id || part.className.baseVal || part.className || part.tagName, part.textContent.slice(0, 40), part.getBoundingClientRect()])
  .filter(([, , box]) => box.left < 0 || box.right > innerWidth + 1)
  .map(([name, text, box]) => `${name} "${text}" from ${Math.round(box.left)} to ${Math.round(box.right)}`)"""
"""What sticks out of the window, where no box of its own scrolls: the page clips it, so that it can't be
reached.
"""

BARS = """() => [...document.querySelectorAll(".gr-accordion")].filter((part) => part.checkVisibility())
  .filter((part) => part.scrollWidth > part.clientWidth && getComputedStyle(part).overflowX !== "visible").map((part) => part.id)"""
"""Parts that open and have a bar to scroll by, though nothing in them is hidden."""
COLOURS = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}"""
FOCUS = """() => {
  const part = document.activeElement, style = getComputedStyle(part);
  const name = part.id || part.getAttribute("aria-label") || part.textContent.trim().slice(0, 30) || part.outerHTML.slice(0, 120);
  return [name, part === document.body || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1)];
}"""


def each_tab(*of_every_run: str) -> pytest.MarkDecorator:
    """All tabs in the campaign, some of them in `make test` as well."""
    cases = [pytest.param(tab, marks=[] if tab in of_every_run else [pytest.mark.campaign]) for tab in TABS]
    return pytest.mark.parametrize("tab", cases)


@pytest.fixture(scope="module")
def page(tiny_app: RunningApp, open_for_file: OpenPage) -> Page:
    page = open_for_file(tiny_app.url, **WIDE)
    wait_ready(page, 120)
    press_run(page)
    expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=60_000)
    expect(page.locator("#qx-answer [class*=qx-is-]")).to_be_visible(timeout=60_000)  # it redraws the choices
    page.locator("#qx-steps").get_by_role("button", name="Why").first.click()
    expect(page.locator("#qx-steps .qx-why li")).to_have_count(1, timeout=30_000)
    page.locator("#qx-steps .qx-link").first.click()
    expect(page.locator("#qx-reading .qx-marked")).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Show as table").click()
    show_figures(page)
    if CAMPAIGN:
        page.locator("#qx-strip [data-part=chunkmap-toggle]").click()
        expect(page.locator("#qx-strip [data-part=chunkmap-canvas]")).to_be_visible(timeout=60_000)
        fill_other_tabs(page)
    return page


def fill_other_tabs(page: Page) -> None:
    show(page, "Compare")
    expect(page.locator("#qx-compare-question textarea")).not_to_have_value("", timeout=30_000)
    page.locator("#qx-compare-run").click()
    expect(page.locator("#qx-compare-columns .qx-column")).to_have_count(4, timeout=120_000)
    expect(page.locator("#qx-compare-run")).to_be_enabled(timeout=60_000)
    page.locator("#qx-compare-columns .qx-found .qx-link").nth(1).click()
    expect(page.locator("#qx-compare-reading .qx-crumb")).to_be_visible(timeout=30_000)
    page.locator("#qx-compare-question textarea").fill("And what else was there?")
    expect(page.locator("#qx-compare-standing .qx-notice")).to_be_visible(timeout=20_000)

    show(page, "SPARC")
    expect(page.locator("#qx-sparc-question textarea")).not_to_have_value("", timeout=30_000)
    page.locator("#qx-sparc-start").click()
    expect(page.locator("#qx-sparc-final h3")).to_be_visible(timeout=120_000)
    page.locator("#qx-sparc-rounds summary").first.click()
    page.locator('#qx-sparc-rounds [data-act="open"]').first.click()
    expect(page.locator("#qx-sparc-reading .qx-crumb")).to_be_visible(timeout=30_000)

    show(page, "Experiments")
    rows = page.locator("#qx-runs-list tbody tr")
    rows.first.locator(".qx-query").click()
    expect(page.locator("#qx-run-steps .qx-step").first).to_be_visible(timeout=30_000)
    rows.filter(has_text="Q-RAG").first.locator(".qx-tick").click()
    expect(page.locator("#qx-runs-curves .js-plotly-plot")).to_be_visible(timeout=60_000)
    for toggle in ("#qx-run-reproduce-toggle", "#qx-runs-columns-toggle", "#qx-sql"):
        page.locator(f"{toggle} button").first.click()
    expect(page.locator("#qx-sql-run")).to_be_visible()

    show(page, "Evaluate")
    task, n = page.locator("#qx-evaluate-task input"), page.locator("#qx-evaluate-n input")
    task.fill("generated")
    page.get_by_role("option", name="generated").first.click()
    n.fill("4")
    n.press("Tab")
    page.locator("#qx-evaluate-run").click()
    expect(page.locator("#qx-evaluate-scores .qx-number").first).to_be_visible(timeout=120_000)
    expect(page.locator("#qx-evaluate-reliability .js-plotly-plot")).to_be_visible(timeout=60_000)


def show(page: Page, tab: str) -> None:
    """Opens a tab and lets what it draws come to rest."""
    page.get_by_role("tab", name=tab, exact=True).click()
    expect(page.get_by_role("heading", name=tab, exact=True)).to_be_attached()
    settle(page)


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.campaign)])
@each_tab("Explore", "Evidence sets", "Experiments", "Train")  # the tests of the others ask axe, too
def test_axe_finds_nothing_grave(page: Page, tab: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    show(page, tab)
    assert grave_faults(page) == []
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == {"light": "normal"}.get(
        scheme, scheme
    )
    assert page.evaluate(BARS) == []


@each_tab("Explore")
def test_a_phone_shows_all_of_a_tab(page: Page, tab: str) -> None:
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    show(page, tab)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.evaluate(CUT_OFF) == []


def test_forced_colours_hide_nothing(page: Page) -> None:
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.emulate_media(forced_colors="active", color_scheme="dark")
    show(page, "Explore")
    for part in ("overview", "lens", "map"):
        assert page.locator(f"#qx-strip canvas[data-part={part}]").evaluate(COLOURS) > 3, part
    background = "part => getComputedStyle(part).backgroundColor"
    marked = page.locator("#qx-reading .qx-marked").evaluate(background)
    assert marked != page.locator("#qx-reading .qx-read").evaluate(background), "the chunk in view stands out"


@each_tab("Explore")
def test_the_keyboard_shows_where_it_is(page: Page, tab: str) -> None:
    """In forced colours, where shadows and tints are gone and only an outline is left."""
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.emulate_media(forced_colors="active")
    show(page, "Explore")
    before = page.locator("#qx-steps").inner_text()
    show(page, tab)
    page.get_by_role("tab", name=tab, exact=True).focus()
    unseen, names = [], set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name, seen = page.evaluate(FOCUS)
        names.add(name)
        if not seen:
            unseen.append(name)
    page.emulate_media(forced_colors="none")
    assert unseen == []
    assert len(names) > 10, "the focus went on"
    show(page, "Explore")
    assert page.locator("#qx-steps").inner_text() == before, "passing a control changes nothing"


def test_a_link_leads_past_the_tabs_and_a_switch_holds_against_the_system(page: Page) -> None:
    page.emulate_media(color_scheme="light", forced_colors="none")
    show(page, "Explore")
    page.locator(".qx-skip").focus()
    expect(page.locator(".qx-skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#qx-question textarea")).to_be_focused()
    switch, dark = page.locator(".qx-theme"), "document.body.classList.contains('dark')"
    for words, is_dark in (("light", False), ("dark", True), ("as the system has them", False)):
        switch.click()
        expect(switch).to_have_attribute("aria-label", f"Colours: {words}")
        assert page.evaluate(dark) == is_dark


def test_without_motion_nothing_moves_and_all_is_there(page: Page) -> None:
    page.emulate_media(reduced_motion="reduce", color_scheme="light")
    show(page, "Explore")
    cards = page.locator("#qx-steps .qx-step")
    n_steps = cards.count()
    page.locator("#qx-back").click()
    expect(cards).to_have_count(n_steps - 1, timeout=20_000)
    page.locator("#qx-step").click()
    expect(cards).to_have_count(n_steps, timeout=20_000)
    settle(page)
    running = (
        "document.getAnimations().filter(one => one.playState === 'running').map(one => one.animationName ||"
        " one.transitionProperty)"
    )
    assert page.evaluate(running) == []
    assert page.locator("#qx-strip canvas[data-part=lens]").evaluate(COLOURS) > 3
