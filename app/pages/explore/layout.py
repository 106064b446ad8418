"""The components of the Explore tab, their labels and hints."""

from __future__ import annotations

from functools import partial

import gradio as gr

from app.components.page import near
from app.components.strip import Find, strip
from app.components.tree import tree
from app.pages.explore import story as story_view
from app.pages.explore import view as present
from app.pages.explore.chunk_map import ChunkMaps
from app.pages.explore.controls import MAX_BUDGET, Controls
from app.pages.explore.marks import OwnQuestions
from app.pages.widgets.asking import Asking
from app.pages.widgets.llm_panel import LlmPanel
from app.pages.widgets.sharing import Sharing
from app.services import opener as opening
from app.services.session import Session
from app.services.shared import Services
from core.base.config import CHUNKERS, MAX_BEAM_WIDTH, ChunkConfig, EpisodeConfig, help_of
from core.ingest import ENCODINGS, MAX_FILE_BYTES, ReadingConfig
from core.lab.tasks.samples import list_samples
from core.views.draw.nodes import h

CLAIM = (
    "**Your RAG finds the first passage and misses the second.** See what an agent picks, what it passes"
    " over, and when."
)
ADD, REPLACE = "Add to what is open", "Replace what is open"
"""What is asked of a person who brings documents."""


class ExploreLayout:
    """Builds the components inside the Blocks that is being made; each is an attribute."""

    def __init__(self, services: Services, find_strip: Find, page: gr.HTML, session: gr.State) -> None:
        self.page, self.session = page, session
        self.visitor_key = gr.Textbox(visible=False)
        """Holds nothing: the browser puts the key in its place when it sends the load event."""
        with gr.Row(elem_id="qx-claim-row"):
            gr.Markdown(CLAIM, elem_id="qx-claim")
            self.demo = tree(present.demo(), elem_id="qx-demo")
        self._build_document()
        self._build_controls(services)
        self._build_views(services, find_strip)
        self.own = OwnQuestions(services)

    def _build_document(self) -> None:
        """What is open, in the line of the tabs; the panel that changes it opens over the page."""
        with gr.Row(elem_id="qx-document"):
            self.header = tree(present.document_header(None, "Opening a document…"), elem_id="qx-header")
            self.change = gr.Button("Change document", elem_id="qx-change-button", min_width=60)
        with gr.Column(visible=False, elem_id="qx-change", elem_classes="qx-card") as self.change_panel:
            samples = [(f"{sample.title}: {sample.description}", sample.key) for sample in list_samples()]
            with gr.Tabs():
                with gr.Tab("Samples"):
                    words = "Written for this app, with questions whose answers are known"
                    self.sample = gr.Radio(samples, value=samples[0][1], label=words, elem_id="qx-sample")
                    self.open_sample = gr.Button("Open sample", variant="primary", elem_id="qx-open-sample")
                with gr.Tab("Upload"):
                    words = (
                        "PDF, DOCX, EPUB, HTML, Markdown, CSV, mails, plain text, pictures, or a zip of them,"
                        f" up to {MAX_FILE_BYTES // 2**20} MB each; several are searched as one list, in this"
                        " order."
                    )
                    tree([h("p.qx-sm.qx-mut", words)])
                    self.files = gr.File(
                        file_count="multiple", type="filepath", label="Files", height=160, elem_id="qx-files"
                    )
                    with gr.Row():
                        self.open_files = gr.Button(REPLACE, variant="primary", elem_id="qx-open-files")
                        self.add_files = gr.Button(ADD, elem_id="qx-add-files")
                with gr.Tab("Paste"):
                    self.pasted = gr.Textbox(
                        lines=6, max_lines=12, label="Text, Markdown or HTML", elem_id="qx-pasted"
                    )
                    with gr.Row():
                        self.open_pasted = gr.Button(REPLACE, variant="primary", elem_id="qx-open-pasted")
                        self.add_pasted = gr.Button(ADD, elem_id="qx-add-pasted")
                with gr.Tab("Generate"):
                    lengths = [(f"{n:,} tokens", n) for n in opening.GENERATED_LENGTHS]
                    words = "A story of any length, with questions whose support is known"
                    self.length = gr.Dropdown(lengths, value=lengths[1][1], label=words, elem_id="qx-length")
                    self.open_generated = gr.Button(
                        "Generate and open", variant="primary", elem_id="qx-open-generated"
                    )
            self.change_notice = tree(elem_id="qx-change-notice")
            with gr.Accordion("Chunking", open=False), gr.Row():
                choices = [("by kind of document", ""), *((name, name) for name in CHUNKERS)]
                about = help_of(ChunkConfig, "chunker")
                self.chunker = gr.Dropdown(choices, value="", label="Chunker", info=about)
                about = "Empty: what the agent was made for"
                self.max_tokens = gr.Number(None, label="Most tokens of a chunk", info=about, precision=0)
            with gr.Accordion("How files are read", open=False), gr.Row():
                self.encoding = gr.Dropdown(
                    [("by the file, else a guess", ""), *((name, name) for name in ENCODINGS)],
                    value="",
                    label="Encoding",
                    info=help_of(ReadingConfig, "encoding"),
                    elem_id="qx-encoding",
                )
                self.keep_side_matter = gr.Checkbox(
                    False,
                    label="Keep side matter",
                    info=help_of(ReadingConfig, "keep_side_matter"),
                    elem_id="qx-keep-side-matter",
                )
            by_files = (self.open_files, self.add_files, self.open_pasted, self.add_pasted)
            self.openers = (self.open_sample, *by_files, self.open_generated)
            self.keep = gr.Button("Cancel", elem_id="qx-keep")

    def _build_controls(self, services: Services) -> None:
        spec = services.agents.spec(services.agents.default_checkpoint)
        with gr.Column(elem_classes="qx-card qx-ask", elem_id="qx-controls"):
            self.asking = Asking(
                services.library.corpora,
                "qx",
                "Run",
                status=present.standing_at(None, Session()),
                ids={"progress": "opening"},
                beside=self._build_moves,
            )
            self.warning = tree(elem_id="qx-warning")
            self.sharing = Sharing("qx")
            with gr.Column(elem_id="qx-settings", elem_classes="qx-pop"), gr.Row(elem_classes="qx-sliders"):
                self.agent = gr.Dropdown(
                    list(services.agents.checkpoints),
                    value=spec.name,
                    label="Agent",
                    info=present.agent_note(spec),
                    elem_id="qx-agent",
                )
                about = partial(help_of, EpisodeConfig)
                of_q = partial(gr.Slider, -1, 1, value=0, step=0.01)
                self.controls = Controls(
                    query=self.asking.question,
                    budget=gr.Slider(
                        1,
                        MAX_BUDGET,
                        value=spec.step_budget,
                        step=1,
                        label="Step budget",
                        elem_id="qx-budget",
                    ),
                    temperature=gr.Slider(
                        0, 1, value=0, step=0.005, label="Temperature", elem_id="qx-temperature"
                    ),
                    stops=gr.Checkbox(
                        spec.stop_threshold is not None,
                        label="Stop early",
                        info=about("stop_threshold"),
                        elem_id="qx-stops",
                        min_width=110,
                    ),
                    threshold=of_q(label="Stop below Q", elem_id="qx-threshold"),
                    reviews=gr.Checkbox(
                        spec.review_threshold is not None,
                        label="Review",
                        info=about("review_threshold"),
                        elem_id="qx-reviews",
                    ),
                    review=of_q(label="Take back below Q", elem_id="qx-review"),
                    positions=gr.Checkbox(
                        True, label="Positions", info=about("use_positions"), elem_id="qx-positions"
                    ),
                    beam=gr.Slider(
                        1,
                        MAX_BEAM_WIDTH,
                        value=1,
                        step=1,
                        label="Beam",
                        info=about("beam_width"),
                        elem_id="qx-beam",
                    ),
                    seed=gr.Number(0, label="Seed", info=about("seed"), precision=0, elem_id="qx-seed"),
                    top_k=gr.Number(
                        None,
                        label="Sample among the best",
                        info=about("top_k_actions"),
                        precision=0,
                        elem_id="qx-top-k",
                    ),
                )

    def _build_moves(self) -> None:
        """The page shows them from the first run over what is open on."""
        self.step = gr.Button("Step", elem_id="qx-step", min_width=60)
        self.back = gr.Button("Back", elem_id="qx-back", interactive=False, min_width=60)
        self.reset = gr.Button("Reset", elem_id="qx-reset", interactive=False, min_width=60)

    def _build_views(self, services: Services, find_strip: Find) -> None:
        with gr.Column(elem_classes="qx-card qx-story-card", elem_id="qx-story-card"):
            self.earlier = tree(elem_id="qx-earlier")
            self.story = tree(story_view.story(None, Session()), elem_id="qx-story")
            self.diagnosis = tree(elem_id="qx-diagnosis")
        with gr.Column(elem_classes="qx-card", elem_id="qx-strip-card"):
            maps = ChunkMaps(services.library)
            self.strip = strip(
                find_strip, of_map=(maps.chunkmap, maps.nearest, maps.piece), elem_id="qx-strip"
            )
        with gr.Row(elem_classes="qx-split"):
            with gr.Column(scale=5, min_width=280, elem_classes="qx-card", elem_id="qx-steps-card"):
                self.steps = tree(present.steps(None, Session()), elem_id="qx-steps")
            with gr.Column(scale=8, min_width=300, elem_classes="qx-card", elem_id="qx-reading-card"):
                with gr.Row(elem_classes="qx-find"):
                    self.reading_view = tree(present.reading_views(Session()), elem_id="qx-reading-view")
                    self.find = gr.Textbox(
                        label="Find text in the document, or a chunk by its number",
                        show_label=False,
                        container=False,
                        max_lines=1,
                        placeholder="Find text, or #12 for a chunk",
                        elem_id="qx-find",
                        scale=5,
                    )
                    self.find_next = gr.Button("Find next", elem_id="qx-find-next", scale=1, min_width=90)
                self.reading_notice = tree(elem_id="qx-reading-notice")
                with gr.Row(elem_id="qx-in-place"):
                    self.evidence = tree(present.evidence(None, Session()), elem_id="qx-evidence")
                    with gr.Column(elem_id="qx-said", min_width=160):
                        self.answer = tree(elem_id="qx-answer")
                        words = "Ask the language model, with citations"
                        self.cite = gr.Button(words, size="sm", visible=False, elem_id="qx-cite")
                        self.llm_panel = LlmPanel(services, self.session, "explore-llm")
                    self.cited = tree(elem_id="qx-cited")
                self.reading = tree(present.reading(None, None, Session()), elem_id="qx-reading")
        self.near = near(elem_id="qx-near")
        with gr.Row(elem_classes="qx-split", visible=False) as self.figures:
            with gr.Column(elem_classes="qx-card", min_width=320, visible=False) as self.trail_card:
                self.trail = tree(elem_id="qx-trail")
            with gr.Column(elem_classes="qx-card", min_width=260):
                self.decision = tree(elem_id="qx-decision")
                self.best = gr.Plot(show_label=False, elem_id="qx-best")
            with gr.Column(elem_classes="qx-card", min_width=260):
                self.distribution_title = tree(elem_id="qx-distribution-title")
                self.distribution = gr.Plot(show_label=False, elem_id="qx-distribution")
            with gr.Column(elem_classes="qx-card", min_width=260, visible=False) as self.parts_card:
                gr.Markdown("### Parts of Q")
                self.parts = gr.Plot(show_label=False, elem_id="qx-parts")
