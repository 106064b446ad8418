"""Asking in Explore while a document is embedded: real agent, real log, no browser."""

from __future__ import annotations

import json
from dataclasses import replace

import gradio as gr
import numpy as np
import pytest

from app.pages.explore import tab
from app.pages.explore import view as present
from app.pages.explore.at_work import part_standing
from app.pages.explore.strip_source import RunStrip
from app.services.evaluations import Evaluations
from app.services.explorer import Explorer, Offer, open_in_explore
from app.services.in_view import OpenDocuments, RunInView
from app.services.opener import Opener
from app.services.session import Session
from app.services.shared import Services
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, Cancelled
from core.base.events import share_searched
from core.base.progress import finish, mapped
from core.corpus.opening import Opening, OpenProgress
from core.views.draw.words import percent
from tests.app.opened import ask

QUERY = "where was john ?"
CONFIG = EpisodeConfig(step_budget=3)
PLACES = ("garden", "office")


@pytest.fixture
def explorer(services: Services, monkeypatch: pytest.MonkeyPatch) -> Explorer:
    monkeypatch.setattr(
        "app.services.explorer.LEAST_WAIT", 0.0
    )  # a tiny encoder is done before a page would change
    return Explorer(services)


def opening(explorer: Explorer, place: str) -> Opening[Session]:
    """Few tokens, much text, in three parts; a text that was opened before would come from the cache."""
    text = "\n\n".join(f"john was in the {place} on day {i} {' ' * 1_400} ." for i in range(360))
    agent = explorer.services.agents.default_checkpoint
    return Opener(explorer, Session(), agent, "sentences", 16).pasted(text)


def asked(explorer: Explorer, session: Session) -> tuple[Session, RunInView]:
    return ask(explorer, session, QUERY, CONFIG)


def test_a_part_is_asked_and_then_all_of_it(explorer: Explorer) -> None:
    partly: list[tuple[Session, RunInView, OpenDocuments]] = []

    def ask(offer: Offer) -> None:
        if (part := offer[1]) is not None and not partly:
            *_, paused = explorer.advance(part, QUERY, CONFIG, 1)
            session, run = asked(explorer, paused)
            assert len(explorer.services.own_log.search(owner=None).rows) == 1, "it went on as one run"
            partly.append((session, run, explorer.documents(session)))
            with pytest.raises(BadRequest, match="being embedded in Explore"):
                open_in_explore(explorer.services, session)
            # all are equally likely, so the last ones are not among the likeliest of another run either
            missing = int(np.flatnonzero(~run.config.searched_chunks(run.n_chunks))[-1])
            with pytest.raises(BadRequest, match="not embedded yet"):
                list(explorer.force(session, QUERY, CONFIG.with_(step_budget=4), missing))

    session = finish(explorer.offering(opening(explorer, PLACES[0])), ask)
    seen, run, documents = partly[0]
    there = run.config.searched_chunks(run.n_chunks)
    assert session.corpus == seen.corpus, "the page need not be told of another document"
    assert 0 < documents.share < 1
    assert there[list(run.trace.chosen)].all()
    for mode in ("q", "rank", "p"):
        values = RunStrip(run).values(1, mode)
        np.testing.assert_array_equal(np.isnan(values), ~there, err_msg=mode)
    assert all(np.isfinite(run.scale))
    first, second, *more = run.trace.steps
    gap = replace(run.trace, steps=(first, replace(second, scores=None), *more))
    assert all(np.isfinite(replace(run, trace=gap).scale)), "of a log that lacks Q of a later step"
    assert there.sum() > documents.n_searched, "its likeliest chunks are not those of other questions"
    searched = f"searched {percent(share_searched(run.trace))}"
    assert searched in present.status(run, seen)
    assert explorer.services.own_log.get(run.run_id).record.config["searched"]

    whole = explorer.documents(session)
    assert (whole.searched, whole.share) == ((), 1)
    offer = json.dumps(part_standing(run, whole, seen))
    for words in (
        "preview",
        f"Searched {there.sum()} of {len(there)} chunks",
        "; all are ready now",
        "Run again",
    ):
        assert words in offer
    assert tab.is_preview_of(run, f" {QUERY}")
    assert not tab.is_preview_of(run, "another question")
    forced = replace(run.trace.started, config=run.config.with_(forced=((1, 0),)))
    assert not tab.is_preview_of(replace(run, trace=replace(run.trace, started=forced)), QUERY)
    *_, further = explorer.advance(seen, QUERY, CONFIG.with_(step_budget=4), 1)
    child = explorer.run_of(further)
    assert (child.parent_run_id, child.config.searched) == (run.run_id, ())
    again, complete = asked(explorer, explorer.reset(seen))
    assert complete.config.searched == ()
    assert part_standing(complete, whole, again) == []
    assert "searched" not in present.status(complete, again)


def test_cancel_leaves_a_part_and_the_rest_can_be_embedded(explorer: Explorer) -> None:
    there: list[Session] = []

    def cancel(offer: Offer) -> None:
        if offer[1] is not None:
            there.append(offer[1])
            raise Cancelled

    with pytest.raises(Cancelled):
        finish(explorer.offering(opening(explorer, PLACES[1])), cancel)
    documents = explorer.documents(there[0])
    assert "Embed the rest" in json.dumps(part_standing(None, documents, there[0]))
    session = finish(explorer.embed_the_rest(there[0]))
    whole = explorer.documents(session)
    assert whole.searched == ()
    assert whole.n_embedded <= len(whole.corpus) - documents.n_searched


def test_the_rest_is_embedded_beside_what_was_typed_and_set(explorer: Explorer) -> None:
    def cancel(offer: Offer) -> None:
        if offer[1] is not None:
            there.append(offer[1])
            raise Cancelled

    there: list[Session] = []
    with pytest.raises(Cancelled):
        finish(explorer.offering(opening(explorer, "cellar")), cancel)
    with gr.Blocks():
        page = tab.ExploreTab(explorer.services, Evaluations(explorer.services), gr.HTML())
    typed = "who was there ?", 2, 0, False, 0, 0, 1, True, None, False, 0
    shown = {}
    for update in page._on_rest(there[0], gr.EventData(None, {"act": "rest", "arg": ""}), *typed):
        shown |= update
    assert explorer.documents(shown[page.session]).searched == ()
    assert not shown.keys() & {*page.controls.list()}
    assert "up to 2 steps" in json.dumps(shown[page.asking.line])


@pytest.mark.parametrize(("share", "words"), [(0.004, "below 1 %"), (0.41, "41 %"), (0.999, "99 %")])
def test_a_share_in_words(share: float, words: str) -> None:
    assert percent(share) == words


def test_a_part_is_offered_only_where_that_helps(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.explorer.LEAST_WAIT", 5.0)
    left = iter((2.0, 8.0))

    def timed(event: OpenProgress) -> OpenProgress:
        return replace(event, seconds_left=9.0 if event.so_far is None else next(left, 1.0))

    told: list[Offer] = []
    finish(explorer.offering(mapped(opening(explorer, "hallway"), timed)), told.append)
    of_parts = [session is not None for event, session in told if event.so_far is not None]
    assert of_parts[:2] == [False, True], "once the rest takes long"
    assert all(of_parts[1:])
    assert {session for event, session in told if event.stage == "chunking"} == {None}


def test_settings_are_not_judged_before_a_document_brings_its_own(services: Services) -> None:
    """An empty number is 0 on a page that is still loading."""
    with gr.Blocks():
        page = tab.ExploreTab(services, Evaluations(services), gr.HTML())
    assert page._on_controls(Session(), "asked early ?", 6, 0, True, 0, 0, 1, True, 0, True, 0) == {}
