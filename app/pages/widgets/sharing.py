"""A run to be handed on: its address, and its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import gradio as gr

from app.components.tree import tree
from app.pages.widgets.notices import passing
from app.pages.widgets.text import file_button
from app.pages.widgets.work import Update
from core.views.draw.nodes import Node, sends

PAGE = "page"
"""What the button for a page asks for."""


class Sharing:
    """Builds the components inside the card that is being made. prefix: of their ids."""

    def __init__(self, prefix: str) -> None:
        with gr.Column(elem_classes="qx-over"):
            self.said = tree(elem_id=f"{prefix}-sharing")
            self.file = gr.DownloadButton(
                visible=False, variant="primary", elem_id=f"{prefix}-sharing-page", min_width=130
            )

    def written(self, write: Callable[[Path], Path]) -> Iterator[Update]:
        """The page to download, made by `write` in a folder that goes at once: Gradio keeps a copy."""
        with TemporaryDirectory(prefix="qrag-page-") as folder:
            file = write(Path(folder))
            words = "The run as one file, live without a network: send it to anybody."
            yield {self.said: passing(words, "info"), self.file: file_button(file)}


def page_button(kind: str = "qx-btn") -> Node:
    """Asks for the page. `kind`: its class."""
    title = "The run as one file, live without a network"
    return sends(kind, PAGE, "", "Page (HTML)", title=title)
