"""Explore in a real Chromium against the real server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.lab.tasks.narrative import generate_narrative
from tests.app.conftest import RunningApp, StartApp, upload, wait_ready
from tests.app.explore_page import CARDS, chosen, run, run_id, show_figures, show_settings
from tests.conftest import OpenPage


@pytest.fixture(scope="module")
def page(tiny_app: RunningApp, open_for_file: OpenPage) -> Page:
    page = open_for_file(tiny_app.url)
    wait_ready(page)
    return page


@pytest.mark.campaign
def test_an_agent_with_positions_shows_ruler_and_parts_of_q(page: Page) -> None:
    expect(page.locator("#qx-agent")).to_contain_text("relative positions")
    run(page)
    expect(page.locator("#qx-strip [data-part='ruler']")).to_be_visible()
    expect(page.locator("#qx-decision")).to_have_count(0)
    show_figures(page)
    expect(page.locator("#qx-trail")).to_be_visible()
    expect(page.locator("#qx-parts .js-plotly-plot")).to_be_visible(timeout=30_000)
    expect(page.locator(f"{CARDS} .qx-kv:has-text('ρ')")).to_have_count(4)
    show_settings(page)
    page.locator("#qx-positions input").uncheck()
    page.get_by_role("button", name="Run again").click()
    expect(page.locator("#qx-strip [data-part='ruler']")).to_be_hidden(timeout=20_000)
    expect(page.locator("#qx-parts")).to_be_hidden(timeout=20_000)


@pytest.mark.campaign
def test_a_book_goes_through_upload_run_step_back_force_reload_replay(
    start_app: StartApp, open_page: OpenPage, book: Path
) -> None:
    app = start_app("--checkpoint", "base")  # it never stops early
    page = open_page(app.url)
    wait_ready(page)
    upload(page, book, seconds=500)
    expect(page.locator("#qx-header")).to_contain_text(re.compile(r"[\d,]{5,} tokens"))
    page.locator("#qx-question textarea").fill("Who inherits the house?")
    run(page)
    first_run, first_choice = run_id(page), chosen(page)

    page.locator("#qx-back").click()
    page.locator("#qx-back").click()
    expect(page.locator(CARDS)).to_have_count(2, timeout=20_000)
    page.locator("#qx-step").click()
    expect(page.locator(CARDS)).to_have_count(3, timeout=20_000)
    assert chosen(page) == first_choice[:3], "nothing changed, so the step comes back as it was"
    assert run_id(page) == first_run

    page.locator("#qx-back").click()
    expect(page.locator(CARDS)).to_have_count(2, timeout=20_000)
    other = first_choice[-1] + 7
    page.locator("#qx-find input, #qx-find textarea").first.fill(f"#{other}")
    page.locator("#qx-find-next").click()
    expect(page.locator("#qx-reading .qx-crumb")).to_contain_text(f"chunk {other:,} of")
    page.get_by_role("button", name="Use this chunk").click()
    expect(page.locator(CARDS)).to_have_count(3, timeout=20_000)
    expect(page.locator(f"{CARDS} .qx-mark:has-text('forced')")).to_have_count(1)
    assert chosen(page) == [*first_choice[:2], other]
    page.wait_for_function("old => !location.search.includes(old)", arg=first_run)
    child_run = run_id(page)
    page.locator("#qx-step").click()
    expect(page.locator(CARDS)).to_have_count(4, timeout=20_000)
    child_choice = chosen(page)

    page.reload()
    wait_ready(page)
    expect(page.locator(CARDS)).to_have_count(4, timeout=60_000)
    assert chosen(page) == child_choice
    expect(page.locator("#qx-question textarea")).to_have_value("Who inherits the house?")

    app = start_app("--checkpoint", "base", kill_last=True)
    page = open_page(f"{app.url}/?run={first_run}")
    wait_ready(page, seconds=120)
    expect(page.locator(CARDS)).to_have_count(4, timeout=60_000)
    assert chosen(page) == first_choice, "the run came back out of the log after a kill"
    expect(page.locator("#qx-header")).to_contain_text("from cache")

    for logged in (first_run, child_run):  # the command line, while the app owns the log
        replay = _eventually(lambda logged=logged: app.command("runs", "replay", logged))
        report = json.loads(replay.stdout)
        assert report["holds"], report
        assert report["n_embedded_again"] == 0
        assert report["report"]["largest_difference"] <= 1e-4
    traced = app.command(
        "trace",
        "--chunks",
        _chunks_file(app.home),
        "--query",
        "where is it",
        "--step-budget",
        "2",
        "--log",
        "--json",
    )
    assert traced.returncode == 0, traced.stderr
    logged = re.search(r"logged as ([0-9a-f]{32})", traced.stderr).group(1)
    shown = _eventually(lambda: app.command("runs", "show", logged))
    assert shown.returncode == 0, "the app took the run in from the inbox, and its snapshot has it"


def _chunks_file(folder: Path) -> str:
    path = folder / "chunks.json"
    path.write_text(json.dumps(["The key lies under the mat.", "The mat is behind the door.", "It rained."]))
    return str(path)


def _eventually(command, seconds: float = 60):  # type: ignore[no-untyped-def]
    """The command's result once it succeeds: the app refreshes the snapshot for readers every few seconds."""
    import time

    deadline = time.monotonic() + seconds
    while True:
        result = command()
        if result.returncode == 0 or time.monotonic() > deadline:
            return result
        time.sleep(1)


BOXES = """() => {
  const parts = ['#qx-controls .qx-set-line', '#qx-opening .qx-progress', '#qx-opening [data-act=at-end]'];
  const found = parts.map((part) => document.querySelector(part));
  return found.every(Boolean) && found.map((one) => one.getBoundingClientRect().toJSON());
}"""


def lie_apart(page: Page) -> None:
    """What is set, and how far the document is: never one over the other, however wide the window. Measured
    at once, when all is there: each step of the progress draws it anew.
    """
    for width in (1440, 1200, 1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        line, *slot = page.wait_for_function(BOXES).json_value()
        for box in slot:
            assert box["top"] >= line["bottom"] or box["left"] >= line["right"], width
            assert box["left"] >= 0, width
            assert box["right"] <= width, width
    page.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.campaign
def test_a_question_to_half_a_document_has_a_preview(
    running_app: RunningApp, open_page: OpenPage, tmp_path: Path
) -> None:
    story = tmp_path / "half-read.txt"
    story.write_text(generate_narrative(400_000, seed=5).text)
    page = open_page(running_app.url)
    wait_ready(page)
    upload(page, story, seconds=200)
    expect(page.locator("#qx-opening")).to_contain_text("You can ask now.", timeout=60_000)
    expect(page.locator("#qx-reading .qx-read")).to_be_visible()
    expect(page.get_by_role("button", name="Run again at the end")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#qx-opening .qx-progress")).to_contain_text(
        re.compile(r"\d+ % ready, \d+ (s|min) left")
    )
    lie_apart(page)
    page.locator("#qx-question textarea").fill("Where did the old lamp stand?")
    page.locator("#qx-run").click()
    expect(page.locator(".qx-partly")).to_contain_text(
        re.compile(r"Searched \d[\d,]* of [\d,]+ chunks"), timeout=90_000
    )
    expect(page.locator("#qx-standing .qx-chip")).to_have_text("preview")
    lie_apart(page)
    page.locator("#qx-cancel").click()
    page.get_by_role("button", name="Embed the rest").click(timeout=60_000)
    expect(page.locator("#qx-opening")).to_contain_text("You can ask now.", timeout=60_000)
    before = page.url
    page.locator("#qx-question textarea").fill("Where did the lamp stand after that?")
    page.locator("#qx-run").click()
    expect(page, "a question does not wait until all is embedded").not_to_have_url(before, timeout=60_000)
    expect(page.locator("#qx-opening")).to_contain_text("You can ask now.")
