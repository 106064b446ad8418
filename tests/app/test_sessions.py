"""What pages leave in the server's memory: counts of documents and runs, against a real server where it matters."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from app import gradio_internals
from app.build import build_app
from app.pages.explore.at_work import first_question
from app.services import shared
from app.services.explorer import Explorer
from app.services.session import Session
from app.services.shared import Services
from core.base.config import EpisodeConfig
from core.base.progress import finish
from tests.app.opened import pasted
from tests.app.raw_page import RawPage
from tests.app.served import served
from tests.waiting import wait_until

TEXT = "\n\n".join(f"mary travelled to the garden on day {day} ." for day in range(30))
CONFIG = EpisodeConfig(step_budget=2)


def opened(explorer: Explorer) -> Session:
    return pasted(explorer.services, TEXT)


def ran(explorer: Explorer, session: Session, query: str) -> Session:
    *_, end = explorer.advance(session, query, CONFIG, None)
    return end


def test_a_released_page_takes_its_documents_and_run_along_but_nobody_else_s(services: Services) -> None:
    explorer = Explorer(services)
    a, b = (ran(explorer, opened(explorer), "where was mary ?") for _ in range(2))
    run = explorer.run_of(a)
    same = finish(explorer.attach(run.run_id))  # a second page at the same address
    services.release(a.tokens, {*same.tokens, *b.tokens})
    assert len(services.library.corpora.all()) == len(services.library.runs.all()) == 2
    services.release(same.tokens, b.tokens)
    assert [run.token for run in services.library.runs.all()] == [b.run]
    assert [documents.token for documents in services.library.corpora.all()] == [b.corpus]
    assert finish(explorer.attach(run.run_id)).cursor == 2, "the log has it"


def test_runs_that_were_left_make_room_for_those_after_them(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "MAX_LEFT_RUNS", 5)
    explorer = Explorer(services)
    session = opened(explorer)
    first = explorer.run_of(ran(explorer, session, "who was first ?"))
    for number in range(15):
        session = ran(explorer, session, f"where was mary on day {number} ?")
    # the last one is in view, the first was never left
    assert len(services.library.runs.all()) <= 5 + 2
    seen_again = finish(explorer.attach(first.run_id))
    assert seen_again.run == first.token


def test_a_run_that_a_page_shows_stays_also_when_a_call_has_left_it(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "MAX_LEFT_RUNS", 1)
    explorer = Explorer(services)
    session = opened(explorer)
    shown = ran(explorer, session, "what is shown ?")
    services.in_use = lambda: shown.tokens
    for query in ("who ?", "what ?", "where ?"):
        for one in (shown, ran(explorer, session, query)):
            services.leave_run(one.run)
    assert shown.run in {run.token for run in services.library.runs.all()}
    assert len(services.library.runs.all()) == 2


@pytest.fixture(scope="module")
def served_app(services_of_file: Services) -> Iterator[tuple[str, Services]]:
    """A server that lets go of closed pages at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradio_internals, "CLOSED_SECONDS", 0.2)
        with served(build_app(services_of_file), services_of_file.settings) as url:
            yield url, services_of_file


def test_closed_pages_free_what_they_had_open(served_app: tuple[str, Services]) -> None:
    url, services = served_app
    stays = RawPage(url)
    stays.load("")
    n_documents, n_runs = held_by(services)
    with ExitStack() as open_pages:
        for _ in range(2):
            page = RawPage(url)
            open_pages.enter_context(page.heartbeat())
            page.load("")
            assert "step 2 of 2" in page.press(
                "qx-run", qx_question="where was mary ?", qx_budget=2, qx_stops=False
            )
        assert held_by(services) == (n_documents + 2, n_runs + 4), "the sample's run and one of their own"
    wait_until(lambda: held_by(services) == (n_documents, n_runs))


def test_a_document_opened_during_a_run_is_what_the_page_shows(served_app: tuple[str, Services]) -> None:
    url, services = served_app
    page = RawPage(url)
    page.load("")
    before = {run.token for run in services.library.runs.all()}
    page.queue("qx-run", qx_question="where was mary then ?", qx_budget=64, qx_stops=False).raise_for_status()
    wait_until(
        lambda: any(
            len(run.trace.steps) > 2 for run in services.library.runs.all() if run.token not in before
        )
    )
    page.press("qx-open-pasted", qx_pasted="john has a lamp of his own .")
    assert "a lamp of his own" in page.press(
        "qx-run", qx_question="what has john ?", qx_budget=1, qx_stops=False
    )


def held_by(services: Services) -> tuple[int, int]:
    return len(services.library.corpora.all()), len(services.library.runs.all())


def test_panels_that_share_an_event_lose_no_click_and_nothing_hidden_is_told(
    served_app: tuple[str, Services],
) -> None:
    with urllib.request.urlopen(f"{served_app[0]}/config") as answer:
        events = json.load(answer)["dependencies"]
    triggers = [({name for _, name in event["targets"]}, event) for event in events]
    shared = [event for names, event in triggers if names == {"select"} and len(event["targets"]) > 1]
    assert len(shared) >= 8, "one or more of each tab"
    assert {event["trigger_mode"] for event in shared} == {"multiple"}
    own = [event for event in events if event["api_visibility"] == "private" and event["outputs"]]
    asked = [event for event in own if event["backend_fn"]]
    assert [event["api_name"] for event in asked if event["show_progress_on"] != []] == []


def test_quick_clicks_of_a_page_are_worked_off_one_after_another(served_app: tuple[str, Services]) -> None:
    url, services = served_app
    page = RawPage(url)
    # as a page sends it whose numbers don't stand there yet
    assert "no document is open yet; wait until it is there" in page.press("qx-run", qx_top_k=0)
    page.load("")
    before = {run.token for run in services.library.runs.all()}
    for _ in range(5):
        page.queue("qx-step", qx_question="where was mary ?", qx_budget=7, qx_stops=False).raise_for_status()
    page.receive()
    (run,) = (run for run in services.library.runs.all() if run.token not in before)
    assert [step.step for step in run.trace.steps] == [1, 2, 3, 4, 5]


def test_a_click_at_the_end_of_an_event_is_answered_on_the_stream_that_is_open(
    served_app: tuple[str, Services],
) -> None:
    page = RawPage(served_app[0])
    page.queue("qx-change-button").raise_for_status()
    came = page.receive(lambda: page.queue("qx-change-button").raise_for_status())
    assert came.count('"process_completed"') == 2
    page.queue("qx-change-button").raise_for_status()
    address = f"{served_app[0]}/gradio_api/queue/data?session_hash={page._session}"
    assert '"close_stream"' in httpx.get(address).text, "it ends, too"


def test_the_sample_s_run_is_made_once_and_there_from_then_on(served_app: tuple[str, Services]) -> None:
    url, services = served_app
    pages = [RawPage(url), RawPage(url)]
    for page in pages:
        assert "Stopped" in page.load("")
    asked = first_question(services.library.corpora.all()[-1])
    rows = services.own_log.search(owner=None, text=asked).rows
    assert [row.status for row in rows] == ["complete"]


def test_a_question_typed_during_a_run_is_told_apart_at_its_end(served_app: tuple[str, Services]) -> None:
    page = RawPage(served_app[0])
    page.load("")
    ran = page.press("qx-run", qx_question="where was mary at last ?", qx_budget=2, qx_stops=False)
    assert "Changed since this run" not in ran
    # what follows is sent with other controls, as they stand at first
    assert "Changed since this run: question" in page.follow(ran)


def test_while_a_document_is_opened_the_run_of_the_last_one_says_so(served_app: tuple[str, Services]) -> None:
    page = RawPage(served_app[0])
    page.load("")
    before, ended = page.press("qx-open-pasted", qx_pasted=TEXT).split("process_completed")
    assert "Earlier question: " in before
    assert "Earlier question: " not in ended


def test_a_run_opens_in_the_tab_that_its_address_names(served_app: tuple[str, Services]) -> None:
    url, services = served_app
    page = RawPage(url)
    page.press("qx-open-pasted", qx_pasted="mary left . john has a lamp .")
    page.press(
        "qx-sparc-start", qx_sparc_question="where was mary in the end ?", qx_sparc_strategies=["bm25"]
    )
    (run,) = services.own_log.search(owner=None, text="where was mary in the end ?").rows
    for tab, shows in (("", True), ("sparc", True), ("evidence", False)):
        page = RawPage(url)
        assert ("qx-round" in page.follow(page.load("", run.run_id, tab))) is shows, tab
