"""Blocks that do for an event what it says, and no more.

Gradio makes a component anew for every output that an event leaves as it is or switches on or off, and hands each value, in and out, to another thread
and back: with dozens of panels a page, several times what the step behind them takes, in the loop that all visitors share. Decides that outputs
of which nothing was said cost nothing, and that values which Gradio would only hand through are handed through at once. What calls by name take
and give is never a file: in it Gradio would take whatever looks like one for one, and offer a file of the server's that a visitor named in a text.
Leans on Gradio's `preprocess_data` and `postprocess_data` (6.31). Knows nothing of pages.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import gradio as gr
from gradio.blocks import Block, BlockFunction
from gradio.components.api_component import Api
from gradio.exceptions import ComponentProcessingError
from gradio.state_holder import SessionState

_CHECKED_AT_ONCE = (gr.Textbox, gr.Slider, gr.Number, gr.Checkbox, gr.Dropdown, gr.Radio)
"""Inputs whose values are checked and little else: not worth a thread."""
_SWITCHES = {"visible", "interactive"}
"""Properties that the server need not remember: nothing that it does depends on them."""


class LeanBlocks(gr.Blocks):
    """Pages whose handlers return or yield updates by component."""

    async def preprocess_data(self, block_fn: BlockFunction, inputs: list[Any], state: SessionState | None, explicit_call: bool = False) -> list[Any]:
        """What the handler gets, an entry an input."""
        slow = any(not block.stateful and not isinstance(block, _CHECKED_AT_ONCE) for block in block_fn.inputs)
        self.validate_inputs(block_fn, inputs)
        if all(isinstance(block, Api) for block in block_fn.inputs):
            return list(inputs)
        if state is None or slow or not block_fn.preprocess or block_fn.component_prop_inputs:
            return await self._checked(block_fn, inputs, state, explicit_call)
        try:
            return [
                state[block._id] if block.stateful else state.get(block._id, block).preprocess(value)
                for block, value in zip(block_fn.inputs, inputs, strict=False)
            ]
        except Exception:  # Gradio says better what is wrong with a value
            return await self._checked(block_fn, inputs, state, explicit_call)

    async def _checked(self, block_fn: BlockFunction, inputs: list[Any], state: SessionState | None, explicit_call: bool) -> list[Any]:
        """What Gradio gives, which keeps to itself why it takes no value that looks like a file and is none."""
        try:
            return list(await super().preprocess_data(block_fn, inputs, state, explicit_call))
        except (gr.Error, ComponentProcessingError):
            raise
        except Exception as error:
            raise gr.Error(
                "a value names a file that was not uploaded here, or is none that its field takes; load the page again", print_exception=False
            ) from error

    async def postprocess_data(self, block_fn: BlockFunction, predictions: Any, state: SessionState | None) -> list[Any]:
        """What goes to the browser, an entry an output."""
        if len(block_fn.outputs) == 1 and isinstance(block_fn.outputs[0], Api):
            return [predictions]
        if isinstance(predictions, dict) and predictions == gr.skip():
            predictions = {}
        if not isinstance(predictions, dict) or not all(isinstance(component, Block) for component in predictions):
            return list(await super().postprocess_data(block_fn, predictions, state))
        said: dict[Any, Any] = {component: value for component, value in predictions.items() if not _goes_as_it_is(component, value)}
        sent = {component._id: value for component, value in predictions.items() if component not in said}
        if said:
            few = copy(block_fn)
            few.outputs = list(said)
            values = list(said.values())
            answers = await super().postprocess_data(few, values if len(values) > 1 else values[0], state)
            sent.update(zip((component._id for component in said), answers, strict=True))
        return [sent.get(component._id, None if component.stateful else gr.skip()) for component in block_fn.outputs]


def _goes_as_it_is(component: Block, value: Any) -> bool:
    if isinstance(value, dict) and value.get("__type__") == "update":
        return value.keys() - {"__type__"} <= _SWITCHES
    return isinstance(component, gr.HTML) and (value is None or isinstance(value, str))
