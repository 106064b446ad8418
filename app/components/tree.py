"""A gr.HTML that shows untrusted text safely.

Python sends a tree of plain data, the browser builds it with text nodes only. gr.HTML templates run what they
are given (`${...}`, `{{...}}`), so document text never enters one. The template here is static; the tree
travels as the component's value, packed into one string: Gradio sends a generator's values as differences to
the one before, and its differences of nested lists that shrink are wrong. A click on a node with `data-act`
triggers `select` with {"act", "arg"}: values from a browser, to be checked by whoever listens.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import wraps
from inspect import isgeneratorfunction
from types import NoneType
from typing import Any

import gradio as gr

from core.base.errors import UserError
from core.views.draw.nodes import Node
from core.views.draw.scripts import bundled

_HELD = (gr.Button, gr.Row, gr.Column, gr.Plot)
"""What a generator says of these, it repeats: Gradio's browser side changes an update that it has not shown
yet into the next one, in place, so that one soon followed by another is lost. Nobody types into these; what
somebody may have changed since is not sent twice.
"""
_TYPED = (gr.Textbox, gr.Number, gr.Slider, gr.Dropdown, gr.Checkbox, gr.Radio)
_VALUES = (str, int, float, NoneType)
_HELD_SECONDS = 3.0
"""How long it is repeated, to be shown; for ever would undo what another event has said since."""

TREE_SCRIPT = f"const qx = {bundled('tree.js')};"
"""What `qx.tree` is: once in the head of the page, for its hundred panels."""


def packed(value: Any) -> str:
    """A component's value as one string."""
    return json.dumps(value, ensure_ascii=False)


def tree(value: list[Node] | None = None, **kwargs: Any) -> gr.HTML:
    """Shows a packed list of nodes. No subclass of gr.HTML: Gradio writes stub files beside those."""
    return gr.HTML(
        packed(value or []),
        html_template='<div class="qx-tree"></div>',
        js_on_load="qx.tree(element, props, trigger, watch);",
        apply_default_css=False,
        **kwargs,
    )


def _ending(said: dict[Any, Any]) -> dict[Any, Any] | None:
    """What a generator says after its last update, None for nothing.

    Gradio sends the last update again when a generator ends, where a person may have typed something else by
    then. So values of fields are not in it; what is said of anything's properties is, see `_HELD`. And Gradio
    would empty every output of a generator that says nothing.
    """
    typed = [part for part, value in said.items() if isinstance(part, _TYPED) and isinstance(value, _VALUES)]
    if said and not typed:
        return None
    return {
        part: value
        for part, value in said.items()
        if not isinstance(part, gr.State) and not isinstance(value, _VALUES)
    }


def clicked(event: gr.EventData) -> tuple[str, str]:
    """(act, arg) of a click, bounded; empty strings when the browser sent something else."""
    data = event._data if isinstance(event._data, dict) else {}
    return str(data.get("act", ""))[:40], str(data.get("arg", ""))[:200]


def packs(
    handler: Callable[..., Any], refusal: Callable[[UserError], dict[Any, Any]] | None = None
) -> Callable[..., Any]:
    """The handler, which returns or yields updates by component, with trees and the strip's value packed on
    their way out. `refusal`: the update where it raises a UserError.
    """

    def pack(update: dict[Any, Any]) -> Any:
        if not update:
            return gr.skip()  # Gradio takes an empty dict for a value
        trees = {
            part: packed(value)
            for part, value in update.items()
            if isinstance(part, gr.HTML) and isinstance(value, list | tuple | dict)
        }
        return update | trees

    @wraps(handler)
    def function(*arguments: Any) -> Any:
        try:
            return pack(handler(*arguments))
        except UserError as error:
            if refusal is None:
                raise
            return pack(refusal(error))

    def settled(*arguments: Any) -> Generator[dict[Any, Any]]:
        try:
            yield from handler(*arguments)
        except UserError as error:
            if refusal is None:
                raise
            yield refusal(error)

    @wraps(handler)
    def generator(*arguments: Any) -> Iterator[dict[Any, Any]]:
        held: dict[Any, tuple[Any, float]] = {}
        said: dict[Any, Any] = {}
        with closing(settled(*arguments)) as updates:
            for update in updates:
                now = time.monotonic()
                held |= {part: (value, now) for part, value in update.items() if isinstance(part, _HELD)}
                recent = {part: value for part, (value, at) in held.items() if now - at < _HELD_SECONDS}
                said = recent | update
                yield pack(said)
        if (ending := _ending(said)) is not None:
            yield pack(ending)

    return generator if isgeneratorfunction(handler) else function
