"""The components of the Experiments tab, their labels and hints."""

from __future__ import annotations

from functools import partial
from typing import get_args

import gradio as gr

from app.components.tree import tree
from app.pages.experiments import view
from app.pages.widgets.work import Work, cancel_button
from app.services.experiments import GROUPS, MAX_IMPORT_BYTES
from app.services.shared import Services
from core.runs.export.runs import ExportFormat
from core.runs.log.records import Status
from core.runs.log.sql import EXAMPLES, MAX_ROWS, MAX_SECONDS

ANY = ""
OUTCOMES = {"any": None, "all support found": True, "not all found": False}
OPENED, SELECTED, MATCHING = "the open run", "the selected runs", "all that match"
FORMATS: dict[str, ExportFormat] = {
    "JSON, to import again": "json",
    "CSV": "csv",
    "Parquet": "parquet",
    "HTML page, to read offline": "html",
    "OpenInference, for Phoenix and its like": "openinference",
}
_IMPORT = (
    "### Import\nRuns exported here as JSON, or what another retriever found in the document open in Explore:"
    " a TREC run, OpenInference spans, or lines of JSON such as"
    ' `{{"query": "…", "retrieved": ["a passage, word for word"]}}`, perhaps with `scores`, `method`,'
    " `answer`, `gold` and `known_answer`. Up to {megabytes} MB.{whose}"
)


class ExperimentsLayout:
    """Builds the components inside the Blocks that is being made; each is an attribute."""

    def __init__(self, services: Services) -> None:
        with gr.Column(elem_classes="qx-card", elem_id="qx-runs"):
            gr.Markdown(
                "### Runs in the log\nEvery run of the other pages, and of commands with --log. Click a"
                " question to see its run, tick some to compare them in charts."
            )
            self._build_filters()
            self.list_notice = tree(elem_id="qx-runs-notice")
            self.list = tree(elem_id="qx-runs-list")
        self._build_run()
        self._build_charts()
        self._build_files(services)
        if not services.settings.public:
            self._build_sql()

    def _build_filters(self) -> None:
        with gr.Row(elem_classes="qx-settings-grid", elem_id="qx-runs-filters"):
            text, choice = partial(gr.Textbox, min_width=130), partial(gr.Dropdown, min_width=130)
            any_other = {"choices": [("any", ANY)], "value": ANY}
            self.text = text(label="Question has", elem_id="qx-runs-text")
            self.document = text(
                label="Document", placeholder="part of its title", elem_id="qx-runs-document"
            )
            self.method = choice(**any_other, label="Method", elem_id="qx-runs-method")
            self.agent = choice(**any_other, label="Agent", elem_id="qx-runs-agent")
            states = [("any", ANY), *get_args(Status)]
            self.status = choice(states, value=ANY, label="Status", elem_id="qx-runs-status")
            support = "Support (if known)"
            self.outcome = choice(list(OUTCOMES), value="any", label=support, elem_id="qx-runs-outcome")
            day = partial(text, placeholder="2026-03-31")
            self.since = day(label="Made from", elem_id="qx-runs-since")
            self.until = day(label="Made until", elem_id="qx-runs-until")
        with gr.Row(elem_classes="qx-buttons"):
            self.clear = gr.Button("Clear filters", elem_id="qx-runs-clear", min_width=110)
        with gr.Accordion("Columns", open=False, elem_id="qx-runs-columns-toggle"):
            names, usual = list(view.COLUMNS), list(view.USUAL_COLUMNS)
            self.columns = gr.CheckboxGroup(names, value=usual, show_label=False, elem_id="qx-runs-columns")

    def _build_run(self) -> None:
        with gr.Column(visible=False, elem_classes="qx-card", elem_id="qx-run-detail") as self.detail:
            self.head = tree(elem_id="qx-run-head")
            with gr.Row(elem_classes="qx-buttons"):
                self.explore = gr.Button(
                    "Open in Explore", variant="primary", elem_id="qx-run-explore", min_width=130
                )
                self.replay = gr.Button("Replay", elem_id="qx-run-replay", min_width=80)
                self.cancel = cancel_button("qx-run-cancel")
            self.replayed = tree(elem_id="qx-run-replayed")
            self.run_notice = tree(elem_id="qx-run-notice")
            self.work = Work(self.replay, self.cancel, self.replayed, self.run_notice)
            self.steps = tree(elem_id="qx-run-steps")
            with gr.Accordion("Reproduce", open=False, elem_id="qx-run-reproduce-toggle"):
                self.reproduce = tree(elem_id="qx-run-reproduce")

    def _build_charts(self) -> None:
        with gr.Column(visible=False, elem_classes="qx-card", elem_id="qx-runs-charts") as self.charts:
            self.charts_heading = tree(elem_id="qx-runs-charts-heading")
            with gr.Row(elem_classes="qx-figures"):
                with gr.Column(min_width=300) as self.curves_card:
                    self.curves = gr.Plot(show_label=False, elem_id="qx-runs-curves")
                    with gr.Accordion("As a table", open=False):
                        self.curve_table = tree(elem_id="qx-runs-curve-table")
                with gr.Column(min_width=300):
                    self.by = gr.Dropdown(list(GROUPS), label="Bars by", elem_id="qx-runs-by", min_width=130)
                    self.counts = gr.Plot(show_label=False, elem_id="qx-runs-counts")
                    with gr.Accordion("As a table", open=False):
                        self.count_table = tree(elem_id="qx-runs-count-table")

    def _build_files(self, services: Services) -> None:
        with gr.Row(elem_classes="qx-split"):
            with gr.Column(scale=7, min_width=300, elem_classes="qx-card", elem_id="qx-runs-export"):
                gr.Markdown("### Export")
                self.scope = gr.Radio(
                    [OPENED, SELECTED, MATCHING], value=SELECTED, label="Which runs", elem_id="qx-runs-scope"
                )
                self.form = gr.Radio(
                    list(FORMATS), value=next(iter(FORMATS)), label="Format", elem_id="qx-runs-format"
                )
                words = "With the texts of documents and chunks"
                about = "Off: question, titles, choices and numbers; no evidence and no answer"
                self.with_text = gr.Checkbox(
                    value=False, label=words, info=about, elem_id="qx-runs-with-text"
                )
                with gr.Row(elem_classes="qx-buttons"):
                    self.export = gr.Button("Prepare export", elem_id="qx-runs-prepare", min_width=130)
                    shown = {"visible": False, "variant": "primary", "min_width": 130}
                    self.download = gr.DownloadButton("Download", **shown, elem_id="qx-runs-download")
                self.export_notice = tree(elem_id="qx-runs-export-notice")
            with gr.Column(scale=5, min_width=280, elem_classes="qx-card", elem_id="qx-runs-import"):
                whose = " They become yours." if services.settings.public else ""
                gr.Markdown(_IMPORT.format(megabytes=MAX_IMPORT_BYTES // 2**20, whose=whose))
                self.upload = gr.File(
                    file_count="multiple",
                    type="filepath",
                    file_types=[".jsonl", ".json", ".txt", ".tsv", ".trec", ".run", ".qrels"],
                    label="Files",
                    height=140,
                    elem_id="qx-runs-upload",
                )
                self.import_notice = tree(elem_id="qx-runs-import-notice")

    def _build_sql(self) -> None:
        with gr.Accordion("SQL", open=False, elem_classes="qx-card", elem_id="qx-sql"):
            gr.Markdown(
                f"One SELECT over a copy of the log, {MAX_SECONDS} seconds and {MAX_ROWS:,} rows at most;"
                " nothing can be changed. Tables: runs, events, run_details, run_documents, documents,"
                " chunk_tables, blobs, evaluations, episode_rows, trainings, training_events,"
                " marked_questions."
            )
            with gr.Row(elem_classes="qx-buttons"):
                self.examples = [gr.Button(title, size="sm", min_width=120) for title in EXAMPLES]
            self.sql = gr.Textbox(
                next(iter(EXAMPLES.values())), label="Query", lines=6, max_lines=20, elem_id="qx-sql-query"
            )
            with gr.Row(elem_classes="qx-buttons"):
                self.ask = gr.Button("Run query", variant="primary", elem_id="qx-sql-run", min_width=110)
            self.sql_notice = tree(elem_id="qx-sql-notice")
            self.answer = tree(elem_id="qx-sql-answer")
