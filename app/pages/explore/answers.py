"""What is made of a run that has ended.

The answer from its evidence, why it lacks support, and a language model's answer. All of that takes a moment,
so it is computed beside the line of those who step, and shown within it: nothing of the page overtakes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr

from app.components.tree import packs
from app.pages.explore import diagnosis as diagnosis_view
from app.pages.explore import story as story_view
from app.pages.explore import view as present
from app.pages.explore.at_work import reading_answer
from app.pages.explore.layout import ExploreLayout
from app.pages.widgets.notices import notice
from app.pages.widgets.work import in_line
from app.services.explorer import Explorer
from app.services.in_view import RunInView
from app.services.session import Session
from core.base.errors import UserError
from core.llm.draft import Draft
from core.runs.log import new_run_id
from core.views.draw import answers as answer_view
from core.views.quotes import passage_in

Update = dict[Any, Any]


class Answers:
    """States that hand a run on, and the handlers that they start."""

    def __init__(self, page: ExploreLayout, explorer: Explorer, session: gr.State) -> None:
        self._page, self._explorer, self._session = page, explorer, session
        self._services = explorer.services
        self.ended: gr.State = gr.State(None)
        """(token, number) of a run that has ended and whose evidence is still to be read."""
        self.read: gr.State = gr.State(("", "", ""))
        """(token, why there is no answer or nothing, number) of the run that was read."""
        self._looked: gr.State = gr.State("")
        """Token of the run that was looked into."""

    def wire(
        self, inputs: list[Any], quick: dict[str, Any], runs: dict[str, Any]
    ) -> list[gr.events.Dependency]:
        """Returns what Cancel ends. runs: the line of those who step."""
        page = self._page
        cites = page.cite.click(packs(self._cite), inputs, **{**quick, **in_line("cite")})
        reads = self.ended.change(self._read, [self._session, self.ended], self.read, **in_line("answer", 1))
        shown = [page.answer, page.story, page.steps, page.evidence, page.cite]
        reads.success(
            packs(self._show_answer),
            [self._session, self.read],
            **{**runs, "outputs": [*page.asking.parts, *shown]},
        )
        looks_into = {"outputs": self._looked, **in_line("diagnosis", 1)}
        shows = {**runs, "outputs": page.diagnosis}
        looked = [self._session, self._looked]
        looks = self.read.change(self._diagnose, [self._session, self.read], **looks_into)
        tries = looks.success(packs(self._show_diagnosis), looked, **shows).then(
            self._try_embedding, looked, **looks_into
        )
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
        """The answer, unless another run is in view by now."""
        page, run, (token, error, _) = self._page, self._explorer.run_of(session), read
        if run is None or run.token != token:
            return {}
        free = {page.asking.progress: [], page.asking.cancel: gr.update(interactive=False)}
        free = {} if session.filling or session.underway else free
        status = {page.asking.status: present.standing_at(run, session)}
        if error:
            return {**free, **status, page.answer: notice(error)}
        answer = present.answer_in_view(run, session)
        return {
            **free,
            **status,
            page.answer: answer_view.answer(
                answer, partial(passage_in, run.documents.workspace), run.known_answer
            ),
            page.story: story_view.story(run, session),
            page.steps: present.steps(run, session),
            page.evidence: present.evidence(run, session),
            page.cite: gr.update(visible=answer is not None),
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
        cited, cancel = self._page.cited, self._page.asking.cancel
        if run is None or run.trace.stopped is None:
            return
        if llm is None:
            words = "no language model is set; give one under Language model, beside the answer"
            yield {cited: [*notice(words, "info"), *answer_view.cited(run.cited)]}
            return

        draft = Draft()

        def work(report: Callable[[Draft], None]) -> RunInView:
            return self._services.cite(run, llm, draft, report)

        yield {cited: answer_view.asking(llm.name), cancel: gr.update(interactive=True)}
        yield from self._page.asking.work.follow(
            work,
            lambda draft: {cited: answer_view.asking(llm.name, draft.text, draft.thoughts)},
            lambda asked: [{cited: answer_view.cited(asked.cited), cancel: gr.update(interactive=False)}],
            "asking a language model",
            lambda words: {
                cited: [
                    *notice(words),
                    *answer_view.thoughts(draft.thoughts),
                    *answer_view.cited(run.cited),
                ],
                cancel: gr.update(interactive=False),
            },
        )
