"""The exported pages of a run, of a SPARC run and of a comparison in a browser, from files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from core.base.config import EpisodeConfig
from core.base.events import StepScores
from core.base.types import ChunkTable, Document
from core.methods.sparc.trace import fold_sparc
from core.runs.again.records import log_sparc_end
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog
from tests.app.axe import grave_faults, grave_faults_in_both
from tests.app.sparc_story import story
from tests.core.runs.log.recording import chunk_table, make_record, step_taken, stopped
from tests.settled import new_context

HOSTILE = """</script><script>document.title = 'taken'</script><img src=http://127.0.0.1:9/x onerror="document.title='taken'">"""
N = 60


def hostile_document() -> tuple[Document, ChunkTable]:
    """N chunks, each of them hostile, and so is its title."""
    text = " ".join(f"{HOSTILE} {i:04}" for i in range(N))
    size = len(HOSTILE) + 6
    document = Document(HOSTILE, text, "text")
    table = replace(chunk_table(N), start=np.arange(N) * size, end=np.arange(N) * size + size - 1)
    return document, table


def take(log: ExperimentLog, run_id: str, step: int, chunk_id: int, best: int) -> None:
    """A choice among scores that rise along the document, but for the best one."""
    scores = np.linspace(0.1, 0.8, N, dtype=np.float32)
    scores[best] = 0.9
    taken = step_taken(run_id, step, text=HOSTILE)
    log.record(run_id, replace(taken, chunk_id=chunk_id, scores=StepScores(scores, None)))


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("offline")
    document, table = hostile_document()
    config = EpisodeConfig(step_budget=4, temperature=0.5, stop_threshold=0.4)
    record = make_record(
        query=HOSTILE,
        n_chunks=N,
        document_hashes=(document.sha256,),
        config=config.to_json(),
        label={"support": [7], "answer": HOSTILE},
    )
    with ExperimentLog.open(folder / "log.duckdb") as log:
        log.start(record, [document], [table])
        for step, chunk_id in enumerate((5, 30, 59), start=1):
            take(log, record.run_id, step, chunk_id, chunk_id)
        last = StepScores(np.full(N, 0.2, np.float32), None)
        log.record(record.run_id, replace(stopped(record.run_id, 3), scores=last))
        log.finish(record.run_id, "complete")
        file = export_runs(log, [record.run_id], "html", folder / "run.html")
    yield from opened(browser, file)


@pytest.fixture(scope="module")
def sparc_page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("offline-sparc")
    document, table = hostile_document()
    label = {"support": [17, 31], "answer": "Under the Mill Stone"}
    record = make_record(
        method="sparc", query=HOSTILE, n_chunks=N, document_hashes=(document.sha256,), label=label
    )
    with ExperimentLog.open(folder / "log.duckdb") as log:
        log.start(record, [document], [table])
        trace = fold_sparc(story(question=HOSTILE, n_chunks=N))
        log_sparc_end(log, record.run_id, trace, None, "complete")
        file = export_runs(log, [record.run_id], "html", folder / "run.html")
    yield from opened(browser, file)


@pytest.fixture(scope="module")
def comparison_page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """An agent that looked again for each choice, and top-k, which looked once and shares its second."""
    folder = tmp_path_factory.mktemp("offline-comparison")
    document, table = hostile_document()
    label = {"support": [30, 44], "answer": HOSTILE}
    config = EpisodeConfig(step_budget=3).to_json()
    chosen = {"qrag": (5, 30, 59), "topk": (30, 12, 13)}
    records = {
        method: make_record(
            method=method,
            query=HOSTILE,
            n_chunks=N,
            document_hashes=(document.sha256,),
            label=label,
            config=config,
        )
        for method in chosen
    }
    with ExperimentLog.open(folder / "log.duckdb") as log:
        for method, record in records.items():
            log.start(record, [document], [table])
            for step, chunk_id in enumerate(chosen[method], start=1):
                take(log, record.run_id, step, chunk_id, chosen[method][0] if method == "topk" else chunk_id)
            log.finish(record.run_id, "complete")
        ids = [record.run_id for record in records.values()]
        file = export_runs(log, ids, "html", folder / "comparison.html")
    yield from opened(browser, file)


def opened(browser: Browser, file: Path) -> Iterator[Page]:
    """A page from a file, which keeps what it asks for and says in `said`."""
    context = new_context(browser, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.said = []  # type: ignore[attr-defined]
    page.on("request", lambda request: page.said.append(request.url))  # type: ignore[attr-defined]
    page.on("console", lambda message: page.said.append(message.text))  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.said.append(str(error)))  # type: ignore[attr-defined]
    page.goto(file.as_uri())
    yield page
    context.close()


def test_it_steps_with_keys_buttons_and_the_story(page: Page) -> None:
    expect(page.locator("#qx-strip [data-state=shown]")).to_be_visible()
    at, title = page.locator("#qx-at"), page.locator("#qx-strip [data-part=what]")
    expect(at).to_have_text("step 3 of 3")
    expect(page.locator("#qx-steps .qx-step.qx-on .qx-badge")).to_have_text("3")
    page.keyboard.press("[")
    expect(at).to_have_text("step 2 of 3")
    expect(title).to_contain_text("step 2: value of adding each chunk now")
    expect(page.locator("#qx-steps .qx-step.qx-on .qx-badge")).to_have_text("2")
    expect(page.locator("#qx-evidence .qx-marked")).to_have_attribute("data-arg", "30")
    page.locator("#qx-before").click()
    expect(at).to_have_text("step 1 of 3")
    expect(page.locator("#qx-before")).to_be_disabled()
    page.locator("#qx-story [data-act=look][data-arg='4']").click()
    expect(at).to_have_text("where it stopped")
    expect(page.locator("#qx-strip [data-part=looks] [aria-pressed=true]")).to_have_text("stop")


def test_it_can_be_printed(page: Page) -> None:
    """All of the evidence, pictures in their shape, and numbers in badges that hold two digits."""
    page.emulate_media(media="print")
    expect(page.locator("#qx-evidence .qx-evidence")).to_have_css("max-height", "none")
    lens = page.locator("#qx-strip [data-part=lens]")
    height = "canvas.getBoundingClientRect().height"
    was, now = lens.evaluate(f"canvas => [{height}, (canvas.width *= 2, {height})]")
    assert now == pytest.approx(was / 2, abs=1)
    expect(page.locator("#qx-steps .qx-badge").first).to_have_css("padding", "0px")
    page.emulate_media(media="screen")


def test_its_numbers_are_those_of_the_log(page: Page) -> None:
    page.locator("#qx-steps .qx-badge").nth(1).click()
    page.locator("#qx-strip [data-part=table-toggle]").click()
    rows = page.locator("#qx-strip [data-part=table-rows] tr")
    first, second = rows.nth(0).locator("td"), rows.nth(1).locator("td")
    expect(first.nth(0)).to_have_text("30")
    expect(first.nth(1)).to_have_text("0.90")
    expect(first.nth(2)).to_have_text("1")
    scores = np.linspace(0.1, 0.8, N)
    scores[30] = 0.9
    weights = np.exp(np.delete(scores, 5) / 0.5)  # chosen before
    chance = np.exp(0.9 / 0.5) / weights.sum()
    expect(first.nth(3)).to_have_text(f"{chance:.3f}" if chance < 0.1 else f"{chance:.2f}")
    expect(second.nth(0)).to_have_text("59")
    expect(page.locator("#qx-strip [data-part=table-range]")).to_have_text("1 – 20 of 60")
    page.get_by_role("button", name="change").click()
    expect(rows.nth(0).locator("td").nth(0)).to_have_text("5")


def test_a_chunk_is_read_in_its_place_and_its_text_stays_text(page: Page) -> None:
    assert page.locator("#qx-reading-card").is_hidden()
    page.locator("#qx-strip [data-part=table-rows] button").first.click()
    expect(page.locator("#qx-reading .qx-marked")).to_contain_text("</script><script>")
    expect(page.locator("#qx-reading .qx-chunk")).to_have_count(12)
    page.locator("#qx-reading .qx-chunk").last.click()
    expect(page.locator("#qx-reading .qx-crumb")).to_contain_text("chunk 11 of 60")
    stayed_text(page)


def test_a_sparc_run_shows_its_rounds_and_opens_chunks(sparc_page: Page) -> None:
    expect(sparc_page.locator("#qx-story li")).to_have_count(6)
    expect(sparc_page.locator("#qx-story .qx-right")).to_contain_text("under the mill stone")
    expect(sparc_page.locator(".qx-round")).to_have_count(2)
    expect(sparc_page.locator(".qx-branch")).to_have_count(4)
    expect(sparc_page.locator("#qx-sparc-final li")).to_have_count(3)
    row = sparc_page.locator(".qx-chunk-row[data-arg='30']")
    row.hover()
    expect(sparc_page.locator(".qx-stem.qx-lit")).to_have_count(1)
    row.click()
    expect(sparc_page.locator("#qx-reading .qx-marked .qx-pin")).to_have_text("2.1")
    expect(sparc_page.locator("#qx-reading .qx-marked")).to_contain_text("</script><script>")
    expect(sparc_page.locator("#qx-reading .qx-crumb")).to_contain_text("chunk 30 of 60")
    sparc_page.locator("#qx-story [data-act=goto]").first.click()
    expect(sparc_page.locator("#qx-round-1")).to_be_in_viewport()
    stayed_text(sparc_page)


def test_a_comparison_lights_up_walks_its_columns_and_is_read(comparison_page: Page) -> None:
    page = comparison_page
    column, at = page.locator(".qx-column"), page.locator("#qx-at")
    expect(column).to_have_count(2)
    expect(column.nth(1).locator(".qx-picture p")).to_have_text("inner product 0.00 to 0.90")
    column.nth(0).locator("li").nth(1).hover()
    expect(column.nth(1).locator("li.qx-lit[data-same='30']")).to_have_count(1)
    expect(page.locator(".qx-lit[data-same='59']")).to_have_count(0)
    column.nth(1).locator("li .qx-link").nth(1).focus()
    expect(page.locator("#qx-compare-common .qx-lit")).to_have_text(["30", "12"])

    expect(at).to_have_text("Q-RAG base: step 3 of 3")
    page.keyboard.press("[")
    expect(at).to_have_text("Q-RAG base: step 2 of 3")
    expect(page.locator(".qx-column li.qx-on")).to_have_attribute("data-same", "30")
    page.locator("[data-act=column]").nth(1).click()
    expect(at).to_have_text("top-k: step 3 of 3")
    expect(page.locator("[data-act=column][aria-pressed=true]")).to_have_text("top-k")
    page.locator("#qx-before").click()
    expect(column.nth(1).locator("li.qx-on")).to_have_attribute("data-same", "12")
    expect(column.nth(0).locator("li.qx-on")).to_have_count(0)
    expect(page.locator("#qx-strip [data-part=title]")).to_have_text("inner product along the document")
    page.locator("#qx-strip [data-part=table-toggle]").click()
    cells = page.locator("#qx-strip [data-part=table-rows] tr").nth(0).locator("td")
    expect(cells.nth(0)).to_have_text("30")
    expect(cells.nth(1)).to_have_text("0.90")

    assert page.locator("#qx-reading-card").is_hidden()
    column.nth(0).locator(".qx-pins .qx-pin").nth(2).click()
    expect(at).to_have_text("Q-RAG base: step 3 of 3")
    expect(page.locator("#qx-reading .qx-marked")).to_contain_text("</script><script>")
    expect(page.locator("#qx-reading .qx-crumb")).to_contain_text("Found by Q-RAG base.")
    column.nth(1).locator("li .qx-link").nth(0).click()
    expect(at).to_have_text("top-k: step 1 of 3")
    expect(page.locator("#qx-reading .qx-marked .qx-pin")).to_have_text("2×")
    expect(page.locator(".qx-column [aria-pressed=true]")).to_have_text(["chunk 30", "chunk 30"])
    expect(page.locator("#qx-reading .qx-marked")).to_be_in_viewport()
    stayed_text(page)
    assert grave_faults(page) == []
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#qx-reading-card")).to_be_hidden()


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["page", "sparc_page", "comparison_page"])
def test_axe_finds_nothing_grave(kind: str, request: pytest.FixtureRequest) -> None:
    assert grave_faults_in_both(request.getfixturevalue(kind)) == []


def stayed_text(page: Page) -> None:
    assert page.title() != "taken"
    assert page.locator("img").count() == 0
    assert [words for words in page.said if not words.startswith("file:")] == []  # type: ignore[attr-defined]
