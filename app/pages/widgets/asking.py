"""The question of a tab: its box, what starts it, its progress."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import gradio as gr

from app.components.tree import clicked, packs, tree
from app.pages.widgets.notices import preparing
from app.pages.widgets.requests import OpenChunk
from app.pages.widgets.work import QUIET, Work, cancel_button, in_line
from app.services.in_view import Labelled, OpenDocuments
from app.services.recent import Recent
from app.services.session import Session
from core.base.errors import BadRequest
from core.base.types import Workspace
from core.views.draw.nodes import Node, h, sends
from core.views.draw.words import counted

_UNLESS_TYPED = """(now, offer) => {
  const [then, offered] = JSON.parse(offer || "[]");
  return now === then ? offered : now;
}"""
"""Offers a question, as [what stood in the box at first, what Explore asks], unless another was typed."""
_BLANK = "\N{NO-BREAK SPACE}"
SECONDS_BETWEEN_LOOKS = 1.0
"""For a document that is being opened."""
MOST_LOOKS = 4
"""For its question, once it is there."""


@dataclass(frozen=True)
class TakenOver:
    """What a tab takes over from Explore when it is opened."""

    documents: OpenDocuments
    before: OpenDocuments | None
    """Those that were taken over the last time, if they are still open."""
    question: str
    seen: tuple[str, str]
    """(token of documents, question in Explore), to be given back the next time."""

    @property
    def is_new(self) -> bool:
        """Whether it holds other documents than before."""
        return self.before is None or self.before.workspace is not self.documents.workspace


class Asking:
    """Builds the components inside the card that is being made; each is an attribute."""

    def __init__(
        self,
        corpora: Recent[OpenDocuments],
        prefix: str,
        starts: str,
        *,
        about: str = "the document",
        line: list[Node] | None = None,
        status: list[Node] | None = None,
        ids: Mapping[str, str] = MappingProxyType({}),
        beside: Callable[[], None] = lambda: None,
    ) -> None:
        """prefix: of all ids; ids: those that end in another word than the attribute's name. starts: the
        button's label; beside: builds what stands beside it.
        """

        def named(part: str) -> str:
            return f"{prefix}-{ids.get(part, part)}"

        self._corpora = corpora
        with gr.Row(elem_classes="qx-question-row"):
            with gr.Column(elem_classes="qx-asking", scale=6, min_width=240):
                self.question = gr.Textbox(
                    label="Question",
                    show_label=False,
                    container=False,
                    lines=1,
                    max_lines=4,
                    placeholder=f"Ask something about {about}",
                    elem_id=named("question"),
                    elem_classes="qx-question",
                )
                self.known_questions = tree(elem_id=named("known"), elem_classes="qx-known")
            self.run = gr.Button(starts, variant="primary", elem_id=named("run"), min_width=60)
            beside()
        with gr.Row(elem_classes="qx-line"):
            self.line = tree(line, elem_id=named("set"), elem_classes="qx-set")
            with gr.Row(elem_classes="qx-slot"):
                self.standing = tree(elem_id=named("standing"))
                self.notice = tree(elem_id=named("notice"), elem_classes="qx-passing")
                self.progress = tree(elem_id=named("progress"))
                self.cancel = cancel_button(named("cancel"))
                self.status = tree(status, elem_id=named("status"), elem_classes="qx-status")
        self.work = Work(self.run, self.cancel, self.progress, self.notice)

    @property
    def parts(self) -> list[gr.Component]:
        """For `outputs=`."""
        return [part for part in vars(self).values() if isinstance(part, gr.Component)]

    def wire(
        self,
        run: Callable[..., object],
        inputs: Sequence[gr.Component],
        outputs: Sequence[gr.Component],
        **line: Any,
    ) -> gr.events.Dependency:
        """Has a run started by the button, by Enter and by the offer to run again."""
        starts = [self.run.click, self.question.submit, self.standing.select]
        return gr.on(starts, run, inputs, outputs, **line)

    def wire_controls(
        self,
        changes: Sequence[Callable[..., Any]],
        handler: Callable[..., object],
        inputs: Sequence[gr.Component],
        running: Sequence[gr.events.Dependency],
        beside: Sequence[gr.Component] = (),
        **line: Any,
    ) -> None:
        """Has `handler` say what is set and whether what is shown still fits: after each of `changes`, and at
        the end of what was `running`, which shows itself as it was asked for. beside: what it fills, too.
        """
        said = [self.standing, self.line, *beside]
        gr.on(changes, handler, inputs, said, trigger_mode="always_last", **line)
        for event in running:
            event.then(handler, inputs, said, **line)

    def wire_shown(
        self,
        show: Callable[..., Any],
        handler: Callable[..., dict[Any, Any]],
        inputs: Sequence[gr.Component],
        outputs: Sequence[gr.Component],
    ) -> None:
        """Has `handler` fill the tab whenever it is opened, which `show` listens to, and again until a
        document is there that is being opened. Its first inputs are the visitor's place in Explore and the
        question there.
        """
        box = next(place for place, component in enumerate(inputs) if component is self.question)
        offer, wait = gr.Textbox(visible=False), gr.Timer(SECONDS_BETWEEN_LOOKS, active=False)
        looks = gr.State(0)

        def offered(n_looks: int, session: Session, explored: str, *others: Any) -> dict[Any, Any]:
            update, then = handler(session, explored, *others), others[box - 2]
            words = json.dumps([then, update.pop(self.question, then)])
            # a document's question reaches the page a moment after the document
            n_looks = 0 if session.awaits else n_looks + 1
            again = session.awaits or (not explored and n_looks < MOST_LOOKS)
            return {**update, offer: words, wait: gr.Timer(active=again), looks: n_looks}

        shown = [*outputs, offer, wait, looks]
        gr.on([show, wait.tick], packs(offered), [looks, *inputs], shown, **QUIET).then(
            None, [self.question, offer], self.question, js=_UNLESS_TYPED, **QUIET
        )

    def wire_known(self, session: gr.State) -> None:
        """Has the menu fill in the question. `session`: the visitor's place in Explore."""

        def fill_in(now: Session, event: gr.EventData) -> object:
            documents, (_, argument) = self._corpora.get(now.corpus), clicked(event)
            if documents is None or not argument.isdecimal() or int(argument) >= len(documents.questions):
                return gr.skip()  # arguments come from a browser
            return documents.questions[int(argument)].question

        self.known_questions.select(fill_in, session, self.question, **in_line("known"))

    def begun(self) -> dict[Any, Any]:
        """What is shown before the first progress comes in."""
        return {**self.work.busy(), self.progress: preparing(), self.notice: [], self.standing: []}

    def take_over(
        self, session: Session, explored: str, seen: tuple[str, str], question: str
    ) -> TakenOver | None:
        """What is open in Explore now, and the question there unless it was taken over before, or somebody
        asked something here before anything was open.
        """
        documents = self._corpora.get(session.corpus)
        if documents is None:
            return None
        now = (session.corpus, explored)
        came_before = not seen[0] or seen == (session.corpus, "")
        keeps = seen == now or (question and came_before)
        text = question if keeps else explored or question
        return TakenOver(documents, self._corpora.get(seen[0]), text, now)

    @staticmethod
    def asked(question: str | None, explored: str | None, seen: tuple[str, str]) -> str:
        """What is asked: Explore's question where a press came before it was taken over from there."""
        return question or (not seen[1] and explored) or ""

    def has_open(self, session: Session, workspace: Workspace | None) -> bool:
        """Whether Explore has a run's documents open, in the same chunks."""
        documents = self._corpora.get(session.corpus)
        if documents is None or workspace is None:
            return False
        return documents.workspace.is_cut_as(workspace.documents, workspace.tables)

    def in_explore(self, session: Session, workspace: Workspace | None, chunk_id: int) -> OpenChunk:
        """A run's chunk, to be shown there. Raises BadRequest where that has other documents open by now."""
        if not self.has_open(session, workspace):
            raise BadRequest("Explore has another document open by now; open this one there first")
        return OpenChunk(chunk_id)


def settings_toggle(panel: str, first: Node, words: Sequence[Node]) -> Node:
    """What is set, as one sentence that opens its panel over the page. `panel`: the panel's id."""
    attributes = {"data-toggle": panel, "aria-expanded": "false", "aria-controls": panel}
    spans = (h("span", word) for word in words)
    more = h("span.qx-set-more", "Settings ▾")
    return h("button.qx-set-line", attributes, first, *spans, more)


def known_questions(questions: Sequence[Labelled]) -> list[Node]:
    """The questions whose support is known, to be filled in; nothing where there are none."""
    if not questions:
        return []
    rows = [
        h("li", sends("qx-menu-row", "known", place, question_label(question)))
        for place, question in enumerate(questions)
    ]
    title = "Their supporting chunks are known: hits are marked, and the answer is checked"
    summary = h("summary.qx-menu-button", {"title": title}, "Known questions ▾")
    return [h("details.qx-menu", summary, h("div.qx-menu-panel", h("ul", *rows)))]


def question_label(labelled: Labelled) -> str:
    """A known question in the list, with its hops where they are known."""
    if not labelled.hops:
        return labelled.question
    hops = counted(labelled.hops, "hop").replace(" ", _BLANK)
    return f"{labelled.question}  ·{_BLANK}{hops}"
