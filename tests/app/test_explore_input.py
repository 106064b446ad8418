"""Bad and hostile input in the browser."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.app.conftest import RunningApp, choose_files, wait_ready
from tests.app.explore_page import CARDS, open_pasted, paste, press_run
from tests.conftest import CAMPAIGN, COUNTS, OpenPage, RecordAttack
from tests.settled import settle

REMOVE = "#qx-files button[aria-label*='lear'], #qx-files button[aria-label*='emove']"
IN_PANEL = "#qx-change-notice"
PAYLOADS = (
    "<img src=x onerror=\"window.hacked('img')\">",
    "${window.hacked('template')}",
    "{{window.hacked('handlebars')}}",
    "`${window.hacked('backtick')}`",
    "<script>window.hacked('script')</script>",
    "[link](javascript:window.hacked('link'))",
    "</textarea></div><svg onload=window.hacked('svg')>",
)


ENDS = (
    "",
    '">',
    "'>",
    "`}",
    "}}",
    "]]>",
    "--></style>",
    "</textarea>",
    "</script>",
    "</title></svg>",
    "\\u003c",
    "&lt;",
)
BEGINS = (
    "<img src=x onerror=",
    "<svg onload=",
    "<details open ontoggle=",
    "<body onload=",
    "<iframe srcdoc=",
    "<a href=javascript:",
    "<input autofocus onfocus=",
    "<video><source onerror=",
    "<math><mtext><img src=x onerror=",
    "<script>",
    "${",
    "{{",
    "#{",
    "<%=",
    "`${",
    "[x](javascript:",
    "![x](data:text/html,",
)
QUOTES = (("", ""), ('"', '"'), ("'", "'"), ("`", "`"))


def payloads(n: int) -> list[str]:
    """PAYLOADS and others drawn from the parts that such are made of, `n` in all."""
    rng = random.Random(18)
    drawn: dict[str, None] = dict.fromkeys(PAYLOADS)
    while len(drawn) < n:
        begin, (before, behind) = rng.choice(BEGINS), rng.choice(QUOTES)
        begin = (
            "".join(rng.choice((letter, letter.upper())) for letter in begin) if rng.random() < 0.3 else begin
        )
        end = rng.choice((" ", ">", "}", "}}", ")", "//", "</script>"))
        drawn[f"{rng.choice(ENDS)}{begin}{before}window.hacked({len(drawn)}){behind}{end}"] = None
    return list(drawn)


def hostile_files(folder: Path, payloads: list[str]) -> list[Path]:
    """Payloads in text, headings, title, JSON-LD, tables and file names."""
    lines = "\n\n".join(
        f"## Heading {payload}\n\nThe password of the harbour is written here. {payload}\n\n| a | {payload}"
        f" |\n|---|---|\n| {payload} | b |"
        for payload in payloads
    )
    markdown = folder / "note ${window.hacked(1)} {{x}} `y`.md"
    markdown.write_text(f"# {PAYLOADS[0]}\n\n{lines}\n")
    json_ld = json.dumps({"@type": "Article", "name": " ".join(payloads)}).replace("</", "<\\/")
    escaped = "".join(
        f"<h2>{payload.replace('<', '&lt;')}</h2><p>The password of the harbour."
        f" {payload.replace('<', '&lt;')}</p>"
        for payload in payloads
    )
    page = folder / "page <img src=x onerror=window.hacked(2)>.html"
    page.write_text(
        f"<title>{PAYLOADS[1]} {PAYLOADS[2]} &lt;img src=x onerror=window.hacked(3)&gt;</title><script"
        f" type='application/ld+json'>{json_ld}</script>{escaped}"
    )
    return [markdown, page]


@pytest.fixture(scope="module")
def calls() -> list[object]:
    """What ran out of a document's text."""
    return []


@pytest.fixture(scope="module")
def page(tiny_app: RunningApp, open_for_file: OpenPage, calls: list[object]) -> Page:
    """Opened at a run that there is not."""
    page = open_for_file("about:blank", width=1000, height=500)
    page.expose_function("hacked", lambda *arguments: calls.append(arguments))
    page.on("dialog", lambda dialog: (calls.append(dialog.message), dialog.dismiss()))
    page.goto(f"{tiny_app.url}/?run={'0' * 32}")
    wait_ready(page)
    return page


def give(page: Page, path: Path) -> None:
    page.get_by_text("Change document").click()
    page.get_by_role("tab", name="Upload").click()
    if page.locator(REMOVE).count():
        page.locator(REMOVE).first.click()
    choose_files(page, "#qx-files", path)
    page.locator("#qx-open-files").click()


def title_of(page: Page) -> str:
    return page.locator("#qx-header .qx-doc-title").inner_text()


def _expect_sentence(page: Page, words: str, place: str = "#qx-notice") -> None:
    notice = page.locator(f"{place} .qx-error")
    expect(notice).to_be_visible(timeout=30_000)
    expect(notice).to_contain_text(words)
    assert "Traceback" not in notice.inner_text()


def test_an_unknown_run_in_the_address_opens_a_sample(page: Page) -> None:
    expect(page.locator("#qx-notice")).to_contain_text("there is no run", timeout=20_000)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("binary.txt", bytes(range(256)) * 40, "binary"),
        pytest.param(
            "nothing.html",
            b"<html><body><script>1</script><nav>menu</nav></body></html>",
            "text",
            marks=pytest.mark.campaign,
        ),
    ],
)
def test_a_bad_file_is_one_sentence_and_what_was_open_stays(
    page: Page, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    title = title_of(page)
    path = tmp_path / name
    path.write_bytes(content)
    give(page, path)
    _expect_sentence(page, sentence, IN_PANEL)
    page.locator("#qx-keep").click()
    assert title_of(page) == title


@pytest.mark.campaign
def test_pasted_text_is_asked_and_more_is_added_and_found(page: Page) -> None:
    open_pasted(
        page, "The lamp stands in the attic. Anna carried the lamp there on Monday. On Tuesday it rained."
    )
    page.locator("#qx-question textarea").fill("Where is the lamp?")
    press_run(page)
    expect(page.locator("#qx-steps .qx-stop")).to_be_visible(timeout=30_000)
    paste(page, "# Birds\n\nThe **heron** stood on the\nweir all day.\n", button="#qx-add-pasted")
    expect(page.locator("#qx-header .qx-doc-title")).to_contain_text("Pasted text and 1 more", timeout=60_000)
    expect(page.locator("#qx-run")).to_be_enabled(timeout=30_000)
    page.locator("#qx-find textarea, #qx-find input").first.fill("heron")
    page.locator("#qx-find-next").click()
    expect(page.locator("#qx-reading .qx-marked strong")).to_have_text(["Birds", "heron"], timeout=20_000)
    expect(page.locator("#qx-reading")).not_to_contain_text("**")


def test_document_text_never_becomes_markup_template_or_script(
    page: Page, calls: list[object], tmp_path: Path, record_attack: RecordAttack
) -> None:
    files = hostile_files(tmp_path, payloads(COUNTS.payloads))
    for path in files:
        before = title_of(page)
        give(page, path)
        expect(page.locator("#qx-header .qx-doc-title")).not_to_have_text(
            before, timeout=180_000
        )  # a campaign's has some thousand chunks
        page.locator("#qx-question textarea").fill(
            "What is the password of the harbour? " + " ".join(PAYLOADS)
        )
        press_run(page)
        expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=60_000)
        for details in page.locator("#qx-header details summary").all():
            details.click()
        page.locator(f"{CARDS} .qx-link").first.click()
        expect(page.locator("#qx-reading .qx-marked").first).to_be_visible()
        canvas = page.locator("#qx-strip canvas[tabindex='0']").first
        canvas.hover()
        page.get_by_role("button", name="Show as table").click()
        settle(page)
        if CAMPAIGN:  # the same out of the log
            page.reload()
            wait_ready(page)
            expect(page.locator(CARDS).first).to_be_visible(timeout=30_000)
        assert (
            page.locator(
                "#qx-reading img, #qx-steps img, #qx-header img, #qx-evidence script, .qx-tree"
                " a[href^='javascript']"
            ).count()
            == 0
        )
    page.evaluate("window.hacked('the hook itself works')")
    settle(page)
    assert calls == [("the hook itself works",)]
    record_attack(
        "payloads of markup, template and script, in documents shown in Chromium",
        COUNTS.payloads,
        f"none ran, in {len(files)} kinds of documents",
    )


@pytest.mark.campaign
def test_cancel_keeps_what_was_open(page: Page) -> None:
    if page.locator("#qx-reset").is_enabled():
        page.locator("#qx-reset").click()
    title = title_of(page)
    page.get_by_text("Change document").click()
    page.get_by_role("tab", name="Generate").click()
    page.locator("#qx-length input").click()
    page.get_by_role("option", name="10,000,000 tokens").click()  # cutting it takes longer than what follows
    page.locator("#qx-open-generated").click()
    expect(page.locator("#qx-opening")).to_contain_text("Cutting into chunks", timeout=120_000)
    expect(page.locator("#qx-run")).to_be_disabled()
    page.locator("#qx-question textarea").press("Enter")  # must not run over documents that are about to go
    page.wait_for_timeout(500)
    expect(page.locator(CARDS)).to_have_count(0)
    page.locator("#qx-cancel").click()
    expect(page.locator("#qx-notice")).to_contain_text("Cancelled", timeout=30_000)
    expect(page.locator("#qx-opening progress")).to_have_count(0, timeout=30_000)
    assert title_of(page) == title
    settle(page)
    expect(page.locator(CARDS)).to_have_count(0)
