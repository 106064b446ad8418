"""Training from the page: real child processes over a tiny encoder, and the Train tab in a real Chromium."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from playwright.sync_api import Page, expect

from app.pages.train import view
from app.pages.train.tab import TrainTab
from app.services.agents import own_agents
from app.services.trainings import (
    QUICK_UPDATES,
    Order,
    ShownTraining,
    Trainings,
    available_data,
    check_name,
    checked_base,
    command,
    example_questions,
    recipe_config,
    shipped_seconds_an_update,
    startable_agents,
)
from core.base.config import setting_help
from core.base.errors import BadRequest
from core.base.home import home
from core.cli.train import add_flags
from core.encode.checkpoint import find_checkpoint, read_spec, write_spec
from core.encode.packaged import MINILM
from core.lab.tasks.qa_sets import read_own_questions
from core.lab.train.config import TrainConfig
from core.lab.train.recipes import RECIPES
from core.lab.train.sitting import RESUME_FILE
from core.runs.log import ExperimentLog, default_log_path
from tests.app.axe import grave_faults
from tests.app.conftest import RunningApp, StartApp, choose_files, wait_ready
from tests.conftest import OpenPage
from tests.settled import settle

TINY = Path(__file__).resolve().parents[1] / "data" / "reference" / "tiny-bert"
PATIENCE = 300.0
"""Seconds for a child process on a busy machine."""
GOES_ON = re.compile(r"Update [\d,]+ of 5,000")
"""What a training says that `begin_training` began."""


def write_questions(path: Path, n: int = 10) -> Path:
    """Questions that a tiny encoder can learn: who got the thing, and where they went."""
    rng = random.Random(0)
    lines = []
    for _ in range(n):
        who, thing = rng.choice(["john", "mary", "sandra"]), rng.choice(["apple", "milk"])
        chunks = [
            f"daniel travelled to the {rng.choice(['office', 'garden'])} on day {day} ." for day in range(6)
        ]
        chunks += [f"{who} got the {thing} there .", f"{who} went to the kitchen ."]
        order = rng.sample(range(8), 8)
        support = sorted([order.index(6), order.index(7)])
        lines.append(
            json.dumps(
                {
                    "question": f"where is the {thing} ?",
                    "chunks": [chunks[row] for row in order],
                    "support": support,
                }
            )
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def tiny_config(**changes: Any) -> TrainConfig:
    return replace(
        recipe_config("own"),
        **{"updates": 60, "episodes": 2, "steps": 3, "rank": 4, "validate_every": 30} | changes,
    )


@pytest.fixture(autouse=True)
def no_child_is_left(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Trainings outlive the app, and would outlive a test that failed."""
    folders = [tmp_path]
    if "tiny_app" in request.fixturenames:
        folders.append(request.getfixturevalue("tiny_app").home)
    yield
    for path in (lock for folder in folders for lock in folder.rglob("trainings/*/lock")):
        with path.open() as lock, suppress(ProcessLookupError, ValueError):
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                os.kill(int(lock.read()), signal.SIGKILL)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write_questions(tmp_path / "mine.jsonl")


@pytest.fixture
def trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trainings:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    # beside busy workers a child of low priority would get hardly any time
    monkeypatch.setattr("app.services.trainings.NICENESS", 0)
    return Trainings(default_log_path())


def wait_for(what: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)
    return found


def trained_folder(name: str, weights: str) -> Path:
    """An agent of one's own, as far as its qrag.json tells."""
    folder = home() / "agents" / name
    folder.mkdir(parents=True)
    write_spec(
        folder, read_spec(find_checkpoint("narrative")).model_copy(update={"name": name, "weights": weights})
    )
    return folder


def ended(trainings: Trainings, name: str) -> ShownTraining:
    wait_for(lambda: not trainings.get(name).is_live)
    return trainings.get(name)


@pytest.mark.campaign
def test_a_training_is_stopped_goes_on_and_ends_in_the_log(trainings: Trainings, questions: Path) -> None:
    trainings.start(Order("mine", tiny_config(), str(TINY), questions))
    questions.unlink()  # an upload is gone after a while
    with pytest.raises(BadRequest, match="'mine' still runs"):
        trainings.start(Order("other", tiny_config(), str(TINY), write_questions(questions)))
    wait_for(lambda: len(trainings.get("mine").updates) > 2)
    assert Trainings(default_log_path()).get("mine").state == "running", (
        "an app that was started anew finds what runs"
    )
    trainings.stop("mine")
    assert trainings.get("mine").state in ("stopping", "stopped")
    stopped = ended(trainings, "mine")
    assert (stopped.state, stopped.can_resume, stopped.has_agent) == ("stopped", True, True)
    saved = max(event["update"] for event in (*stopped.validations, *stopped.updates[49:50]))
    assert (f"goes on from update {saved}" if saved else "it begins again") in view.standing(stopped)

    trainings.resume("mine")
    finished = ended(trainings, "mine")
    assert finished.state == "finished", finished.message
    assert [event["update"] for event in finished.updates] == list(range(1, 61))
    assert own_agents() == [finished.folder]
    with ExperimentLog.open(default_log_path()) as log:
        log.import_inbox()
        logged = log.rows("SELECT folder FROM trainings JOIN training_events USING (training_id)")
    assert logged == [{"folder": "mine"}] * len(finished.events)
    assert trainings.seconds_an_update(tiny_config(seed=5), str(TINY)) == pytest.approx(
        finished.updates[-1]["seconds"] / 60
    )
    assert trainings.seconds_an_update(tiny_config(), MINILM) is None
    assert trainings.seconds_an_update(tiny_config(steps=2), str(TINY)) is None
    with pytest.raises(BadRequest, match="there is an agent 'mine' already"):
        trainings.start(Order("mine", tiny_config(), str(TINY), questions))


@pytest.mark.campaign
def test_a_killed_training_is_told_from_a_failed_one(
    trainings: Trainings, questions: Path, tmp_path: Path
) -> None:
    trainings.start(Order("killed", tiny_config(updates=5000), str(TINY), questions))
    wait_for(lambda: trainings.get("killed").updates)
    os.kill(int((tmp_path / "home" / "trainings" / "killed" / "lock").read_text()), signal.SIGKILL)
    assert ended(trainings, "killed").state == "cut off"
    (tmp_path / "empty").mkdir()
    trainings.start(Order("failed", tiny_config(), str(tmp_path / "empty"), questions))
    failed = ended(trainings, "failed")
    assert (failed.state, failed.has_agent, failed.can_resume) == ("failed", False, True)
    assert str(tmp_path / "empty") in failed.message or "empty" in failed.message
    assert [training.name for training in trainings.all()] == ["failed", "killed"]


def test_a_training_that_never_began_is_not_taken_for_running(trainings: Trainings, questions: Path) -> None:
    with pytest.raises(ValueError, match="null byte"):
        trainings.start(Order("mine", tiny_config(), "no\0base", questions))
    assert trainings.get("mine").state == "cut off"


def test_a_training_that_has_no_number_yet_is_not_called_stopped(trainings: Trainings) -> None:
    desk = home() / "trainings" / "mine"
    desk.mkdir(parents=True)
    (desk / "order.json").write_text("{}")
    with (desk / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BadRequest, match="only just beginning"):
            trainings.stop("mine")
        assert trainings.get("mine").can_stop


@pytest.mark.parametrize("name", ["", "A", "a b", "../a", "a/b", "-a", "a" * 41, "ä", "a\n", ".."])
def test_names_that_are_no_folders_are_refused(name: str, trainings: Trainings) -> None:
    with pytest.raises(BadRequest, match="agent name"):
        check_name(name)
    with pytest.raises(BadRequest, match="agent name"):
        trainings.get(name)


@pytest.mark.parametrize("name", ["base", "general", "narrative", "multi-hop", "multi-hop-reread"])
def test_names_of_agents_that_ship_are_refused(name: str) -> None:
    with pytest.raises(BadRequest, match="ships with the app"):
        check_name(name)


def test_mistakes_are_told_before_anything_is_written(
    trainings: Trainings, questions: Path, tmp_path: Path
) -> None:
    few = write_questions(tmp_path / "few.jsonl", 3)
    with pytest.raises(BadRequest, match=r"few\.jsonl has 3 questions"):
        trainings.start(Order("few", tiny_config(), MINILM, few))
    with pytest.raises(BadRequest, match="no file of questions"):
        trainings.start(Order("none", tiny_config(), MINILM))
    questions.write_text('{"question": "where ?", "chunks": ["a"], "support": [3]}\n', encoding="utf-8")
    with pytest.raises(BadRequest, match="support 3 is no chunk"):
        trainings.start(Order("wrong", tiny_config(), MINILM, questions))
    for action in (trainings.stop, trainings.resume):
        with pytest.raises(BadRequest, match="there is no training"):
            action("nobody")
    assert trainings.all() == []
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", MINILM), ("  ", MINILM), (str(TINY), str(TINY)), ("intfloat/e5-small", "intfloat/e5-small")],
)
def test_base_encoders(text: str, wanted: str) -> None:
    assert checked_base(text) == wanted


@pytest.mark.parametrize("text", ["/nowhere", "--out=x", "a/b/c", "a b"])
def test_a_base_encoder_that_is_none(text: str) -> None:
    with pytest.raises(BadRequest, match="base encoder"):
        checked_base(text)


@pytest.mark.parametrize(
    "config",
    [
        *(recipe_config(name) for name in RECIPES),
        tiny_config(
            objective="supervised",
            top_k_actions=None,
            soft_values=False,
            target_towers=False,
            bootstrap_at_cap=True,
            penalize_extra_steps=False,
        ),
        tiny_config(position_kind="relative", alpha=1e-7, seed=12),
    ],
)
def test_the_command_line_says_every_setting(config: TrainConfig, tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    order = Order("mine", config, "some/encoder")
    _, *flags = command(
        order,
        tmp_path / "mine",
        tmp_path / "log.duckdb",
        tmp_path / "q.jsonl" if config.data == "own" else None,
    )
    told = parser.parse_args(flags)
    wanted = config.to_json() | {"data": told.data}
    defaults = {
        "soft_values": True,
        "target_towers": True,
        "bootstrap_at_cap": False,
        "penalize_extra_steps": True,
    }
    assert {
        name: defaults[name] if (value := getattr(told, name)) is None and name in defaults else value
        for name in wanted
    } == wanted
    assert (told.out, told.log, told.base, told.questions is None) == (
        tmp_path / "mine",
        str(tmp_path / "log.duckdb"),
        "some/encoder",
        config.data != "own",
    )


def test_help_comes_from_the_settings_themselves() -> None:
    told = setting_help(TrainConfig)
    assert set(told) <= {field.name for field in fields(TrainConfig)}
    assert told["warmup"] == "Updates over which the rate rises from 0."
    assert len(told) > 12


@pytest.mark.usefixtures("trainings")
def test_a_quick_training_keeps_the_settings_that_do_not_make_it_quick() -> None:
    with gr.Blocks():
        tab = TrainTab(SimpleNamespace(log_path=default_log_path()))  # type: ignore[arg-type]
    quick, full = (tab._on_effort("own", effort) for effort in ("quick", "full"))
    assert quick[tab.settings["updates"]] == QUICK_UPDATES
    assert full[tab.settings["updates"]] == recipe_config("own").updates
    assert tab.settings["learning_rate"] not in quick | full


def test_the_example_file_is_in_the_format_it_explains(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(example_questions(), encoding="utf-8")
    assert [example.support for example in read_own_questions(path)] == [(0, 2), (1, 2)]


def make_training(n_updates: int, state: Any = "running", **changes: Any) -> ShownTraining:
    """As a child tells it, without one."""
    validated = {
        "event": "validated",
        "update": 0,
        "score": 0.25,
        "kept": True,
        "tasks": {"qa1": {"n": 2, "fact_f1_oracle_stop": 0.25, "fact_em_no_stop": 0.0}},
    }
    update = {
        "event": "update",
        "seconds_left": 600.0,
        "rate": 1e-4,
        "alpha": 0.03,
        "gradient_norm": 1.0,
        "td_loss": 0.5,
        "ranking_loss": 1.0,
        "success": 0.5,
    }
    steps = {
        "q": [0.5, 0.25],
        "v": [0.5, 0.0],
        "reward": [0.25, 0.5],
        "returns": [0.5, 0.5],
        "entropy": [1.0, 0.5],
        "tokens": 10,
    }
    updates = [{**update, **steps, "update": i + 1, "seconds": 2.0 * (i + 1)} for i in range(n_updates)]
    started = {"event": "started", "n_parameters": 57_344, "device": "cpu", "config": {}, "data": {}}
    config = recipe_config("own").to_json()
    return replace(
        ShownTraining("mine", Path("/nowhere"), state, config, ".", None, (started, validated, *updates)),
        **changes,
    )


@pytest.mark.usefixtures("trainings")
def test_agents_to_start_from() -> None:
    own = trained_folder("mine", weights="adapters")
    trained_folder("whole", weights="towers")
    assert startable_agents() == {
        "narrative": "narrative",
        "general": "general",
        "multi-hop": "multi-hop",
        "multi-hop-reread": "multi-hop-reread",
        "mine": str(own),
    }
    order = Order("more", replace(tiny_config(), start_from=startable_agents()["mine"]))
    assert f"--start-from={own}" in command(order, Path("out"), Path("log"))


@pytest.mark.parametrize(
    ("training", "words"),
    [
        (make_training(0, "starting"), "Preparing"),
        (make_training(0), "The first update"),
        (make_training(30), "Update 30 of 300 · about 10 min left · 60 s so far"),
        (make_training(1), "Update 1 of 300 · 2 s so far"),
        (make_training(30, "stopping"), "update 30 of 300 was the last"),
        (make_training(300, "finished"), "300 updates in 10 min"),
        (make_training(30, "stopped"), "Stopped after update 30 of 300; it begins again"),
        (make_training(30, "cut off"), "go on with the command line"),
        (make_training(0, "failed", config={}), "It did not begin"),
        (make_training(30, "elsewhere"), "a command line trains it"),
    ],
)
def test_where_a_training_stands(training: ShownTraining, words: str) -> None:
    assert words in view.standing(training)
    assert words in json.dumps(view.header(training), ensure_ascii=False)


def test_a_training_goes_on_from_its_last_validation_or_from_a_save_after_it(tmp_path: Path) -> None:
    (tmp_path / RESUME_FILE).touch()
    training = make_training(58, "stopped", folder=tmp_path)
    assert training.last_save == 50
    validated = {**training.validations[0], "update": 55}
    training = replace(training, events=(*training.events, validated))
    assert "goes on from update 55, its last save" in view.standing(training)


def test_words_and_tables_of_a_training() -> None:
    training = make_training(45)
    words = view.curve_words(training)
    assert words["success"] == "50 % over the last update"
    assert words["reward"].startswith("0.75 over")
    assert words["score"].startswith("0.250 after update 0: that agent is kept")
    first, second = (json.dumps(view.update_table(training, page)) for page in (0, 2))
    assert '["td", {}, ["45"]]' in first
    assert '["td", {}, ["1"]]' not in first
    assert '["td", {}, ["1"]]' in second
    assert "41 to 45 of 45" in second
    assert '"0.250"' in json.dumps(view.validation_table(training))
    assert "Not measured on this machine yet" in json.dumps(view.estimate(None, None, 900))
    assert "About 25 min: an update of an earlier" in json.dumps(view.estimate(5.0, 9.0, 300))
    assert "About 45 min on two cores" in json.dumps(view.estimate(None, 9.0, 300))


def test_the_pace_of_the_agent_that_ships_stands_in_for_one_not_measured_here() -> None:
    config = recipe_config("general")
    seconds = shipped_seconds_an_update(config)
    assert seconds is not None
    assert 5 < seconds < 20, "1,505 to 2,778 s for 200 updates each"
    assert shipped_seconds_an_update(replace(config, episodes=config.episodes + 1)) is None
    assert shipped_seconds_an_update(recipe_config("own")) == pytest.approx(2508 / 400)
    assert shipped_seconds_an_update(recipe_config("chains")) is None


def open_train(page: Page) -> None:
    page.get_by_role("tab", name="Train").click()
    expect(page.locator("#qx-train-list")).not_to_be_empty()


def choose_own_questions(page: Page) -> None:
    """What there is to learn from where no data sets are."""
    if len(available_data()) > 1:
        page.get_by_role("radio", name="My own questions").check()


def set_number(page: Page, setting: str, value: float) -> None:
    field = page.locator(f"#qx-train-{setting} input[type=number]")
    field.fill(str(value))
    field.press("Tab")


def begin_training(page: Page, name: str, questions: Path) -> None:
    """A long one over one's own questions, as far as its first update."""
    page.locator("#qx-train-name input, #qx-train-name textarea").fill(name)
    choose_files(page, "#qx-train-questions", questions)
    for setting, value in {"updates": 5000, "episodes": 2, "steps": 3, "rank": 4}.items():
        set_number(page, setting, value)
    page.locator("#qx-train-more button").first.click()
    set_number(page, "validate-every", 20)
    page.locator("#qx-train-base input, #qx-train-base textarea").fill(str(TINY))
    page.locator("#qx-train-start").click()
    expect(page.locator("#qx-train-header")).to_contain_text(GOES_ON, timeout=1000 * PATIENCE)


def curves_show(page: Page) -> None:
    expect(page.locator("#qx-train-success-figure .js-plotly-plot")).to_be_visible(timeout=60_000)
    expect(page.locator("#qx-train-q-figure .js-plotly-plot")).to_be_visible(timeout=60_000)


def wait_for_update(page: Page, number: int) -> None:
    page.wait_for_function(
        "number => +document.querySelector('#qx-train-header progress').value > number",
        arg=number,
        timeout=1000 * PATIENCE,
    )


def stop_training(page: Page) -> None:
    page.locator("#qx-train-stop").click()
    expect(page.locator("#qx-train-header")).to_contain_text("Stopped after update", timeout=1000 * PATIENCE)
    expect(page.locator("#qx-train-resume")).to_be_visible()


@pytest.mark.campaign
def test_own_questions_are_explained_and_a_wrong_name_is_told(
    tiny_app: RunningApp, open_page: OpenPage
) -> None:
    page = open_page(tiny_app.url)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    open_train(page)
    choose_own_questions(page)
    expect(page.locator("#qx-train-format")).to_contain_text('"support": [0, 2]')
    with page.expect_download() as download:
        page.get_by_role("button", name="Download this example").click()
    assert download.value.path().read_text(encoding="utf-8") == example_questions()
    page.locator("#qx-train-name input, #qx-train-name textarea").fill("Mine!")
    page.locator("#qx-train-start").click()
    expect(page.locator("#qx-train-notice")).to_contain_text("agent name 'Mine!' must be", timeout=20_000)
    assert errors == []


@pytest.mark.campaign
def test_a_training_goes_on_while_the_app_is_closed(
    start_app: StartApp, open_page: OpenPage, tmp_path: Path
) -> None:
    app = start_app()
    page = open_page(app.url)
    wait_ready(page)
    open_train(page)
    expect(page.locator("#qx-train-list")).to_contain_text("No agent was trained here yet")
    choose_own_questions(page)
    page.locator("#qx-train-start-from input").click()
    for name in ("The base encoder", "narrative", "multi-hop"):  # `base` has no adapters
        expect(page.get_by_role("option", name=name, exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    begin_training(page, "mine", write_questions(tmp_path / "mine.jsonl"))
    curves_show(page)
    wait_for_update(page, int(page.locator("#qx-train-header progress").get_attribute("value") or 0))

    app = start_app()  # the app is closed and started again; the training goes on meanwhile
    page = open_page(app.url)
    wait_ready(page)
    open_train(page)
    expect(page.locator("#qx-train-header")).to_contain_text(GOES_ON, timeout=60_000)
    wait_for_update(page, 22)
    stop_training(page)
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        settle(page)  # colours fade into each other
        assert grave_faults(page) == []
    page.locator("#qx-train-updates-toggle button").first.click()
    expect(page.locator("#qx-train-curve-table tbody tr")).to_have_count(20)
    newest = page.locator("#qx-train-curve-table tbody tr td").first.inner_text()
    page.locator("#qx-train-curve-table").get_by_role("button", name="after").click()
    expect(page.locator("#qx-train-curve-table tbody tr td").first).to_have_text(
        f"{int(newest.replace(',', '')) - 20:,}", timeout=20_000
    )

    page.locator("#qx-train-explore").click()
    expect(page.locator("#qx-agent input")).to_have_value("mine", timeout=60_000)
    wait_ready(page, seconds=200)
    page.locator("#qx-run").click()
    expect(page.locator("#qx-steps .qx-step")).to_have_count(4, timeout=60_000)
    open_train(page)
    page.locator("h3:has-text('Trainings')").click()
    page.keyboard.press("b")  # keys of Explore do nothing here
    settle(page)
    page.get_by_role("tab", name="Explore").click()
    expect(page.locator("#qx-steps .qx-step")).to_have_count(4)

    narrow = open_page(app.url, width=360, height=740, colour_scheme="dark")
    open_train(narrow)
    expect(narrow.locator("#qx-train-header")).to_contain_text("Stopped", timeout=60_000)
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 360
