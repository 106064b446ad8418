"""Questions of one's own in Explore.

Marks beside chunks, the list of what was marked, files of it, and the way to Evaluate and Train. A mark is
kept at once, as its visitor's, under the question of the run in view or else of the question box. Evaluating
and training are for an app of one's own, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import gradio as gr

from app.components.tree import clicked, packs, tree
from app.pages.explore import mark_view as view
from app.pages.widgets.notices import notice, notice_in
from app.pages.widgets.work import QUIET, Update
from app.services.explorer import open_in_explore
from app.services.in_view import OpenDocuments
from app.services.session import Session
from app.services.shared import Services
from app.services.visitors import check_known
from core.base.config import check_query
from core.base.errors import BadRequest, UserError
from core.base.progress import finish
from core.base.types import Document
from core.corpus.opening import chunk_documents
from core.lab.tasks.marked import ask_marked, take_in_questions
from core.lab.train.mixtures import FEWEST
from core.runs.log import new_run_id
from core.runs.log.marks import (
    Mark,
    MarkedQuestion,
    delete_question,
    keep_questions,
    list_questions,
    new_question,
)
from core.views.draw.words import counted

MAX_IMPORT_BYTES = 8 * 2**20
MAX_ANSWER = 400
"""Characters."""
_TO_NEXT = """() => {
    const pressed = document.activeElement?.dataset.act;
    const place = {"own-ask": "#qx-run", "own-edit": "#qx-own-answer textarea"}[pressed];
    if (!place) return;
    const reach = (tries) => {
        const next = document.querySelector(place);
        if (!next?.offsetParent) return tries && setTimeout(() => reach(tries - 1), 50);
        next.scrollIntoView({block: "center"});
        next.focus({preventScroll: true});
    };
    reach(40);
}"""
"""Once the question box or the editor is filled: out of view perhaps, and the editor not drawn yet."""
_KEPT = 256
"""Questions whose marks are remembered between two looks at the page."""


class OwnQuestions:
    """The card and its handlers; built once."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._marks: dict[tuple[str | None, str, str], tuple[tuple[int, bool], ...]] = {}
        with gr.Accordion(view.heading(0), open=False, elem_classes="qx-card", elem_id="qx-own") as self.card:
            self.list = tree(view.own_questions((), ()), elem_id="qx-own-list")
            self.editing = gr.State("")
            """Id of the question that is edited."""
            with gr.Column(visible=False, elem_id="qx-own-editor") as self.editor:
                self.answer = gr.Textbox(
                    label="Its answer",
                    info="Empty where nobody knows; answers are compared by their words",
                    max_length=MAX_ANSWER,
                    max_lines=2,
                    elem_id="qx-own-answer",
                )
                with gr.Row(elem_classes="qx-buttons"):
                    self.save = gr.Button("Save", elem_id="qx-own-save", min_width=90)
            with gr.Row(elem_classes="qx-buttons"):
                trains = not services.settings.public  # as the tabs that do it
                self.evaluate = gr.Button(
                    "Evaluate my questions",
                    variant="primary",
                    visible=trains,
                    elem_id="qx-own-evaluate",
                    min_width=150,
                )
                self.train = gr.Button(
                    "Train further on them", visible=trains, elem_id="qx-own-train", min_width=150
                )
                self.export = gr.Button("Export as JSONL", elem_id="qx-own-export", min_width=120)
                self.upload = gr.UploadButton(
                    "Import JSONL",
                    file_types=[".jsonl", ".gz"],
                    visible=False,  # a page loads what draws it once the card is opened
                    elem_id="qx-own-upload",
                    min_width=120,
                )
            self.notice = tree(elem_id="qx-own-notice")
        self.shown = [self.card, self.list]
        """What `listed` fills."""
        self.changed: gr.State = gr.State("")
        """Another one whenever marks or answers changed in this card."""
        self.to_evaluate: gr.State = gr.State(None)
        """(owner, token of the open documents, number) when all of them are to be asked."""

    def wire(self, session: gr.State, query: gr.Textbox) -> None:
        """`session`: the visitor's place; `query`: the question box."""
        self.query = query
        refusal = notice_in(self.notice)
        saved = [*self.shown, self.editor, self.notice, self.changed]
        listed = self.list.select(
            packs(self._on_list, refusal), session, [*saved, self.editing, self.answer, query], **QUIET
        )
        listed.success(None, js=_TO_NEXT, api_visibility="private")
        saves = [self.save.click, self.answer.submit]
        edited = [session, self.editing, self.answer]
        gr.on(saves, packs(self._on_save, refusal), edited, saved, **QUIET)
        self.evaluate.click(
            lambda now: (now.owner, now.corpus, new_run_id()), session, self.to_evaluate, **QUIET
        )
        self.export.click(packs(self._on_export, refusal), session, self.notice, **QUIET)
        self.card.expand(lambda: gr.UploadButton(visible=True), None, self.upload, **QUIET)
        taken_in = [*self.shown, self.notice, self.changed]
        self.upload.upload(packs(self._on_upload, refusal), [session, self.upload], taken_in, **QUIET)

    def to_train(
        self,
        tabs: gr.Tabs,
        session: gr.State,
        data: gr.Radio,
        questions: gr.File,
        start_from: gr.Dropdown,
        further: Callable[[str], gr.Dropdown],
    ) -> None:
        """`data`, `questions` and `start_from`: of Train, which shows what it learns from. `further`: the
        last of them set to an agent, by name, if that can be trained further.
        """

        def hand_over(now: Session) -> Iterator[Update]:
            agent = open_in_explore(self.services, now).agent.encoder.spec.name
            with TemporaryDirectory(prefix="qrag-questions-") as folder:  # Gradio keeps a copy
                file = self.training_file(now, Path(folder))
                check_enough(file)
                yield {
                    tabs: gr.Tabs(selected="train"),
                    data: "own",
                    questions: str(file),
                    start_from: further(agent),
                    self.notice: [],
                }

        handed = [tabs, data, questions, start_from, self.notice]
        self.train.click(packs(hand_over, notice_in(self.notice)), session, handed, **QUIET)

    # What Explore asks

    def at(self, session: Session, query: str) -> Session:
        """The session with the marks of a question over what is open."""
        documents = self.services.library.corpora.get(session.corpus)
        if documents is None or documents.owner != session.owner:
            return replace(session, marks=())
        key = session.owner, session.corpus, query.strip()
        if key not in self._marks:
            try:
                marked = _chunks_of(documents, self.services.marked(documents, query.strip()))
            except UserError:  # the log is another's, or damaged: that is said where something is marked
                return replace(session, marks=())
            if len(self._marks) >= _KEPT:
                self._marks.clear()
            self._marks[key] = marked
        return replace(session, marks=self._marks[key])

    def mark(self, session: Session, query: str, chunk_id: int, belongs: bool) -> Session:
        """A chunk marked for a question, or the same mark taken back. Raises BadRequest, LogError."""
        check_known(session.owner)
        documents = open_in_explore(self.services, session)
        query = check_query(query)
        chunk = documents.workspace[chunk_id]
        document = documents.workspace.documents[chunk.document]
        question = next(
            (one for one in self.services.marked(documents, query) if one.sha256 == document.sha256),
            new_question(document.title, document.sha256, query),
        )
        marked = question.with_mark(Mark(chunk.start, chunk.end, chunk.text, belongs))
        if marked.marks or marked.answer:
            keep_questions(self.services.own_log, [marked], session.owner)
        else:
            delete_question(self.services.own_log, marked.question_id, session.owner)
        self._marks.clear()
        return self.at(session, query)

    def listed(self, session: Session) -> Update:
        """The card as it stands."""
        try:
            questions = list_questions(self.services.own_log, session.owner)
        except UserError as error:
            return {self.list: notice(str(error), "info")}
        shown = ["qx-card", *["qx-kept"] * bool(questions)]  # also before anything is asked
        return {
            self.card: gr.Accordion(label=view.heading(len(questions)), elem_classes=shown),
            self.list: view.own_questions(questions, [one.sha256 for one in self._opened(session)]),
        }

    def _changed(self, session: Session) -> Update:
        return {**self.listed(session), self.changed: new_run_id()}

    def _opened(self, session: Session) -> tuple[Document, ...]:
        documents = self.services.library.corpora.get(session.corpus)
        theirs = documents is not None and documents.owner == session.owner
        return documents.workspace.documents if documents is not None and theirs else ()

    # Handlers; each returns updates by component

    def _on_list(self, session: Session, event: gr.EventData) -> Update:
        action, question_id = clicked(event)
        log = self.services.own_log
        question = next(
            (one for one in list_questions(log, session.owner) if one.question_id == question_id), None
        )
        if question is None:
            return self.listed(session)
        if action == "own-delete":
            delete_question(log, question_id, session.owner)
            self._marks.clear()
            return {**self._changed(session), self.editor: gr.Column(visible=False), self.notice: []}
        if action == "own-ask":
            return {self.query: question.question}
        if action == "own-edit":
            label = gr.Textbox(question.answer, label=f"Answer to: {question.question[:120]}")
            return {self.editing: question_id, self.editor: gr.Column(visible=True), self.answer: label}
        return {}

    def _on_save(self, session: Session, question_id: str, answer: str) -> Update:
        log = self.services.own_log
        questions = [one for one in list_questions(log, session.owner) if one.question_id == question_id]
        if len(answer) > MAX_ANSWER:
            raise BadRequest(f"the answer has {len(answer):,} characters, more than {MAX_ANSWER}; cut it")
        keep_questions(log, [replace(one, answer=answer.strip()) for one in questions], session.owner)
        return {**self._changed(session), self.editor: gr.Column(visible=False), self.notice: []}

    def _on_export(self, session: Session) -> Update:
        asked = ask_marked(self.services.own_log, session.owner, self._opened(session))
        return {self.notice: view.exported(asked.lines(), len(asked.questions), asked.left_out)}

    def _on_upload(self, session: Session, path: str) -> Update:
        check_known(session.owner)
        size = Path(path).stat().st_size
        if size > MAX_IMPORT_BYTES:
            raise BadRequest(f"the file has {size:,} bytes, more than {MAX_IMPORT_BYTES:,}; split it")
        n, left_out = take_in_questions(
            self.services.own_log, Path(path), session.owner, self._opened(session)
        )
        self._marks.clear()
        return {**self._changed(session), self.notice: view.taken_in(n, left_out)}

    def training_file(self, session: Session, folder: Path) -> Path:
        """The questions as `train` reads them, cut for the open agent. Raises BadRequest, LogError."""
        agent = open_in_explore(self.services, session).agent
        asked = ask_marked(self.services.own_log, session.owner, self._opened(session))
        if not asked.questions:
            raise BadRequest("no question has a passage that belongs to its answer; mark one first")
        file = folder / "my-questions.jsonl"
        file.write_text(
            asked.training_lines(lambda document: finish(chunk_documents([document], agent.encoder))),
            encoding="utf-8",
        )
        return file


def check_enough(file: Path) -> None:
    """Raises BadRequest for a file of fewer questions than a training takes, a line each."""
    n = len(file.read_text(encoding="utf-8").splitlines())
    if n < FEWEST:
        raise BadRequest(
            f"{counted(n, 'question')} with a passage can't train an agent; mark {FEWEST} questions or more"
        )


def _chunks_of(documents: OpenDocuments, marked: Sequence[MarkedQuestion]) -> tuple[tuple[int, bool], ...]:
    """Which chunks are marked, however the documents are cut now."""
    workspace, belongs = documents.workspace, dict[int, bool]()
    place = {document.sha256: i for i, document in enumerate(workspace.documents)}
    for one in marked:
        for mark in one.marks:
            for chunk_id in workspace.overlapping(place[one.sha256], mark.start, mark.end):
                belongs[chunk_id] = mark.belongs
    return tuple(belongs.items())
