"""What is sent of a handler's updates."""

from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest

from app.components.tree import packed, packs, tree
from app.pages.widgets.notices import notice, notice_in
from core.base.errors import BadRequest
from core.views.draw.nodes import h


def test_a_stream_repeats_what_it_said_of_buttons_and_nothing_that_somebody_may_have_changed() -> None:
    panel, button, field, state = tree(), gr.Button("Cancel"), gr.Textbox(), gr.State()
    busy, free = gr.Button(interactive=True), gr.Button(interactive=False)

    def handler() -> Iterator[dict[Any, Any]]:
        yield {button: busy, field: "asked"}
        yield {panel: [h("p", None, "seen")]}
        yield {button: free}
        yield {field: "again", state: {}, panel: []}

    assert list(packs(handler)()) == [
        {button: busy, field: "asked"},
        {button: busy, panel: '[["p", {}, ["seen"]]]'},
        {button: free},
        {button: free, field: "again", state: {}, panel: "[]"},
        {button: free, panel: "[]"},  # Gradio sends once more what comes last
    ]


def test_a_stream_that_says_nothing_empties_nothing() -> None:
    def silent() -> Iterator[dict[Any, Any]]:
        yield from ()

    assert list(packs(silent)()) == [gr.skip()]


def test_nothing_is_said_where_nothing_was() -> None:
    button = gr.Button("Run")
    assert packs(dict)() == gr.skip()
    assert packs(lambda: {button: None})() == {button: None}


def test_what_a_handler_could_not_do_becomes_a_notice() -> None:
    place = tree()

    def handler() -> Iterator[dict[Any, Any]]:
        yield {place: ["shown"]}
        raise BadRequest("the number 7 is above 3; choose less")

    sentence = packed(notice("the number 7 is above 3; choose less"))
    assert list(packs(handler, notice_in(place))())[:2] == [{place: packed(["shown"])}, {place: sentence}]
    assert packs(lambda: next(handler()), notice_in(place))() == {place: packed(["shown"])}

    def refused() -> dict[Any, Any]:
        raise BadRequest("the number 7 is above 3; choose less")

    assert packs(refused, notice_in(place))() == {place: sentence}
    with pytest.raises(BadRequest):
        packs(refused)()
