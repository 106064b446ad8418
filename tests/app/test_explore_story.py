"""Explore on the first sample, as a visitor meets it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.app.axe import grave_faults, grave_faults_in_both
from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import (
    CARDS,
    chosen,
    open_pasted,
    press_run,
    run,
    run_id,
    set_number,
    show_settings,
)
from tests.conftest import OpenPage, few
from tests.settled import frames_drawn, release, settle

WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
QUESTION = "Where was the blanket before the chapel?"
READ, ANSWER, STOP = "#qx-answer [class*=qx-is-]", "#qx-answer .qx-answer-text", "#qx-steps .qx-stop"
BOXES = (
    "ids => Object.fromEntries(ids.map((id) => [id,"
    " document.getElementById(id).getBoundingClientRect().top]))"
)
PANELS_OF_A_RUN = ("#qx-story", "#qx-answer", "#qx-steps", "#qx-evidence")
PANELS = ["qx-controls", "qx-story-card", "qx-strip", "qx-steps"]


@pytest.fixture(scope="module")
def shared(tiny_app: RunningApp, open_for_file: OpenPage) -> Page:
    """The sample that a first visit opens, under an agent that takes four steps."""
    page = open_for_file(tiny_app.url, width=WIDE["width"])
    wait_ready(page)
    return page


@pytest.fixture(scope="module")
def shared_shipped(running_app: RunningApp, open_for_file: OpenPage) -> Page:
    """The same, with the agents that ship."""
    page = open_for_file(running_app.url, width=WIDE["width"])
    wait_ready(page)
    return page


@pytest.fixture
def page(shared: Page) -> Page:
    """Without a run, its question as it was, wide, nothing open over it."""
    return cleared(shared)


@pytest.fixture
def ran(shared: Page) -> Page:
    """With a run to its end and read: the last test's where it left one."""
    if shared.locator(CARDS).count() != 4 or not shared.locator(STOP).count():
        run(cleared(shared))
    expect(shared.locator(READ)).to_be_visible(timeout=60_000)
    return shared


@pytest.fixture
def shipped(shared_shipped: Page) -> Page:
    """With the run of the three hops, read."""
    run(cleared(shared_shipped), n_steps=3)
    expect(shared_shipped.locator(ANSWER)).to_have_text("stable", timeout=60_000)
    return shared_shipped


def cleared(page: Page) -> Page:
    """As it was before its first run."""
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    page.keyboard.press("Escape")
    if page.locator("#qx-reset").is_enabled():
        page.locator("#qx-reset").click()
        expect(page.locator(CARDS)).to_have_count(0, timeout=20_000)
    page.locator("#qx-question textarea").fill(QUESTION)
    settle(page)
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
    return box["y"] + box["height"]


@pytest.mark.campaign
def test_one_click_tells_the_story_above_the_fold(shipped: Page) -> None:
    story = shipped.locator("#qx-story")
    expect(story.locator(".qx-told .qx-part-words")).to_have_text(
        ["Ruth set down the blanket.", "Ruth headed to the chapel.", "Ruth travelled to the stable."]
    )
    expect(story.locator(".qx-told .qx-part-foot")).to_have_text(
        ["first of 1,145", "34th → 2nd", "70th → 4th → 3rd"]
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
        shipped.set_viewport_size(size)  # type: ignore[arg-type]
        settle(shipped)
        for panel in ("#qx-story", shown):
            assert end_of(shipped.locator(panel)) <= size["height"], (size, panel)
    expect(shipped.locator(f"{CARDS} .qx-hit")).to_have_count(3)
    expect(shipped.locator("#qx-evidence")).to_contain_text("3 of 3 support chunks found")
    assert run_id(shipped)


def test_a_page_at_rest_asks_for_no_frames(ran: Page) -> None:
    assert any(frames_drawn(ran) <= 2 for _ in range(20)), "the strip glides for a while"


def test_a_run_ends_on_its_last_choice_and_each_part_is_a_way_to_its_step(ran: Page) -> None:
    what = ran.locator("#qx-strip [data-part=what]")
    expect(what).to_contain_text("step 4")
    parts(ran).nth(1).click()
    expect(what).to_contain_text("step 2", timeout=20_000)
    expect(parts(ran).nth(1)).to_have_attribute("aria-current", "step")
    expect(ran.locator(CARDS).nth(1)).to_have_class(re.compile("qx-on"))


@pytest.mark.campaign
def test_the_answer_stands_beside_the_evidence_in_its_place(shipped: Page) -> None:
    expect(shipped.locator("#qx-answer")).to_contain_text(re.compile(r"\d+ % sure"))
    expect(shipped.locator("#qx-answer .qx-judged")).to_have_text("✓ right")
    expect(shipped.locator("#qx-evidence mark")).to_have_text("stable")
    assert in_sight(shipped.locator("#qx-evidence mark"))
    expect(shipped.locator("#qx-evidence .qx-gap")).to_have_text(
        ["61 chunks further on", "40 chunks further on"]
    )
    expect(shipped.locator("#qx-reading")).to_be_hidden()
    shipped.locator("#qx-answer .qx-link").click()
    expect(shipped.locator("#qx-reading .qx-marked")).to_contain_text("stable", timeout=20_000)
    expect(shipped.locator("#qx-evidence")).to_be_hidden()
    shipped.get_by_role("button", name="Evidence in place").click()
    expect(shipped.locator("#qx-evidence")).to_be_visible(timeout=20_000)

    shipped.locator("#qx-back").click()
    expect(shipped.locator(READ)).to_have_count(0, timeout=20_000)  # another evidence is in view
    expect(shipped.locator("#qx-story .qx-ends")).to_have_count(0)


def test_settings_are_one_line_and_open_over_the_page(ran: Page) -> None:
    line = ran.locator("#qx-set")
    for words in ("tiny trained", "up to 4 steps", "temperature 0", "never stops early"):
        expect(line).to_contain_text(words)
    settle(ran)  # the strip grows with the rows of its run
    before = ran.evaluate(BOXES, PANELS)
    show_settings(ran)
    assert ran.evaluate(BOXES, PANELS) == before
    set_number(ran, "#qx-budget", 2)
    expect(line).to_contain_text("up to 2 steps", timeout=10_000)
    expect(ran.locator("#qx-standing")).to_contain_text("Changed since this run: budget", timeout=10_000)
    assert ran.evaluate(BOXES, PANELS) == before, "a notice has a place of its own"
    assert grave_faults(ran, "#qx-settings") == []
    ran.get_by_role("button", name="Run again").click()
    expect(ran.locator("#qx-settings")).to_be_hidden()
    expect(ran.locator(STOP)).to_contain_text("The budget of 2 steps is used up", timeout=30_000)
    set_number(ran, "#qx-budget", 4)
    ran.keyboard.press("Escape")
    expect(ran.locator("#qx-settings")).to_be_hidden()
    expect(line.locator(".qx-set-line")).to_be_focused()


def test_an_error_moves_nothing_and_can_be_closed(page: Page) -> None:
    before = page.evaluate(BOXES, PANELS)
    page.locator("#qx-question textarea").fill("   ")
    page.locator("#qx-step").click()
    notice = page.locator("#qx-notice .qx-error")
    expect(notice).to_contain_text("question is empty", timeout=20_000)
    assert page.evaluate(BOXES, PANELS) == before
    page.locator("#qx-run").click()
    expect(page.locator(".qx-sent")).to_have_count(0, timeout=20_000)  # the same words answer it
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
    press_run(page)
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


def test_enter_that_ends_a_composition_asks_nothing(page: Page) -> None:
    composed = "new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true})"
    page.locator("#qx-question textarea").evaluate(f"box => box.dispatchEvent({composed})")
    expect(page.locator(".qx-sent")).to_have_count(0)


@pytest.mark.parametrize("closes", ["Escape", "Cancel"])
def test_the_panel_of_documents_gives_the_focus_back(page: Page, closes: str) -> None:
    page.locator("#qx-change-button").click()
    cancel = page.locator("#qx-keep")
    expect(cancel).to_be_visible(timeout=20_000)
    if closes == "Escape":
        page.get_by_role("tab", name="Generate").click()
        lengths = page.locator("#qx-length input")
        lengths.click()
        lengths.press("Escape")  # closes the list alone
        settle(page)
        expect(cancel).to_be_visible()
        page.get_by_role("tab", name="Generate").focus()
    page.keyboard.press("Escape") if closes == "Escape" else cancel.click()
    expect(cancel).to_be_hidden(timeout=20_000)
    expect(page.locator("#qx-change-button")).to_be_focused()


def test_a_run_is_shared_beside_its_buttons(page: Page) -> None:
    run(page)
    expect(page.locator(READ)).to_be_visible(timeout=60_000)
    address = page.url.partition("?")[0].rstrip("/")
    page.locator("#qx-status").get_by_role("button", name="Share").click()
    expect(page.locator("#qx-sharing a")).to_have_text(f"{address}/?run={run_id(page)}", timeout=20_000)
    share, notice = (
        page.get_by_role("button", name="Share", exact=True),
        page.locator("#qx-sharing .qx-notice"),
    )
    notice.click(position={"x": 4, "y": 4})
    expect(notice).to_be_visible()
    page.keyboard.press("Escape")
    expect(notice).to_have_count(0, timeout=20_000)
    expect(share).to_be_focused()
    for closes in few(["#qx-title", "#qx-status [data-act=share]", "#qx-sharing .qx-close", "#qx-back"]):
        share.click()
        expect(notice).to_be_visible(timeout=20_000)
        page.locator(closes).click()
        expect(notice).to_have_count(0, timeout=20_000)
    settle(page)  # what Back brings closes it once more
    share.click()
    page.locator("#qx-sharing [data-act=page]").click()
    file = page.locator("#qx-sharing-page")
    expect(file).to_be_visible(timeout=20_000)
    with page.expect_download() as page_of_it:
        file.click()
    kept = Path(page_of_it.value.path()).read_text(encoding="utf-8")
    assert "default-src 'none'" in kept
    assert page.locator(f"{CARDS} p").first.inner_text() in kept
    expect(page.locator(".toast-body")).to_have_count(0)


@pytest.mark.campaign
def test_a_run_comes_back_as_it_was(ran: Page) -> None:
    shown = {panel: ran.locator(panel).inner_text() for panel in PANELS_OF_A_RUN}
    ran.reload()
    wait_ready(ran)
    expect(ran.locator(READ)).to_be_visible(timeout=60_000)
    assert {panel: ran.locator(panel).inner_text() for panel in shown} == shown
    expect(ran.locator(".toast-body")).to_have_count(0)


@pytest.mark.campaign
def test_who_walks_on_before_a_step_is_shown_gets_the_last_one_asked_for(ran: Page) -> None:
    held: list[Route] = []
    for steps in ("#qx-strip [data-part=looks] button", "#qx-story [data-act=look]"):
        ran.route("**/queue/join*", lambda route: held.append(route))
        for step in (0, 2):  # the third is shown while the first is on its way
            ran.locator(steps).nth(step).click()
        release(ran, held)
        settle(ran)
        expect(ran.locator("#qx-strip [data-part=what]")).to_contain_text("step 3")


@pytest.mark.campaign
def test_many_clicks_on_run_are_one_run(page: Page) -> None:
    held: list[Route] = []
    sent: list[object] = []

    def note(request: Request) -> None:
        if "/queue/join" in request.url:
            sent.append(request.post_data_json["fn_index"])

    page.route("**/queue/join*", lambda route: held.append(route))
    page.on("request", note)
    with page.expect_request("**/queue/join*"):
        page.locator("#qx-run").click()
    page.locator("#qx-run").evaluate("run => { for (let i = 0; i < 8; i++) run.click(); }")
    release(page, held)
    expect(page.locator(CARDS)).to_have_count(4, timeout=60_000)
    settle(page)
    page.remove_listener("request", note)
    assert sent.count(sent[0]) == 1


@pytest.mark.campaign
def test_what_is_asked_before_a_document_is_there_stays(tiny_app: RunningApp, open_page: OpenPage) -> None:
    page = open_page("about:blank")
    held: list[Route] = []
    page.route("**/queue/join*", lambda route: held.append(route))
    page.goto(tiny_app.url)
    expect(page.locator("#qx-header")).to_have_text("Opening a document…")
    page.locator("#qx-question textarea").fill("Where is Ruth?")
    release(page, held)
    wait_ready(page)
    expect(page.locator("#qx-question textarea")).to_have_value("Where is Ruth?")


@pytest.mark.campaign
def test_a_failed_question_says_why_and_what_helps_and_a_sample_brings_its_agent_back(shipped: Page) -> None:
    """Last: it opens other documents."""
    page = shipped
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
    expect(page.locator("#qx-answer .qx-judged")).to_be_visible(timeout=60_000)
    is_right = page.locator("#qx-story .qx-right").count() == 1
    assert why.inner_text().startswith("What it missed" if is_right else "Why it failed")
    expect(page.locator("#qx-strip [data-part=key]")).to_contain_text("missed")
    expect(page.locator("#qx-evidence .qx-missed")).to_have_count(1)
    expect(page.locator(f"{CARDS} .qx-quote")).to_have_count(4)
    for part in ("#qx-steps", "#qx-evidence"):
        assert "|" not in page.locator(part).inner_text(), "rules of a table are no words"
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
        beside = status["x"] >= is_set["x"] + is_set["width"]
        assert beside or status["y"] >= is_set["y"] + is_set["height"], (width, "one lies over the other")
        card = page.locator("#qx-story-card").bounding_box()
        for box in (card, *(end.bounding_box() for end in ends.all())):
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
    page.locator("#qx-change-button").click()
    page.locator("#qx-sample input").nth(place).click()
    page.locator("#qx-open-sample").click()
    expect(page.locator("#qx-change")).to_be_hidden(timeout=120_000)
    settle(page)


PASTED = " ".join(
    f"{name} travelled to the garden on day {i} ." for i, name in enumerate(["John", "Mary"] * 2)
)
OWN_QUESTION = "Where did Mary go on day 1?"


@pytest.fixture(scope="module")
def marked(shared: Page) -> Page:
    """With a text of one's own that was asked a question; for the last tests of this page."""
    page = cleared(shared)
    page.set_viewport_size({"width": 1000, "height": 500})
    open_pasted(page, PASTED, most_tokens=12)
    expect(page.locator("#qx-header")).to_contain_text("4 chunks")
    page.locator("#qx-question textarea").fill(OWN_QUESTION)
    set_number(page, "#qx-budget", 1)
    page.keyboard.press("Escape")
    run(page, n_steps=1)
    return page


def test_a_mark_is_the_support_of_the_run_in_view_and_of_the_next(marked: Page) -> None:
    [found] = chosen(marked)
    expect(marked.locator("#qx-evidence")).not_to_contain_text("support")
    belongs = marked.locator(CARDS).get_by_role("button", name="belongs to the answer")
    belongs.first.click()
    expect(belongs.first).to_have_attribute("aria-pressed", "true", timeout=20_000)
    expect(marked.locator(f"{CARDS} .qx-hit")).to_have_text("support")
    expect(marked.locator("#qx-evidence")).to_contain_text("1 of 1 support chunk found")
    key = marked.locator("#qx-strip [data-part=key]")
    expect(key).to_contain_text("support")
    expect(key).to_contain_text("marked: belongs")
    marked.locator("#qx-reset").click()
    expect(marked.locator(CARDS)).to_have_count(0, timeout=20_000)
    expect(marked.locator("#qx-own")).to_be_visible()
    run(marked, n_steps=1)
    assert chosen(marked) == [found]
    expect(marked.locator("#qx-evidence")).to_contain_text("1 of 1 support chunk found")

    marked.locator("#qx-own").get_by_role("button", name="Questions of my own · 1").click()
    expect(marked.get_by_role("button", name="Import JSONL")).to_be_visible(timeout=20_000)
    marked.locator("#qx-own-list").get_by_role("button", name="Edit answer").first.click()
    answer = marked.locator("#qx-own-answer textarea")
    expect(answer).to_be_focused(timeout=20_000)
    expect(answer).to_be_in_viewport()
    answer.fill("the garden")
    marked.locator("#qx-own-save").click()
    expect(marked.locator("#qx-answer .qx-judged")).to_be_visible(timeout=20_000)
    marked.locator("#qx-own-list").get_by_role("button", name="Ask").first.click()
    expect(marked.locator("#qx-run")).to_be_focused(timeout=20_000)
    expect(marked.locator("#qx-run")).to_be_in_viewport()
    assert grave_faults(marked, "#qx-own-list") == []


@pytest.mark.campaign
def test_what_lies_beside_a_choice_is_found_by_a_larger_chunk_with_a_click(marked: Page) -> None:
    [found] = chosen(marked)
    beside = found ^ 1
    marked.locator("#qx-find textarea, #qx-find input").first.fill(f"#{beside}")
    marked.locator("#qx-find-next").click()
    marked.locator("#qx-reading").get_by_role("button", name="This chunk belongs").click()
    why = marked.locator("#qx-diagnosis")
    expect(why).to_contain_text(re.compile("It lies one chunk (past|before) chunk"), timeout=30_000)
    expect(marked.locator("#qx-story .qx-miss")).to_have_count(1)
    cut = why.get_by_role("button", name=re.compile("Cut at (32|64) tokens"))
    expect(cut).to_contain_text("found 1 → 2 of 2", timeout=30_000)
    cut.click()
    expect(marked.locator("#qx-header")).to_contain_text(
        re.compile("· [12] chunks? · sentences, (32|64) tokens"), timeout=30_000
    )
    expect(marked.locator("#qx-question textarea")).to_have_value(OWN_QUESTION)
    expect(marked.locator("#qx-evidence")).to_contain_text("1 of 1 support chunk found", timeout=30_000)
    expect(why.locator(".qx-diagnosis")).to_have_count(0)
    expect(marked.locator("#qx-budget input[type=number]")).to_have_value("1")
