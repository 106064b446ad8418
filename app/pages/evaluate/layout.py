"""The components of the Evaluate tab, their labels and hints."""

from __future__ import annotations

from functools import partial

import gradio as gr

from app.components.tree import tree
from app.pages.evaluate import view
from app.pages.evaluate.documents.tab import WholeDocuments
from app.pages.widgets.work import Work, cancel_button
from app.services.evaluations import OWN, EvaluationOrder, available_tasks
from app.services.shared import Services
from core.base.config import help_of
from core.lab.tasks.catalog import PARTS, TASKS

LENGTHS = ("1K", "4K", "32K", "128K", "1M", "10M")
TASKS_TAB, DOCUMENTS_TAB = "tasks", "documents"
NOBODY = ""
"""No second agent."""


def task_label(name: str) -> str:
    """What stands in the list of tasks."""
    if name == OWN:
        return "my own questions (a file)"
    if name == "generated":
        return "generated: the app's own stories"
    if name.startswith("niah-"):
        return f"{name}: needles in a haystack"
    if name.startswith("qa"):
        return f"{name}: bAbI facts among books"
    if name.endswith("-long"):
        return f"{name.removesuffix('-long')}, one long list of paragraphs"
    if name.endswith(("-pooled", "-corpus")):
        return f"{name}: one pool of paragraphs for all questions"
    return f"{name}: its own paragraphs"


class EvaluateLayout:
    """Builds the components inside the Blocks that is being made; each is an attribute."""

    def __init__(self, services: Services, session: gr.State) -> None:
        if services.settings.public:  # whole documents are folders to read and embed
            self._build_tasks(services)
            return
        with gr.Tabs(selected=TASKS_TAB, elem_id="qx-evaluate-forms") as self.forms:
            with gr.Tab("Benchmark tasks", id=TASKS_TAB):
                self._build_tasks(services)
            with gr.Tab("My documents", id=DOCUMENTS_TAB):
                self.whole = WholeDocuments(services, session)

    def _build_tasks(self, services: Services) -> None:
        self._build_form(services)
        with gr.Column(visible=False, elem_id="qx-evaluate-results") as self.results:
            with gr.Column(elem_classes="qx-card"):
                self.score_heading = tree(elem_id="qx-evaluate-conditions")
                self.scores = tree(elem_id="qx-evaluate-scores")
            self._build_calibrator(services)
            with gr.Column(elem_classes="qx-card"):
                gr.Markdown("### Episodes by how they went")
                self.filter = tree(elem_id="qx-evaluate-filter")
                self.failures = tree(elem_id="qx-evaluate-failures")
                self.episode = tree(elem_id="qx-evaluate-episode")
                self.episode_notice = tree(elem_id="qx-evaluate-episode-notice")
        with gr.Column(elem_classes="qx-card"):
            gr.Markdown("### Earlier evaluations")
            self.list = tree(view.evaluation_list((), {}, "", "", 0), elem_id="qx-evaluate-list")
            self.list_notice = tree(elem_id="qx-evaluate-list-notice")

    def _build_form(self, services: Services) -> None:
        tasks = available_tasks(services.settings)
        agents = list(services.agents.checkpoints)
        with gr.Column(elem_classes="qx-card", elem_id="qx-evaluate-form"):
            gr.Markdown(
                "### Run an evaluation\nHow often does an agent find all the passages that answer a question?"
                " Asked over many questions whose passages are known."
            )
            with gr.Row(elem_classes="qx-settings-grid"):
                hint = partial(help_of, EvaluationOrder, none="0")
                dropdown = partial(gr.Dropdown, min_width=150)
                number = partial(gr.Number, precision=0, min_width=150)
                self.task = dropdown(
                    [(task_label(name), name) for name in tasks],
                    value=tasks[0],
                    label="Task",
                    elem_id="qx-evaluate-task",
                )
                self.length = dropdown(
                    list(LENGTHS),
                    value=TASKS[tasks[0]].length,
                    label="Length",
                    info=hint("length"),
                    allow_custom_value=True,
                    elem_id="qx-evaluate-length",
                )
                self.n = number(100, label="Questions", info=hint("n"), elem_id="qx-evaluate-n")
                self.agent = dropdown(agents, value=agents[0], label="Agent", elem_id="qx-evaluate-agent")
                self.second = dropdown(
                    [("none", NOBODY), *agents],
                    value=NOBODY,
                    label="Second agent",
                    info="On the same questions",
                    elem_id="qx-evaluate-second",
                )
                parts = list(PARTS[::-1])
                self.part = dropdown(
                    parts, value="test", label="Part", info=hint("part"), elem_id="qx-evaluate-part"
                )
                self.step_budget = number(
                    0, label="Step budget", info=hint("step_budget"), elem_id="qx-evaluate-budget"
                )
                self.seed = number(0, label="Seed", info=hint("seed"), elem_id="qx-evaluate-seed")
            self.questions = gr.File(
                file_count="single",
                type="filepath",
                file_types=[".jsonl", ".json", ".gz"],
                label=(
                    "Questions: a .jsonl file as for training, or HotpotQA, 2WikiMultiHopQA or MuSiQue in"
                    " their own formats"
                ),
                height=140,
                visible=tasks[0] == OWN,
                elem_id="qx-evaluate-questions",
            )
            with gr.Row(elem_classes="qx-buttons"):
                words = "Run evaluation"
                self.run = gr.Button(words, variant="primary", elem_id="qx-evaluate-run", min_width=150)
                self.cancel = cancel_button("qx-evaluate-cancel")
            self.estimate = tree(elem_id="qx-evaluate-estimate")
            self.progress = tree(elem_id="qx-evaluate-progress")
            self.notice = tree(elem_id="qx-evaluate-notice")
        self.work = Work(self.run, self.cancel, self.progress, self.notice)

    def _build_calibrator(self, services: Services) -> None:
        with gr.Row(elem_classes="qx-split"):
            with gr.Column(scale=7, min_width=300, elem_classes="qx-card", elem_id="qx-evaluate-calibrator"):
                gr.Markdown(
                    "### Stop threshold\nMove it: every episode is stopped where the best Q falls below it."
                    " Read off the rows, no agent runs."
                )
                self.calibrator_notice = tree(elem_id="qx-evaluate-calibrator-notice")
                with gr.Column(visible=False) as self.calibrator:
                    self.threshold = gr.Slider(
                        0, 1, value=0, step=0.005, label="Stop below Q", elem_id="qx-evaluate-threshold"
                    )
                    self.stops = tree(elem_id="qx-evaluate-stops")
                    self.stops_figure = gr.Plot(show_label=False, elem_id="qx-evaluate-stops-figure")
                    with gr.Row(elem_classes="qx-buttons"):
                        self.best = gr.Button("Go to the best", elem_id="qx-evaluate-best", min_width=110)
                        lasting, own = partial(gr.Button, min_width=180), not services.settings.public
                        self.make_default = lasting(
                            "Make it the agent's default", elem_id="qx-evaluate-default"
                        )
                        self.use_for_now = lasting(
                            "Use it until the app is closed", elem_id="qx-evaluate-for-now", visible=own
                        )
                    self.default_words = tree(elem_id="qx-evaluate-default-words")
                    self.default_notice = tree(elem_id="qx-evaluate-default-notice")
            with gr.Column(
                scale=5, min_width=280, elem_classes="qx-card", visible=False
            ) as self.reliability_card:
                self.reliability_heading = tree(elem_id="qx-evaluate-reliability-heading")
                self.reliability = gr.Plot(show_label=False, elem_id="qx-evaluate-reliability")
                with gr.Accordion("As a table", open=False, elem_id="qx-evaluate-reliability-toggle"):
                    self.reliability_table = tree(elem_id="qx-evaluate-reliability-table")
