"""What the SPARC tab consists of: components only, no events. Texts of labels and hints are here, those of
results in app.pages.sparc.view.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.components.tree import tree
from app.pages.sparc import view
from app.pages.sparc.llm_panel import LlmPanel
from app.pages.widgets.text import open_documents
from app.services import Services
from core.log.branches import STRATEGY_NAMES
from core.sparc.config import MAX_DEPTH, MAX_K, MAX_TEMPERATURE, MAX_WIDTH, STRATEGIES
from core.sparc.events import SparcConfig

USUAL = SparcConfig()
FIRST_ROUNDS = {"with the question as it is": "question", "with rewrites of it": "rewrite"}


@dataclass
class SparcControls:
    """The inputs that make a question and a SparcConfig, in the order in which handlers get their values."""

    question: gr.Textbox
    width: gr.Slider
    depth: gr.Slider
    k: gr.Slider
    strategies: gr.CheckboxGroup
    first_round: gr.Radio
    max_tokens: gr.Number
    max_calls: gr.Number
    temperature: gr.Slider
    seed: gr.Number

    def list(self) -> list[Any]:
        """For `inputs=`."""
        return list(vars(self).values())


class SparcLayout:
    """Builds the components inside the Blocks that is being made; each is an attribute."""

    def __init__(self, services: Services, session: gr.State) -> None:
        with gr.Column(elem_classes="qx-card", elem_id="qx-sparc-form"):
            self._build_form()
            self.llm_panel = LlmPanel(services, session, "sparc-llm")
            self.progress, self.notice = tree(elem_id="qx-sparc-progress"), tree(elem_id="qx-sparc-notice")
            self.standing = tree(elem_id="qx-sparc-standing")
        with gr.Column(elem_classes="qx-card", elem_id="qx-sparc-run"):
            self.heading = tree(view.heading(None), elem_id="qx-sparc-heading")
            self.result_notice = tree(elem_id="qx-sparc-result-notice")
            self.where = tree(elem_id="qx-sparc-where")
            self.rounds = tree(view.rounds(None), elem_id="qx-sparc-rounds")
        with gr.Column(elem_classes="qx-card qx-drawer", elem_id="qx-sparc-drawer"):
            self.reading = tree(elem_id="qx-sparc-reading")
        with gr.Column(elem_classes="qx-card qx-only-filled"):
            self.final = tree(elem_id="qx-sparc-final")

    def _build_form(self) -> None:
        self.header = tree(open_documents(None), elem_id="qx-sparc-header")
        self.deciders = tree(view.deciders(""), elem_id="qx-sparc-deciders")
        with gr.Row(elem_classes="qx-question-row"):
            question = gr.Textbox(
                label="Question",
                lines=1,
                max_lines=4,
                placeholder="Ask something about the document",
                scale=6,
                elem_id="qx-sparc-question",
            )
            self.run = gr.Button("Run", variant="primary", elem_id="qx-sparc-start", min_width=84)
            self.cancel = gr.Button(
                "Cancel", variant="stop", elem_id="qx-sparc-cancel", interactive=False, min_width=80
            )
        self.known = gr.Dropdown(
            [], label="Known questions (support is marked)", elem_id="qx-sparc-known", visible=False
        )
        with gr.Accordion("Settings", open=True, elem_id="qx-sparc-settings"):
            with gr.Row(elem_classes="qx-sliders"):
                width = gr.Slider(
                    1,
                    MAX_WIDTH,
                    value=USUAL.width,
                    step=1,
                    label="Width",
                    info="Branches of a round",
                    elem_id="qx-sparc-width",
                    min_width=150,
                )
                depth = gr.Slider(
                    1,
                    MAX_DEPTH,
                    value=USUAL.depth,
                    step=1,
                    label="Depth",
                    info="Rounds at most",
                    elem_id="qx-sparc-depth",
                    min_width=150,
                )
                k = gr.Slider(
                    1,
                    MAX_K,
                    value=USUAL.k,
                    step=1,
                    label="Chunks",
                    info="Of a branch, each round",
                    elem_id="qx-sparc-k",
                    min_width=150,
                )
            with gr.Row(elem_classes="qx-sparc-controls"):
                strategies = gr.CheckboxGroup(
                    [(STRATEGY_NAMES[name], name) for name in STRATEGIES],
                    value=list(USUAL.strategies),
                    label="Ways to retrieve",
                    info="Each query is given one of them",
                    elem_id="qx-sparc-strategies",
                    min_width=240,
                )
                first_round = gr.Radio(
                    list(FIRST_ROUNDS.items()),
                    value=USUAL.first_round,
                    label="Round 1 retrieves",
                    info="The paper's case study does the one, its algorithm the other",
                    elem_id="qx-sparc-first-round",
                    min_width=260,
                )
        with (
            gr.Accordion("Budgets and sampling", open=False, elem_id="qx-sparc-more"),
            gr.Row(elem_classes="qx-settings-grid"),
        ):
            max_tokens = gr.Number(
                None,
                label="Most tokens",
                info="Of all calls together; empty: no bound",
                precision=0,
                elem_id="qx-sparc-max-tokens",
            )
            max_calls = gr.Number(
                None,
                label="Most calls",
                info="Of a language model; empty: no bound",
                precision=0,
                elem_id="qx-sparc-max-calls",
            )
            temperature = gr.Slider(
                0,
                MAX_TEMPERATURE,
                value=USUAL.temperature,
                step=0.05,
                label="Temperature",
                info="Verdicts take 0",
                elem_id="qx-sparc-temperature",
            )
            seed = gr.Number(
                USUAL.seed, label="Seed", info="Of the sampling", precision=0, elem_id="qx-sparc-seed"
            )
        self.controls = SparcControls(
            question, width, depth, k, strategies, first_round, max_tokens, max_calls, temperature, seed
        )
