"""What reaches into Gradio fits the Gradio that is asked for. What it does is tested where it is noticed."""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import gradio as gr
import pytest
from gradio.data_classes import PredictBody
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
