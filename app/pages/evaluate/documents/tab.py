"""The card of the Evaluate tab for questions about whole documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import gradio as gr

from app.components.address import asked
from app.components.tree import clicked, packs, tree
from app.pages.evaluate.documents import view
from app.pages.widgets.llm_panel import LlmPanel
from app.pages.widgets.notices import notice, notice_in
from app.pages.widgets.requests import AskDocument
from app.pages.widgets.work import EACH, QUIET, Update, Work, cancel_button, in_line
from app.services.document_evaluations import (
    OFFERED,
    DocumentOrder,
    DocumentsProgress,
    evaluate_files,
    evaluate_marked,
    keep_evaluation,
    kept_evaluation,
)
from app.services.session import Session
from app.services.shared import Services
from core.base.config import help_of

_WORDS = """### My documents and questions
Drop your documents and one `.jsonl` file with a question a line; its support is quoted word for word:
`{"id": "1", "document": "manual.md", "kind": "single", "question": "…", "answer": "…", "support": ["a passage of manual.md"]}`

Kinds: single, bridge, comparison, temporal, table, unanswerable (no support). Without files, the sample documents are used.
To ask the questions that you marked in Explore, begin there: *Questions of my own*."""


class WholeDocuments:
    """Built once; handlers are methods."""

    def __init__(self, services: Services, session: gr.State) -> None:
        """session: the visitor's place in Explore, which knows their language model."""
        self.services = services
        with gr.Column(elem_classes="qx-card", elem_id="qx-whole"):
            gr.Markdown(_WORDS)
            self.files = gr.File(
                file_count="multiple",
                type="filepath",
                label="Documents, and their questions",
                height=140,
                elem_id="qx-whole-files",
            )
            self.methods = gr.CheckboxGroup(
                [(view.label_of(name), name) for name in OFFERED],
                value=list(DocumentOrder(()).methods),
                label="Methods",
                elem_id="qx-whole-methods",
            )
            with gr.Row(elem_classes="qx-settings-grid"):
                about = help_of(DocumentOrder, "k", none="0")
                self.k = gr.Number(
                    0, label="Most chunks", info=about, precision=0, elem_id="qx-whole-k", min_width=150
                )
                self.stops = gr.Checkbox(True, label="Agents may stop", elem_id="qx-whole-stops")
            self.llm_panel = LlmPanel(services, session, "whole-llm")
            with gr.Row(elem_classes="qx-buttons"):
                self.run = gr.Button(
                    "Ask all questions", variant="primary", elem_id="qx-whole-run", min_width=150
                )
                self.cancel = cancel_button("qx-whole-cancel")
            self.progress = tree(elem_id="qx-whole-progress")
            self.notice = tree(elem_id="qx-whole-notice")
            self.work = Work(self.run, self.cancel, self.progress, self.notice)
            self.scores = tree(elem_id="qx-whole-scores")
            self.questions = tree(elem_id="qx-whole-questions")
        self.measured: gr.State = gr.State(None)
        """Measured, once a document is through."""
        self.wanted: gr.State = gr.State(None)
        """(owner, token of their open documents, number) when their marked questions are to be asked."""
        self.to_explore: gr.State = gr.State(None)
        """An AskDocument when a question is to be asked in Explore."""
        panels = (self.progress, self.notice, self.scores, self.questions)
        self.shown = shown = [self.measured, *panels, self.run, self.cancel]
        order, refusal = [self.files, self.methods, self.k, self.stops], notice_in(self.notice)
        run = packs(self._run, refusal)
        running = self.run.click(run, [session, *order], shown, **in_line("evaluate", 1))
        marked = self.wanted.change(
            packs(self._run_marked, refusal),
            [session, self.wanted, *order[1:]],
            shown,
            **in_line("evaluate", 1),
        )
        self.work.wire_cancel([running, marked], packs(self._cancelled), None, shown, **QUIET)
        turned = [self.questions, self.to_explore]
        self.questions.select(packs(self._on_questions), self.measured, turned, **EACH, **QUIET)

    def _run(
        self, session: Session, files: list[str] | None, methods: list[str], k: float | None, stops: bool
    ) -> Iterator[Update]:
        order = _order(tuple(map(Path, files or [])), methods, k, stops)
        llm = self.services.language_models.get(session)
        yield from self._following(session, lambda report: evaluate_files(self.services, order, report, llm))

    def _run_marked(
        self,
        session: Session,
        wanted: tuple[str | None, str, str],
        methods: list[str],
        k: float | None,
        stops: bool,
    ) -> Iterator[Update]:
        owner, corpus, _ = wanted
        order, llm = _order((), methods, k, stops), self.services.language_models.get(session)
        opened = self.services.library.corpora.get(corpus)
        documents = opened.workspace.documents if opened is not None and opened.owner == owner else ()
        yield from self._following(
            session, lambda report: evaluate_marked(self.services, order, owner, documents, report, llm)
        )

    def arrived(self, session: Session, measured: DocumentsProgress | None, came: str) -> Update:
        """The evaluation that the page's address asks for; nothing where it asks for none. Raises
        BadRequest.
        """
        keys = asked(came, "documents", 1)
        if not keys or measured is not None or not session.llm:
            return {}
        return self._shown(kept_evaluation(keys[0], session.owner), keys[0])

    def _following(
        self,
        session: Session,
        work: Callable[[Callable[[DocumentsProgress], None]], DocumentsProgress],
    ) -> Iterator[Update]:
        n_done = 0

        def going(state: DocumentsProgress) -> Update:
            nonlocal n_done
            fresh = self._shown(state) if state.n_done > n_done else {}
            n_done = state.n_done
            return {**fresh, self.progress: view.following(state)}

        empty: Update = {self.notice: [], self.scores: [], self.questions: [], self.measured: None}
        yield {**self.work.busy(), **empty}

        def done(state: DocumentsProgress) -> Iterator[Update]:
            yield {**self.work.free(), **self._shown(state, keep_evaluation(state, session.owner))}

        yield from self.work.follow(work, going, done, "evaluating")

    def _shown(self, state: DocumentsProgress, key: str = "") -> Update:
        return {
            self.measured: state,
            self.scores: view.methods(state, key),
            self.questions: view.questions(state, 0),
        }

    def _cancelled(self) -> Update:
        words = notice("Cancelled; what was measured so far is shown.", "info")
        return {**self.work.free(), self.notice: words}

    def _on_questions(self, state: DocumentsProgress | None, event: gr.EventData) -> Update:
        """Arguments come from a browser: out of bounds, nothing happens."""
        action, argument = clicked(event)
        if state is None or not argument.isdecimal():
            return {}
        place = int(argument)
        if action == "ask" and (path := state.source(place)) is not None:
            return {self.to_explore: AskDocument(path, state.questions[place].question)}
        return {self.questions: view.questions(state, place)} if action == "questions-page" else {}


def _order(files: tuple[Path, ...], methods: list[str], k: float | None, stops: bool) -> DocumentOrder:
    chosen = tuple(name for name in OFFERED if name in methods)
    return DocumentOrder(files, chosen, int(k or 0) or None, stops)
