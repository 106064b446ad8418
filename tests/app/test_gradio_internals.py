"""What reaches into Gradio fits the Gradio that is asked for. What it does is tested where it is noticed."""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from types import SimpleNamespace

import gradio as gr
import pytest
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI
from gradio.data_classes import PredictBody, PredictBodyInternal
from gradio.server_messages import ProcessCompletedMessage
from gradio.state_holder import StateHolder
from packaging.requirements import Requirement

from app import gradio_internals
from app.services.settings import Settings
from core.base.errors import BadRequest
from tests.app.conftest import ROOT
from tests.coroutines import run


def test_a_slider_takes_a_value_beyond_its_ends_as_its_end() -> None:
    gradio_internals.keep_sliders_in_bounds()
    slider = gr.Slider(0, 1.15, step=0.05)
    assert [slider.preprocess(value) for value in (2.5, -1, 0.5)] == [1.15, 0, 0.5]


def test_an_emptied_slider_is_left_to_who_reads_it() -> None:
    gradio_internals.keep_sliders_in_bounds()
    assert gr.Slider(1, 12, step=1).preprocess(None) is None  # type: ignore[arg-type]


def test_a_session_keeps_nothing_of_what_events_bring() -> None:
    gradio_internals.keep_no_configs()
    with gr.Blocks() as blocks:
        text, kept = gr.Textbox(), gr.State("kept")
    sessions = StateHolder()
    sessions.set_blocks(blocks)
    session = sessions["page"]
    session._update_value_in_config(text._id, "a long text")
    assert (session.config_values, session[kept._id]) == ({}, "kept")


def one() -> int:
    return 1


def test_a_call_that_names_no_page_is_forgotten() -> None:
    with gradio_internals.Pages() as pages:
        kept = gr.State("kept")
        gr.api(one, api_name="one")
    for session in ("call", "page"):
        pages.state_holder[session]
    pages.state_holder["page"][kept._id] = "kept"
    for session in ("call", "page"):
        run(pages.process_api(pages.fns[0], [], session_hash=session))
    assert list(pages.state_holder.session_data) == ["page"]


def test_a_result_that_nobody_fetches_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    with gr.Blocks() as blocks:
        button = gr.Button()
        button.click(lambda: 1)
    gradio_internals.take_turns(blocks, Settings(), max_size=8)
    queue = blocks._queue

    async def ask(session: str) -> None:
        body = PredictBodyInternal(data=[], session_hash=session, fn_index=0, request=None)
        assert (await queue.push(body, gr.Request(), None))[0]
        [event], _, _ = queue.get_events()
        queue.send_message(event, ProcessCompletedMessage(output={}, success=True))

    run(ask("first"))
    run(ask("second"))
    assert [result.session for result in queue._unfetched()] == ["first", "second"]
    monkeypatch.setattr(gradio_internals, "UNFETCHED_SECONDS", 0.0)
    assert queue._unfetched() == []
    assert not queue.pending_messages_per_session
    assert not queue.pending_event_ids_session


def test_who_waits_for_a_call_over_mcp_holds_no_thread() -> None:
    with gr.Blocks() as blocks:
        gr.api(one, api_name="one")
    app = gr.mount_gradio_app(FastAPI(), blocks, "/", mcp_server=True)
    gradio_internals.serve_mcp(app, "http://localhost")

    async def call() -> tuple[float, list[int]]:
        job = SimpleNamespace(future=Future[int]())
        waiting = asyncio.create_task(blocks.mcp_server_obj._execute_tool_without_progress(job))
        await asyncio.sleep(0.01)
        held = current_default_thread_limiter().borrowed_tokens
        job.future.set_result(1)
        return held, await waiting

    assert run(call()) == (0, [1])


def test_who_signed_in_is_one_visitor_whatever_keys_come() -> None:
    with gr.Blocks() as blocks:
        gr.Textbox()
    gradio_internals.take_turns(blocks, Settings(public=True), max_size=8)
    queue = blocks._queue
    bodies = [PredictBody(data=[secrets.token_hex(16)], session_hash=str(n), fn_index=0) for n in range(2)]
    assert (
        queue._visitor(bodies[0], "ann")
        == queue._visitor(bodies[1], "ann")
        != queue._visitor(bodies[0], "bob")
    )
    assert queue._visitor(bodies[0], None) != queue._visitor(bodies[1], None)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (KeyError("/home/ann/secret"), gradio_internals.BROKEN),
        (BadRequest("k=0 is below 1"), "k=0 is below 1"),
        (gr.Error("as it is"), "as it is"),
    ],
)
def test_a_handler_that_breaks_is_told_in_a_sentence(fault: Exception, told: str) -> None:
    def breaks() -> None:
        raise fault

    with gradio_internals.Pages() as pages:
        gr.Button().click(breaks)
    with ThreadPoolExecutor() as apart, pytest.raises(gr.Error) as raised:
        apart.submit(asyncio.run, pages.process_api(pages.fns[0], [])).result()
    assert raised.value.message == told


def test_too_few_values_are_no_fault_of_the_app() -> None:
    with gradio_internals.Pages() as pages:
        gr.Button().click(lambda _: None, gr.Textbox())
    with ThreadPoolExecutor() as apart, pytest.raises(gr.Error, match="0 values came, and 1 are needed"):
        apart.submit(asyncio.run, pages.process_api(pages.fns[0], [])).result()


def test_a_state_that_an_event_says_nothing_of_is_not_sent() -> None:
    """Of a tab that was never drawn, a browser would take it for a change."""
    with gradio_internals.Pages() as pages:
        text, kept = gr.Textbox(), gr.State("kept")
        gr.Button().click(lambda: {text: "new"}, None, [text, kept])
    assert run(pages.process_api(pages.fns[0], []))["data"] == ["new", gr.skip()]


def test_gradio_is_the_version_whose_private_parts_are_known() -> None:
    (gradio,) = (
        Requirement(line)
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if line.startswith("gradio")
    )
    assert (str(gradio.specifier), gradio.extras) == ("==6.31.*", {"mcp"})
    assert gradio.specifier.contains(version("gradio"))
    assert "Gradio 6.31" in (gradio_internals.__doc__ or "")
