"""The SPARC tab: which component starts which action, and what is shown then."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import gradio as gr

from app.components.tree import clicked, packs
from app.jobs import Finished, stream
from app.pages.explore.actions import open_in_explore
from app.pages.sparc import story as story_view
from app.pages.sparc import view
from app.pages.sparc.actions import Report, SparcOrder, SparcRun, SparcRuns
from app.pages.sparc.layout import SparcLayout
from app.pages.widgets.asking import known_question, known_questions
from app.pages.widgets.notices import notice, passing, preparing, progress
from app.pages.widgets.text import open_documents
from app.services import Services
from app.session import Session
from core.errors import BadRequest, UserError
from core.log import new_run_id
from core.log.branches import STRATEGY_NAMES
from core.sparc.events import SparcConfig

Update = dict[Any, Any]


@dataclass(frozen=True)
class SparcPlace:
    """A visitor's place in the tab."""

    run_id: str = ""
    """The run in view; empty before the first."""
    chunk_id: int | None = None
    """Chunk that is open in the reading place."""
    anchor: int | None = None
    """Chunk around which its page lies, where that is not the open one."""
    seen: tuple[str, str] = ("", "")
    """(token of documents, question) last taken over from Explore."""


def read_order(values: Sequence[Any]) -> SparcOrder:
    """What is asked for, out of the controls' values. Raises BadRequest with the sentence to show."""
    question, width, depth, k, strategies, first_round, max_tokens, max_calls, temperature, seed = values
    if None in (width, depth, k, temperature, seed):
        raise BadRequest("a setting is empty; give width, depth, chunks, temperature and seed a number each")
    config = SparcConfig(
        width=int(width),
        depth=int(depth),
        k=int(k),
        strategies=tuple(strategies or ()),
        first_round=first_round,
        max_tokens=int(max_tokens) if max_tokens else None,
        max_calls=int(max_calls) if max_calls else None,
        temperature=float(temperature),
        seed=int(seed),
    )
    return SparcOrder((question or "").strip(), config)


class SparcTab(SparcLayout):
    """Built once; handlers are methods."""

    def __init__(
        self, services: Services, runs: SparcRuns, session: gr.State, explored: gr.Textbox, page: gr.HTML
    ) -> None:
        """session, explored, page: the visitor's place in Explore, the question there, and the component that
        keeps the run's id in the address.
        """
        super().__init__(services, session)
        self.services, self.runs = services, runs
        self.session, self.explored, self.page = session, explored, page
        self.place = gr.State(SparcPlace())
        self.wanted: gr.State = gr.State(None)
        """(run id, number) of a logged run that is to be shown here; the number tells requests apart."""
        self.to_explore: gr.State = gr.State(None)
        """("chunk", chunk id, number) when a chunk is to be opened in Explore."""
        self._packed = {component for component in vars(self).values() if isinstance(component, gr.HTML)} - {
            page
        }
        self._wire()

    def _wire(self) -> None:
        controls = self.controls.list()
        self._outputs = [
            *(self.place, self.to_explore, self.page, self.header, self.line, self.known),
            *(self.run, self.cancel, self.progress, self.notice, self.standing, self.status, self.story),
            *(self.result_notice, self.rounds, self.reading, self.final, self.costs),
            *controls,
        ]
        place = [self.session, self.place]
        quick: dict[str, Any] = {
            "api_visibility": "private",
            "show_progress": "hidden",
            "concurrency_id": "sparc-look",
            "concurrency_limit": 4,
        }
        slow: dict[str, Any] = {
            "api_visibility": "private",
            "show_progress": "hidden",
            "concurrency_id": "sparc",
            "concurrency_limit": 2,
        }
        run = self._sends(self._run)
        running = [
            event(run, [*place, *controls], self._outputs, **slow)
            for event in (self.run.click, self.controls.question.submit, self.standing.select)
        ]
        self.work.wire_cancel(running, self._sends(self._cancelled), place, self._outputs, **quick)
        self.wanted.change(self._sends(self._on_wanted), [*place, self.wanted], self._outputs, **quick)
        self.known.select(self._on_known, self.session, self.controls.question, **quick)
        for panel in (self.story, self.rounds, self.reading, self.final):
            panel.select(self._sends(self._on_click), place, self._outputs, **quick)
        named = self._sends(lambda session, *controls: self._line(session, controls))
        self.llm_panel.changed.change(named, [self.session, *controls], [self.line], **quick)
        changes = [control.change for control in controls]
        gr.on(
            changes,
            self._sends(self._on_controls),
            [*place, *controls],
            [self.standing, self.line],
            trigger_mode="always_last",
            **quick,
        )

    def on_show(self, show: Callable[..., Any]) -> None:
        """`show`: the listener of the tab's being opened."""
        inputs = [self.session, self.explored, self.place, *self.controls.list()]
        show(
            self._sends(self._shown), inputs, self._outputs, api_visibility="private", show_progress="hidden"
        )
        self.llm_panel.on_show(show)

    def _sends(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """The handler with trees packed into strings on their way out (see components.tree)."""
        return packs(handler, self._packed)

    # Handlers; each returns or yields updates by component

    def _shown(
        self, session: Session, explored: str, place: SparcPlace, question: str, *controls: Any
    ) -> Update:
        """What is open in Explore now, its question too, unless it is the one that was taken over before; and
        who decides.
        """
        documents = self.services.corpora.get(session.corpus)
        if documents is None:
            return {**self._line(session, (question, *controls)), self.header: open_documents(None)}
        update: Update = {}
        if place.seen != (session.corpus, explored):
            question = explored or question
        before = self.services.corpora.get(place.seen[0])
        if (
            before is None
            or before.workspace is not documents.workspace
            or before.agent is not documents.agent
        ):
            on_offer = self.runs.strategies(documents)
            chosen = [name for name in controls[3] or () if name in on_offer] or list(on_offer)
            controls = (*controls[:3], chosen, *controls[4:])
            update |= {
                self.known: known_questions(documents.questions),
                self.controls.strategies: gr.CheckboxGroup(
                    [(STRATEGY_NAMES[name], name) for name in on_offer], value=chosen
                ),
            }
        place = replace(place, seen=(session.corpus, explored))
        return {
            **update,
            self.controls.question: question,
            self.place: place,
            self.header: open_documents(documents),
            **self._on_controls(session, place, question, *controls),
        }

    def _named(self, session: Session) -> str:
        """Name of the visitor's language model; empty without one."""
        llm = self.services.language_models.get(session)
        return "" if llm is None else llm.name

    def _on_controls(self, session: Session, place: SparcPlace, *controls: Any) -> Update:
        line = self._line(session, controls)
        try:
            order, run = read_order(controls), self._in_view(session, place)
        except UserError as error:
            return {**line, self.standing: notice(str(error))}
        changed = view.changes(run, order.question, order.config, self._same_documents(session, run))
        return {**line, self.standing: changed}

    def _line(self, session: Session, controls: Sequence[Any]) -> Update:
        """What is set, in words."""
        try:
            config = read_order(controls).config
        except UserError:
            config = None
        return {self.line: view.settings_line(config, self._named(session))}

    def _on_known(self, session: Session, event: gr.EventData) -> Any:
        chosen = known_question(self.services.corpora.get(session.corpus), event)
        return gr.skip() if chosen is None else chosen

    def _same_documents(self, session: Session, run: SparcRun | None) -> bool:
        """Whether Explore has open what a run searched."""
        documents = self.services.corpora.get(session.corpus)
        return (
            documents is not None
            and run is not None
            and run.workspace is not None
            and documents.workspace.sha256 == run.workspace.sha256
        )

    def _in_view(self, session: Session, place: SparcPlace) -> SparcRun | None:
        """Raises BadRequest when it is gone, LogError."""
        return self.runs.view(place.run_id, session.owner) if place.run_id else None

    def _run(self, session: Session, place: SparcPlace, *controls: Any) -> Iterator[Update]:
        """The run as it grows. An error becomes a sentence beside the buttons; what was there
        by then stays.
        """
        try:
            documents, order = open_in_explore(self.services, session), read_order(controls)
        except UserError as error:
            yield {self.notice: passing(str(error))}
            return
        yield {**self.work.busy(), self.progress: preparing(), self.notice: [], self.standing: []}
        gone = Event()
        shown: SparcRun | None = None

        def work(report: Report) -> SparcRun:
            return self.runs.run(
                documents, order, self.services.language_models.get(session), report, gone.is_set
            )

        try:
            with closing(stream(work)) as items:
                for item in items:
                    if isinstance(item, Finished):
                        place = replace(place, run_id=item.result.run_id)
                        yield {**self.work.free(), **self._drawn(session, place, item.result)}
                    elif isinstance(item, SparcRun) and item is shown:
                        yield {self.progress: []}  # a cancel gets through only where something is yielded
                    elif isinstance(item, SparcRun):
                        shown = item
                        place = (
                            replace(SparcPlace(item.run_id), seen=place.seen)
                            if place.run_id != item.run_id
                            else place
                        )
                        yield {self.progress: [], **self._drawn(session, place, item)}
                    else:
                        yield {self.progress: progress(item)}
            self.services.log.flush()
        except UserError as error:
            yield {**self._settled(session, place), self.notice: passing(str(error))}
        except Exception:
            logging.getLogger(__name__).exception("a SPARC run failed")
            words = (
                "something failed while running; what was there by then is kept, and the server's log"
                " says why"
            )
            yield {**self._settled(session, place), self.notice: passing(words)}
        finally:
            gone.set()

    def _cancelled(self, session: Session, place: SparcPlace) -> Update:
        self.runs.call_off(place.run_id, session.owner)
        words = (
            "Cancelled; the rounds so far are kept."
            if self.runs.wait_ended(place.run_id, 10)
            else "Cancelling: the turn at work ends first."
        )
        return {**self._settled(session, place), self.notice: passing(words, "info")}

    def _settled(self, session: Session, place: SparcPlace) -> Update:
        """The run in view as it is now, and nothing at work."""
        try:
            run = self._in_view(session, place)
        except UserError:
            run = None
        return {**self.work.free(), **({} if run is None else self._drawn(session, place, run))}

    def _on_wanted(self, session: Session, place: SparcPlace, wanted: object) -> Update:
        """A logged run, drawn from the log alone."""
        match wanted:
            case (str(run_id), str()):
                try:
                    run = self.runs.view(run_id, session.owner)
                except UserError as error:
                    return {self.result_notice: notice(str(error))}
                return self._drawn(session, SparcPlace(run_id, seen=place.seen), run)
        return {}

    def _on_click(self, session: Session, place: SparcPlace, event: gr.EventData) -> Update:
        """Clicks in any of the trees; arguments come from a browser: out of bounds, nothing happens."""
        action, argument = clicked(event)
        try:
            run = self._in_view(session, place)
        except UserError as error:
            return {self.result_notice: notice(str(error))}
        if run is None:
            return {}
        if action == "close":
            return self._looked(session, replace(place, chunk_id=None, anchor=None), run)
        if not argument.isdecimal() or int(argument) >= run.trace.started.n_chunks:
            return {}
        chunk_id = int(argument)
        match action:
            case "open":
                return self._looked(session, replace(place, chunk_id=chunk_id, anchor=None), run)
            case "page":
                return self._looked(session, replace(place, anchor=chunk_id), run)
            case "explore" if self._same_documents(session, run):
                return {self.to_explore: ("chunk", chunk_id, new_run_id())}
        return {}

    # Views

    def _drawn(self, session: Session, place: SparcPlace, run: SparcRun) -> Update:
        """Everything below the form."""
        return {
            self.page: run.run_id,
            self.status: view.standing_at(run),
            self.story: story_view.story(run),
            self.result_notice: notice(
                f"Not all of this run is in the log: {run.log_error}" if run.log_error else ""
            ),
            self.final: view.final(run),
            self.costs: view.costs(run),
            **self._looked(session, place, run),
        }

    def _looked(self, session: Session, place: SparcPlace, run: SparcRun) -> Update:
        """Another chunk is open, or none."""
        shown = view.reading(run, place.chunk_id, place.anchor, in_explore=self._same_documents(session, run))
        return {self.place: place, self.rounds: view.rounds(run, place.chunk_id), self.reading: shown}
