"""Explore on the first sample, as a visitor meets it: the story of a run, settings over the page, keys, the
strip. One page for all tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, Route, expect

from tests.app.axe import grave_faults_in_both
from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import CARDS, chosen, run, run_id, set_number, show_figures, show_settings
from tests.conftest import OpenPage
from tests.settled import frames_asked_for, new_context, release, settle

WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
QUESTION = "Where was the blanket before the chapel?"
ANSWER = "#qx-answer .qx-answer-text"
BOXES = (
    "ids => Object.fromEntries(ids.map((id) => [id,"
    " document.getElementById(id).getBoundingClientRect().top]))"
)
PANELS = ["qx-controls", "qx-story-card", "qx-strip", "qx-steps"]


@pytest.fixture(scope="module")
def shared(running_app: RunningApp, browser: Browser) -> Iterator[Page]:
    """The sample that a first visit opens."""
    context = new_context(browser, viewport=WIDE)
    page = context.new_page()
    page.goto(running_app.url)
    wait_ready(page)
    yield page
    context.close()


@pytest.fixture
def page(shared: Page) -> Iterator[Page]:
    """The same, without a run, its question as it was and wide."""
    shared.set_viewport_size(WIDE)  # type: ignore[arg-type]
    if shared.locator("#qx-reset").is_enabled():
        shared.locator("#qx-reset").click()
        expect(shared.locator(CARDS)).to_have_count(0, timeout=20_000)
    shared.locator("#qx-question textarea").fill(QUESTION)
    settle(shared)
    yield shared
    shared.keyboard.press("Escape")


@pytest.fixture
def ran(page: Page) -> Page:
    """With the run of the three hops, read."""
    run(page, n_steps=3)
    expect(page.locator(ANSWER)).to_have_text("stable", timeout=60_000)
    return page


def in_sight(part: Locator) -> bool:
    """Whether it begins within the evidence that scrolls around it."""
    return bool(
        part.evaluate(
            "part => { const [a, b] = [part, part.closest('.qx-evidence')].map((one) =>"
            " one.getBoundingClientRect()); return a.top >= b.top && a.top < b.bottom; }"
        )
    )


def parts(page: Page) -> Locator:
    """Parts of the story that are buttons to a step."""
    return page.locator("#qx-story [data-act=look]")


def end_of(panel: Locator) -> float:
    """Where it ends, in pixels from the top of the window."""
    box = panel.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


def test_one_click_tells_the_story_above_the_fold(ran: Page) -> None:
    story = ran.locator("#qx-story")
    expect(story.locator(".qx-told .qx-part-words")).to_have_text(
        ["Ruth set down the blanket.", "Ruth headed to the chapel.", "Ruth travelled to the stable."]
    )
    expect(story.locator(".qx-told .qx-part-foot")).to_have_text(
        ["first of 1,145", "34th → 1st", "70th → 3rd → 1st"]
    )
    expect(story.locator(".qx-right")).to_contain_text("stable")
    expect(story.locator(".qx-right")).to_contain_text(re.compile(r"\d+ % sure · right"))
    expect(story.locator("li").last).to_contain_text("Nothing left is worth 0.30: best Q is 0.11.")
    aloud = story.locator("p.qx-unseen").inner_text()
    assert aloud.startswith(
        f"Asked: {QUESTION} First choice, chunk 542: Ruth set down the blanket, first of 1,145; Second choice"
    ), aloud
    assert aloud.endswith("sure, right. Nothing left is worth 0.30: best Q is 0.11."), aloud
    for size, shown in ((WIDE, "#qx-answer"), (PHONE, "#qx-story")):
        ran.set_viewport_size(size)  # type: ignore[arg-type]
        settle(ran)
        for panel in ("#qx-story", shown):
            assert end_of(ran.locator(panel)) <= size["height"], (size, panel)
    expect(ran.locator(f"{CARDS} .qx-hit")).to_have_count(3)
    expect(ran.locator("#qx-evidence")).to_contain_text("3 of 3 support chunks found")
    assert run_id(ran)


def test_a_long_story_leaves_the_answer_above_the_fold(page: Page) -> None:
    set_number(page, "#qx-budget", 12)
    page.locator("#qx-stops input").uncheck()
    run(page, n_steps=12)
    answer = page.locator(ANSWER)
    expect(answer).to_have_text("stable", timeout=60_000)
    settle(page)
    set_number(page, "#qx-budget", 6)
    page.locator("#qx-stops input").check()
    assert end_of(answer) <= WIDE["height"]
    expect(page.locator("#qx-story .qx-taken-back")).to_have_count(9)


def test_figures_are_drawn_for_those_who_come_near_them(ran: Page) -> None:
    expect(ran.locator("#qx-decision")).to_have_count(0)
    show_figures(ran)
    expect(ran.locator("#qx-trail")).to_be_visible()


def test_a_page_at_rest_asks_for_no_frames(ran: Page) -> None:
    settle(ran)
    assert frames_asked_for(ran) <= 2


def test_events_and_their_targets_are_the_server_s_and_no_plain_arrays(shared: Page) -> None:
    plain, kept, served = shared.evaluate(
        """async () => {
          const plain = (one) => Object.getPrototypeOf(one) === Array.prototype;
          const targets = (config) => config.dependencies.map((event) => event.targets).filter((one) => one.length);
          const left = targets(gradio_config).filter((one) => !plain(one));
          return [plain(gradio_config.dependencies), left, targets(await (await fetch("config")).json())];
        }"""
    )
    assert not plain
    assert kept == served
    assert len(kept) > 100


def test_a_run_ends_on_its_last_choice_and_each_part_is_a_way_to_its_step(ran: Page) -> None:
    what = ran.locator("#qx-strip [data-part=what]")
    expect(what).to_contain_text("step 3")
    parts(ran).nth(1).click()
    expect(what).to_contain_text("step 2", timeout=20_000)
    expect(parts(ran).nth(1)).to_have_attribute("aria-current", "step")
    expect(ran.locator(CARDS).nth(1)).to_have_class(re.compile("qx-on"))
    parts(ran).last.click()
    expect(what).to_contain_text("stopped", timeout=20_000)
    expect(parts(ran).last).to_have_attribute("aria-current", "step")


def test_brackets_walk_the_steps_and_the_stop(ran: Page) -> None:
    what = ran.locator("#qx-strip [data-part=what]")
    ran.locator("#qx-title").click()
    ran.keyboard.press("]")
    expect(what).to_contain_text("stopped", timeout=20_000)
    for words in ("step 3", "step 2", "step 1"):
        settle(ran)
        ran.keyboard.press("[")
        expect(what).to_contain_text(words, timeout=20_000)


def test_the_answer_stands_beside_the_evidence_in_its_place(ran: Page) -> None:
    expect(ran.locator("#qx-answer")).to_contain_text(re.compile(r"\d+ % sure"))
    expect(ran.locator("#qx-answer .qx-judged")).to_have_text("✓ right")
    expect(ran.locator("#qx-evidence mark")).to_have_text("stable")
    assert in_sight(ran.locator("#qx-evidence mark"))
    expect(ran.locator("#qx-evidence .qx-gap")).to_have_text(["61 chunks further on", "40 chunks further on"])
    expect(ran.locator("#qx-reading")).to_be_hidden()
    ran.locator("#qx-answer .qx-link").click()
    expect(ran.locator("#qx-reading .qx-marked")).to_contain_text("stable", timeout=20_000)
    expect(ran.locator("#qx-evidence")).to_be_hidden()
    ran.get_by_role("button", name="Evidence in place").click()
    expect(ran.locator("#qx-evidence")).to_be_visible(timeout=20_000)

    ran.locator("#qx-back").click()
    expect(ran.locator(ANSWER)).to_have_count(0, timeout=20_000)  # another evidence is in view
    expect(ran.locator("#qx-story .qx-ends")).to_have_count(0)


def test_settings_are_one_line_and_open_over_the_page(ran: Page, running_app: RunningApp) -> None:
    line = ran.locator("#qx-set")
    expect(line).to_contain_text("narrative trained for stories")
    for words in ("up to 6 steps", "temperature 0", "stops below Q 0.30", "review on"):
        expect(line).to_contain_text(words)
    before = ran.evaluate(BOXES, PANELS)
    show_settings(ran)
    assert ran.evaluate(BOXES, PANELS) == before
    size = _size_of_vectors(running_app.home)
    set_number(ran, "#qx-threshold", 0.6)
    expect(line).to_contain_text("stops below Q 0.60", timeout=10_000)
    expect(ran.locator("#qx-standing")).to_contain_text("Changed since this run: threshold", timeout=10_000)
    assert ran.evaluate(BOXES, PANELS) == before, "a notice has a place of its own"
    assert grave_faults_in_both(ran) == []
    ran.get_by_role("button", name="Run again").click()
    expect(ran.locator("#qx-settings")).to_be_hidden()
    expect(ran.locator("#qx-steps .qx-stop")).to_contain_text("Nothing left is worth 0.60", timeout=30_000)
    assert _size_of_vectors(running_app.home) == size, "nothing is embedded again"
    set_number(ran, "#qx-threshold", 0.3)
    ran.keyboard.press("Escape")
    expect(ran.locator("#qx-settings")).to_be_hidden()
    expect(line.locator(".qx-set-line")).to_be_focused()


def _size_of_vectors(home: Path) -> int:
    return sum(path.stat().st_size for path in (home / "vectors").iterdir())


def test_an_error_moves_nothing_and_can_be_closed(page: Page) -> None:
    before = page.evaluate(BOXES, PANELS)
    page.locator("#qx-question textarea").fill("   ")
    page.locator("#qx-step").click()
    notice = page.locator("#qx-notice .qx-error")
    expect(notice).to_contain_text("question is empty", timeout=20_000)
    assert page.evaluate(BOXES, PANELS) == before
    notice.get_by_role("button", name="Close this notice").click()
    expect(notice).to_be_hidden()


def test_a_known_question_is_filled_in_and_says_whether_its_answer_is_right(page: Page) -> None:
    menu = page.locator("#qx-known details")
    menu.locator("summary").click()
    row = menu.get_by_role("button").nth(0)
    asked = row.inner_text().partition("·")[0].strip()
    row.click()
    expect(page.locator("#qx-question textarea")).to_have_value(asked, timeout=20_000)
    expect(menu).not_to_have_attribute("open", "")
    page.locator("#qx-run").click()
    expect(page.locator("#qx-answer .qx-judged")).to_be_visible(timeout=60_000)


def test_keys_run_steps_back_and_can_be_switched_off(page: Page) -> None:
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
    page.keyboard.press("?")
    page.locator(".qx-keys input").check()
    page.locator(".qx-keys button").click()


def test_five_quick_clicks_on_step_make_five_steps(page: Page) -> None:
    set_number(page, "#qx-budget", 7)
    page.locator("#qx-stops input").uncheck()
    for _ in range(5):
        page.locator("#qx-step").click()
    expect(page.locator(CARDS)).to_have_count(5, timeout=30_000)
    settle(page)
    assert len(chosen(page)) == 5 == len(set(chosen(page)))
    set_number(page, "#qx-budget", 6)
    page.locator("#qx-stops input").check()


def test_a_key_of_the_strip_opens_the_chunk_it_points_at(ran: Page) -> None:
    ran.locator("#qx-strip canvas[tabindex='0']").first.focus()
    for key in ("Home", "ArrowRight", "Enter"):
        ran.keyboard.press(key)
    expect(ran.locator("#qx-reading .qx-crumb")).to_contain_text("chunk 1 of", timeout=10_000)


def test_a_run_is_shared_beside_its_buttons_and_comes_back(ran: Page) -> None:
    address = ran.url.partition("?")[0].rstrip("/")
    ran.locator("#qx-status").get_by_role("button", name="Share").click()
    expect(ran.locator("#qx-sharing a")).to_have_text(f"{address}/?run={run_id(ran)}", timeout=20_000)
    told = ran.locator("#qx-story").inner_text()
    share, notice = ran.get_by_role("button", name="Share", exact=True), ran.locator("#qx-sharing .qx-notice")
    notice.click(position={"x": 4, "y": 4})
    expect(notice).to_be_visible()
    ran.keyboard.press("Escape")
    expect(notice).to_have_count(0, timeout=20_000)
    expect(share).to_be_focused()
    for closes in ("#qx-title", "#qx-status [data-act=share]", "#qx-sharing .qx-close", "#qx-back"):
        share.click()
        expect(notice).to_be_visible(timeout=20_000)
        ran.locator(closes).click()
        expect(notice).to_have_count(0, timeout=20_000)
    share.click()
    ran.locator("#qx-sharing [data-act=page]").click()
    file = ran.locator("#qx-sharing-page")
    expect(file).to_be_visible(timeout=20_000)
    with ran.expect_download() as page_of_it:
        file.click()
    kept = Path(page_of_it.value.path()).read_text(encoding="utf-8")
    assert "default-src 'none'" in kept
    assert "Ruth travelled to the stable" in kept
    ran.reload()
    wait_ready(ran)
    expect(ran.locator(ANSWER)).to_have_text("stable", timeout=60_000)
    expect(ran.locator("#qx-story .qx-right")).to_be_visible()
    assert ran.locator("#qx-story").inner_text() == told


def test_who_walks_on_before_a_step_is_shown_gets_the_last_one_asked_for(ran: Page) -> None:
    held: list[Route] = []
    for steps in ("#qx-strip [data-part=looks] button", "#qx-story [data-act=look]"):
        ran.route("**/queue/join*", lambda route: held.append(route))
        for step in (0, 2):  # the third is shown while the first is on its way
            ran.locator(steps).nth(step).click()
        release(ran, held)
        settle(ran)
        expect(ran.locator("#qx-strip [data-part=what]")).to_contain_text("step 3")


def test_many_clicks_on_run_are_two_runs(page: Page) -> None:
    """The one that is answered, and the last: each run more draws the whole page again."""
    held: list[Route] = []
    sent: list[object] = []

    def note(request: Request) -> None:
        if "/queue/join" in request.url:
            sent.append(request.post_data_json["trigger_id"])

    page.route("**/queue/join*", lambda route: held.append(route))
    page.on("request", note)
    with page.expect_request("**/queue/join*"):
        page.locator("#qx-run").click()
    for _ in range(8):
        page.locator("#qx-run").click()
    release(page, held)
    expect(page.locator(CARDS)).to_have_count(3, timeout=60_000)
    settle(page)
    page.remove_listener("request", note)
    assert sent.count(sent[0]) == 2


def test_what_is_asked_before_a_document_is_there_stays(running_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page("about:blank")
    held: list[Route] = []
    page.route("**/queue/join*", lambda route: held.append(route))
    page.goto(running_app.url)
    expect(page.locator("#qx-header")).to_have_text("Opening a document…")
    page.locator("#qx-question textarea").fill("Where is Ruth?")
    release(page, held)
    wait_ready(page)
    expect(page.locator("#qx-question textarea")).to_have_value("Where is Ruth?")


def test_a_reload_keeps_what_was_typed(page: Page) -> None:
    page.locator("#qx-question textarea").fill("Who carried the lantern?")
    page.reload()
    wait_ready(page)
    expect(page.locator("#qx-question textarea")).to_have_value("Who carried the lantern?", timeout=20_000)


def test_a_failed_question_says_why_and_what_helps_and_a_sample_brings_its_agent_back(page: Page) -> None:
    """Last: it opens other documents."""
    open_sample(page, 1)
    line = page.locator("#qx-set")
    expect(line).to_contain_text("general trained for questions over real documents")
    page.locator("#qx-question textarea").fill("In which town are the makers of the vaporiser kit?")
    run(page)
    why = page.locator("#qx-diagnosis")
    expect(why).to_contain_text(
        re.compile(
            r"(Why it failed|What it missed): chunk \d+ belongs to the answer. It lies one chunk past chunk \d+, which was chosen"
        ),
        timeout=60_000,
    )
    expect(page.locator("#qx-story .qx-miss")).to_have_count(1)
    is_right = page.locator("#qx-story .qx-right").count() == 1
    assert why.inner_text().startswith("What it missed" if is_right else "Why it failed")
    expect(page.locator("#qx-strip [data-part=key]")).to_contain_text("missed")
    expect(page.locator("#qx-evidence .qx-missed")).to_have_count(1)
    expect(page.locator(CARDS).filter(has_text="Time needed")).to_have_count(1)
    for part in ("#qx-steps", "#qx-evidence"):
        assert "|" not in page.locator(part).inner_text(), "rules of a table are no words"
    expect(page.locator("#qx-answer .qx-judged")).to_be_visible()
    telling = page.locator("#qx-evidence mark")
    assert in_sight(telling if telling.count() else page.locator("#qx-evidence .qx-marked"))
    for step in (1, 4):
        parts(page).nth(step - 1).click()
        expect(parts(page).nth(step - 1)).to_have_attribute("aria-current", "step", timeout=20_000)
        expect(page.locator("#qx-evidence .qx-marked .qx-pin")).to_have_text(str(step), timeout=20_000)
        assert in_sight(page.locator("#qx-evidence .qx-marked"))
    ends = page.locator("#qx-story .qx-ends")
    expect(ends).to_have_count(2)
    for width in (1440, 1200, 1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        is_set, status = (
            page.locator(part).bounding_box() for part in ("#qx-set .qx-set-line", "#qx-status span")
        )
        assert is_set is not None
        assert status is not None
        beside = status["x"] >= is_set["x"] + is_set["width"]
        assert beside or status["y"] >= is_set["y"] + is_set["height"], (width, "one lies over the other")
        card = page.locator("#qx-story-card").bounding_box()
        for box in (card, *(end.bounding_box() for end in ends.all())):
            assert box is not None
            assert card is not None
            assert box["x"] + box["width"] <= card["x"] + card["width"] <= width, "an end is cut"
        name = page.locator("#qx-story .qx-miss .qx-part-head > span:last-child")
        if width > 760:  # below, it is there for those who listen
            assert not name.evaluate("head => head.scrollWidth > head.clientWidth"), width
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    expect(why.get_by_role("button", name="Take chunk")).to_contain_text("found 2 → 3 of 3")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    settle(page)
    assert end_of(why.locator("p").first) <= PHONE["height"], "its sentence stands above the fold"
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    assert grave_faults_in_both(page) == []
    longer = why.get_by_role("button", name="Allow 5 steps")
    expect(longer).to_contain_text("found 2 → 3 of 3")
    longer.click()
    expect(page.locator(CARDS)).to_have_count(5, timeout=60_000)
    expect(page.locator("#qx-evidence")).to_contain_text("3 of 3 support chunks found", timeout=30_000)
    expect(page.locator("#qx-budget input[type=number]")).to_have_value("5")
    expect(page.locator("#qx-story .qx-miss")).to_have_count(0)

    show_settings(page)
    page.locator("#qx-agent input").click()
    page.get_by_role("option", name="base").click()
    expect(line).to_contain_text("base not trained: plain embeddings", timeout=120_000)
    settle(page)
    line.get_by_role("button", name="Use general (trained)").click()
    expect(line).to_contain_text("general trained for questions over real documents", timeout=60_000)
    settle(page)
    open_sample(page, 0)
    expect(line).to_contain_text("narrative trained for stories", timeout=60_000)
    run(page, n_steps=3)


def open_sample(page: Page, place: int) -> None:
    """Opens one of the samples."""
    page.locator("#qx-change-button").click()
    page.locator("#qx-sample input").nth(place).click()
    page.locator("#qx-open-sample").click()
    expect(page.locator("#qx-change")).to_be_hidden(timeout=120_000)
    settle(page)
