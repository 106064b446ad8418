"""Blocks that do for an event what it says, and no more.

Gradio makes a component anew for every output that an event leaves as it is or switches on or off, and hands
each value, in and out, to another thread and back: with dozens of panels a page, several times what the step
behind them takes, in the loop that all visitors share. Decides that outputs of which nothing was said cost
nothing, and that values which Gradio would only hand through are handed through at once. What calls by name
take and give is never a file: in it Gradio would take whatever looks like one for one, and offer a file of
the server's that a visitor named in a text. An event that has said something does not say it again at its
end, and one that had nothing to say empties nothing. Nor is a web server made before there is something to
serve. Leans on Gradio's `preprocess_data`, `postprocess_data`, `handle_streaming_diffs`, `_Keywords` and the
name `App` in its `blocks` (6.31).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import gradio as gr
from gradio import blocks as gradio_blocks
from gradio.blocks import Block, BlockFunction
from gradio.components.api_component import Api
from gradio.components.base import _Keywords
from gradio.exceptions import ComponentProcessingError
from gradio.state_holder import SessionState
from gradio.utils import get_upload_folder

_CHECKED_AT_ONCE = (gr.Textbox, gr.Slider, gr.Number, gr.Checkbox, gr.Dropdown, gr.Radio)
"""Inputs whose values are checked and little else: not worth a thread."""
_SWITCHES = {"visible", "interactive"}
"""Properties that the server need not remember: nothing that it does depends on them."""

NOT_UPLOADED = (
    "a value names a file that was not uploaded here, or is none that its field takes; load the page again"
)


class _NoServer:
    create_app = staticmethod(lambda *_, **__: None)


@contextmanager
def _unserved() -> Iterator[None]:
    """In this block, Gradio makes no web server of pages. It would make one when they begin and one
    when they are complete, and `launch` makes its own.
    """
    kept = gradio_blocks.App
    gradio_blocks.App = _NoServer
    try:
        yield
    finally:
        gradio_blocks.App = kept


class LeanBlocks(gr.Blocks):
    """Pages whose handlers return or yield updates by component; `app` is None before `launch`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        with _unserved():
            super().__init__(*args, **options)

    def __exit__(self, *raised: Any) -> None:
        with _unserved():
            super().__exit__(*raised)

    def get_config_file(self) -> Any:
        """What Gradio tells callers of its pages; operations that have no button are left out of what its own
        page gets.

        Gradio puts in what a state calls when a visitor has left, and copies all of it in depth for each page
        load: with a bound method, all that its object holds, agents and documents too.

        With each word on how far an event is, the page copies all that any output of it holds, to draw
        progress there, even where none is to be drawn. Of events that hide it, the page hears as if it were
        to be drawn on a state, of which it holds nothing.
        """
        config = super().get_config_file()
        for block in config["components"]:
            block["props"].pop("delete_callback", None)
        states = [block["id"] for block in config["components"] if block["type"] == "state"][:1]
        for fn in config["dependencies"]:
            if fn["show_progress"] == "hidden":
                fn["show_progress_on"] = fn["show_progress_on"] or states or None
        calls = {block["id"] for block in config["components"] if block["type"] == "api"}
        wanted = {
            fn["id"] for fn in config["dependencies"] if calls.isdisjoint((*fn["inputs"], *fn["outputs"]))
        }
        for page in config["page"].values():
            page["components"] = [block for block in page["components"] if block not in calls]
            page["dependencies"] = [fn for fn in page["dependencies"] if fn in wanted]
            page["layout"]["children"] = [
                node for node in page["layout"]["children"] if node["id"] not in calls
            ]
        return config

    async def preprocess_data(
        self,
        block_fn: BlockFunction,
        inputs: list[Any],
        state: SessionState | None,
        explicit_call: bool = False,
    ) -> list[Any]:
        """What the handler gets, an entry an input. Raises Error for a file that was not uploaded here."""
        slow = any(
            not block.stateful and not isinstance(block, _CHECKED_AT_ONCE) for block in block_fn.inputs
        )
        self.validate_inputs(block_fn, inputs)
        if all(isinstance(block, Api) for block in block_fn.inputs):
            return list(inputs)
        if not _only_uploads(inputs):  # Gradio would fetch what is at an address
            raise gr.Error(NOT_UPLOADED, print_exception=False)
        if state is None or slow or not block_fn.preprocess or block_fn.component_prop_inputs:
            return await self._checked(block_fn, inputs, state, explicit_call)
        try:
            return [
                state[block._id] if block.stateful else state.get(block._id, block).preprocess(value)
                for block, value in zip(block_fn.inputs, inputs, strict=False)
            ]
        except Exception:  # Gradio says better what is wrong with a value
            return await self._checked(block_fn, inputs, state, explicit_call)

    async def _checked(
        self, block_fn: BlockFunction, inputs: list[Any], state: SessionState | None, explicit_call: bool
    ) -> list[Any]:
        """What Gradio gives; it keeps to itself why it refuses a value that looks like a file."""
        try:
            return list(await super().preprocess_data(block_fn, inputs, state, explicit_call))
        except (gr.Error, ComponentProcessingError):
            raise
        except Exception as error:
            raise gr.Error(NOT_UPLOADED, print_exception=False) from error

    async def postprocess_data(
        self, block_fn: BlockFunction, predictions: Any, state: SessionState | None
    ) -> list[Any]:
        """What goes to the browser, an entry an output."""
        if len(block_fn.outputs) == 1 and isinstance(block_fn.outputs[0], Api):
            return [predictions]
        if _says_nothing(predictions):
            predictions = {}
        if not isinstance(predictions, dict) or not all(
            isinstance(component, Block) for component in predictions
        ):
            return list(await super().postprocess_data(block_fn, predictions, state))
        said: dict[Any, Any] = {
            component: value
            for component, value in predictions.items()
            if not _goes_as_it_is(component, value)
        }
        sent = {component._id: value for component, value in predictions.items() if component not in said}
        if said:
            few = copy(block_fn)
            few.outputs = list(said)
            values = list(said.values())
            answers = await super().postprocess_data(few, values if len(values) > 1 else values[0], state)
            sent.update(zip((component._id for component in said), answers, strict=True))
        return [
            sent.get(component._id, None if component.stateful else gr.skip())
            for component in block_fn.outputs
        ]

    def handle_streaming_diffs(
        self,
        block_fn: BlockFunction,
        data: list[Any],
        session_hash: str | None,
        run: str | None,
        final: bool,
        simple_format: bool = False,
    ) -> list[Any]:
        """What a step of a generator sends; at its end a page gets nothing.

        Gradio sends the last step's values again there, and a question that a person began to type in between
        would be gone. Who calls by name is answered with them.
        """
        sent = super().handle_streaming_diffs(block_fn, data, session_hash, run, final, simple_format)
        if not final or block_fn.api_visibility == "public":
            return list(sent)
        return [None if component.stateful else gr.skip() for component in block_fn.outputs]


def _only_uploads(inputs: list[Any]) -> bool:
    """Whether all files in the inputs lie in the folder of uploads. What has a path is a file to Gradio."""
    folder = os.path.realpath(get_upload_folder()) + os.sep
    values = list(inputs)
    while values:
        value = values.pop()
        if isinstance(value, dict):
            path = value.get("path", folder)
            if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
                return False
            if not os.path.join(os.path.realpath(path), "").startswith(folder):
                return False
            value = list(value.values())
        if isinstance(value, list):
            values += value
    return True


def _says_nothing(predictions: Any) -> bool:
    """Also of a generator that ended: Gradio would empty every output of one that never yielded."""
    if isinstance(predictions, dict):
        return bool(predictions == gr.skip())
    first = predictions[0] if isinstance(predictions, tuple) and predictions else predictions
    return first is _Keywords.FINISHED_ITERATING


def _goes_as_it_is(component: Block, value: Any) -> bool:
    if isinstance(value, dict) and value.get("__type__") == "update":
        return value.keys() - {"__type__"} <= _SWITCHES
    return isinstance(component, gr.HTML) and (value is None or isinstance(value, str))
