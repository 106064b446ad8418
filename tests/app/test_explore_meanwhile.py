"""Explore while something is at work, and what comes late: no browser."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from app.components.page import NOTHING
from app.pages.explore import diagnosis as diagnosis_view
from app.pages.explore.answers import Said
from app.pages.explore.controls import control_values
from app.pages.explore.tab import ExploreTab
from app.pages.widgets.requests import ChangeRun
from app.services.evaluations import Evaluations
from app.services.explorer import Explorer
from app.services.in_view import RunInView
from app.services.session import Session
from app.services.shared import Services
from core.answer.evidence import EvidenceAnswer
from core.base.config import EpisodeConfig
from core.base.errors import UserError
from core.base.events import Stopped
from tests.app.opened import ask, pasted

QUERY = "where was mary ?"
CONFIG = EpisodeConfig(step_budget=2)
Update = dict[Any, Any]


@pytest.fixture(scope="module")
def tab(services_of_file: Services) -> ExploreTab:
    """One for the file: building a page takes longer than all that is done on it."""
    with gr.Blocks():
        return ExploreTab(services_of_file, Evaluations(services_of_file), gr.HTML())


@pytest.fixture(scope="module")
def session(tab: ExploreTab) -> Session:
    """Eight chunks, nothing asked."""
    text = "\n\n".join(f"mary travelled to the garden on day {day} ." for day in range(8))
    return pasted(tab.explorer.services, text)


def ran(explorer: Explorer, session: Session, query: str = QUERY) -> tuple[Session, RunInView]:
    return ask(explorer, session, query, CONFIG)


def last(updates: Iterable[Update]) -> Update:
    """All that was said, the last of each component."""
    told: Update = {}
    for update in updates:
        told |= update
    return told


def stopped_early(run: RunInView, n_steps: int) -> RunInView:
    """As if the agent had seen nothing after so many steps, and the reader nothing in them."""
    trace = replace(run.trace, steps=run.trace.steps[:n_steps], stopped=Stopped("threshold", n_steps, 0.1))
    return replace(run, trace=trace, answer=EvidenceAnswer("", 0.0, "reader", state="none"))


def test_reset_rests_while_a_run_is_at_work(tab: ExploreTab, session: Session) -> None:
    told = [
        update[tab.reset]
        for update in tab._run(session, *control_values(QUERY, CONFIG))
        if tab.reset in update
    ]
    assert [reset["interactive"] for reset in told][:1] == [False]
    assert told[-1]["interactive"]
    ended, _ = ran(tab.explorer, session)
    looked = tab.panels.view(replace(ended, underway="another"), QUERY, CONFIG)
    assert tab.reset not in looked, "whoever looks around meanwhile changes nothing of it"


def test_a_run_that_was_reset_leaves_no_progress(tab: ExploreTab, session: Session) -> None:
    ended, run = ran(tab.explorer, session)
    asked = tab.answers.to_read(run)
    assert asked[tab.asking.progress]
    read = (run.token, "", "1")
    reset = tab.explorer.reset(ended)
    late = tab.answers._show_answer(reset, read)
    assert (late[tab.asking.progress], late[tab.answer]) == ([], [])
    assert not late[tab.asking.cancel]["interactive"]
    for name in ("opening", "filling", "underway"):
        busy = tab.answers._show_answer(replace(reset, **{name: "another"}), read)
        assert not {tab.asking.progress, tab.asking.cancel} & {*busy}, name
    another, _ = ran(tab.explorer, session, "where was john ?")
    assert tab.answers._show_answer(another, read) == {}, "its own answer is being read"


def test_reset_keeps_the_cancel_of_what_is_opened(tab: ExploreTab, session: Session) -> None:
    ended, _ = ran(tab.explorer, session)
    told = tab._reset(replace(ended, opening="another"), *control_values(QUERY, CONFIG))
    assert not {tab.asking.progress, tab.asking.cancel} & {*told}


def test_an_agent_that_never_came_is_not_named(
    tab: ExploreTab, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> Iterator[None]:
        raise UserError("no vectors today")
        yield

    controls = control_values(QUERY, CONFIG)
    cancelled = tab._cancelled(replace(session, opening="another"), *controls)
    monkeypatch.setattr(type(tab.explorer), "change_agent", refuses)
    failed = last(tab._on_agent(session, "base", *controls))
    assert "no vectors today" in json.dumps(failed[tab.asking.notice])
    assert [told[tab.agent]["value"] for told in (cancelled, failed)] == ["tiny", "tiny"]


def test_a_model_speaks_of_the_run_in_view_alone(
    tab: ExploreTab, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, run = ran(tab.explorer, session)
    models = tab.services.language_models
    monkeypatch.setattr(models, "get", lambda _: SimpleNamespace(name="scripted-7b"))
    said = [update[tab.answers.said] for update in tab.answers._cite(ended) if tab.answers.said in update]
    assert [one.goes_on for one in said] == [True, False], "what is no model fails at once"
    assert {one.run for one in said} == {run.token}
    another, _ = ran(tab.explorer, session, "where was john ?")
    for one in said:
        assert tab.answers._show_said(another, one) == {}
        shown = tab.answers._show_said(ended, one)
        assert shown[tab.cited] == one.nodes
        assert shown[tab.asking.cancel]["interactive"] is one.goes_on
    busy = tab.answers._show_said(replace(ended, underway="another"), Said(run.token))
    assert busy == {tab.cited: []}


@pytest.mark.parametrize(("n_forbidden", "steps"), [(0, "8"), (3, "5"), (6, None)])
def test_no_more_steps_are_offered_than_there_are_chunks(
    tab: ExploreTab, session: Session, n_forbidden: int, steps: str | None
) -> None:
    ended, run = ran(tab.explorer, session)
    ended = replace(ended, forbidden=tuple(range(n_forbidden)))
    shown = json.dumps(diagnosis_view.diagnosis(stopped_early(run, 2), ended))
    assert ('"longer"' in shown) is (steps is not None)
    assert steps is None or f"Allow {steps} steps" in shown


def test_a_run_without_choices_says_that_nothing_was_read(tab: ExploreTab, session: Session) -> None:
    ended, run = ran(tab.explorer, session)
    shown = json.dumps(diagnosis_view.diagnosis(stopped_early(run, 0), replace(ended, cursor=0)))
    assert "no chunk was taken, so there was nothing to read." in shown
    assert "0 chunks" not in shown


@pytest.mark.parametrize(("steps", "begins"), [(5, True), (12, False)])
def test_controls_show_a_remedy_once_its_run_has_begun(
    tab: ExploreTab, session: Session, steps: int, begins: bool
) -> None:
    ended, run = ran(tab.explorer, session)
    told = last(tab._on_wanted(ended, ChangeRun("longer", steps), *control_values(QUERY, CONFIG)))
    assert told.get(tab.controls.budget) == (steps if begins else None)
    assert (told[tab.session].run != run.token) is begins
    assert ("above 8, the number of chunks" in json.dumps(told[tab.asking.notice])) is not begins


def test_the_tab_in_front_puts_its_run_into_the_address_unless_the_page_is_loading(
    tab: ExploreTab, session: Session
) -> None:
    ended, run = ran(tab.explorer, session)
    assert tab.in_front(ended, f"run={'f' * 32}")[1] == f"run={run.run_id}", "another tab's stood there"
    for address in (None, "", NOTHING):
        assert tab.in_front(ended, address)[1] == gr.skip()
