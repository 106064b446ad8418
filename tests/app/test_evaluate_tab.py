"""Evaluations from the page."""

from __future__ import annotations

import json
import re
import resource
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Page, expect

from app.pages.evaluate import view
from app.pages.evaluate.tab import EvaluatePlace, EvaluateTab
from app.services.evaluations import (
    LONG,
    OWN,
    EvaluationOrder,
    Evaluations,
    Measuring,
    _keep_questions,
    at_threshold,
    failures,
    open_episode,
    stop_curve,
)
from app.services.explorer import Explorer
from app.services.kept_open import kept_documents
from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from core.base.errors import BadRequest, Cancelled, RunNotFound
from core.base.progress import finish
from core.base.rows import EpisodeRow
from core.base.statistics import mean
from core.encode.checkpoint import read_spec, write_spec
from core.encode.reference import import_checkpoint
from core.lab.evaluate.outcomes import failure_class
from core.lab.evaluate.summary import METRICS, compare, summarise
from core.runs.log import list_evaluations, read_evaluation
from tests.app.conftest import StartApp, choose_files, wait_ready
from tests.app.test_train_tab import write_questions
from tests.conftest import OpenPage
from tests.core.lab.evaluate.rows import make_row

REFERENCE = Path(__file__).resolve().parents[1] / "data" / "reference"


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two agents that embed in milliseconds: one that the app is started with, one as if it had been trained
    here.
    """
    folder = tmp_path_factory.mktemp("checkpoints")
    for name, source in (("tiny", "relative10"), ("mine", "none")):
        import_checkpoint(
            str(REFERENCE / "checkpoints" / source), folder / name, base=str(REFERENCE / "tiny-bert")
        )
        write_spec(folder / name, read_spec(folder / name).model_copy(update={"name": name}))
    return {name: folder / name for name in ("tiny", "mine")}


@pytest.fixture
def services(
    checkpoints: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    shutil.copytree(checkpoints["mine"], tmp_path / "home" / "agents" / "mine")
    made = Services(Settings(checkpoint=str(checkpoints["tiny"]), log=tmp_path / "log.duckdb"))
    yield made
    made.close()


@pytest.fixture
def evaluations(services: Services) -> Evaluations:
    return Evaluations(services)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write_questions(tmp_path / "mine.jsonl", 12)


def order_of(questions: Path, *agents: str, n: int | None = 6) -> EvaluationOrder:
    return EvaluationOrder(OWN, agents, n=n, questions=questions)


def test_rows_of_two_agents_reach_the_log_and_come_back(
    evaluations: Evaluations, services: Services, questions: Path
) -> None:
    told: list[Measuring] = []
    first, second = evaluations.run(order_of(questions, "mine", "tiny"), told.append)
    assert [entry.evaluation_id for entry in evaluations.all()] == [second, first]
    logged = read_evaluation(services.log, first)  # type: ignore[arg-type]
    assert [row.checkpoint for row in logged.rows] == ["mine"] * 6
    assert {row.step_budget for row in logged.rows} == {4}
    assert logged == evaluations.get(first)
    assert evaluations.summary(first) == summarise(logged.rows)
    assert evaluations.comparison(first, second) == compare(logged.rows, evaluations.get(second).rows)
    asking = [report.done for report in told if (report.agent, report.stage) == ("tiny", "retrieving")]
    assert asking[0] == 0, "a first batch that takes long is no embedding"
    last = [report for report in told if report.agent == "tiny"][-1]
    assert (last.stage, last.done, last.total) == ("retrieving", 6, 6)
    assert dict(last.means)["fact_f1"] == pytest.approx(evaluations.summary(second).metrics["fact_f1"])
    assert Evaluations(services).get(first).rows == logged.rows
    with pytest.raises(RunNotFound):
        evaluations.get("0" * 32)


def test_questions_that_had_no_room_are_kept_whole_the_next_time(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    bounds = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, bounds[1]))
    try:
        with pytest.raises(BadRequest, match=r"mine\.jsonl can't be kept"):
            _keep_questions(questions)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, bounds)
    assert _keep_questions(questions).read_bytes() == questions.read_bytes()


def test_questions_of_a_file_that_has_changed_are_not_taken_for_the_same(
    evaluations: Evaluations, questions: Path
) -> None:
    [first] = evaluations.run(order_of(questions, "mine", n=None), lambda _: None)
    questions.write_text("".join(reversed(questions.read_text().splitlines(keepends=True))))
    [changed] = evaluations.run(order_of(questions, "tiny", n=None), lambda _: None)
    assert {row.key for row in evaluations.get(first).rows} == {
        row.key for row in evaluations.get(changed).rows
    }
    with pytest.raises(BadRequest, match="of one that has changed since"):
        evaluations.comparison(first, changed)
    assert evaluations.beside(first, changed) == {}


def test_figures_of_old_evaluations_are_forgotten(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.evaluations.MAX_KEPT_FIGURES", 1)
    evaluations, made = Evaluations(services), list[str]()
    monkeypatch.setattr(evaluations, "get", lambda key, _: SimpleNamespace(rows=key))
    monkeypatch.setattr("app.services.evaluations.summarise", lambda key: made.append(key) or key)
    assert [evaluations.summary(key) for key in "aabba"] == [*"aabba"]
    assert made == [*"aba"]


def test_a_cancel_keeps_what_was_measured(
    evaluations: Evaluations, services: Services, questions: Path
) -> None:
    write_questions(questions, 40)  # two batches

    def report(progress: Measuring) -> None:
        if progress.stage == "retrieving" and progress.done:
            raise Cancelled

    with pytest.raises(Cancelled):
        evaluations.run(order_of(questions, "mine", n=None), report)
    assert evaluations.idle.is_set()
    (entry,) = list_evaluations(services.log)  # type: ignore[arg-type]
    assert (entry.n, entry.config["cancelled"], entry.config["n_asked"]) == (32, True, None)
    row = evaluations.get(entry.evaluation_id).rows[31]
    assert evaluations.example(entry.evaluation_id, 31).id == row.id


def test_an_episode_opens_in_explore_and_goes_as_it_went(
    evaluations: Evaluations, services: Services, questions: Path
) -> None:
    (key,) = evaluations.run(order_of(questions, "mine"), lambda _: None)
    questions.unlink()  # an upload is gone after a while
    row, episode = evaluations.get(key).rows[2], Evaluations(services).episode(key, 2)
    assert episode.example.support == row.support
    explorer = Explorer(services)
    session = finish(open_episode(explorer, Session(), episode))
    opened = explorer.documents(session)
    assert opened.workspace.texts() == list(episode.example.chunks)
    assert kept_documents(opened.name, None), "its address opens it after a restart"
    *_, session = explorer.advance(session, episode.example.question, episode.config, None)
    run = explorer.run_of(session)
    assert (run.trace.chosen, run.gold) == (row.chosen, row.support)


def test_an_example_that_has_changed_is_not_taken_for_the_old_one(
    evaluations: Evaluations, questions: Path
) -> None:
    (key,) = evaluations.run(order_of(questions, "mine"), lambda _: None)
    kept = Path(evaluations.get(key).config["questions"])
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    kept.write_text(
        "".join(json.dumps({**line, "chunks": [*line["chunks"], "more ."]}) + "\n" for line in lines),
        encoding="utf-8",
    )
    fresh = Evaluations(evaluations.services)
    with pytest.raises(BadRequest, match="evaluate it again"):
        fresh.example(key, 0)


def test_a_default_is_written_for_agents_trained_here_only(
    evaluations: Evaluations, services: Services, questions: Path
) -> None:
    first, second = evaluations.run(order_of(questions, "mine", "tiny"), lambda _: None)
    evaluations.use_for_now(first, 0.3)
    assert services.agents.served(services.agents.load("mine").spec).stop_threshold == 0.3
    evaluations.make_default(first, 0.25)
    folder = services.agents.checkpoints["mine"]
    spec = read_spec(folder)
    assert (
        spec.stop_threshold
        == services.agents.served(services.agents.load("mine").spec).stop_threshold
        == 0.25
    )
    assert spec.scores["stop_threshold"] == {
        "value": 0.25,
        "evaluation_id": first,
        "task": "mine",
        "split": "test",
        "length": None,
        "n": 6,
    }
    before = (services.agents.checkpoints["tiny"] / "qrag.json").read_bytes()
    with pytest.raises(BadRequest, match="tiny was not trained here"):
        evaluations.make_default(second, 0.25)
    assert (services.agents.checkpoints["tiny"] / "qrag.json").read_bytes() == before
    evaluations.use_for_now(second, 0.4)
    assert services.agents.served(services.agents.load("tiny").spec).stop_threshold == 0.4
    (third,) = evaluations.run(order_of(questions, "tiny"), lambda _: None)
    assert evaluations.get(third).rows[0].stop_threshold == 0.4


def test_orders_that_can_not_be_are_refused(evaluations: Evaluations) -> None:
    for order, words in (
        (EvaluationOrder("qa1", ()), "no agent is chosen"),
        (EvaluationOrder("qa1", ("tiny", "tiny")), "against itself"),
        (EvaluationOrder("qa77", ("tiny",)), "'qa77' does not exist"),
        (EvaluationOrder("/etc/passwd", ("tiny",)), "does not exist"),
        (EvaluationOrder(OWN, ("tiny",)), "no file of questions"),
        (EvaluationOrder("generated", ("tiny",), n=-1), "-1 questions"),
        (EvaluationOrder("generated", ("tiny",), step_budget=-2), "step budget -2"),
        (EvaluationOrder("generated", ("tiny",), length="far"), "length 'far'"),
        (EvaluationOrder("generated", ("nobody",)), "'nobody' is not on offer"),
    ):
        with pytest.raises(BadRequest, match=words):
            evaluations.run(order, lambda _: None)
    assert evaluations.all() == []
    assert evaluations.idle.is_set()


ROWS = [
    make_row(),
    make_row(chosen=(9, 4, 2), best_q=(0.4, 0.7, 0.6, 0.2), id="q2"),
    make_row(chosen=(1, 4, 9), best_q=(0.9, 0.5, 0.55, 0.3), id="q3"),
    make_row(chosen=(1, 4, 2), best_q=(0.9, 0.8, 0.7, 0.6), id="q4"),
]


@given(st.floats(-0.5, 1.5))
def test_a_threshold_is_looked_at_as_evaluate_would_measure_it(threshold: float) -> None:
    rows = [replace(row, stop_threshold=threshold) for row in ROWS]
    now = at_threshold(ROWS, threshold)
    measured = {name: mean(METRICS[name](row) for row in rows) for name in METRICS}
    assert (now.fact_f1, now.fact_em, now.steps) == pytest.approx(
        (measured["fact_f1"], measured["fact_em"], measured["steps"])
    )
    shares = [
        measured[name] for name in ("stopped_early", "stopped_late", "stopped_perfectly", "never_complete")
    ]
    assert [now.shares[name] for name in ("early", "late", "perfect", "never")] == pytest.approx(shares)
    assert sum(now.shares.values()) == pytest.approx(1)


def test_a_stop_curve_spans_q_and_names_the_best() -> None:
    curve = stop_curve(ROWS)
    thresholds = [point.threshold for point in curve.points]
    assert (thresholds[0], thresholds[-1]) == (0.0, 0.9)
    best = at_threshold(ROWS, curve.best)
    assert best.fact_f1 >= max(point.fact_f1 for point in curve.points) - 1e-9
    assert curve.plateau[0] <= curve.best <= curve.plateau[1]
    with pytest.raises(BadRequest, match="plain agent"):
        stop_curve([make_row(best_q=())])


def test_every_episode_is_of_one_class() -> None:
    found = failures(ROWS)
    assert sorted(position for positions in found.values() for position in positions) == [0, 1, 2, 3]
    assert {ROWS[position].id: name for name, positions in found.items() for position in positions} == {
        row.id: failure_class(row) for row in ROWS
    }
    filters = json.dumps(view.failure_filter(found, "wrong twin"))
    assert '"aria-pressed": "true"' in filters


def test_tables_mark_hits_and_what_came_after_the_stop() -> None:
    others: dict[tuple[object, ...], EpisodeRow] = {
        ROWS[1].key: make_row(chosen=(7,), best_q=(0.9, 0.1), id="q2", checkpoint="other")
    }
    shown = json.dumps(view.failure_table(ROWS, [0, 1], others, None, 0), ensure_ascii=False)
    assert "4 ✓" in shown
    assert "Step 3: chunk 2, Q 0.100, not support, after the stop" in shown
    assert "Step 1: chunk 7" in shown
    assert "not asked" in shown
    detail = json.dumps(view.episode(ROWS[1], None, None, ""))
    assert "stops: best Q 0.400 is below 0.500" in detail
    assert "step 1 had it stopped later" in detail


def test_the_score_table_has_intervals_and_the_test() -> None:
    first, second = ROWS, [replace(row, chosen=(1, 2, 3), checkpoint="other") for row in ROWS]
    alone = json.dumps(view.score_table(summarise(first), None, None), ensure_ascii=False)
    both = json.dumps(
        view.score_table(summarise(first), summarise(second), compare(first, second[:3])), ensure_ascii=False
    )
    assert "Answer EM" not in alone
    assert "A minus B" not in alone
    assert "A minus B" in both
    assert "Left out of the test: 1 question that only one of the two has." in both


def test_three_figures_come_first_and_rows_go_along() -> None:
    alone = view.score_table(summarise(ROWS), None, None)
    numbers, every = json.dumps(alone[0]), json.dumps(alone[1])
    assert numbers.count('qx-number"') == 3
    assert all(words in numbers for words in ("Fact F1", "Fact EM", "Evidence tokens"))
    assert '"open": false' in every
    n_figures = every.count('"scope": "row"')
    assert f"All {n_figures} figures" in every
    answered = view.score_table(
        summarise([replace(row, answer_em=1.0, answer_f1=1.0) for row in ROWS]), None, None
    )
    assert "Answer F1" in json.dumps(answered[0])
    both = view.score_table(summarise(ROWS), summarise(ROWS), None)
    assert "A 0" in json.dumps(both[0])
    assert '"open": true' in json.dumps(both[1])
    heading = json.dumps(view.score_heading(ROWS, None))
    assert '"data-name": "evaluation.csv"' in heading
    assert all(row.id in heading for row in ROWS)
    formula = json.dumps(view.score_heading([replace(ROWS[0], id="=1+1")], None))
    assert "'=1+1" in formula, "a formula of a foreign data set is text to a spreadsheet"
    many = json.dumps(view.score_heading(ROWS * view.MOST_EXPORTED, None))
    assert "evaluation.csv" not in many


def test_the_one_beside_takes_the_place_of_the_first(services: Services, evaluations: Evaluations) -> None:
    with gr.Blocks():
        tab = EvaluateTab(services, evaluations, gr.State(Session()))
    for argument, pair in (("b", ("b", "a")), ("c", ("c", "b")), ("a", ("a", "b"))):
        pressed = gr.EventData(None, {"act": "first", "arg": argument})
        update = next(iter(tab._on_click(EvaluatePlace(first="a", second="b"), pressed)))
        assert (update[tab.looking].first, update[tab.looking].second) == pair


def test_a_row_shows_what_was_asked() -> None:
    table = json.dumps(view.failure_table(ROWS, [0, 1], {}, None, 0, {ROWS[0].id: "Where was the lamp?"}))
    assert "Where was the lamp?" in table
    assert f'["{ROWS[1].id}"]' in table, "what isn't known is named by its id"


def test_a_long_haystack_says_what_it_costs() -> None:
    long = make_row(length=1_000_000, n_chunks=16_000)
    assert view.is_long(long)
    assert not view.is_long(make_row(length=LONG))
    assert not view.is_long(make_row(length=None))
    words = json.dumps(view.cost(long, 384))
    assert "1,000,000 tokens in 16,000 chunks" in words
    assert "23 MB" in words
    assert "explore-anyway" in words


def pick(page: Page, control: str, text: str) -> None:
    field = page.locator(f"#{control} input")
    field.click()
    field.fill(text)
    page.get_by_role("option", name=text).first.click()


def choose_threshold(page: Page) -> float:
    """Moves the threshold to the highest and then to the best."""
    before = page.locator("#qx-evaluate-stops .qx-numbers").inner_text()
    slider = page.locator("#qx-evaluate-threshold input[type=number]")
    highest = page.locator("#qx-evaluate-threshold input[type=range]").get_attribute("max")
    slider.fill(str(highest))
    slider.press("Tab")
    expect(page.locator("#qx-evaluate-stops .qx-numbers")).not_to_have_text(before, timeout=20_000)
    page.locator("#qx-evaluate-best").click()
    expect(slider).not_to_have_value(str(highest))
    return float(slider.input_value())


def open_first_episode(page: Page, n_rows: int) -> None:
    """Out of all, on the page and then in Explore, where its steps are the same."""
    page.locator("#qx-evaluate-filter").get_by_role("button", name=re.compile("^all")).click()
    expect(page.locator("#qx-evaluate-failures tbody tr")).to_have_count(n_rows)
    page.locator("#qx-evaluate-failures .qx-link").first.click()
    expect(page.locator("#qx-evaluate-episode")).to_contain_text("where is the", timeout=60_000)
    chosen = page.locator("#qx-evaluate-episode .qx-beside > div").first.locator(".qx-mark").all_inner_texts()
    page.get_by_role("button", name="Open in Explore").locator("visible=true").click()
    expect(page.locator("#qx-evidence")).to_contain_text("of 2 support chunks found", timeout=60_000)
    expect(page.locator("#qx-steps .qx-step")).to_have_count(len(chosen), timeout=60_000)
    shown = page.locator("#qx-steps .qx-step-head .qx-link").all_inner_texts()
    assert [text.split()[1] for text in shown] == [text.split()[0] for text in chosen]


@pytest.mark.campaign
def test_evaluate_compare_calibrate_and_open_an_episode(
    start_app: StartApp, open_page: OpenPage, checkpoints: dict[str, Path], questions: Path, tmp_path: Path
) -> None:
    shutil.copytree(checkpoints["mine"], tmp_path / "agents" / "mine")
    app = start_app("--checkpoint", str(checkpoints["tiny"]))
    page = open_page(app.url)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    wait_ready(page)
    page.get_by_role("tab", name="Evaluate").click()
    expect(page.locator("#qx-evaluate-list")).to_contain_text("None yet")
    pick(page, "qx-evaluate-task", "my own questions")
    pick(page, "qx-evaluate-agent", "mine")
    pick(page, "qx-evaluate-second", "tiny")
    page.locator("#qx-evaluate-run").click()
    expect(page.locator("#qx-evaluate-notice")).to_contain_text(
        "no file of questions is chosen", timeout=20_000
    )
    choose_files(page, "#qx-evaluate-questions", questions)
    page.locator("#qx-evaluate-run").click()
    expect(page.locator("#qx-evaluate-scores .qx-number").first).to_be_visible(timeout=120_000)
    expect(page.locator("#qx-evaluate-list tbody tr")).to_have_count(2)
    expect(page.locator("#qx-evaluate-conditions")).to_contain_text("n = 12, T = 4")
    expect(page.locator("#qx-evaluate-scores")).to_contain_text("A minus B")
    expect(page.locator("#qx-evaluate-reliability .js-plotly-plot")).to_be_visible(timeout=60_000)

    best = choose_threshold(page)
    page.locator("#qx-evaluate-default").click()
    expect(page.locator("#qx-evaluate-default-notice")).to_contain_text(
        "mine now stops below", timeout=20_000
    )
    written = read_spec(tmp_path / "agents" / "mine").stop_threshold
    assert written == pytest.approx(best, abs=1e-3)

    open_first_episode(page, 12)
    expect(page.locator("#qx-agent input")).to_have_value("mine")

    page.get_by_role("tab", name="Evaluate").click()
    page.locator("#qx-evaluate-list tbody tr").first.get_by_role("button", name=re.compile("^A:")).click()
    expect(page.locator("#qx-evaluate-conditions")).to_contain_text("A mine, tiny.", timeout=30_000)
    expect(page.locator("#qx-evaluate-default")).to_be_hidden()
    expect(page.locator("#qx-evaluate-default-words")).to_contain_text("tiny was not trained here")
    page.locator("#qx-evaluate-for-now").click()
    expect(page.locator("#qx-evaluate-default-notice")).to_contain_text(
        "until the app is closed", timeout=20_000
    )
    assert errors == []

    app = start_app("--checkpoint", str(checkpoints["tiny"]))  # the rows are in the log
    narrow = open_page(app.url, width=360, height=740, colour_scheme="dark")
    narrow.get_by_role("tab", name="Evaluate").click()
    expect(narrow.locator("#qx-evaluate-list tbody tr")).to_have_count(2, timeout=60_000)
    narrow.locator("#qx-evaluate-list tbody tr").first.get_by_role("button", name=re.compile("^A:")).click()
    expect(narrow.locator("#qx-evaluate-scores .qx-number").first).to_be_visible(timeout=60_000)
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 360
