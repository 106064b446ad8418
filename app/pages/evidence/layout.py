"""The components of the Evidence sets tab, their labels and hints."""

from __future__ import annotations

import gradio as gr

from app.components.tree import tree
from app.pages.evidence import view
from app.pages.widgets.asking import Asking
from app.pages.widgets.llm_panel import LlmPanel
from app.pages.widgets.text import open_documents
from app.services.evidence_sets import MAX_BUDGET, USUAL_BUDGET
from app.services.shared import Services

LIGHT, MODEL = "light", "model"
CHOOSERS = {"Light policy": LIGHT, "Language model": MODEL}


class EvidenceLayout:
    """Builds the components inside the Blocks that is being made; each is an attribute."""

    def __init__(self, services: Services, session: gr.State) -> None:
        self.header = tree(open_documents(None), elem_id="qx-sets-header", elem_classes="qx-open-here")
        with gr.Column(elem_classes="qx-card qx-ask", elem_id="qx-sets-form"):
            self._build_form(services, session)
        with gr.Row(elem_classes="qx-card", elem_id="qx-sets-story"):
            with gr.Column(min_width=240, scale=5):
                self.sentence = tree(view.sentence(None), elem_id="qx-sets-said")
            with gr.Column(min_width=240, scale=4):
                self.budget = gr.Slider(
                    1, MAX_BUDGET, value=USUAL_BUDGET, step=1, label="Budget", elem_id="qx-sets-budget"
                )
                self.budget_words = tree(view.budget_words(None), elem_id="qx-sets-budget-words")
            with gr.Column(min_width=240, scale=5, elem_classes="qx-only-filled"):
                self.tokens = tree(elem_id="qx-sets-tokens")
        with gr.Column(elem_classes="qx-card qx-only-filled"):
            self.documents = tree(elem_id="qx-sets-documents")
        with gr.Column(elem_classes="qx-card qx-drawer", elem_id="qx-sets-drawer"):
            self.reading = tree(elem_id="qx-sets-reading")
        with gr.Row(elem_id="qx-sets-below"):
            with gr.Column(elem_classes="qx-card qx-only-filled", min_width=300, scale=5):
                self.reward = tree(elem_id="qx-sets-reward")
                self.action = tree(elem_id="qx-sets-action")
            with gr.Column(elem_classes="qx-card qx-only-filled", min_width=300, scale=8):
                self.frontier = tree(elem_id="qx-sets-frontier")
                self.frontier_notice = tree(elem_id="qx-sets-frontier-notice")

    def _build_form(self, services: Services, session: gr.State) -> None:
        self.asking = Asking(
            services.library.corpora,
            "qx-sets",
            "Run",
            about="the documents",
            line=view.policy_line(False, ""),
            ids={"status": "took"},
        )
        with gr.Column(elem_id="qx-sets-settings", elem_classes="qx-pop"):
            self.who = gr.Radio(
                list(CHOOSERS.items()),
                value=LIGHT,
                label="Who chooses the set",
                info="The light policy is quick and built in; a language model reads the chunks themselves",
                elem_id="qx-sets-chooser",
            )
            self.llm_panel = LlmPanel(services, session, "sets-llm")
