"""Explore in a real Chromium against the real server: the first visit, a book, a messy page, going back and forth, reload, restart."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from core.encode.checkpoint import find_checkpoint, read_spec
from tests.app.conftest import RunningApp, StartApp, upload, wait_ready
from tests.conftest import COUNTS, OpenPage
from tests.settled import settle

CARDS = "#qx-steps .qx-step"


def run_id(page: Page) -> str:
    """The run in the address."""
    page.wait_for_url(re.compile(r"run=[0-9a-f]{32}"), timeout=20_000)
    return re.search(r"run=([0-9a-f]{32})", page.url).group(1)


def chosen(page: Page) -> list[int]:
    """Chunk ids of the step cards."""
    return [int(text.split()[1].replace(",", "")) for text in page.locator(f"{CARDS} .qx-step-head .qx-link").all_inner_texts()]


def run(page: Page, n_steps: int = 4) -> None:
    """Presses Run and waits for the end."""
    page.locator("#qx-run").click()
    expect(page.locator(CARDS)).to_have_count(n_steps, timeout=60_000)
    expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=30_000)


def test_first_visit_shows_three_hops_after_one_click(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    expect(page.locator("#qx-question textarea")).to_have_value("Where was the blanket before the chapel?")
    run(page, n_steps=3)
    expect(page.locator(f"{CARDS} .qx-hit")).to_have_count(3)
    expect(page.locator("#qx-evidence")).to_contain_text("3 of 3 support chunks found")
    expect(page.locator("#qx-best .js-plotly-plot")).to_be_visible(timeout=30_000)
    assert run_id(page)


def test_a_book_goes_through_upload_run_step_back_force_reload_replay(start_app: StartApp, open_page: OpenPage, book: Path) -> None:
    app = start_app("--checkpoint", "base", imported=False)  # it never stops early
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

    app = start_app("--checkpoint", "base", kill_last=True, imported=False)
    page = open_page(f"{app.url}/?run={first_run}")
    wait_ready(page, seconds=120)
    expect(page.locator(CARDS)).to_have_count(4, timeout=60_000)
    assert chosen(page) == first_choice, "the run came back out of the log after a kill"
    expect(page.locator("#qx-header .qx-chip")).to_contain_text("from cache")

    for logged in (first_run, child_run):  # the command line, while the app owns the log
        replay = _eventually(lambda logged=logged: app.command("runs", "replay", logged))
        report = json.loads(replay.stdout)
        assert report["holds"], report
        assert report["n_embedded_again"] == 0
        assert report["report"]["largest_difference"] <= 1e-4
    traced = app.command("trace", "--chunks", _chunks_file(app.home), "--query", "where is it", "--step-budget", "2", "--log", "--json")
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


def test_a_messy_page_comes_out_clean(running_app: RunningApp, open_page: OpenPage, messy_page: Path) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    upload(page, messy_page, seconds=200)
    expect(page.locator("#qx-header")).to_contain_text("structure")
    page.locator("#qx-question textarea").fill("What does the table say?")
    run(page)
    page.locator(f"{CARDS} .qx-link").first.click()
    expect(page.locator("#qx-reading .qx-marked")).to_be_visible()
    text = page.locator("#qx-reading .qx-read").inner_text()
    assert "function(" not in text
    assert "<div" not in text


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


def test_a_run_is_shared_beside_its_buttons(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    run(page, n_steps=3)
    share = page.locator("#qx-status").get_by_role("button", name="Share")
    share.click()
    expect(page.locator("#qx-sharing a")).to_have_text(f"{running_app.url}/?run={run_id(page)}", timeout=20_000)
    page.locator("#qx-back").click()
    expect(page.locator("#qx-sharing a")).to_have_count(0, timeout=20_000)


def test_a_visitor_s_run_is_others_only_once_it_is_shared(public_app: RunningApp, open_page: OpenPage) -> None:
    page, other = open_page(public_app.url), open_page(public_app.url)
    wait_ready(page)
    page.locator("#qx-run").click()
    expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=60_000)
    sharing = page.locator("#qx-sharing")
    page.locator("#qx-status").get_by_role("button", name="Share").click()
    expect(sharing).to_contain_text("Whoever has the link", timeout=20_000)
    other.goto(f"{public_app.url}/?run={run_id(page)}")
    expect(other.locator("#qx-notice")).to_contain_text("there is no run", timeout=60_000)
    sharing.get_by_role("button", name="Share it").click()
    expect(sharing.locator("a")).to_have_text(re.compile(r"\?run=[0-9a-f]{32}$"), timeout=20_000)
    other.goto(sharing.locator("a").inner_text())
    expect(other.locator(CARDS)).to_have_count(page.locator(CARDS).count(), timeout=60_000)


def test_settings_mark_the_run_as_outdated_and_rerun_without_embedding(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    run(page, n_steps=3)
    size = _size_of_vectors(running_app.home)
    page.locator("#qx-stops input").check()
    page.locator("#qx-threshold input[type=number]").fill("0.6")
    page.locator("#qx-threshold input[type=number]").press("Tab")
    expect(page.locator("#qx-standing")).to_contain_text("threshold", timeout=10_000)
    page.get_by_role("button", name="Run again").click()
    expect(page.locator("#qx-steps .qx-stop")).to_contain_text("is below 0.60", timeout=30_000)
    assert _size_of_vectors(running_app.home) == size


def test_a_review_takes_back_what_a_later_choice_made_superfluous(running_app: RunningApp, open_page: OpenPage) -> None:
    """Clara is told of twice and more: an earlier place is found first, then the last one, beside which the earlier is worth nothing."""
    page = open_page(running_app.url)
    wait_ready(page)
    page.locator("#qx-question textarea").fill("Where is Clara?")
    run(page, n_steps=2)
    first, last = chosen(page)
    stop, evidence = page.locator("#qx-steps .qx-stop"), page.locator("#qx-evidence .qx-link")
    threshold = read_spec(find_checkpoint("narrative")).review_threshold
    expect(stop).to_contain_text(f"Review: chunk {first:,} taken back, worth less than {threshold:.2f} beside the others.")
    expect(page.locator(CARDS).first).to_contain_text("taken back")
    expect(page.locator(CARDS).last).not_to_contain_text("taken back")
    expect(evidence).to_have_text([f"chunk {last:,}"])
    expect(page.locator("#qx-evidence")).to_contain_text("1 chunk taken back")

    page.locator("#qx-back").click()  # before the end nothing was reviewed
    expect(page.locator(CARDS)).to_have_count(1, timeout=20_000)
    expect(page.locator(CARDS)).not_to_contain_text("taken back")
    expect(evidence).to_have_text([f"chunk {first:,}"])

    page.locator("#qx-more > button").click()
    page.locator("#qx-reviews input").uncheck()
    expect(page.locator("#qx-standing")).to_contain_text("review", timeout=10_000)
    page.get_by_role("button", name="Run again").click()
    expect(stop).to_contain_text("Stopped", timeout=30_000)
    expect(stop).not_to_contain_text("Review")
    expect(evidence).to_have_text([f"chunk {chunk_id:,}" for chunk_id in sorted((first, last))], timeout=20_000)


def _size_of_vectors(home: Path) -> int:
    return sum(path.stat().st_size for path in (home / "vectors").iterdir())


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


def test_what_streams_in_is_what_a_reload_shows(running_app: RunningApp, open_page: OpenPage) -> None:
    """Panels that grow and shrink while a run streams end up as the log has them."""
    page = open_page(running_app.url)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    wait_ready(page)
    for seed in range(10, 10 + COUNTS.streams):
        _set_number(page, "#qx-budget", 8)
        _set_number(page, "#qx-temperature", 0.1)
        page.locator("#qx-stops input").uncheck()
        if not page.locator("#qx-seed input").is_visible():
            page.get_by_role("button", name="More settings").click()
        _set_number(page, "#qx-seed", seed)
        before = page.url.partition("run=")[2] or "none"
        page.locator("#qx-run").click()
        page.wait_for_function("old => /run=/.test(location.search) && !location.search.includes(old)", arg=before, timeout=30_000)
        expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=60_000)
        expect(page.locator("#qx-answer .qx-answer-text")).to_be_visible(timeout=30_000)  # a reload before would tear the stream
        shown = {panel: page.locator(panel).inner_text() for panel in ("#qx-steps", "#qx-evidence", "#qx-reading")}
        assert len(chosen(page)) == 8
        page.reload()
        wait_ready(page)
        expect(page.locator(CARDS)).to_have_count(8, timeout=30_000)
        assert {panel: page.locator(panel).inner_text() for panel in shown} == shown
    assert errors == []


def _set_number(page: Page, control: str, value: float) -> None:
    field = page.locator(f"{control} input[type=number]")
    field.fill(str(value))
    field.press("Tab")


def test_opening_another_document_leaves_the_old_run_behind(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(running_app.url)
    wait_ready(page)
    run(page, n_steps=3)
    run_id(page)
    page.get_by_text("Change document").click()
    page.get_by_role("tab", name="Paste").click()
    page.locator("#qx-pasted textarea").fill("Mary journeyed to the garden.")
    page.locator("#qx-open-pasted").click()
    expect(page.locator("#qx-header .qx-doc-title")).to_contain_text("Pasted text", timeout=30_000)
    page.wait_for_function("() => !location.search.includes('run=')")
    expect(page.locator(CARDS)).to_have_count(0)
    page.locator("#qx-question textarea").fill("Where is Mary?")
    page.locator("#qx-run").click()
    expect(page.locator("#qx-steps .qx-stop")).to_contain_text("budget of 1 step is used up", timeout=30_000)
    page.locator("#qx-step").click()
    expect(page.locator("#qx-notice")).to_contain_text("this run has stopped")
    page.reload()
    wait_ready(page)
    expect(page.locator(CARDS)).to_have_count(1, timeout=30_000)
    expect(page.locator(".toast-body")).to_have_count(0)


def test_an_agent_with_positions_shows_ruler_and_parts_of_q(tiny_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page(tiny_app.url)
    wait_ready(page)
    expect(page.locator("#qx-agent")).to_contain_text("relative positions")
    run(page)
    expect(page.locator("#qx-strip [data-part='ruler']")).to_be_visible()
    expect(page.locator("#qx-parts .js-plotly-plot")).to_be_visible(timeout=30_000)
    expect(page.locator(f"{CARDS} .qx-kv:has-text('ρ')")).to_have_count(4)
    page.get_by_role("button", name="More settings").click()
    page.locator("#qx-positions input").uncheck()
    page.get_by_role("button", name="Run again").click()
    expect(page.locator("#qx-strip [data-part='ruler']")).to_be_hidden(timeout=20_000)
    expect(page.locator("#qx-parts")).to_be_hidden(timeout=20_000)
