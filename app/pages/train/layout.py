"""What the Train tab consists of: components only, no events.

The less usual settings are made from `TrainConfig`, its docstrings their help.
"""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import gradio as gr

from app.components.tree import tree
from app.pages.train import view
from app.services.trainings import (
    MAX_NAME,
    QUICK_UPDATES,
    available_data,
    example_questions,
    recipe_config,
)
from core.base.batches import batches
from core.base.config import help_of, words
from core.encode.packaged import MINILM
from core.lab.tasks.qa_sets import MAX_OWN_BYTES
from core.lab.train.config import OBJECTIVES, TrainConfig

DATA_LABELS = {
    "narrative": "Stories and needles in books (narrative)",
    "chains": "Short stories of two and three facts (chains)",
    "multi-hop": "Paragraphs of Wikipedia (multi-hop)",
    "multi-hop-without-musique": "The same without MuSiQue",
    "general": "Questions about whole documents (general)",
    "own": "My own questions",
}
NOT_SHOWN = ("data", "start_from")
"""They have controls of their own: no folder is taken from the page."""
FROM_BASE = ("The base encoder", "")
MAIN = ("updates", "episodes", "steps", "position_kind", "rank", "learning_rate", "ranking_weight", "seed")
"""Settings that stand in the open, in this order; `position_kind` as a tick."""
GROUPS = {
    "Learning": ("objective", "dropout", "warmup", "final_share", "weight_decay", "clip"),
    "Values": ("gamma", "trace_lambda", "ema", "soft_values", "target_towers", "bootstrap_at_cap"),
    "Exploration and reward": ("alpha", "top_k_actions", "exploring_starts", "penalize_extra_steps"),
    "Ranking and validation": ("ranking_temperature", "validate_every", "n_validation"),
}
"""The other settings."""
QUICK, FULL = "quick", "full"
_LABELS = {
    "episodes": "Episodes an update",
    "steps": "Steps of an episode",
    "position_kind": "Positions",
    "rank": "LoRA rank",
    "trace_lambda": "Lambda",
    "ema": "Tau",
    "clip": "Gradient clipping",
    "top_k_actions": "Explore among the best",
    "n_validation": "Validation examples",
    "bootstrap_at_cap": "Bootstrap at the step cap",
    "penalize_extra_steps": "Penalise extra steps",
}
"""Where a setting's name doesn't say it."""
FIGURES = ("success", "loss", "q", "reward", "entropy", "score")


class TrainLayout:
    """Builds the components inside the Blocks that is being made; each is an attribute."""

    def __init__(self) -> None:
        self.chosen = gr.State("")
        """Name of the training in view."""
        self.stamp: gr.State = gr.State(None)
        """What of it is on the page, so that nothing is sent twice."""
        self.pages = gr.State((0, 0))
        """Pages of the list and of the table of updates."""
        self.timer = gr.Timer(2.0, active=False)
        self._build_form()
        with gr.Column(elem_classes="qx-card"):
            gr.Markdown("### Trainings")
            self.list = tree(view.training_list((), "", 0), elem_id="qx-train-list")
        self._build_detail()

    def _build_form(self) -> None:
        data = available_data()
        first = data[-1] if len(data) == 1 else data[0]
        config = recipe_config(first)
        with gr.Column(elem_classes="qx-card", elem_id="qx-train-form"):
            gr.Markdown(
                "### Train an agent\nGive it questions whose supporting passages are known: it learns to find"
                " such passages, one after another (Q-RAG algorithm 1)."
            )
            self.data = gr.Radio(
                [(DATA_LABELS.get(name, name), name) for name in data],
                value=first,
                label="What it learns from",
                visible=len(data) > 1,
                elem_id="qx-train-data",
            )
            with gr.Row(visible=first == "own", elem_classes="qx-split", elem_id="qx-train-own") as self.own:
                with gr.Column(scale=5, min_width=260):
                    self.questions = gr.File(
                        file_count="single",
                        type="filepath",
                        file_types=[".jsonl", ".gz"],
                        label=f"Questions, a .jsonl file, plain or .gz, up to {MAX_OWN_BYTES // 2**20} MB",
                        height=160,
                        elem_id="qx-train-questions",
                    )
                with gr.Column(scale=7, min_width=280):
                    tree(view.format_help(example_questions()), elem_id="qx-train-format")
            efforts = [(f"Quick: {QUICK_UPDATES} updates, to see whether it learns", QUICK), ("Full", FULL)]
            self.effort = gr.Radio(efforts, value=FULL, label="How long", elem_id="qx-train-effort")
            with gr.Row(elem_classes="qx-settings-grid"):
                line = partial(gr.Textbox, max_lines=1)
                self.name = line(
                    label="Agent name",
                    max_length=MAX_NAME,
                    placeholder="my-agent",
                    info="Small letters, digits, hyphens",
                    elem_id="qx-train-name",
                )
                start = {"label": "Start from", "info": "Or train one further"}
                self.start_from = gr.Dropdown([FROM_BASE], value="", **start, elem_id="qx-train-start-from")
                self.settings: dict[str, Any] = {name: self._setting(name, config) for name in MAIN}
            with gr.Accordion("More settings", open=False, elem_id="qx-train-more"):
                for title, names in GROUPS.items():
                    gr.Markdown(f"#### {title}")
                    with gr.Row(elem_classes="qx-settings-grid"):
                        self.settings |= {name: self._setting(name, config) for name in names}
                about = "Empty: the one that ships. Else a hub id, or a folder on this machine"
                self.base = line(
                    "", label="Base encoder", placeholder=MINILM, info=about, elem_id="qx-train-base"
                )
            with gr.Row(elem_classes="qx-buttons"):
                self.start = gr.Button(
                    "Start training", variant="primary", elem_id="qx-train-start", min_width=160
                )
            self.estimate = tree(elem_id="qx-train-estimate")
            self.notice = tree(elem_id="qx-train-notice")

    def _setting(self, name: str, config: TrainConfig) -> Any:
        """The control of one setting, by its type."""
        kinds = {field.name: str(field.type) for field in fields(TrainConfig)}
        value = getattr(config, name)
        shared: dict[str, Any] = {
            "label": _LABELS.get(name, words(name).capitalize()),
            "info": help_of(TrainConfig, name, none="0"),
            "elem_id": f"qx-train-{name.replace('_', '-')}",
            "min_width": 150,
        }
        if name == "position_kind":
            return gr.Checkbox(value == "relative", **shared)
        if name == "objective":
            return gr.Dropdown(list(OBJECTIVES), value=value, **shared)
        if kinds[name] == "bool":
            return gr.Checkbox(value, **shared)
        return gr.Number(value, precision=None if kinds[name] == "float" else 0, **shared)

    def _build_detail(self) -> None:
        with gr.Column(visible=False, elem_id="qx-train-detail") as self.detail:
            with gr.Column(elem_classes="qx-card"):
                self.header = tree(elem_id="qx-train-header")
                with gr.Row(elem_classes="qx-buttons"):
                    button = partial(gr.Button, min_width=80, visible=False)
                    self.explore = button(
                        "Open in Explore", variant="primary", elem_id="qx-train-explore", min_width=140
                    )
                    self.stop = button("Stop", variant="stop", elem_id="qx-train-stop")
                    self.resume = button("Go on", elem_id="qx-train-resume")
                self.detail_notice = tree(elem_id="qx-train-detail-notice")
            self.figures: dict[str, tuple[gr.HTML, gr.Plot]] = {}
            self.cards: dict[str, gr.Column] = {}
            with gr.Column(
                visible=False, elem_classes="qx-figures", elem_id="qx-train-figures"
            ) as self.curves:
                for names in batches(FIGURES, 3):
                    with gr.Row(elem_classes="qx-split"):
                        for name in names:
                            with gr.Column(elem_classes="qx-card", min_width=260) as self.cards[name]:
                                self.figures[name] = (
                                    tree(elem_id=f"qx-train-{name}-title"),
                                    gr.Plot(show_label=False, elem_id=f"qx-train-{name}-figure"),
                                )
            with gr.Column(elem_classes="qx-card", visible=False) as self.tables:
                self.validation = tree(elem_id="qx-train-validation")
                with gr.Accordion("Every update as a table", open=False, elem_id="qx-train-updates-toggle"):
                    self.updates = tree(elem_id="qx-train-curve-table")


def config_values(config: TrainConfig) -> dict[str, Any]:
    """What the controls show for a configuration, by the setting's name."""
    names = [field.name for field in fields(TrainConfig) if field.name not in NOT_SHOWN]
    values = {name: getattr(config, name) for name in names}
    return {**values, "position_kind": config.position_kind == "relative"}
