"""The components of the SPARC tab, their labels and hints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from app.components.tree import tree
from app.pages.sparc import view
from app.pages.widgets.asking import Asking
from app.pages.widgets.llm_panel import LlmPanel
from app.pages.widgets.sharing import Sharing
from app.pages.widgets.text import open_documents
from app.services.shared import Services
from core.base.config import help_of
from core.methods.sparc.config import MAX_DEPTH, MAX_K, MAX_TEMPERATURE, MAX_WIDTH, STRATEGIES
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.naming import STRATEGY_NAMES
from core.views.draw import sparc as drawn
from core.views.draw import sparc_line

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
        self.header = tree(open_documents(None), elem_id="qx-sparc-header", elem_classes="qx-open-here")
        with gr.Column(elem_classes="qx-card qx-ask", elem_id="qx-sparc-form"):
            self._build_form(services, session)
            self.sharing = Sharing("qx-sparc")
        with gr.Column(elem_classes="qx-card qx-story-card"):
            self.story = tree(sparc_line.story(None), elem_id="qx-sparc-story")
        with gr.Column(elem_classes="qx-card", elem_id="qx-sparc-run"):
            self.result_notice = tree(elem_id="qx-sparc-result-notice")
            self.rounds = tree(drawn.rounds(None), elem_id="qx-sparc-rounds")
        with gr.Column(elem_classes="qx-card qx-drawer", elem_id="qx-sparc-drawer"):
            self.reading = tree(elem_id="qx-sparc-reading")
        with gr.Row(elem_classes="qx-split"):
            with gr.Column(elem_classes="qx-card qx-only-filled", scale=1, min_width=320):
                self.final = tree(elem_id="qx-sparc-final")
            with gr.Column(elem_classes="qx-card qx-only-filled", scale=1, min_width=320):
                self.costs = tree(elem_id="qx-sparc-costs")

    def _build_form(self, services: Services, session: gr.State) -> None:
        self.asking = Asking(
            services.library.corpora,
            "qx-sparc",
            "Run",
            line=view.settings_line(USUAL, ""),
            ids={"run": "start", "status": "heading"},
        )
        with gr.Column(elem_id="qx-sparc-settings", elem_classes="qx-pop"):
            self._build_settings(self.asking.question)
            self.llm_panel = LlmPanel(services, session, "sparc-llm")

    def _build_settings(self, question: gr.Textbox) -> None:
        with gr.Row(elem_classes="qx-sliders"):
            hint = partial(help_of, SparcConfig, none="0")
            slider = partial(gr.Slider, 1, step=1, min_width=150)
            number = partial(gr.Number, precision=0)
            self.controls = SparcControls(
                question=question,
                width=slider(
                    MAX_WIDTH, USUAL.width, label="Width", info=hint("width"), elem_id="qx-sparc-width"
                ),
                depth=slider(
                    MAX_DEPTH, USUAL.depth, label="Depth", info=hint("depth"), elem_id="qx-sparc-depth"
                ),
                k=slider(MAX_K, USUAL.k, label="Chunks", info=hint("k"), elem_id="qx-sparc-k"),
                strategies=gr.CheckboxGroup(
                    [(STRATEGY_NAMES[name], name) for name in STRATEGIES],
                    value=list(USUAL.strategies),
                    label="Ways to retrieve",
                    info=hint("strategies"),
                    elem_id="qx-sparc-strategies",
                    min_width=240,
                ),
                first_round=gr.Radio(
                    list(FIRST_ROUNDS.items()),
                    value=USUAL.first_round,
                    label="Round 1 retrieves",
                    info=hint("first_round"),
                    elem_id="qx-sparc-first-round",
                    min_width=260,
                ),
                max_tokens=number(
                    0, label="Most tokens", info=hint("max_tokens"), elem_id="qx-sparc-max-tokens"
                ),
                max_calls=number(0, label="Most calls", info=hint("max_calls"), elem_id="qx-sparc-max-calls"),
                temperature=gr.Slider(
                    0,
                    MAX_TEMPERATURE,
                    value=USUAL.temperature,
                    step=0.05,
                    label="Temperature",
                    info=hint("temperature"),
                    elem_id="qx-sparc-temperature",
                ),
                seed=number(USUAL.seed, label="Seed", info=hint("seed"), elem_id="qx-sparc-seed"),
            )
