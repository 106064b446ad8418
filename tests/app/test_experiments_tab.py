"""The log on the page: real runs of a tiny agent."""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Page, expect

from app.pages.experiments import view
from app.pages.experiments.tab import ExperimentsPlace, ExperimentsTab, read_filters
from app.services.experiments import MAX_IMPORT_BYTES, Experiments, RunFilters
from app.services.explorer import Explorer
from app.services.in_view import Labelled
from app.services.opener import Opener
from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, LogError, RunNotFound
from core.base.progress import finish
from core.runs.log import MalformedRuns, RunPage
from core.runs.log.queries import SORTS
from core.runs.log.records import RunCurve, RunRow
from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import chosen, set_number
from tests.app.opened import ask, pasted, with_label
from tests.conftest import OpenPage

QUERY = "where was the apple before the hallway ?"
A, B = "a" * 64, "b" * 64


@pytest.fixture
def visited(tiny: Path, tmp_path: Path) -> Iterator[Experiments]:
    settings = Settings(checkpoint=str(tiny), log=tmp_path / "public.duckdb", public=True)
    with closing(Services(settings)) as made:
        yield Experiments(made)


@pytest.fixture
def experiments(services: Services) -> Experiments:
    return Experiments(services)


@pytest.fixture
def tab(services: Services) -> ExperimentsTab:
    with gr.Blocks():
        return ExperimentsTab(services, gr.State(Session()))


def log_run(
    experiments: Experiments,
    query: str = QUERY,
    owner: str | None = None,
    steps: int | None = None,
    support: tuple[int, ...] = (),
) -> str:
    """A run over twenty short chunks; with `steps`, one that goes on."""
    services = experiments.services
    text = "\n\n".join(
        f"mary travelled to the {place} on day {i} ."
        for i, place in enumerate(["garden", "office", "kitchen", "hallway"] * 5)
    )
    explorer, session = Explorer(services), pasted(services, text, owner=owner)
    if support:
        label = Labelled(query, "garden", 2, support)
        labelled = with_label(services, explorer.documents(session), label)
        session = Session(corpus=labelled.token, owner=owner)
    _, run = ask(explorer, session, query, EpisodeConfig(step_budget=3), steps)
    services.log.flush()
    return run.run_id


def test_a_page_follows_its_filters_and_belongs_to_its_owner(visited: Experiments) -> None:
    mine, other = log_run(visited, owner=A), log_run(visited, "who ?", owner=A)
    theirs = log_run(visited, owner=B)
    assert [row.run_id for row in visited.page(RunFilters(), 0, 20, A).rows] == [other, mine]
    assert [row.run_id for row in visited.page(RunFilters(), 1, 1, A).rows] == [mine]
    filters = RunFilters(text="APPLE", method="qrag", checkpoint="tiny", status="complete")
    assert visited.page(filters, 0, 20, A).total == 1
    assert visited.page(RunFilters(since=datetime.now(UTC) + timedelta(hours=1)), 0, 20, A).total == 0
    assert visited.all_ids(RunFilters(text="who"), A) == [other]
    assert visited.facets(A).methods == ("qrag",)
    with pytest.raises(BadRequest, match="no run that has ended"):
        visited.all_ids(RunFilters(text="nothing like it"), A)
    assert [row.run_id for row, _ in visited.charted([theirs, other, mine], A).curves] == [other, mine]
    for sort in SORTS:
        pages = [visited.page(RunFilters(), 0, 20, A, sort, descends).rows for descends in (True, False)]
        listed = [[row.run_id for row in rows] for rows in pages]
        assert {*listed[0]} == {*listed[1]} == {other, mine}, sort
    assert listed[0] == listed[1][::-1] == sorted((mine, other), reverse=True), "the last sort is by id"
    for forbidden in (
        visited.run,
        visited.share,
        visited.delete,
        lambda run_id, owner: visited.replay(run_id, owner, lambda _: None),
    ):
        with pytest.raises(RunNotFound):
            forbidden(theirs, A)


def test_charts_count_outcomes(experiments: Experiments) -> None:
    plain = log_run(experiments)
    chosen = experiments.run(plain, None).trace.chosen
    missed = tuple(i for i in range(20) if i not in chosen)[:1]
    hit, miss = log_run(experiments, support=chosen[:2]), log_run(experiments, support=missed)
    charted = experiments.charted([hit, miss, plain], None)
    assert charted.counts == {"Q-RAG tiny": {"hit": 1, "miss": 1, "not labelled": 1}}
    assert [row.run_id for row, _ in charted.curves] == [hit, miss, plain]
    assert len(charted.curves[0][1].chosen) == 3
    assert [row.run_id for row in experiments.page(RunFilters(hit=True), 0, 20, None).rows] == [hit]


def test_exports_are_one_file_and_come_in_elsewhere(
    experiments: Experiments, visited: Experiments, tmp_path: Path
) -> None:
    first, second = log_run(experiments), log_run(experiments, "who ?")
    folders = iter(tmp_path / f"export-{i}" for i in range(9))

    def export(form: str, run_ids: list[str], with_text: bool = True) -> Path:
        folder = next(folders)
        folder.mkdir()
        return experiments.export(run_ids, form, with_text, None, folder)  # type: ignore[arg-type]

    for form, names in (
        ("csv", {"runs.csv", "steps.csv"}),
        ("parquet", {"runs.parquet", "steps.parquet"}),
        ("html", {f"run-{first}.html", f"run-{second}.html"}),
    ):
        with zipfile.ZipFile(export(form, [first, second])) as archive:
            assert set(archive.namelist()) - {""} == names
    page = export("html", [first], with_text=False)
    assert page.name == f"run-{first[:8]}.html"
    assert "travelled" not in page.read_text()
    assert "travelled" not in export("json", [first], with_text=False).read_text()
    again = log_run(experiments)
    together = export("html", [again, first])
    assert together.name == f"comparison-{again[:8]}.html"
    assert together.read_text().count('<section class="qx-column"') == 2

    file = export("json", [first, second])
    assert visited.take_in(file, A) == 2
    assert visited.take_in(file, A) == 0
    assert visited.page(RunFilters(), 0, 20, B).total == 0
    assert visited.run(first, A).trace.chosen == experiments.run(first, None).trace.chosen
    assert visited.replay(first, A, lambda _: None).report.holds
    finished_at = visited.run(first, A).finished_at
    assert finished_at is not None
    assert datetime.now(UTC) - finished_at < timedelta(minutes=5), "a visitor's import is kept from now"


def test_an_import_without_texts_does_not_show_those_of_another(visited: Experiments, tmp_path: Path) -> None:
    theirs = log_run(visited, owner=B)
    file = visited.export([theirs], "json", False, B, tmp_path)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["record"]["run_id"] = "f" * 32
    del lines[0]["documents"][0]["withheld"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert visited.take_in(file, A) == 1
    log = visited.services.own_log
    assert log.documents(theirs, B)[0].text
    assert log.documents("f" * 32, A)[0].text is None
    with pytest.raises(LogError, match="chunk borders"):
        visited.replay("f" * 32, A, lambda _: None)
    again = visited.export(["f" * 32], "json", True, A, tmp_path / "again")
    assert "travelled" not in again.read_text()


def test_what_can_not_come_in_says_why_without_a_path(
    visited: Experiments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    with pytest.raises(MalformedRuns, match=r"^bad\.jsonl, line 1"):
        visited.take_in(bad, A)
    monkeypatch.setattr("app.services.experiments.MAX_IMPORT_BYTES", 2)
    with pytest.raises(BadRequest, match="3 bytes, more than 2"):
        visited.take_in(bad, A)
    assert MAX_IMPORT_BYTES <= 64 * 2**20


def test_a_deleted_run_is_gone_everywhere(experiments: Experiments, services: Services) -> None:
    run_id, going_on = log_run(experiments), log_run(experiments, steps=1)
    with pytest.raises(BadRequest, match="still going on"):
        experiments.delete(going_on, None)
    experiments.delete(run_id, None)
    with pytest.raises(RunNotFound):
        experiments.run(run_id, None)
    with pytest.raises(RunNotFound):
        finish(services.attach(run_id))
    assert [row.run_id for row in experiments.page(RunFilters(), 0, 20, None).rows] == [going_on]


def test_replays_and_snippets(experiments: Experiments, visited: Experiments, tiny: Path) -> None:
    run_id = log_run(experiments)
    told = json.dumps(view.replayed(experiments.replay(run_id, None, lambda _: None)))
    assert "It came out the same: same choices; largest |dQ| 0" in told
    ways = experiments.reproduce(experiments.run(run_id, None), "http://127.0.0.1:7860")
    command, python, http = ways.values()
    log = str(experiments.services.log_path)
    again = ["runs", "replay", run_id, "--log", log, "--checkpoint", str(tiny)]
    assert shlex.split(command)[3:] == again
    assert "EpisodeConfig(step_budget=3)" in python
    assert "http://127.0.0.1:7860" in http
    theirs = visited.run(log_run(visited, owner=A), A)
    for snippet in visited.reproduce(theirs, "https://example.org").values():
        assert str(visited.services.log_path.parent) not in snippet, (
            "where files of the server lie is nobody's business"
        )


def click(act: str, arg: str) -> Any:
    return SimpleNamespace(_data={"act": act, "arg": arg})


def test_a_file_of_other_choices_is_not_on_offer(tab: ExperimentsTab, experiments: Experiments) -> None:
    first, other, request = log_run(experiments), log_run(experiments, "who ?"), SimpleNamespace(headers={})
    looking, deleting = ExperimentsPlace(opened=first), ExperimentsPlace(opened=other, asking="delete")
    clicks = [(looking, "open", other), (looking, "close", ""), (looking, "toggle", other)]
    updates = [
        tab._on_click(Session(), place, click(act, arg), request)  # type: ignore[arg-type]
        for place, act, arg in [*clicks, (deleting, "delete-now", other)]
    ]
    updates.append(tab._on_filters(Session(), looking, "lamp", "", "", "", "", "any", "", ""))
    for update in updates:
        assert update[tab.download].visible is False
        assert update[tab.export_notice] == []


def test_what_is_filtered_by_stays_a_choice_when_no_run_has_it(tab: ExperimentsTab) -> None:
    looking = ExperimentsPlace(filters=RunFilters(method="bm25", checkpoint="gone"))
    update = tab._shown(Session(), looking)
    assert update[tab.method].choices == [("any", ""), ("BM25", "bm25")]
    assert update[tab.agent].choices == [("any", ""), ("gone", "gone")]


def test_files_of_both_kinds_come_in_together_and_a_broken_one_takes_none_along(
    tab: ExperimentsTab, experiments: Experiments, tmp_path: Path
) -> None:
    run_id = log_run(experiments)
    exported = experiments.export([run_id], "json", True, None, tmp_path)
    experiments.delete(run_id, None)
    documents = finish(
        Opener(Explorer(experiments.services), Session(), "tiny", "sentences", 12).pasted("a . b")
    )
    (tmp_path / "ours.jsonl").write_text(json.dumps({"query": "who ?", "retrieved": [0]}))
    (tmp_path / "broken.jsonl").write_bytes(exported.read_bytes()[:2_000])
    paths = [str(tmp_path / "broken.jsonl"), str(exported), str(tmp_path / "ours.jsonl")]
    *_, update = tab._import(documents, ExperimentsPlace(), paths)
    told = json.dumps(update[tab.import_notice])
    assert "1 run came in. The passage that was returned is in these documents." in told
    assert "1 new run came in." in told
    assert "broken.jsonl, line 2" in told
    assert json.dumps(update[tab.list]).count('"toggle"') == 2


def test_a_replay_says_of_which_run_it_is(tab: ExperimentsTab, experiments: Experiments) -> None:
    run_id = log_run(experiments)
    updates = list(tab._replay(Session(), ExperimentsPlace(opened=run_id)))
    said = [json.dumps(update[tab.replayed]) for update in updates if update.get(tab.replayed)]
    assert len(said) > 1
    assert all(f"Replay of {run_id[:8]}: {QUERY}" in words for words in said)
    assert "It came out the same" in said[-1]
    with pytest.raises(RunNotFound):
        next(tab._replay(Session(), ExperimentsPlace(opened="f" * 32)))


def test_a_failed_replay_says_of_which_run_it_is(
    tab: ExperimentsTab, experiments: Experiments, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise BadRequest("the agent is gone")

    run_id = log_run(experiments)
    monkeypatch.setattr(Experiments, "replay", fails)
    *_, last = tab._replay(Session(), ExperimentsPlace(opened=run_id))
    assert f"run {run_id[:8]}: the agent is gone" in json.dumps(last[tab.run_notice])


def test_one_support_chunk_is_one_and_a_question_has_its_direction(experiments: Experiments) -> None:
    run = experiments.run(log_run(experiments, "מי ?", support=(3,)), None)
    assert re.search(r"[01] of 1 support chunk found\.", json.dumps(view.run_steps(run)))
    row, titles, *_ = view.run_head(run, "")
    assert ["h3", {"dir": "auto"}, ["מי ?"]] in row[2]
    assert titles[1]["dir"] == "auto"


def test_sql_is_for_an_app_of_ones_own(experiments: Experiments, visited: Experiments) -> None:
    log_run(experiments)
    result = experiments.query("SELECT query, n_chunks FROM runs")
    assert result.rows == ((QUERY, "20"),)
    assert QUERY in json.dumps(view.sql_result(result, 0))
    with pytest.raises(BadRequest, match="everybody's runs"):
        visited.query("SELECT 1")


def test_while_another_program_owns_the_log(services: Services) -> None:
    with (
        closing(Services(services.settings)) as second,
        pytest.raises(LogError, match="another program owns the log"),
    ):
        Experiments(second).page(RunFilters(), 0, 20, None)


def test_filters_are_read_off_the_page() -> None:
    assert read_filters(None, "", None, "", "", "any", " ", None) == RunFilters()
    read = read_filters(" a ", "b", "qrag", "tiny", "failed", "not all found", "2026-03-31", "2026-03-31")
    assert (read.text, read.hit, read.status) == ("a", False, "failed")
    assert read.since is not None
    assert read.until == read.since + timedelta(days=1)
    with pytest.raises(BadRequest, match="date 'tomorrow' is none"):
        read_filters("", "", "", "", "", "any", "tomorrow", "")


def row(**changes: object) -> RunRow:
    at = datetime(2026, 3, 31, tzinfo=UTC)
    made = RunRow(
        run_id="f" * 32,
        created_at=at,
        finished_at=at + timedelta(milliseconds=40),
        status="complete",
        message=None,
        method="qrag",
        query="<b>who</b> ?",
        checkpoint="tiny",
        n_chunks=1200,
        n_steps=3,
        titles=("Story", "Notes"),
        parent_run_id=None,
        shared=True,
        seed=7,
        stop_reason="budget",
        n_support=2,
        n_found=1,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_the_list_has_the_columns_that_are_chosen() -> None:
    page = RunPage((row(),), 1)
    usual = json.dumps(view.run_list(page, 0, view.USUAL_COLUMNS, (), "", filtered=False), ensure_ascii=False)
    assert all(words in usual for words in ("<b>who</b> ?", "Story, Notes", "Q-RAG", "tiny", "1 of 2"))
    assert '"dir": "auto"' in usual, "two ends of a question, each where its language has it"
    assert "stopped by" not in usual
    every = json.dumps(
        view.run_list(page, 0, tuple(view.COLUMNS), ("f" * 32,), "f" * 32, filtered=False), ensure_ascii=False
    )
    assert all(
        words in every
        for words in ("1,200", "budget", "40 ms", "shared", "1 run selected", '"aria-pressed": "true"')
    )
    assert view.EMPTY in json.dumps(view.run_list(RunPage((), 0), 0, (), (), "", filtered=False))
    assert view.NO_MATCH in json.dumps(view.run_list(RunPage((), 0), 0, (), (), "", filtered=True))


def test_a_row_says_what_was_answered_and_whether_it_is_right() -> None:
    def told(**changes: object) -> str:
        page = RunPage((row(**changes),), 1)
        shown = view.run_list(page, 0, ("answer", "sure"), (), "", filtered=False)
        return json.dumps(shown, ensure_ascii=False)

    assert "✓ right" in told(answer="the garden", known_answer="garden")
    assert "✗ wrong" in told(answer="office", known_answer="garden")
    assert "Known answer: garden" in told(answer="office", known_answer="garden")
    assert "no answer" in told(answer="", known_answer="garden")
    assert "97 %" in told(answer="garden", confidence=0.97)
    assert "✓" not in told(answer="office"), "nobody knows"
    page = RunPage((row(preview=True), row()), 2)
    listed = json.dumps(view.run_list(page, 0, ("status",), (), "", filtered=False))
    assert listed.count('"preview"') == 1


def test_runs_of_one_comparison_stand_together() -> None:
    at = datetime(2026, 3, 31, tzinfo=UTC)
    later = at + timedelta(minutes=20)
    rows = (
        row(method="bm25", created_at=at + timedelta(seconds=9)),
        row(method="topk", created_at=at + timedelta(seconds=5)),
        row(created_at=at),
        row(created_at=at - timedelta(seconds=5)),
        row(method="topk", created_at=at - timedelta(seconds=9), query="where ?"),
        row(method="bm25", created_at=at - timedelta(minutes=9), query="where ?"),
    )
    assert view.compared_before(rows) == [False, True, True, False, False, False]
    assert view.compared_before((row(created_at=later), row(method="topk", created_at=at))) == [False, False]


def test_a_legend_names_what_differs() -> None:
    assert view.run_names([row(), row(checkpoint="other")]) == ["1. tiny", "2. other"]
    assert view.run_names([row(), row(method="multistep")]) == ["1. Q-RAG", "2. multi-step"]
    assert view.run_names([row(), row(query="where ?", seed=8)]) == ["1. <b>who</b> ?", "2. where ?"]
    assert view.run_names([row()]) == ["1. <b>who</b> ?"]
    alike = [row(query=f"Where was the blanket before the {place}?") for place in ("chapel", "stable")]
    assert view.run_names(alike) == [
        "1. Where was the bla…before the chapel?",
        "2. Where was the bla…before the stable?",
    ]


def test_sharing_and_deleting_wait_for_a_second_click(experiments: Experiments) -> None:
    run = experiments.run(log_run(experiments), None)
    first = json.dumps(view.run_head(run, ""))
    assert "share-now" not in first
    assert "delete-now" not in first
    assert "the whole text of its documents" in json.dumps(view.run_head(run, "share"))
    deleting = json.dumps(view.run_head(run, "delete"))
    assert "can't be undone" in deleting
    assert "delete-now" in deleting
    experiments.share(run.record.run_id, None)
    assert "Share…" not in json.dumps(
        view.run_head(experiments.run(run.record.run_id, None), ""), ensure_ascii=False
    )


def test_chart_tables_hold_the_numbers_drawn() -> None:
    charted = view.Charted(
        ((row(), RunCurve((0.5, 0.25), 0.125)), (row(method="topk"), RunCurve((2.0,), None))),
        {"qrag tiny": {"hit": 2}},
    )
    curves = json.dumps(view.curve_table(charted))
    assert all(number in curves for number in ("0.500", "0.250", "0.125"))
    assert "2.000" not in curves, "an inner product is no Q"
    assert "not drawn: top-k" in json.dumps(view.charts_heading(charted, 2))
    other = view.Charted((*charted.curves[:1], (row(checkpoint="other"), RunCurve((1.0,), None))), {})
    assert "its own scale of Q" in json.dumps(view.charts_heading(other, 2))
    assert json.dumps(view.count_table(charted)).count('"2"') == 1
    others, late = (charted.curves[1],) * view.MAX_CURVES, (charted.curves[0],)
    assert view.with_q(view.Charted((*others, *late), {})) == [*late], "whatever was selected before it"
    many = view.Charted((*others, *late * 13), {})
    assert "has the first 12 of 13." in json.dumps(view.charts_heading(many, 25))


def open_experiments(page: Page) -> None:
    page.get_by_role("tab", name="Experiments").click()
    expect(page.locator("#qx-runs-list")).to_contain_text(re.compile("question|No run"), timeout=30_000)


def downloaded(page: Page, path: Path) -> Path:
    """Prepares the export that is chosen, and takes it; a file of other choices must not be on offer any
    more.
    """
    button = page.locator("#qx-runs-download")
    expect(button).to_be_hidden(timeout=30_000)
    expect(page.locator("#qx-runs-export-notice .qx-notice")).to_have_count(0, timeout=30_000)
    page.locator("#qx-runs-prepare").click()
    expect(button).to_be_visible(timeout=30_000)
    with page.expect_download() as taken:
        button.click()
    taken.value.save_as(path)
    return path


def first_run(page: Page) -> tuple[str, list[int]]:
    """The run that a first page makes: what was asked and chosen."""
    wait_ready(page, 120)
    expect(page.locator("#qx-status")).to_contain_text("step 4 of 4", timeout=60_000)
    return page.locator("#qx-question textarea").input_value(), chosen(page)


def show_the_seed(page: Page) -> None:
    page.get_by_role("button", name="Columns").click()
    page.locator("#qx-runs-columns").get_by_label("seed").check()
    expect(page.locator("#qx-runs-list thead")).to_contain_text("seed", timeout=30_000)


@pytest.mark.campaign
def test_find_open_replay_share_export_delete_import_and_continue(
    public_app: RunningApp, open_page: OpenPage, tmp_path: Path
) -> None:
    """In a public app, where each page has a log of its own."""
    page = open_page(public_app.url, width=1400)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    asked, found = first_run(page)
    open_experiments(page)
    rows = page.locator("#qx-runs-list tbody tr")
    expect(rows).to_have_count(1)
    page.locator("#qx-runs-text textarea, #qx-runs-text input").first.fill("nothing like it")
    expect(page.locator("#qx-runs-list")).to_contain_text("No run matches", timeout=30_000)
    page.locator("#qx-runs-since textarea, #qx-runs-since input").first.fill("soon")
    expect(page.locator("#qx-runs-notice")).to_contain_text("date 'soon' is none", timeout=30_000)
    page.locator("#qx-runs-clear").click()
    expect(rows).to_have_count(1, timeout=30_000)
    show_the_seed(page)

    rows.first.locator(".qx-query").click()
    expect(page.locator("#qx-run-steps .qx-step")).to_have_count(4, timeout=30_000)
    shown = page.locator("#qx-run-steps .qx-step strong").all_inner_texts()
    assert [int(text.split()[1].replace(",", "")) for text in shown] == found
    expect(page.locator("#qx-run-steps")).to_contain_text("Not in this document, as far as I see")
    expect(page.get_by_label("the open run")).to_be_checked()
    page.locator("#qx-run-replay").click()
    expect(page.locator("#qx-run-replayed")).to_contain_text("It came out the same", timeout=60_000)
    page.get_by_role("button", name="Share…").click()
    expect(page.locator("#qx-run-head")).to_contain_text("the whole text of its documents", timeout=30_000)
    page.get_by_role("button", name="Share it").click()
    expect(page.locator("#qx-run-head .qx-mark")).to_have_text("shared", timeout=30_000)

    page.get_by_label("HTML page, to read offline").check()
    offline = BeautifulSoup(
        downloaded(page, tmp_path / "run.html").read_text(encoding="utf-8"), "html.parser"
    )
    assert offline.h1.get_text() == asked
    assert not offline.find_all(["link", "img"])
    assert not offline.select("script[src]")  # what runs in it, its policy names by hash
    page.get_by_label("JSON, to import again").check()
    page.get_by_label("With the texts of documents and chunks").check()
    exported = downloaded(page, tmp_path / "run.jsonl")
    assert asked in exported.read_text(encoding="utf-8")

    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.locator("#qx-runs-list")).to_contain_text("No runs yet", timeout=30_000)
    expect(page.locator("#qx-run-detail")).to_be_hidden()
    page.locator("#qx-runs-upload input[type=file]").set_input_files(exported)
    expect(page.locator("#qx-runs-import-notice")).to_contain_text("1 new run came in", timeout=30_000)
    expect(rows).to_have_count(1)

    (tmp_path / "ours.jsonl").write_text(json.dumps({"query": "who ?", "retrieved": [3, "not in it at all"]}))
    page.locator("#qx-runs-upload input[type=file]").set_input_files(tmp_path / "ours.jsonl")
    expect(page.locator("#qx-runs-import-notice")).to_contain_text(
        "1 of 2 passages that were returned were not found", timeout=30_000
    )
    expect(rows.first).to_contain_text("ours")
    rows.first.locator(".qx-query").click()
    expect(page.locator("#qx-run-steps")).to_contain_text("That is what ours returned", timeout=30_000)
    expect(page.locator("#qx-run-replay")).to_be_hidden()
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("button", name="Delete for good").click()
    expect(rows).to_have_count(1, timeout=30_000)

    rows.first.locator(".qx-query").click()
    page.get_by_role("button", name="Continue from here").nth(1).click()
    expect(page.locator("#qx-status")).to_contain_text("step 2 of 4", timeout=60_000)
    page.get_by_role("tab", name="Explore").click()
    set_number(page, "#qx-budget", 3)
    page.locator("#qx-step").click()
    expect(page.locator("#qx-status")).to_contain_text("child run from step 2", timeout=60_000)
    open_experiments(page)
    expect(rows).to_have_count(2, timeout=30_000)
    assert errors == []
