"""What the Evidence sets tab consists of: components only, no events. Texts of labels and hints are here,
those of results in app.pages.evidence.view.
"""

from __future__ import annotations

import gradio as gr

from app.components.tree import tree
from app.pages.evidence import view
from app.pages.evidence.actions import MAX_BUDGET, USUAL_BUDGET
from app.pages.sparc.llm_panel import LlmPanel
from app.pages.widgets.text import open_documents
from app.pages.widgets.work import Work
from app.services import Services

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
                self.said = tree(view.said(None), elem_id="qx-sets-said")
            with gr.Column(min_width=240, scale=4):
                self.budget = gr.Slider(
                    1,
                    MAX_BUDGET,
                    value=USUAL_BUDGET,
                    step=1,
                    label="Budget",
                    elem_id="qx-sets-budget",
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
        with gr.Row(elem_classes="qx-question-row"):
            with gr.Column(elem_classes="qx-asking", scale=6, min_width=240):
                self.question = gr.Textbox(
                    label="Question",
                    show_label=False,
                    container=False,
                    lines=1,
                    max_lines=4,
                    placeholder="Ask something about the documents",
                    elem_id="qx-sets-question",
                    elem_classes="qx-question",
                )
                self.known = tree(elem_id="qx-sets-known", elem_classes="qx-known")
            self.run = gr.Button("Run", variant="primary", elem_id="qx-sets-run", min_width=60)
            self.cancel = gr.Button(
                "Cancel", variant="stop", elem_id="qx-sets-cancel", interactive=False, min_width=60
            )
        with gr.Row(elem_classes="qx-line"):
            self.line = tree(view.policy_line(False, ""), elem_id="qx-sets-set", elem_classes="qx-set")
            with gr.Row(elem_classes="qx-slot"):
                self.standing = tree(elem_id="qx-sets-standing")
                self.progress = tree(elem_id="qx-sets-progress")
                self.took = tree(elem_id="qx-sets-took", elem_classes="qx-status")
        self.notice = tree(elem_id="qx-sets-notice", elem_classes="qx-over")
        with gr.Column(elem_id="qx-sets-settings", elem_classes="qx-pop"):
            self.who = gr.Radio(
                list(CHOOSERS.items()),
                value=LIGHT,
                label="Who chooses the set",
                info="The light policy is quick and ships; a model reads the chunks themselves",
                elem_id="qx-sets-chooser",
            )
            self.llm_panel = LlmPanel(services, session, "sets-llm")
        self.work = Work(self.run, self.cancel, self.progress, self.notice)
