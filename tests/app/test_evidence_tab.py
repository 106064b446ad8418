"""Evidence sets of the app: a tiny agent beside the real base encoder, the policy and the reader that ship."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from playwright.sync_api import Page, expect

from app.pages.evidence.layout import MODEL
from app.pages.evidence.tab import CameSet, EvidencePlace, EvidenceTab, read_order
from app.services.evidence_sets import MAX_BUDGET, EvidenceSets, SetOrder, measured
from app.services.in_view import Labelled, OpenDocuments
from app.services.library import OpenOrder
from app.services.session import Session
from app.services.shared import Services
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, Cancelled, RunNotFound
from core.base.events import fold
from core.base.progress import finish
from core.base.types import Document
from core.llm.endpoint import connect
from core.methods.resrag.action import action_json, action_of
from core.methods.resrag.retriever import EvidenceSet
from core.methods.threshold import Threshold
from core.methods.topk import TopK
from core.runs.again.records import logged_json_ld
from core.runs.again.replay import replay_run
from core.runs.export.page import run_page
from core.runs.export.runs import export_runs
from core.runs.log import LoggedRun, import_runs
from tests.app.axe import grave_faults, grave_faults_in_both
from tests.app.conftest import RunningApp, upload, wait_ready
from tests.app.opened import LETTER_QUESTION as QUESTION
from tests.app.opened import LETTER_SUPPORT as SUPPORT
from tests.app.opened import letter_chunks, with_label
from tests.conftest import CAMPAIGN, OpenPage
from tests.llm_server import serve_llm
from tests.settled import settle
from tests.silent_llm import SilentLlm

PAGE_LD = {"@type": "FAQPage", "name": "Letters </pre><script>"}


@pytest.fixture(scope="module")
def services(services_of_file: Services) -> Services:
    return services_of_file


@pytest.fixture
def sets(services: Services) -> EvidenceSets:
    return EvidenceSets(services)


@pytest.fixture
def documents(services: Services) -> OpenDocuments:
    """Thirty short chunks under the tiny agent and a page with JSON-LD, with one question whose support is
    known.
    """
    opened = finish(
        services.library.open(
            OpenOrder(services.agents.load("tiny")),
            [
                Document("story", "\n\n".join(letter_chunks()), "text"),
                Document("page", "# Letters\n\nHow letters are written.", "markdown", (PAGE_LD,)),
            ],
        )
    )
    return with_label(services, opened, Labelled(QUESTION, "stone", 2, SUPPORT))


def quiet(_: object) -> None:
    """Nobody listens."""


def logged(services: Services, run_id: str) -> LoggedRun:
    services.log.flush()
    return services.own_log.get(run_id)


def test_a_run_is_logged_with_its_action_and_json_ld(
    sets: EvidenceSets, services: Services, documents: OpenDocuments
) -> None:
    run = sets.run(documents, SetOrder(f" {QUESTION} ", 8), quiet)
    kept = logged(services, run.run_id)
    assert (kept.status, kept.record.method, kept.record.query, kept.record.checkpoint) == (
        "complete",
        "resrag",
        QUESTION,
        "general",
    )
    assert kept.trace.chosen == run.trace.chosen
    assert kept.record.label == {"support": list(SUPPORT), "answer": "stone"}
    assert kept.details["set"]["action"] == action_json(
        action_of(run.trace.chosen, documents.workspace.borders)
    )
    assert logged_json_ld(kept) == ("", json.dumps(PAGE_LD))
    assert kept.details["answer"] == run.answer.to_json()


def test_another_budget_is_the_set_that_a_run_at_it_takes(
    sets: EvidenceSets, services: Services, began: datetime, documents: OpenDocuments
) -> None:
    run = sets.run(documents, SetOrder(QUESTION, 8), quiet)
    opened = finish(services.library.under(documents, services.agents.load("general")))
    method = EvidenceSet(opened.agent.encoder)
    for budget in (1, 2, 8, MAX_BUDGET):
        view = sets.at(run, budget)
        size = min(budget, len(opened.corpus))
        fresh = fold(method.retrieve(QUESTION, opened.corpus, EpisodeConfig(step_budget=size)))
        assert view.taken == fresh.chosen
        assert view.chances.tolist() == fresh.scores_at(1).q_values.tolist()  # type: ignore[union-attr]
    assert services.own_log.search(owner=None, since=began).total == 1


def test_what_a_set_is_compared_with_is_what_the_methods_take(
    sets: EvidenceSets, services: Services, documents: OpenDocuments
) -> None:
    view = sets.at(sets.run(documents, SetOrder(QUESTION, 8), quiet), 8)
    plain = finish(services.library.under(documents, services.agents.load("base")))
    top_k, threshold, everything = view.rivals
    for rival, method in ((top_k, TopK(plain.agent.encoder)), (threshold, Threshold(plain.agent.encoder))):
        config = EpisodeConfig(step_budget=max(1, rival.n_chunks))
        taken = fold(method.retrieve(QUESTION, plain.corpus, config)).chosen
        assert rival.n_tokens == sum(documents.workspace[chunk_id].n_tokens for chunk_id in taken)
    assert (everything.n_chunks, everything.n_tokens) == (len(documents.corpus), documents.workspace.n_tokens)


def test_the_answer_to_another_set_is_read_once(
    sets: EvidenceSets, services: Services, documents: OpenDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sets.run(documents, SetOrder(QUESTION, 8), quiet)
    assert sets.at(run, 8).answer == run.answer
    other = next(view for budget in (1, 2) if (view := sets.at(run, budget)).taken != run.trace.picks)
    assert (other.answer, other.reward) == (None, None)
    told = sets.answered(other)
    assert told.answer == services.read(run, other.taken)
    assert told.reward is not None
    monkeypatch.setattr(services, "read", lambda *_: pytest.fail("read twice"))
    assert sets.at(run, other.budget).answer == told.answer


def test_a_run_opens_again_from_the_log_alone(
    services: Services, documents: OpenDocuments, sets: EvidenceSets, tmp_path: Path
) -> None:
    run = sets.run(documents, SetOrder(QUESTION, 8), quiet)
    before = sets.at(run, 2)
    file = export_runs(services.own_log, [run.run_id], "json", tmp_path / "run.jsonl")
    bare = export_runs(services.own_log, [run.run_id], "json", tmp_path / "bare.jsonl", include_text=False)
    services.delete_run(run.run_id, None)
    with pytest.raises(RunNotFound):
        sets.open(run.run_id, None, quiet)
    assert import_runs(services.own_log, file) == 1
    again = EvidenceSets(services)
    opened = again.open(run.run_id, None, quiet)
    shown = again.at(opened, 2)
    assert (shown.taken, shown.chances.tolist()) == (before.taken, before.chances.tolist())
    assert shown.json_ld == before.json_ld == ("", json.dumps(PAGE_LD))
    assert again.at(opened, 8).taken == run.trace.chosen
    kept, texts = logged(services, run.run_id), services.own_log.documents(run.run_id)
    assert '"Document_2"' in run_page(kept, texts).replace("&quot;", '"')
    assert replay_run(kept, texts, services.agents.load("general").encoder).report.holds
    assert "Letters" not in bare.read_text(encoding="utf-8")


def test_an_unlabelled_question_has_an_answer_and_no_reward(
    sets: EvidenceSets, documents: OpenDocuments
) -> None:
    view = sets.at(sets.run(documents, SetOrder("who went to the garden ?", 8), quiet), 8)
    assert view.answer is not None
    assert view.reward is None
    assert view.rivals[0].name == "top-k, same size"
    assert view.tokens == sum(documents.workspace[chunk_id].n_tokens for chunk_id in view.taken)


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        (SetOrder(" ", 8), "the question is empty"),
        (SetOrder(QUESTION, 0), "budget 0 must be between 1 and 24"),
        (SetOrder(QUESTION, 25), "budget 25 must be between 1 and 24"),
        (SetOrder("\ud800", 8), "half a character"),
    ],
)
def test_orders_that_can_not_be_leave_no_run(
    sets: EvidenceSets,
    services: Services,
    began: datetime,
    documents: OpenDocuments,
    order: SetOrder,
    sentence: str,
) -> None:
    with pytest.raises(BadRequest, match=sentence):
        sets.run(documents, order, quiet)
    assert services.own_log.search(owner=None, since=began).total == 0
    assert sets.idle.is_set()


@pytest.mark.parametrize("budget", [None, math.nan, math.inf, 2.5])
def test_a_budget_is_a_whole_number(budget: float | None) -> None:
    with pytest.raises(BadRequest, match="the budget is empty" if budget is None else "no whole number"):
        read_order(QUESTION, budget)


def test_a_cancel_while_embedding_leaves_no_run(
    sets: EvidenceSets, services: Services, began: datetime, documents: OpenDocuments
) -> None:
    def leave(_: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        sets.run(documents, SetOrder(QUESTION, 8), leave)
    assert services.own_log.search(owner=None, since=began).total == 0
    assert sets.idle.is_set()
    assert sets.run(documents, SetOrder(QUESTION, 8), quiet).ended


def test_runs_of_other_methods_are_refused(
    sets: EvidenceSets, services: Services, documents: OpenDocuments
) -> None:
    config = documents.agent.spec.episode_config(step_budget=1)
    trace = fold(documents.agent.run(QUESTION, documents.corpus, config))
    run_id = services.keep_run(trace, documents.workspace, documents.agent, None, None)
    with pytest.raises(BadRequest, match="no evidence set"):
        sets.open(run_id, None, quiet)


def test_a_cancel_reaches_a_silent_language_model(
    sets: EvidenceSets, documents: OpenDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.pulse._PULSE", 0.0)
    llm = SilentLlm()

    def report(_: object) -> None:
        if llm.is_asked:
            raise Cancelled

    with pytest.raises(Cancelled):
        sets.run(documents, SetOrder(QUESTION, 3, by_model=True), report, llm)
    assert llm.is_asked


def test_a_language_model_chooses_where_it_is_asked_to(
    sets: EvidenceSets, services: Services, began: datetime, documents: OpenDocuments
) -> None:
    order = SetOrder(QUESTION, 3, by_model=True)
    with pytest.raises(BadRequest, match="no language model is connected"):
        sets.run(documents, order, quiet)
    assert services.own_log.search(owner=None, since=began).total == 0
    with serve_llm(lambda _: '{"Document_1": [4, 1, 2], "Document_2": []}') as server:
        run = sets.run(documents, order, quiet, connect(server.url, "tiny"))
        server.answer("nonsense", "nonsense")
        with pytest.raises(BadRequest, match="twice gave no usable JSON object"):
            sets.run(documents, order, quiet, connect(server.url, "tiny"))
    view = sets.at(run, 3)
    assert (view.by_model, view.taken, view.tokens > 0, view.n_support_found) == (True, (3, 0, 1), True, 1)
    assert sets.at(run, 2).taken == (3, 0)
    assert sets.at(run, MAX_BUDGET).taken == (3, 0, 1)
    assert sets.answered(view).answer is not None
    kept = logged(services, run.run_id)
    assert (kept.record.method, kept.details["set"]["action"]["Document_1"]) == ("resrag-llm", [4, 1, 2])
    assert logged_json_ld(kept) == ("", json.dumps(PAGE_LD))
    texts = services.own_log.documents(run.run_id)
    assert "The language model took" not in run_page(kept, texts)  # the budget ended it
    with pytest.raises(BadRequest, match="may choose otherwise"):
        replay_run(kept, texts, services.agents.load("base").encoder)
    again = EvidenceSets(services)
    assert again.at(again.open(run.run_id, None, quiet), 3).taken == (3, 0, 1)


# The tab's handlers


@pytest.fixture
def blocks() -> gr.Blocks:
    return gr.Blocks()


@pytest.fixture
def tab(services: Services, blocks: gr.Blocks) -> EvidenceTab:
    with blocks:
        return EvidenceTab(services, gr.State(Session()), gr.Textbox(), gr.HTML())


def last(updates: Any) -> dict[Any, Any]:
    """Everything that a generator said, the last of each component."""
    told: dict[Any, Any] = {}
    for update in updates:
        told |= update
    return told


def ran(
    tab: EvidenceTab, session: Session, now: EvidencePlace | None = None, budget: int = 8
) -> dict[Any, Any]:
    """All that a run says to a page that is at `now`, its slider at `budget`, by the run's end."""
    told = last(tab._run(session, EvidencePlace(), QUESTION, 8))
    return told | last(tab._came(session, now or EvidencePlace(), told[tab.came], budget, QUESTION))


def wired(blocks: gr.Blocks, name: str) -> Callable[..., Any]:
    """A handler as its event calls it."""
    return next(one.fn for one in blocks.fns.values() if one.fn is not None and one.name == name)


def click(act: str, arg: object = "") -> Any:
    return SimpleNamespace(_data={"act": act, "arg": str(arg)})


def text(tree: object) -> str:
    return json.dumps(tree, ensure_ascii=False)


def test_clicks_open_rows_and_chunks_and_nothing_else(
    tab: EvidenceTab, services: Services, documents: OpenDocuments
) -> None:
    session = Session(corpus=documents.token)
    told = ran(tab, session)
    place = told[tab.place]
    assert "chunks" in text(told[tab.sentence])
    run_id = logged(services, services.library.runs.get(place.run).run_id).record.run_id  # type: ignore[union-attr]
    assert told[tab.page] == f"run={run_id}"
    assert place.tokens == (place.run,)
    opened = tab._on_click(session, place, click("row", 1))
    assert 1 in opened[tab.place].shown.opened
    assert "JSON-LD of the page" in text(opened[tab.documents])
    read = tab._on_click(session, place, click("open", 7))
    assert "Open in Explore" in text(read[tab.reading])
    assert tab._on_click(session, place, click("explore", 7))[tab.to_explore].chunk_id == 7
    with pytest.raises(BadRequest, match="another document open"):
        tab._on_click(Session(corpus="other"), place, click("explore", 7))
    assert (tab._address(place), tab._address(EvidencePlace())) == (f"run={run_id}", gr.skip())
    assert tab._on_click(session, read[tab.place], click("close"))[tab.reading] == []
    few = tab._on_click(session, place, click("rows", "taken"))
    assert few[tab.place].shown.only_taken
    wrong = {"row": 2, "explore": "x", "no such": 1, "runs": "<b>"}
    for act, arg in [("open", 10**9), ("open", "-1"), *wrong.items()]:
        assert tab._on_click(session, place, click(act, arg)) == {}


def test_the_budget_moves_the_set_and_logs_nothing(
    tab: EvidenceTab, blocks: gr.Blocks, services: Services, began: datetime, documents: OpenDocuments
) -> None:
    session = Session(corpus=documents.token)
    place = ran(tab, session)[tab.place]
    moved = last(tab._on_budget(session, place, 1))
    assert moved[tab.place].budget == 1
    assert "Reading it" not in text(moved[tab.sentence])
    assert len(json.loads(moved[tab.action][1][2][0])["Document_1"]) <= 1
    on_budget = wired(blocks, "_on_budget")
    assert "the budget is empty" in text(last(on_budget(session, place, None))[tab.asking.notice])
    assert last(tab._on_budget(session, place, place.budget)) == {tab.asking.notice: []}
    assert "must be between" in text(last(on_budget(session, place, 99))[tab.asking.notice])
    assert services.own_log.search(owner=None, since=began).total == 1
    services.library.runs.drop(place.run)
    assert "not in memory any more" in text(last(on_budget(session, place, 3))[tab.asking.notice])


def test_what_is_set_during_a_run_is_what_it_shows(tab: EvidenceTab, documents: OpenDocuments) -> None:
    session = Session(corpus=documents.token)
    moved = EvidencePlace(budget=1, task="nq", measure="recall", seen=("a", "b"))
    told = ran(tab, session, moved, budget=1)
    place = told[tab.place]
    assert (place.budget, place.task, place.measure, place.seen) == (1, "nq", "recall", ("a", "b"))
    assert len(json.loads(told[tab.action][1][2][0])["Document_1"]) <= 1
    emptied = last(tab._came(session, place, CameSet(place.run), None, QUESTION))
    assert emptied[tab.place].budget == 8, "that it was asked with"
    typed = last(tab._came(session, place, CameSet(place.run), 1, "another question ?"))
    assert "was chosen: question." in text(typed[tab.asking.standing])
    wanted = last(tab._came(session, place, CameSet(place.run, brings=True), 1, "another question ?"))
    assert (wanted[tab.budget], wanted[tab.asking.question]) == (8, QUESTION)


def test_dots_of_the_frontier_lead_to_runs_where_there_are_any(
    tab: EvidenceTab, documents: OpenDocuments
) -> None:
    session = Session(corpus=documents.token)
    assert {curve.method for curve in measured()} >= {"topk", "qrag", "sparc", "resrag"}
    assert all(len({one.reader for one in measured() if one.task == curve.task}) == 1 for curve in measured())
    for method in ("sparc", "resrag"):
        none = tab._on_click(Session(owner="f" * 64), EvidencePlace(), click("runs", method))
        assert f"No run of {method}" in text(none[tab.frontier_notice])
    place = ran(tab, session)[tab.place]
    some = tab._on_click(session, place, click("runs", "resrag"))
    assert some[tab.to_experiments][0] == "resrag"
    assert tab._on_click(session, place, click("task", "nq"))[tab.place].task == "nq"


def test_without_documents_and_with_another_s_run(
    tab: EvidenceTab, blocks: gr.Blocks, documents: OpenDocuments
) -> None:
    told = last(wired(blocks, "_run")(Session(), EvidencePlace(), QUESTION, 8))
    assert "no document is open" in text(told[tab.asking.notice])
    place = ran(tab, Session(corpus=documents.token))[tab.place]
    unasked = last(tab._run(Session(corpus=documents.token), place, QUESTION, 8, MODEL))
    assert "no language model is connected" in text(unasked[tab.asking.notice])
    changed = tab._on_question(Session(corpus=documents.token), place, QUESTION, MODEL)
    assert "no language model is connected" in text(changed[tab.asking.line])
    assert "was chosen: policy." in text(changed[tab.asking.standing])
    stranger = wired(blocks, "_on_click")(Session(owner="f" * 64), place, click("open", 3))
    assert "not in memory any more" in text(stranger[tab.asking.notice])


# In the browser


def sets_page(page: Page) -> None:
    page.get_by_role("tab", name="Evidence sets", exact=True).click()
    settle(page)


def run_set(page: Page) -> None:
    page.locator("#qx-sets-run").click()
    expect(page.locator("#qx-sets-said .qx-set-say")).to_be_visible(timeout=120_000)
    expect(page.locator("#qx-sets-said")).not_to_contain_text("Reading it", timeout=60_000)
    settle(page)


def budget(page: Page, value: int) -> None:
    field = page.locator("#qx-sets-budget input[type=number]")
    field.fill(str(value))
    field.press("Enter")
    settle(page)


def actions(page: Page) -> dict[str, Sequence[int]]:
    told: dict[str, Sequence[int]] = json.loads(page.locator("#qx-sets-action pre").inner_text())
    return told


@pytest.mark.campaign
def test_a_set_from_question_to_experiments_and_back(
    tiny_app: RunningApp, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(tiny_app.url)
    wait_ready(page)
    hostile = "<img src=x onerror=alert(1)>"
    block = json.dumps({"@type": "Recipe", "name": hostile}).replace("<", "\\u003c")
    soup = tmp_path / "soup.html"
    soup.write_text(
        f'<title>Soup</title><script type="application/ld+json">{block}</script><h1>Soup</h1>'
        "<p>The cook of the Blue Anchor is Tadeusz Wolny.</p><h2>Salt</h2><p>Add salt last.</p>",
        encoding="utf-8",
    )
    road = tmp_path / "road.md"
    road.write_text("# Road\n\nThe road is closed in winter.\n\n# Bridge\n\nThe bridge is of oak.", "utf-8")
    upload(page, soup, road)
    sets_page(page)
    expect(page.locator("#qx-sets-header")).to_contain_text("and 1 more")
    expect(page.locator("#qx-sets-said")).to_contain_text("Ask a question.")
    page.locator("#qx-sets-question textarea").fill("Who is the cook of the Blue Anchor?")
    run_set(page)
    assert sorted(actions(page)) == ["Document_1", "Document_2"]
    assert actions(page)["Document_1"]
    expect(page.locator("#qx-sets-said")).to_contain_text("Tadeusz")
    row = page.locator(".qx-set-row").first
    expect(row).to_contain_text("Recipe")
    row.locator("summary").click()
    expect(row.locator("pre")).to_contain_text(hostile)
    assert page.locator("#qx-sets-documents img").count() == 0

    row.locator(".qx-set-list .qx-link").first.click()
    reading = page.locator("#qx-sets-reading")
    expect(reading).to_contain_text("taken at a budget of 8")
    assert (grave_faults_in_both if CAMPAIGN else grave_faults)(page) == []
    reading.get_by_role("button", name="Close").click()
    expect(reading).to_have_text("")
    budget(page, 1)
    assert sum(map(len, actions(page).values())) <= 1
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    ends = "[...document.querySelectorAll('.qx-seg button')].map((one) => one.getBoundingClientRect().right)"
    assert 0 < max(page.evaluate(ends)) <= 390, "what a group clips can't be reached"
    page.set_viewport_size({"width": 1280, "height": 900})

    page.locator("#qx-sets-frontier .qx-ring").click()
    rows = page.locator("#qx-runs-list tbody tr")
    expect(rows.first).to_contain_text("RES-RAG", timeout=30_000)
    rows.first.locator(".qx-query").click()
    expect(page.locator("#qx-run-explore")).to_have_text("Open in Evidence sets")
    page.locator("#qx-run-explore").click()
    expect(page.locator("#qx-sets-said .qx-set-say")).to_be_visible(timeout=60_000)
    settle(page)
    expect(page.locator("#qx-sets-budget input[type=number]")).not_to_have_value("1")
    expect(page.locator("#qx-sets-said")).to_contain_text("Tadeusz")
    row.locator("summary").click()
    expect(row.locator("pre")).to_contain_text(hostile)

    page.locator(".qx-set-list .qx-link").first.click()
    reading.get_by_role("button", name="Open in Explore").click()
    expect(page.locator("#qx-question")).to_be_visible()
    assert page.title() == "Q-RAG Explorer"
