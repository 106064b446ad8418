"""Lean blocks send and take what Gradio's own would, only with less work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest
from gradio.state_holder import SessionState

from app.gradio_internals.blocks import LeanBlocks
from tests.coroutines import run as run_coroutine

with LeanBlocks() as blocks:
    state, words, panel, switch = gr.State(0), gr.Textbox("old"), gr.HTML("old"), gr.Button("Go")
    count, choice, figure = gr.Slider(0, 9, value=1), gr.Dropdown(["a", "b"], value="a"), gr.Plot()
    switch.click(
        lambda *_: {}, [state, words, count, choice], [state, words, panel, switch, count, choice, figure]
    )
CLICK = blocks.fns[0]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {panel: "<b>new</b>"},
        {panel: None, switch: gr.update(interactive=False), state: 7},
        {switch: gr.update(visible=False, value="Stop"), count: 3},
        {choice: gr.update(choices=["b", "c"], value="c"), words: "new", figure: None},
    ],
)
def test_what_goes_to_the_page_is_what_gradio_would_send(said: dict[Any, Any]) -> None:
    def sent(kind: type[gr.Blocks]) -> tuple[list[Any], Any]:
        session = SessionState(blocks)
        told = {
            component: dict(value) if isinstance(value, dict) else value for component, value in said.items()
        }
        values = run_coroutine(kind.postprocess_data(blocks, CLICK, told or gr.skip(), session))
        for value in values:
            if isinstance(value, dict):
                # Gradio says of a panel of which nothing was said that it has a property "__type__"
                value.pop("props", None)
        return values, session[state._id]

    assert sent(LeanBlocks) == sent(gr.Blocks)


@pytest.mark.parametrize(
    "given", [[None, "where ?", 3, "b"], [None, {"not": "a text"}, 2.5, "a"], [None, None, 1, None]]
)
def test_handlers_get_what_gradio_would_give(given: list[Any]) -> None:
    def got(kind: type[gr.Blocks]) -> list[Any]:
        return run_coroutine(kind.preprocess_data(blocks, CLICK, list(given), SessionState(blocks)))

    assert got(LeanBlocks) == got(gr.Blocks)


@pytest.mark.parametrize(
    "given", [[None, "", 1, "z"], [None, "", 100, "a"], [None, "", None, "a"], [None, ""]]
)
def test_values_that_a_page_would_not_send_are_refused_as_before(given: list[Any]) -> None:
    def refused(kind: type[gr.Blocks]) -> str:
        with pytest.raises((gr.Error, ValueError)) as refusal:
            run_coroutine(kind.preprocess_data(blocks, CLICK, list(given), SessionState(blocks)))
        return str(refusal.value)

    assert refused(LeanBlocks) == refused(gr.Blocks)


def test_the_page_gets_what_its_own_events_need_and_callers_get_all() -> None:
    def echo(words: str) -> str:
        return words

    with LeanBlocks() as page:
        shown, count, button = gr.HTML("old"), gr.State(0, delete_callback=print), gr.Button("Go")
        button.click(lambda: "new", None, shown, show_progress="hidden")
        button.click(lambda: "newer", None, shown)
        gr.api(echo, api_name="echo")
    config, plain = page.get_config_file(), gr.Blocks.get_config_file(page)
    hidden, full, call = config["dependencies"]
    assert (hidden["show_progress_on"], full["show_progress_on"]) == ([count._id], None)
    own = config["page"][""]
    assert own["dependencies"] == [hidden["id"], full["id"]]
    assert (
        own["components"]
        == [shown._id, count._id, button._id]
        == [node["id"] for node in own["layout"]["children"]]
    )
    assert call["api_name"] == "echo"
    plain["components"][1]["props"].pop("delete_callback")  # see the next test
    assert config["components"] == plain["components"]
    assert config["layout"] == plain["layout"]


def test_a_page_load_copies_nothing_that_is_not_for_the_page() -> None:
    """Gradio copies the configuration in depth for each, and would copy what the callback belongs to."""

    class Owner:
        def leave(self, _value: int) -> None: ...

    with LeanBlocks() as page:
        gr.State(0, delete_callback=Owner().leave)
    json.dumps(page.get_config_file())
    with pytest.raises(TypeError, match="method is not JSON serializable"):
        json.dumps(gr.Blocks.get_config_file(page))


def test_pages_have_no_server_before_they_are_launched() -> None:
    assert blocks.app is None
    with gr.Blocks() as plain:
        pass
    assert plain.app is not None


def test_an_event_does_not_say_again_at_its_end_what_it_said() -> None:
    with LeanBlocks() as page:
        asked, count, button = gr.Textbox("old"), gr.State(0), gr.Button("Go")
        button.click(lambda: "", None, [asked, count], api_visibility="private")
        button.click(lambda: "", None, asked)
    of_the_page, of_callers = page.fns[0], page.fns[1]
    said: list[Any] = [["old", None], ["", None]]
    for values in said:
        page.handle_streaming_diffs(of_the_page, [*values], "visitor", "run", final=False)
        page.handle_streaming_diffs(of_callers, values[:1], "caller", "run", final=False)
    end: list[Any] = [None, None]
    assert page.handle_streaming_diffs(of_the_page, end, "visitor", "run", final=True) == [gr.skip(), None]
    assert page.handle_streaming_diffs(of_callers, end[:1], "caller", "run", final=True) == [""]
    assert not page.pending_diff_streams["visitor"]


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_a_generator_that_says_nothing_empties_nothing(n_outputs: int) -> None:
    """An event may find its reason gone: one that changed twice, say, while another event was at work."""

    def silent() -> Iterator[dict[Any, Any]]:
        yield from ()

    with LeanBlocks() as page:
        outputs = [gr.Textbox("asked"), gr.Slider(1, 9, value=4), gr.State(7)][:n_outputs]
        gr.Button("Go").click(silent, None, outputs)
    answer = run_coroutine(page.process_api(0, [], state=SessionState(page)))
    assert answer["data"] == [gr.skip(), gr.skip(), None][:n_outputs]
