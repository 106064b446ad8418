"""Callers who hang up while they wait for a result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from gradio.queueing import Queue

from app.build import build_app
from app.services.settings import Settings
from app.services.shared import Services
from core.lab.tasks.narrative import generate_narrative
from tests.app.served import served
from tests.waiting import wait_until

TEXT = "\n\n".join(f"mary travelled to the garden on day {day} ." for day in range(60))


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Services, Queue]]:
    """An app whose agent takes some milliseconds a step and never stops early."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("QRAG_HOME", str(home))  # caches of its own: a known document opens at once
        services = Services(Settings(checkpoint="base", log=home / "log.duckdb"))
        blocks = build_app(services)
        with served(blocks, services.settings) as url:
            yield url, services, blocks._queue
        services.close()


def ask(http: httpx.Client, name: str, **values: object) -> str:
    """The address of the result."""
    return (
        f"/gradio_api/call/v2/{name}/"
        + http.post(f"/gradio_api/call/v2/{name}", json=values).raise_for_status().json()["event_id"]
    )


def hang_up(http: httpx.Client, result: str, when: Callable[[], bool]) -> None:
    """Waits for a result until `when`, and no longer."""
    with http.stream("GET", result):
        wait_until(when)


def test_a_run_whose_caller_hangs_up_stops(app: tuple[str, Services, Queue]) -> None:
    url, services, _ = app
    with httpx.Client(base_url=url, timeout=60) as http:
        document_id = http.get(
            ask(http, "open_document", text=TEXT, chunker="sentences", max_tokens=12)
        ).text.partition('"document_id": "')[2][:32]
        result = ask(
            http,
            "run_agent",
            document_id=document_id,
            query="where was mary ?",
            step_budget=50,
            stop_threshold="none",
        )
        hang_up(http, result, lambda: any(run.trace.steps for run in services.library.runs.all()))
        wait_until(lambda: all(run.ended for run in services.library.runs.all()))
        (run,) = services.own_log.search(owner=None).rows
        assert run.status == "cancelled"
        assert 0 < run.n_steps < 50
        assert (
            "complete"
            in http.get(ask(http, "run_agent", document_id=document_id, query="who ?", step_budget=2)).text
        ), "the line is free"


def test_a_document_whose_caller_hangs_up_is_not_opened(app: tuple[str, Services, Queue]) -> None:
    url, services, queue = app
    text = generate_narrative(20_000).text
    with httpx.Client(base_url=url, timeout=60) as http:
        result = ask(http, "open_document", text=text)
        began = time.monotonic()

        def is_at_work() -> bool:
            return queue.get_active_worker_count() > 0 and time.monotonic() - began > 0.2

        hang_up(http, result, is_at_work)
        wait_until(lambda: queue.get_active_worker_count() == 0)
    assert all(documents.workspace.documents[0].text != text for documents in services.library.corpora.all())
