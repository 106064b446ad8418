"""Comparisons from the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Locator, Page, Route, expect

from app.pages.compare import difference as difference_view
from app.pages.compare import view
from app.pages.compare.difference import Cuts
from app.pages.compare.tab import CompareTab
from app.services.comparisons import (
    AS_OPEN,
    ColumnRef,
    Compared,
    Comparing,
    ComparisonOrder,
    Comparisons,
    CutRow,
    FromExplore,
    ShownColumn,
    own_key,
)
from app.services.explorer import Explorer
from app.services.in_view import Labelled, OpenDocuments
from app.services.library import OpenOrder
from app.services.recent import Recent
from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from core.base.config import CHUNKERS
from core.base.errors import BadRequest, Cancelled, RunNotFound
from core.base.events import fold
from core.base.progress import finish
from core.base.types import Workspace
from core.runs.foreign.files import read_foreign
from core.runs.foreign.traces import bring, log_brought
from core.runs.whatif.comparison import comparison_json
from core.runs.whatif.cuts import chunks_of, share_found, sizes_for, spans_of
from core.runs.whatif.variant import Change
from core.views.draw.nodes import html_of
from tests.app.axe import grave_faults
from tests.app.conftest import RunningApp, wait_ready
from tests.app.explore_page import chosen, excerpt, open_pasted
from tests.app.opened import FORTY_DAYS, pasted, pasted_documents, with_label
from tests.conftest import OpenPage
from tests.settled import release, settle
from tests.silent_llm import SilentLlm

ASKED = "Where was the blanket before the chapel?"
QUERY = "where was the apple before the hallway ?"
EVERY = ("qrag:tiny", "hybrid", "topk", "bm25", "threshold", "multistep")
SUPPORT = (0, 20, 39)


@pytest.fixture(scope="module")
def services(services_of_file: Services) -> Services:
    return services_of_file


@pytest.fixture
def comparisons(services: Services) -> Comparisons:
    return Comparisons(services)


def opened(services: Services, text: str) -> OpenDocuments:
    return with_label(services, pasted_documents(services, text), Labelled(QUERY, "garden", 2, SUPPORT))


@pytest.fixture
def documents(services: Services) -> OpenDocuments:
    return opened(services, FORTY_DAYS)


def compared(
    comparisons: Comparisons, documents: OpenDocuments, order: ComparisonOrder
) -> tuple[Compared, list[ShownColumn]]:
    place = Compared(documents.token, order, comparisons.run(documents, order, lambda _: None))
    return place, comparisons.shown_columns(place)


def test_columns_are_logged_runs_that_explore_opens(
    comparisons: Comparisons, services: Services, began: datetime, documents: OpenDocuments
) -> None:
    before = len(services.library.corpora.all())
    waits = comparisons.to_embed(documents, EVERY)
    assert set(waits.methods) == {"hybrid", "topk", "threshold", "multistep"}
    assert waits.n_chunks == 40, "once for all of them"
    place, columns = compared(comparisons, documents, ComparisonOrder(QUERY, EVERY, 3))
    assert [column.name for column in columns] == [
        "Q-RAG tiny",
        "BM25",
        "hybrid",
        "top-k",
        "threshold",
        "multi-step",
    ]
    assert not comparisons.to_embed(documents, EVERY).methods
    logged = {
        row.run_id: (row.method, row.status) for row in services.own_log.search(owner=None, since=began).rows
    }
    methods = ("qrag", "bm25", "hybrid", "topk", "threshold", "multistep")
    assert logged == {
        column.run.run_id: (method, "complete")
        for column, method in zip(columns, methods, strict=True)
        if column.run
    }
    agent, multistep = columns[0].run, columns[5].run
    assert agent.trace.chosen == fold(documents.agent.run(QUERY, documents.corpus, agent.config)).chosen
    session = finish(Explorer(services).attach(multistep.run_id))
    again = services.library.runs.get(session.run)
    assert again.documents.workspace is documents.workspace
    assert again.trace.chosen == multistep.trace.chosen
    assert again.gold == SUPPORT

    comparisons.run(documents, ComparisonOrder(QUERY, EVERY, 2), lambda _: None)
    assert len(services.library.corpora.all()) == before + 1, "the base encoder's vectors were opened once"

    services.library.runs = Recent(2**30, lambda run: run.n_bytes)  # as after a restart
    opened_again = comparisons.open([column.run.run_id for column in columns if column.run], None, print)
    assert [column.name for column in opened_again.columns] == [column.name for column in place.columns]
    assert (opened_again.order.query, opened_again.order.k) == (QUERY, 3)
    assert set(opened_again.order.methods) == set(EVERY)
    shown = comparisons.shown_columns(opened_again)
    assert [column.trace and column.trace.chosen for column in shown] == [
        column.trace and column.trace.chosen for column in columns
    ]


def test_runs_over_another_cut_are_none_of_the_same_chunks(
    comparisons: Comparisons, services: Services, documents: OpenDocuments
) -> None:
    workspace = documents.workspace
    [table] = workspace.tables
    cut = Workspace(workspace.documents, (replace(table, end=table.end - 1),), workspace.configs)
    other = finish(services.library.reopen(OpenOrder(documents.agent), cut))
    runs = [compared(comparisons, each, ComparisonOrder(QUERY, ("bm25",), 3)) for each in (documents, other)]
    ids = [columns[0].run.run_id for _, columns in runs]
    assert [services.searched(ids[0], each) for each in (documents, other)] == [True, False]
    services.library.runs = Recent(2**30, lambda run: run.n_bytes)  # as after a restart
    with pytest.raises(BadRequest, match="several questions, documents or ways of cutting"):
        comparisons.open(ids, None, print)
    waits = [comparisons.to_embed(each, ["topk"]).n_chunks for each in (documents, other)]
    assert waits[1] == 40, "whatever was counted of the first cut"


@pytest.mark.parametrize("method", ["resrag-llm", "sparc"])
def test_a_cancel_reaches_a_silent_language_model(
    method: str, comparisons: Comparisons, documents: OpenDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.pulse._PULSE", 0.0)
    llm = SilentLlm()

    def report(_: Comparing[ColumnRef]) -> None:
        if llm.is_asked:
            raise Cancelled

    with pytest.raises(Cancelled):
        comparisons.run(documents, ComparisonOrder(QUERY, (method,), 3), report, llm)
    assert llm.is_asked


def test_an_evidence_set_is_a_column_like_the_others(
    comparisons: Comparisons, services: Services, documents: OpenDocuments
) -> None:
    place, columns = compared(comparisons, documents, ComparisonOrder(QUERY, ("topk", "resrag"), 3))
    assert [column.name for column in columns] == ["top-k", "RES-RAG"]
    run = columns[1].run
    assert len(run.trace.chosen) <= 3
    session = finish(Explorer(services).attach(run.run_id))
    again = services.library.runs.get(session.run)
    assert (again.trace.started.method, again.trace.chosen) == ("resrag", run.trace.chosen)
    exported = comparison_json(QUERY, columns, documents.workspace)["methods"]
    assert sorted(exported["RES-RAG"]["action"]["Document_1"]) == [
        chunk_id + 1 for chunk_id in run.trace.evidence
    ]
    assert "action" not in exported["top-k"]
    assert "chance" in json.dumps(view.results(place, columns))


def test_a_cancel_keeps_the_columns_that_were_there(
    comparisons: Comparisons, services: Services, began: datetime, documents: OpenDocuments
) -> None:
    told: list[Comparing[ColumnRef]] = []

    def report(now: Comparing[ColumnRef]) -> None:
        told.append(now)
        if now.name == "hybrid" and now.stage == "retrieving" and now.done == 1:
            raise Cancelled

    with pytest.raises(Cancelled):
        comparisons.run(documents, ComparisonOrder(QUERY, EVERY, 3), report)
    assert comparisons.comparing.is_set()
    assert [ref.name for ref in told[-1].columns] == ["Q-RAG tiny"]
    statuses = {row.method: row.status for row in services.own_log.search(owner=None, since=began).rows}
    assert statuses == {"qrag": "complete", "hybrid": "cancelled"}
    assert {now.stage for now in told} == {"embedding", "retrieving"}


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (ComparisonOrder("  ", EVERY), "the question is empty"),
        (ComparisonOrder(QUERY, ()), "no method is chosen"),
        (ComparisonOrder(QUERY, ("topk", "dense")), "'dense' does not exist"),
        (ComparisonOrder(QUERY, ("qrag:nobody",)), "'qrag:nobody' does not exist"),
        (ComparisonOrder(QUERY, EVERY, 0), "0 chunks each must be between 1 and 12"),
        (ComparisonOrder(QUERY, EVERY, 13), "k = 13 chunks each must be between 1 and 12, since a state"),
        (ComparisonOrder(QUERY, EVERY, 13), "holds few; choose a k in between"),
        (ComparisonOrder(QUERY, ("topk", "multistep"), 4, True), "no agent is chosen"),
    ],
)
def test_orders_that_can_not_be_are_refused(
    comparisons: Comparisons, documents: OpenDocuments, order: ComparisonOrder, words: str
) -> None:
    with pytest.raises(BadRequest, match=words):
        comparisons.run(documents, order, lambda _: None)
    assert comparisons.comparing.is_set()


def test_a_method_that_refuses_says_so_in_its_column(comparisons: Comparisons, services: Services) -> None:
    signs = opened(services, "\n\n".join(f"{a} {b} ." for a in "?!;:," for b in "()[]%"))
    place, columns = compared(comparisons, signs, ComparisonOrder("Was it the ?", ("topk", "bm25"), 2))
    assert {column.name: column.run is None for column in columns} == {"top-k": False, "BM25": True}
    shown = json.dumps(view.results(place, columns))
    assert "no chunk of the document holds a word" in shown
    assert "only here" not in shown, "there is nothing to compare with"
    assert list(
        json.loads(_downloads(view.heading(place, columns, signs.workspace))["comparison.json"])["methods"]
    ) == ["top-k"]


def _downloads(nodes: object) -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(nodes, list):
        if len(nodes) == 3 and isinstance(nodes[1], dict) and nodes[1].get("data-act") == "download":
            found[nodes[1]["data-name"]] = nodes[1]["data-arg"]
        for node in nodes:
            found |= _downloads(node)
    return found


def test_the_page_shows_the_columns_that_answered_as_the_tab_does(
    comparisons: Comparisons, documents: OpenDocuments, tmp_path: Path
) -> None:
    place, columns = compared(comparisons, documents, ComparisonOrder(QUERY, EVERY, 3))
    page = BeautifulSoup(comparisons.page(place, tmp_path).read_text(encoding="utf-8"), "html.parser")
    shown = [BeautifulSoup("".join(map(html_of, view.results(place, columns))), "html.parser"), page]
    for cards in (".qx-column h4", ".qx-found > li", ".qx-picture svg", ".qx-column-stop"):
        tab, exported = ([str(node) for node in soup.select(cards)] for soup in shown)
        assert tab
        assert tab == exported
    for name, nodes in (("support", view.support(columns)), ("common", view.common(columns))):
        told = BeautifulSoup("".join(map(html_of, nodes)), "html.parser").decode_contents()
        assert page.select_one(f"#qx-compare-{name} .qx-tree").decode_contents() == told
    why = "step budget 9 must be between 1 and 8; ask for fewer <chunks>"
    partly = replace(place, columns=(ColumnRef("BM25", refused=why), *place.columns))
    told = BeautifulSoup(
        "".join(map(html_of, view.results(partly, comparisons.shown_columns(partly)))), "html.parser"
    )
    kept = BeautifulSoup(comparisons.page(partly, tmp_path).read_text(encoding="utf-8"), "html.parser")
    for soup in (told, kept):
        [said] = soup.select(".qx-column [role=alert]")
        assert said.get_text() == why
        assert len(soup.select(".qx-column h4")) == len(columns) + 1, "the others stay"
    refusing = replace(place, columns=(ColumnRef("BM25", refused="no"),))
    with pytest.raises(BadRequest, match="every method refused"):
        comparisons.page(refusing, tmp_path)


def test_support_is_told_where_it_is_known(comparisons: Comparisons, documents: OpenDocuments) -> None:
    place, columns = compared(comparisons, documents, ComparisonOrder(QUERY, EVERY, 3))
    table = json.dumps(view.support(columns), ensure_ascii=False)
    assert all(f"chunk {chunk_id}" in table for chunk_id in SUPPORT)
    assert "no shared word" in table or "rank" in table
    hits = json.dumps(view.results(place, columns))
    for column in columns:
        assert f"{len({*SUPPORT} & {*column.run.trace.chosen})} of 3 support" in hits
    other, unknown = compared(comparisons, documents, ComparisonOrder("where is mary ?", EVERY, 3))
    assert view.support(unknown) == []
    assert "support" not in json.dumps(view.results(other, unknown))


def test_what_a_review_took_back_is_said_and_shared_with_nobody(
    comparisons: Comparisons, documents: OpenDocuments
) -> None:
    place, (column, _) = compared(comparisons, documents, ComparisonOrder(QUERY, ("qrag:tiny", "topk"), 4))
    again = replace(column, name="again")
    run = column.run
    assert run.trace.stopped is not None
    stopped = replace(run.trace.stopped, review=(0.0,) * 4, taken_back=run.trace.chosen[:1])
    reviewed = replace(column, trace=replace(run.trace, stopped=stopped))
    assert '"taken back"' not in json.dumps(view.results(place, [column, again]))
    assert json.dumps(view.results(place, [reviewed, again])).count('"taken back"') == 1
    assert "4 found by all" in json.dumps(view.common([column, again]))
    assert "3 found by all" in json.dumps(view.common([reviewed, again]))
    assert "by again only" in json.dumps(view.common([reviewed, again]))


def test_a_choice_says_what_it_owes_to_those_before(
    comparisons: Comparisons, documents: OpenDocuments
) -> None:
    place, columns = compared(comparisons, documents, ComparisonOrder(QUERY, ("qrag:tiny", "topk"), 3))
    run = columns[0].run
    owed = comparisons.influence(run)
    assert comparisons.influence(run) is owed
    change = run.trace.steps[1].q_value - run.q_values(1)[run.trace.chosen[1]]
    shown = json.dumps(view.results(place, columns, {0: owed}))
    assert f"{change:+.3f}" in shown
    assert shown.count("owed to") == 2
    assert shown.count('"data-act": "why"') == 1, "only an agent looks again after each choice"
    assert "owed to" not in json.dumps(view.results(place, columns))


def test_an_agent_shows_the_rank_of_the_support_at_every_step(
    comparisons: Comparisons, documents: OpenDocuments
) -> None:
    _, columns = compared(comparisons, documents, ComparisonOrder(QUERY, EVERY, 3))
    shown = json.dumps(view.support(columns))
    headings = [
        f'"{name}: rank at every step"]]' in shown
        for name in ("Q-RAG tiny", "multi-step", "hybrid", "top-k", "BM25", "threshold")
    ]
    assert headings == [True, True, False, False, False, False], "only these look again after each choice"


def test_what_explore_never_chooses_is_left_out_for_agents_alone(
    comparisons: Comparisons, documents: OpenDocuments
) -> None:
    _, free = compared(comparisons, documents, ComparisonOrder(QUERY, EVERY, 3))
    never = tuple(
        sorted({chunk_id for column in free if column.run for chunk_id in column.run.trace.chosen[:1]})
    )
    place, columns = compared(comparisons, documents, ComparisonOrder(QUERY, EVERY, 3, forbidden=never))
    agent, *others = [column.run for column in columns]
    assert agent.config.forbidden == never
    assert not {*never} & {*agent.trace.chosen}
    assert [run.trace.chosen for run in others if run] == [
        column.run.trace.chosen for column in free[1:] if column.run
    ]
    shown = json.dumps(view.results(place, columns))
    assert shown.count(f"{len(never)} chunks forbidden" if len(never) > 1 else "1 chunk forbidden") == 1
    words = json.dumps(view.as_in_explore("qrag:tiny", place.order, agent.config))
    assert (
        f"{', '.join(map(str, never))} {'are' if len(never) > 1 else 'is'} forbidden here, as in Explore."
        in words
    )
    lifted = json.dumps(
        view.as_in_explore("qrag:tiny", ComparisonOrder(QUERY, EVERY, 3), agent.config, never)
    )
    assert "forbidden in Explore, but not here." in lifted
    assert '"keep"' in lifted
    assert "forbidden chunks" in json.dumps(view.changes(place, ComparisonOrder(QUERY, EVERY, 3), True))


def test_the_agent_of_explore_runs_as_it_does_there(
    comparisons: Comparisons, services: Services, documents: OpenDocuments
) -> None:
    usual = documents.agent.spec.episode_config()
    settings = usual.with_(
        step_budget=2, temperature=0.5, seed=3, stop_threshold=-50.0, forced=((1, 5),), use_positions=False
    )
    for own_stop, threshold in ((False, None), (True, -50.0)):
        _, columns = compared(comparisons, documents, ComparisonOrder(QUERY, EVERY, 3, own_stop, settings))
        agent, *others = [column.run for column in columns if column.run]
        assert agent.config == settings.with_(step_budget=3, stop_threshold=threshold, forced=())
        assert all(run.config.temperature == 0 for run in others)
    words = json.dumps(view.as_in_explore("qrag:tiny", ComparisonOrder(settings=settings), usual))
    assert "temperature 0.5, seed 3, without positions, its own stop at Q -50.00" in words
    assert view.as_in_explore("qrag:tiny", ComparisonOrder(settings=usual.with_(step_budget=9)), usual) == []

    order = OpenOrder(services.agents.load("base"), label=lambda _: documents.questions)
    plain = finish(services.library.reopen(order, documents.workspace))
    beam = services.agents.load("base").spec.episode_config(step_budget=2, beam_width=3)
    _, columns = compared(comparisons, plain, ComparisonOrder(QUERY, EVERY, 3, settings=beam, forbidden=(4,)))
    configs = {column.name: column.run.config for column in columns if column.run}
    assert own_key("base") == "multistep"
    assert configs["multi-step"] == beam.with_(step_budget=3, forbidden=(4,))
    assert configs["Q-RAG tiny"].beam_width == 1


def test_a_run_of_explore_is_taken_over_once_and_as_long_as_its_documents_are_open(
    services: Services, documents: OpenDocuments
) -> None:
    with gr.Blocks():
        tab = CompareTab(services, gr.State(Session()), gr.Textbox())
    settings = documents.agent.spec.episode_config(step_budget=2, temperature=0.5, stop_threshold=0.1)
    session = Session(corpus=documents.token, forbidden=(7,))
    wanted = FromExplore(documents.token, QUERY, settings, "1")
    update = tab._shown(session, "typed in Explore ?", Compared(), wanted, Cuts(), "", ["topk"], "same", 4)
    compared = update[tab.compared]
    assert (update[tab.asking.question], update[tab.k], update[tab.size]) == (QUERY, 2, "own stop")
    assert update[tab.methods].value[0] == "qrag:tiny"
    order = tab._order(session, compared, QUERY, ["qrag:tiny"], "own stop", 2)
    assert order == ComparisonOrder(QUERY, ("qrag:tiny",), 2, True, settings, (7,))
    header = json.dumps(update[tab.as_explore])
    assert "temperature 0.5" in header
    assert "Chunk 7 is forbidden here, as in Explore." in header

    def after(place: Compared, act: str) -> dict[Any, Any]:
        click = gr.EventData(None, {"act": act, "arg": ""})
        return tab._on_settings(session, place, Cuts(), click, QUERY, ["qrag:tiny"], "same", 2)

    lifted = after(compared, "lift")
    assert "Chunk 7 is forbidden in Explore, but not here." in json.dumps(lifted[tab.as_explore])
    assert tab._order(session, lifted[tab.compared], QUERY, ["topk"], "same", 2).forbidden == ()
    kept = after(lifted[tab.compared], "keep")
    assert tab._order(session, kept[tab.compared], QUERY, ["topk"], "same", 2).forbidden == (7,)

    typed = ("typed here ?", ["bm25"], "same", 3)
    later = tab._shown(session, "typed in Explore ?", compared, wanted, Cuts(), *typed)
    assert later[tab.asking.question] == typed[0]
    assert not later[tab.methods].value, "what is chosen stays as it is in the browser"
    assert {tab.k, tab.size}.isdisjoint(later)
    assert "temperature 0.5" in json.dumps(later[tab.as_explore])
    back = after(compared, "defaults")
    assert "temperature" not in json.dumps(back[tab.as_explore])
    assert tab._order(session, back[tab.compared], QUERY, ["topk"], "same", 2).settings is None

    order = OpenOrder(documents.agent, label=lambda _: documents.questions)
    reopened = finish(services.library.reopen(order, documents.workspace))
    assert tab._order(
        Session(corpus=reopened.token), compared, QUERY, ["topk"], "same", 2
    ) == ComparisonOrder(QUERY, ("topk",), 2)


def test_a_changed_chunk_is_tried_out_on_every_agent_and_logged_by_none(
    comparisons: Comparisons, services: Services, documents: OpenDocuments
) -> None:
    place, columns = compared(comparisons, documents, ComparisonOrder(QUERY, EVERY, 3))
    agent = columns[0].run
    before = services.own_log.search(owner=None).total
    first = agent.trace.chosen[0]
    runs = comparisons.try_out(place, Change(first, None))
    assert [column.name for column, _ in runs] == ["Q-RAG tiny", "multi-step"]
    assert runs[0][1].differs_from == 1
    shown = json.dumps(difference_view.tried(runs))
    assert f"Chunk {first} left out: nothing was embedded" in shown
    assert "Another choice from step 1 on." in shown
    assert "it is not in Experiments" in shown

    written = json.dumps(
        difference_view.tried(comparisons.try_out(place, Change(first, "<b>mary</b> got the milk .")))
    )
    assert "reads otherwise: 1 chunk embedded, the other 39 not again" in written
    assert f"Q {agent.trace.steps[0].q_value:.3f} \\u2192" in written
    with pytest.raises(BadRequest, match="the text is as it was"):
        comparisons.try_out(place, Change(first, documents.workspace[first].text))
    assert services.own_log.search(owner=None).total == before

    at_once, _ = compared(comparisons, documents, ComparisonOrder(QUERY, ("bm25", "topk"), 3))
    with pytest.raises(BadRequest, match="no column chose step by step"):
        comparisons.try_out(at_once, Change(first, None))


def test_every_way_of_cutting_is_a_logged_run_over_that_cut(
    comparisons: Comparisons, services: Services, documents: OpenDocuments
) -> None:
    told: list[Comparing[CutRow]] = []
    rows = comparisons.across_cuts(documents, ComparisonOrder(QUERY, (), 3, forbidden=(0, 1)), told.append)
    sizes = sizes_for(documents.agent.spec)
    assert comparisons.cutting.is_set()
    assert [row.name for row in rows] == [
        AS_OPEN,
        *(f"{chunker}, {size} tokens" for chunker in CHUNKERS for size in sizes),
    ]
    now, made = rows[0], [row for row in rows if not row.refused]
    spans = spans_of(documents.workspace, SUPPORT)
    chosen = fold(
        documents.agent.run(
            QUERY, documents.corpus, documents.agent.spec.episode_config(step_budget=3, stop_threshold=None)
        )
    ).chosen
    assert (now.n_chunks, now.shared, now.support) == (
        len(documents.corpus),
        1.0,
        share_found(documents.workspace, chosen, spans),
    )
    assert len(made) > len(sizes)
    assert {row.refused.partition(" is above")[0] for row in rows if row.refused} <= {"step budget 3"}
    for row in made:
        logged = services.own_log.get(row.run_id)
        assert (logged.record.n_chunks, logged.status, len(logged.trace.steps)) == (
            row.n_chunks,
            "complete",
            len(row.q_values),
        )
        session = finish(Explorer(services).attach(row.run_id))
        run = services.library.runs.get(session.run)
        assert run.gold == chunks_of(run.documents.workspace, spans)
        assert run.known_answer == "garden"
        assert run.documents.workspace.documents == documents.workspace.documents
    assert {now.stage for now in told} == {"cutting", "embedding", "retrieving"}

    again = comparisons.across_cuts(documents, ComparisonOrder(QUERY, (), 3), lambda _: None)
    assert [(row.n_embedded, row.q_values) for row in again] == [(0, row.q_values) for row in rows]
    table = json.dumps(difference_view.cuts(rows), ensure_ascii=False)
    assert table.count("Open in Explore") == len(made)
    assert "support found" in table
    unknown = comparisons.across_cuts(documents, ComparisonOrder("where is mary ?", (), 3), lambda _: None)
    assert "support found" not in json.dumps(difference_view.cuts(unknown))
    assert difference_view.cuts(()) == []


def test_rows_say_what_was_asked_and_whether_it_still_is(
    services: Services, documents: OpenDocuments
) -> None:
    cut = Cuts.over(documents, f" {QUERY} ", (CutRow("as it is open"),))
    said = json.dumps(difference_view.cuts_of(cut, QUERY, documents))
    assert QUERY in said
    assert "Changed since" not in said
    assert difference_view.cuts_of(Cuts(), QUERY, documents) == []
    other = opened(services, "\n\n".join(f"anna was at home on day {i} ." for i in range(9)))
    said = json.dumps(difference_view.cuts_of(cut, "another question ?", other))
    assert "Changed since these rows were made: question, document." in said
    [document] = documents.workspace.documents
    recut = pasted(services, document.text, 30)
    larger = services.library.corpora.get(recut.corpus)
    assert "rows were made: document." in json.dumps(difference_view.cuts_of(cut, QUERY, larger))
    with gr.Blocks():
        tab = CompareTab(services, gr.State(Session()), gr.Textbox())
    session, typed = Session(corpus=documents.token), ("another question ?", ["topk"], "same", 4)
    told = tab._on_controls(session, Compared(), cut, *typed)
    assert "rows were made: question." in json.dumps(told[tab.cuts_of])


def test_what_is_read_stays_open_while_columns_come_in(services: Services, documents: OpenDocuments) -> None:
    with gr.Blocks():
        tab = CompareTab(services, gr.State(Session()), gr.Textbox())
    session, asked = Session(corpus=documents.token), (QUERY, ["qrag:tiny", "bm25"], "same", 3)
    came = [update[tab.came] for update in tab._run(session, Compared(), *asked, "") if tab.came in update]
    assert len(came[-1].columns) == 2
    first = replace(came[-1], columns=came[-1].columns[:1])
    taken = FromExplore(documents.token, QUERY, None, "1")
    now = tab._grown(session, Compared(taken=taken, lifted=(5,)), first, Cuts(), *asked)[tab.compared]
    reads = replace(now, chunk_id=7, anchor=3, explained=(0,))
    told = tab._grown(session, reads, came[-1], Cuts(), "typed meanwhile ?", *asked[1:])
    assert told[tab.compared] == replace(reads, columns=came[-1].columns)
    assert (reads.taken, reads.lifted) == (taken, (5,))
    assert "chunk 7" in json.dumps(told[tab.reading])
    assert "columns were made: question" in json.dumps(told[tab.asking.standing])
    assert tab.change_panel not in told, "nor does what is typed about it go"
    for act, arg in (("why", "0"), ("page", "5")):  # nor where somebody looks around for it
        event = gr.EventData(None, {"act": act, "arg": arg})
        assert tab.change_panel not in tab._on_click(told[tab.compared], event)
    again = replace(came[-1], columns=came[-1].columns[1:])
    assert tab._grown(session, reads, again, Cuts(), *asked)[tab.compared].chunk_id is None


def test_a_question_stands_in_its_own_direction(comparisons: Comparisons, documents: OpenDocuments) -> None:
    place, columns = compared(comparisons, documents, ComparisonOrder(QUERY, ("bm25",), 1))
    [head] = view.heading(place, columns, documents.workspace)
    assert ["h3", {"dir": "auto"}, [QUERY]] in json.loads(json.dumps(head))[2]


def test_a_cancelled_way_of_cutting_keeps_the_runs_before_it(
    comparisons: Comparisons, services: Services, began: datetime, documents: OpenDocuments
) -> None:
    def report(now: Comparing[CutRow]) -> None:
        if len(now.columns) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        comparisons.across_cuts(documents, ComparisonOrder(QUERY, (), 3), report)
    assert comparisons.cutting.is_set()
    assert [row.status for row in services.own_log.search(owner=None, since=began).rows] == [
        "complete",
        "complete",
    ]


def test_a_link_brings_what_was_asked_and_nothing_usual_takes_its_place(
    comparisons: Comparisons, services: Services, documents: OpenDocuments
) -> None:
    _, columns = compared(comparisons, documents, ComparisonOrder(QUERY, ("topk", "threshold"), 2))
    with gr.Blocks():
        tab = CompareTab(services, gr.State(Session()), gr.Textbox())
    session = Session(corpus=documents.token)
    address = "?compare=" + ".".join(column.run.run_id for column in columns if column.run)
    *_, brought = tab._open(session, Compared(), address)
    assert brought[tab.methods].value == ["topk", "threshold"]
    assert brought[tab.k] == 2, "a threshold's own budget is none"
    stale = ("", ["bm25"], "own stop", 9)  # as the form stood when the tab was opened
    shown = tab._shown(session, "asked in Explore ?", brought[tab.compared], None, Cuts(), *stale)
    assert not shown[tab.methods].value
    assert {tab.k, tab.size}.isdisjoint(shown)
    stale = ("", ["bm25", "imported:gone"], "own stop", 9)  # its runs were deleted
    shown = tab._shown(session, "asked in Explore ?", brought[tab.compared], None, Cuts(), *stale)
    assert shown[tab.methods].value == ["bm25"]


def test_columns_of_the_log_have_their_names_and_no_time_that_nobody_took(
    comparisons: Comparisons, services: Services, documents: OpenDocuments
) -> None:
    line = {"query": QUERY, "retrieved": [{"chunk_id": 3, "score": 2.0}], "method": "BM25"}
    [run] = read_foreign({"run.jsonl": json.dumps(line).encode()})
    encoder = documents.agent.encoder
    [brought] = bring([run], documents.workspace, encoder.spec.name)
    log_brought(services.own_log, brought, documents.workspace, encoder, None)
    place, columns = compared(comparisons, documents, ComparisonOrder(QUERY, ("bm25", "imported:BM25"), 3))
    again = comparisons.open([column.run.run_id for column in columns if column.run], None, lambda _: None)
    assert [column.name for column in again.columns] == ["BM25", "BM25 (imported)"]
    assert [column.name for column in place.columns] == ["BM25", "BM25 (imported)"]
    for told in (place, again):
        assert told.columns[0].milliseconds > 0
        assert told.columns[1].milliseconds is None


def test_a_deleted_run_leaves_the_others_of_its_comparison(
    comparisons: Comparisons, services: Services, documents: OpenDocuments
) -> None:
    _, columns = compared(comparisons, documents, ComparisonOrder(QUERY, ("bm25", "topk"), 3))
    ids = [column.run.run_id for column in columns if column.run]
    services.library.runs = Recent(2**30, lambda run: run.n_bytes)  # as after a restart
    services.own_log.delete(ids[0], None)
    again = comparisons.open(ids, None, print)
    assert [(column.name, bool(column.run)) for column in again.columns] == [
        (columns[1].name, True),
        ("Gone", False),
    ]
    assert ids[0] in again.columns[1].refused
    assert len(again.order.methods) == 1
    with pytest.raises(RunNotFound):
        comparisons.open(ids[:1], None, print)


def test_a_comparison_that_is_gone_says_so(
    comparisons: Comparisons, services: Services, documents: OpenDocuments
) -> None:
    place, _ = compared(comparisons, documents, ComparisonOrder(QUERY, ("topk",), 1))
    fresh = Comparisons(Services(Settings(log=services.log_path.with_name("other.duckdb"))))
    try:
        with pytest.raises(BadRequest, match="not in memory any more"):
            fresh.shown_columns(place)
        with pytest.raises(BadRequest, match="not open any more"):
            fresh.workspace(place)
    finally:
        fresh.services.close()


def test_the_agent_that_is_open_is_chosen_to_begin_with(comparisons: Comparisons) -> None:
    assert comparisons.usual("tiny") == ["qrag:tiny", "hybrid", "topk", "bm25"]
    assert comparisons.usual("base")[0] == "qrag:tiny", "base as an agent is the multi-step method"
    assert "qrag:base" not in comparisons.methods()


def test_what_changed_since_is_named() -> None:
    order = ComparisonOrder("a ?", ("topk", "bm25"), 4)
    place = Compared("token", order, (None,))  # type: ignore[arg-type]
    assert view.changes(Compared(), order, False) == []
    assert view.changes(place, ComparisonOrder(" a ?", ("bm25", "topk"), 4), True) == []
    words = json.dumps(view.changes(place, ComparisonOrder("b ?", ("topk",), 4, True), False))
    assert ": document, question, methods, number of chunks." in words


def ids(page: Page, column: int) -> list[int]:
    cards = page.locator("#qx-compare-columns .qx-column").nth(column).locator(".qx-found > li")
    return [int(card.get_attribute("data-same") or "") for card in cards.all()]


def compare(page: Page, n_columns: int) -> None:
    page.locator("#qx-compare-run").click()
    done(page, n_columns)


def done(page: Page, n_columns: int) -> None:
    expect(page.locator("#qx-compare-columns .qx-column")).to_have_count(n_columns, timeout=120_000)
    expect(page.locator("#qx-compare-run")).to_be_enabled(timeout=120_000)


def show_methods(page: Page) -> Locator:
    page.locator("#qx-compare-set .qx-set-line").click()
    return page.locator("#qx-compare-methods")


@pytest.mark.campaign
def test_what_somebody_asks_while_a_tab_or_a_document_is_opened_stays(
    tiny_app: RunningApp, open_page: OpenPage
) -> None:
    page = open_page("about:blank")
    held: list[Route] = []
    page.route("**/queue/join*", lambda route: held.append(route))
    page.goto(tiny_app.url)
    page.get_by_role("tab", name="Compare").click()
    header, question = page.locator("#qx-compare-header"), page.locator("#qx-compare-question textarea")
    question.fill("asked before anything was open ?")
    expect(header).to_have_text("A document is being opened…")
    release(page, held)
    expect(header.locator(".qx-doc-title")).to_be_visible(timeout=120_000)
    settle(page)
    expect(question).to_have_value("asked before anything was open ?")

    header, question = page.locator("#qx-sparc-header"), page.locator("#qx-sparc-question textarea")
    page.route("**/queue/join*", lambda route: held.append(route))
    page.get_by_role("tab", name="SPARC").click()
    question.fill("asked before Explore's question came ?")
    release(page, held)
    expect(header.locator(".qx-doc-title")).to_be_visible(timeout=30_000)
    settle(page)
    expect(question).to_have_value("asked before Explore's question came ?")


@pytest.fixture(scope="module")
def compare_page(tiny_app: RunningApp, open_for_file: OpenPage) -> Iterator[Page]:
    """Compare with the usual four columns and one more, over a short text on the question that Explore asks."""
    page = open_for_file("about:blank", width=1400)
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.goto(tiny_app.url)
    wait_ready(page, 120)
    # a text of its own: the order of the columns tells which methods wait for vectors, and others leave theirs
    open_pasted(page, excerpt() + "\n\nNobody else compares this.")
    page.locator("#qx-question textarea").fill(ASKED)
    page.get_by_role("tab", name="Compare").click()
    expect(page.locator("#qx-compare-question textarea")).to_have_value(ASKED, timeout=30_000)
    expect(page.locator("#qx-compare-columns")).to_contain_text("You will see what each method finds")
    show_methods(page).get_by_label("multi-step, not trained").check()
    compare(page, 5)
    yield page
    assert errors == [], "on the console"


@pytest.fixture
def columns(compare_page: Page) -> list[list[int]]:
    return [ids(compare_page, column) for column in range(5)]


def test_every_method_has_a_column_of_what_it_chose(compare_page: Page, columns: list[list[int]]) -> None:
    assert [len(column) for column in columns] == [4] * 5
    expect(compare_page.locator("#qx-compare-columns .qx-column h4")).to_have_text(
        ["Q-RAG tiny", "BM25", "hybrid", "top-k", "multi-step"]
    )
    expect(compare_page.locator("#qx-compare-columns svg")).to_have_count(5)
    expect(compare_page.locator("#qx-compare-common")).to_contain_text("Overlap")
    assert grave_faults(compare_page) == []


def test_a_chosen_chunk_is_lit_and_read_in_a_drawer(compare_page: Page, columns: list[list[int]]) -> None:
    compare_page.locator("#qx-compare-columns .qx-found .qx-link").nth(1).focus()
    expect(
        compare_page.locator(f"#qx-compare-columns li.qx-lit[data-same='{columns[0][1]}']").first
    ).to_be_visible()
    compare_page.keyboard.press("Enter")
    expect(compare_page.locator("#qx-compare-reading .qx-crumb")).to_contain_text(
        f"chunk {columns[0][1]} of", timeout=30_000
    )
    expect(compare_page.locator("#qx-compare-reading .qx-marked")).to_be_in_viewport()
    compare_page.get_by_role("button", name="Close").locator("visible=true").click()
    expect(compare_page.locator("#qx-compare-drawer")).to_be_hidden(timeout=30_000)


def test_a_chunk_is_changed_in_the_drawer(compare_page: Page, columns: list[list[int]]) -> None:
    page = compare_page
    page.locator("#qx-compare-columns .qx-found .qx-link").first.click()
    page.locator("#qx-compare-reading").get_by_role("button", name="Change this chunk").click()
    field = page.locator("#qx-compare-changed textarea")
    expect(field).to_be_visible(timeout=30_000)
    page.locator("#qx-compare-try-text").click()
    expect(page.locator("#qx-compare-change-notice")).to_contain_text("the text is as it was", timeout=30_000)
    field.fill("<img src=x onerror=alert(1)> nothing of the kind was ever said .")
    page.locator("#qx-compare-try-text").click()
    expect(page.locator("#qx-compare-tried")).to_contain_text("1 chunk embedded", timeout=30_000)
    expect(page.locator("#qx-compare-tried h3")).to_be_in_viewport()
    assert page.locator("#qx-compare-tried img").count() == 0
    page.locator("#qx-compare-try-without").click()
    expect(page.locator("#qx-compare-tried")).to_contain_text(
        f"Chunk {columns[0][0]:,} left out", timeout=30_000
    )
    expect(page.locator("#qx-compare-tried")).to_contain_text("Another choice from step 1 on")
    page.locator("#qx-compare-reading").get_by_role("button", name="Close").click()


@pytest.mark.campaign
def test_a_column_is_opened_in_explore_and_compare_stays(
    compare_page: Page, columns: list[list[int]]
) -> None:
    compare_page.get_by_role("tab", name="Compare").click()
    asked = compare_page.locator("#qx-compare-question textarea").input_value()
    compare_page.locator("#qx-compare-columns").get_by_role("button", name="Open in Explore").last.click()
    expect(compare_page.locator("#qx-status")).to_contain_text("multistep · step 4 of 4", timeout=60_000)
    assert chosen(compare_page) == columns[4]
    compare_page.get_by_role("tab", name="Compare").click()
    expect(compare_page.locator("#qx-compare-question textarea")).to_have_value(asked, timeout=30_000)
    expect(compare_page.locator("#qx-compare-columns .qx-column")).to_have_count(5)
