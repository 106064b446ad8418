"""The components of the Compare tab, their labels and hints."""

from __future__ import annotations

from functools import partial

import gradio as gr

from app.components.tree import tree
from app.pages.compare import view
from app.pages.compare.difference import CUTS
from app.pages.widgets.asking import Asking
from app.pages.widgets.llm_panel import LlmPanel
from app.pages.widgets.text import open_documents
from app.pages.widgets.work import Work, cancel_button
from app.services.comparisons import MAX_K, Compared, ComparisonOrder, Comparisons
from core.base.config import help_of
from core.runs.whatif.variant import MAX_TEXT
from core.views.draw.nodes import h

SAME, OWN_STOP = "same", "own stop"
"""Values of the size control."""


class CompareLayout:
    """Builds the components inside the Blocks that is being made; each is an attribute."""

    def __init__(self, comparisons: Comparisons, session: gr.State) -> None:
        self.header = tree(open_documents(None), elem_id="qx-compare-header", elem_classes="qx-open-here")
        with gr.Column(elem_classes="qx-card qx-ask", elem_id="qx-compare-form"):
            self._build_form(comparisons, session)
        with gr.Column(elem_classes="qx-card", elem_id="qx-compare-results"):
            self.heading = tree(view.heading(Compared(), (), None), elem_id="qx-compare-heading")
            self.page = gr.DownloadButton(
                "Download", visible=False, variant="primary", elem_id="qx-compare-page", min_width=130
            )
            self.result_notice = tree(elem_id="qx-compare-result-notice")
            self.columns = tree(view.results(Compared(), ()), elem_id="qx-compare-columns")
        with gr.Column(elem_classes="qx-card qx-drawer", elem_id="qx-compare-drawer"):
            self.reading = tree(elem_id="qx-compare-reading")
            self._build_change()
        with gr.Column(elem_classes="qx-card qx-only-filled"):
            self.tried = tree(elem_id="qx-compare-tried")
        with gr.Column(elem_classes="qx-card qx-only-filled"):
            self.support = tree(elem_id="qx-compare-support")
        with gr.Column(elem_classes="qx-card qx-only-filled"):
            self.common = tree(elem_id="qx-compare-common")
        self._build_cuts()

    def _build_change(self) -> None:
        with gr.Column(visible=False, elem_id="qx-compare-change") as self.change_panel:
            size = {"lines": 2, "max_lines": 6, "max_length": MAX_TEXT}
            self.changed = gr.Textbox(label="The chunk reads", **size, elem_id="qx-compare-changed")
            self.change_notice = tree(elem_id="qx-compare-change-notice")
            with gr.Row(elem_classes="qx-buttons"):
                button = partial(gr.Button, min_width=120)
                self.try_text = button(
                    "Ask again with this text", variant="primary", elem_id="qx-compare-try-text"
                )
                self.try_without = button("Ask again without the chunk", elem_id="qx-compare-try-without")

    def _build_cuts(self) -> None:
        with gr.Column(elem_classes="qx-card", elem_id="qx-compare-cuts"):
            tree([h("h3", "The same question across chunk sizes"), h("p.qx-sm.qx-mut", CUTS)])
            with gr.Row(elem_classes="qx-buttons"):
                run = gr.Button("Try all chunk sizes", elem_id="qx-compare-cuts-run", min_width=140)
                progress = tree(elem_id="qx-compare-cuts-progress")
                cancel = cancel_button("qx-compare-cuts-cancel")
            notice = tree(elem_id="qx-compare-cuts-notice")
            self.cuts_of = tree(elem_id="qx-compare-cuts-of")
            self.cuts = tree(elem_id="qx-compare-cuts-table")
        self.cutting = Work(run, cancel, progress, notice)

    def _build_form(self, comparisons: Comparisons, session: gr.State) -> None:
        self.asking = Asking(comparisons.services.library.corpora, "qx-compare", "Compare")
        self.as_explore = tree(elem_id="qx-compare-as-explore")
        with gr.Column(elem_id="qx-compare-settings", elem_classes="qx-pop"):
            self._build_settings(comparisons)
            self.llm_panel = LlmPanel(comparisons.services, session, "compare-llm")

    def _build_settings(self, comparisons: Comparisons) -> None:
        about = partial(help_of, ComparisonOrder)
        self.methods = gr.CheckboxGroup(
            [(view.method_label(key), key) for key in comparisons.methods()],
            value=comparisons.usual(comparisons.services.agents.default_checkpoint),
            label="Methods",
            info=about("methods"),
            elem_id="qx-compare-methods",
        )
        with gr.Row(elem_classes="qx-sliders"):
            self.size = gr.Radio(
                [("the same for all", SAME), ("where the agent stops", OWN_STOP)],
                value=SAME,
                label="Evidence",
                info=about("own_stop"),
                elem_id="qx-compare-size",
            )
            self.k = gr.Slider(
                1, MAX_K, value=4, step=1, label="Chunks", info=about("k"), elem_id="qx-compare-k"
            )
