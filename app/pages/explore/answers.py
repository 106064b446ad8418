"""What is made of a run that has ended.

The answer from its evidence, why it lacks support, and a language model's answer. All of that takes a moment,
so it is computed beside the line of those who step, and shown within it: nothing of the page overtakes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import gradio as gr

from app.components.tree import packs
from app.pages.explore import diagnosis as diagnosis_view
from app.pages.explore import story as story_view
from app.pages.explore import view as present
from app.pages.explore.at_work import reading_answer
from app.pages.explore.layout import ExploreLayout
from app.pages.widgets.notices import notice
from app.pages.widgets.work import Update, in_line
from app.services.explorer import Explorer
from app.services.in_view import RunInView
from app.services.session import Session
from core.base.errors import UserError
from core.llm.draft import Draft
from core.runs.log import new_run_id
from core.views.draw import answers as answer_view
from core.views.draw.nodes import Node


def at_work(session: Session) -> bool:
    """Whether Cancel is for something else than an answer."""
    return bool(session.opening or session.filling or session.underway)


@dataclass(frozen=True, eq=False)
class Said:
    """How far a language model is with a run's answer. Gradio tells states apart by their hash."""

    run: str = ""
    """The run's token."""
    nodes: list[Node] = field(default_factory=list)
    goes_on: bool = False


class Answers:
    """States that hand a run on, and the handlers that they start."""

    def __init__(self, page: ExploreLayout, explorer: Explorer, session: gr.State) -> None:
        self._page, self._explorer, self._session = page, explorer, session
        self._services = explorer.services
        self.ended: gr.State = gr.State(None)
        """(token, number) of a run that has ended and whose evidence is still to be read."""
        self.read: gr.State = gr.State(("", "", ""))
        """(token, why there is no answer or nothing, number) of the run that was read."""
        self.said: gr.State = gr.State(Said())
        """What a language model says: another run may come in view while it does."""
        self._looked: gr.State = gr.State("")
        """Token of the run that was looked into."""

    def wire(
        self, inputs: list[Any], quick: dict[str, Any], runs: dict[str, Any]
    ) -> list[gr.events.Dependency]:
        """Returns what Cancel ends. runs: the line of those who step."""
        page = self._page
        asks = {**quick, "outputs": [page.cited, self.said]}
        cites = page.cite.click(packs(self._cite), inputs, **{**asks, **in_line("cite")})
        says = {**quick, "outputs": [page.cited, page.asking.cancel], **in_line("said")}
        self.said.change(packs(self._show_said), [self._session, self.said], **says)
        reads = self.ended.change(self._read, [self._session, self.ended], self.read, **in_line("answer", 1))
        shown = [page.answer, page.story, page.steps, page.evidence, page.cite]
        answers = {**runs, "outputs": [*page.asking.parts, *shown]}
        reads.success(packs(self._show_answer), [self._session, self.read], **answers)
        looks_into = {"outputs": self._looked, **in_line("diagnosis", 1)}
        shows = {**runs, "outputs": page.diagnosis}
        looked = [self._session, self._looked]
        looks = self.read.change(self._diagnose, [self._session, self.read], **looks_into)
        told = looks.success(packs(self._show_diagnosis), looked, **shows)
        tries = told.then(self._try_embedding, looked, **looks_into)
        tries.success(packs(self._show_diagnosis), looked, **shows)
        return [cites, reads, looks, tries]

    def to_read(self, run: RunInView | None) -> Update:
        """Asks for the answer that a run ends in; nothing while a run goes on, or was read before."""
        if run is None or run.trace.stopped is None or run.answer is not None:
            return {}
        asking = self._page.asking
        return {
            self._page.answer: answer_view.working(),
            asking.progress: reading_answer(len(run.trace.evidence)),
            asking.cancel: gr.update(interactive=True),
            self.ended: (run.token, new_run_id()),
        }

    def look_again(self, run: RunInView) -> Update:
        """Asks what a run that has ended lacks; nothing while it goes on."""
        return {} if run.trace.stopped is None else {self.read: (run.token, "", new_run_id())}

    def _read(self, session: Session, ended: tuple[str, str]) -> tuple[str, str, str]:
        run, began = self._explorer.run_of(replace(session, run=ended[0])), time.monotonic()
        try:
            if run is not None:
                self._services.waited(self._services.answer(run), time.monotonic() - began)
        except UserError as error:
            return ended[0], f"no answer was read: {error}", ended[1]
        return ended[0], "", ended[1]

    def _show_answer(self, session: Session, read: tuple[str, str, str]) -> Update:
        """The answer; where another run is in view by now, or none, nothing is said to be read any more."""
        page, run, (token, error, _) = self._page, self._explorer.run_of(session), read
        free = {} if at_work(session) else {page.asking.progress: [], **self._cancels(False)}
        if run is None:
            return {**free, page.answer: []}
        if run.token != token:
            return {} if self.to_read(run) else free
        status = {page.asking.status: present.standing_at(run, session)}
        if error:
            return {**free, **status, page.answer: notice(error)}
        return {
            **free,
            **status,
            page.answer: present.answered(run, session),
            page.story: story_view.story(run, session),
            page.steps: present.steps(run, session),
            page.evidence: present.evidence(run, session),
            page.cite: gr.update(visible=present.answer_in_view(run, session) is not None),
        }

    def _diagnose(self, session: Session, read: tuple[str, str, str]) -> str:
        """Looks into a run that lacks support, by runs of its own."""
        run = self._explorer.run_of(replace(session, run=read[0]))
        if run is not None:
            self._services.diagnose(run)
        return read[0]

    def _try_embedding(self, session: Session, token: str) -> str:
        run = self._explorer.run_of(replace(session, run=token))
        if run is not None:
            self._services.try_embedding(run)
        return token

    def _show_diagnosis(self, session: Session, token: str) -> Update:
        run = self._explorer.run_of(session)
        in_view = run is not None and run.token == token
        return {self._page.diagnosis: diagnosis_view.diagnosis(run, session)} if in_view else {}

    def _cite(self, session: Session, *_: Any) -> Iterator[Update]:
        """A language model's answer as it is written, or a sentence that says why none comes."""
        run, llm = self._explorer.run_of(session), self._services.language_models.get(session)
        if run is None or run.trace.stopped is None:
            return
        if llm is None:
            words = "no language model is set; give one under Language model, beside the answer"
            yield {self._page.cited: [*notice(words, "info"), *answer_view.cited(run.cited)]}
            return

        draft = Draft()

        def said(nodes: list[Node], *, goes_on: bool = False) -> Update:
            return {self.said: Said(run.token, nodes, goes_on)}

        yield said(answer_view.asking(llm.name), goes_on=True)
        yield from self._page.asking.work.follow(
            lambda report: self._services.cite(run, llm, draft, report),
            lambda draft: said(answer_view.asking(llm.name, draft.text, draft.thoughts), goes_on=True),
            lambda asked: [said(answer_view.cited(asked.cited))],
            "asking a language model",
            lambda words: said(
                [*notice(words), *answer_view.thoughts(draft.thoughts), *answer_view.cited(run.cited)]
            ),
        )

    def _show_said(self, session: Session, said: Said) -> Update:
        """What a language model says of the run in view; nothing of another's, whose log keeps it."""
        if session.run != said.run:
            return {}
        return {self._page.cited: said.nodes, **({} if at_work(session) else self._cancels(said.goes_on))}

    def _cancels(self, something: bool) -> Update:
        return {self._page.asking.cancel: gr.update(interactive=something)}
