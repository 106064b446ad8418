"""The list of known questions: choosing one fills it in.

Gradio sends a dropdown's `input` when it loses the focus, too, so whoever passes with the Tab key would lose
what they typed.
"""

from __future__ import annotations

from typing import Any

import gradio as gr


def fills_in(known: gr.Dropdown, question: gr.Textbox, taken: gr.State, **event: Any) -> None:
    """`taken` holds the question that was chosen last; whoever sets `known` sets it as well. `event`: options
    of the listeners.
    """

    def take(chosen: str | None, last: str | None) -> Any:
        return gr.skip() if chosen == last else {question: chosen, taken: chosen}

    known.input(take, [known, taken], [question, taken], **event)
    known.select(
        lambda chosen: chosen, known, question, **event
    )  # the same one again, after something else was typed
