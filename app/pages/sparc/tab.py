"""The SPARC tab: what starts which action, and what is shown then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import gradio as gr

from app.components.tree import clicked, packs
from app.pages.sparc import view
from app.pages.sparc.layout import SparcLayout
from app.pages.widgets.asking import known_questions
from app.pages.widgets.notices import notice, notice_in, passing, passing_in, progress
from app.pages.widgets.requests import OpenRun
from app.pages.widgets.sharing import PAGE
from app.pages.widgets.text import open_documents
from app.pages.widgets.work import EACH, QUIET, Update, in_line
from app.services.experiments import Experiments
from app.services.explorer import open_in_explore
from app.services.session import Session
from app.services.shared import Services
from app.services.sparc_runs import SparcOrder, SparcRun, SparcRuns
from core.base.errors import BadRequest, UserError
from core.corpus.opening import OpenProgress
from core.methods.sparc.config import STRATEGIES
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.naming import STRATEGY_NAMES
from core.views.draw import sparc as drawn
from core.views.draw import sparc_line


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
        strategies=tuple(name for name in STRATEGIES if name in (strategies or ())),
        first_round=first_round,
        max_tokens=int(max_tokens) if max_tokens else None,
        max_calls=int(max_calls) if max_calls else None,
        temperature=float(temperature),
        seed=int(seed),
    )
    return SparcOrder(question or "", config)


def _at(place: SparcPlace, grown: OpenRun | None) -> SparcPlace:
    """The place once the run at work has come into view; in another run nothing is open."""
    if grown is None or grown.run_id == place.run_id:
        return place
    return SparcPlace(grown.run_id, seen=place.seen)


class SparcTab(SparcLayout):
    """Built once; handlers are methods."""

    def __init__(
        self, services: Services, runs: SparcRuns, session: gr.State, explored: gr.Textbox, page: gr.HTML
    ) -> None:
        """session, explored, page: the place in Explore, the question there, what keeps the run's id."""
        super().__init__(services, session)
        self.services, self.runs, self.experiments = services, runs, Experiments(services)
        self.session, self.explored, self.page = session, explored, page
        self.place = gr.State(SparcPlace())
        self.wanted: gr.State = gr.State(None)
        """(run id, number) of a logged run that is to be shown here; the number tells requests apart."""
        self.grown: gr.State = gr.State(None)
        """An OpenRun of the run at work, another one whenever there is more of it; a reader looks around
        meanwhile.
        """
        self.to_explore: gr.State = gr.State(None)
        """An OpenChunk when a chunk is to be opened in Explore."""
        self._wire()

    def _wire(self) -> None:
        controls = self.controls.list()
        self._outputs = [
            *(self.place, self.to_explore, self.page, self.header, *self.asking.parts, self.story),
            *(self.result_notice, self.rounds, self.reading, self.final, self.costs, self.grown),
            *controls[1:],
        ]
        place = [self.session, self.place]
        quick = in_line("sparc-look")
        slow = in_line("sparc", 2)
        run = packs(self._run, passing_in(self.asking.notice))
        running = self.asking.wire(run, [*place, self.explored, *controls], self._outputs, **slow)
        gone_on = [*place, self.grown]
        self.asking.work.wire_cancel([running], packs(self._cancelled), gone_on, self._outputs, **quick)
        refusal = notice_in(self.result_notice)
        grown = packs(self._grown, refusal)
        self.grown.change(grown, [*gone_on, *controls], self._outputs, **quick)
        wanted = packs(self._on_wanted, refusal)
        self.wanted.change(wanted, [*place, self.wanted], self._outputs, **quick)
        self.asking.wire_known(self.session)
        shares = packs(self._on_share, passing_in(self.sharing.said))
        self.asking.status.select(shares, place, [self.sharing.said, self.sharing.file], **quick)
        selects = [panel.select for panel in (self.story, self.rounds, self.reading, self.final)]
        gr.on(selects, packs(self._on_click, refusal), place, self._outputs, **EACH, **quick)
        named = packs(lambda session, *controls: self._line(session, controls))
        self.llm_panel.changed.change(named, [self.session, *controls], [self.asking.line], **quick)
        changes = [control.change for control in controls]
        judges = packs(self._on_controls)
        self.asking.wire_controls(changes, judges, [*place, *controls], [running], **quick)

    def on_show(self, show: Callable[..., Any]) -> None:
        """`show`: the listener of the tab's being opened."""
        inputs = [self.session, self.explored, self.place, *self.controls.list()]
        self.asking.wire_shown(show, self._shown, inputs, self._outputs)
        show(self._address, self.place, self.page, **QUIET)
        self.llm_panel.on_show(show)

    # Handlers; each returns or yields updates by component

    def _address(self, place: SparcPlace) -> Any:
        """The run in view, where there is one: another tab's may stand in the address."""
        return f"run={place.run_id}" if place.run_id else gr.skip()

    def _shown(
        self, session: Session, explored: str, place: SparcPlace, question: str, *controls: Any
    ) -> Update:
        """What is open in Explore, its question unless it was taken over before, and who decides."""
        taken = self.asking.take_over(session, explored, place.seen, question)
        if taken is None:
            line = self._line(session, (question, *controls))
            return {**line, self.header: open_documents(None, session.awaits)}
        update: Update = {}
        documents, question = taken.documents, taken.question
        if taken.before is None or taken.is_new or taken.before.agent is not documents.agent:
            on_offer = self.runs.strategies(documents)
            strategies = [name for name in controls[3] or () if name in on_offer] or list(on_offer)
            controls = (*controls[:3], strategies, *controls[4:])
            choices = [(STRATEGY_NAMES[name], name) for name in on_offer]
            update |= {
                self.asking.known_questions: known_questions(documents.questions),
                self.controls.strategies: gr.CheckboxGroup(choices, value=strategies),
            }
        place = replace(place, seen=taken.seen)
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
            return {**line, self.asking.standing: notice(str(error))}
        same = run is not None and self.asking.has_open(session, run.workspace)
        return {**line, self.asking.standing: view.changes(run, order.question, order.config, same)}

    def _line(self, session: Session, controls: Sequence[Any]) -> Update:
        """What is set, in words."""
        try:
            config = read_order(controls).config
        except UserError:
            config = None
        return {self.asking.line: view.settings_line(config, self._named(session))}

    def _in_view(self, session: Session, place: SparcPlace) -> SparcRun | None:
        """Raises BadRequest when it is gone, LogError."""
        return self.runs.view(place.run_id, session.owner) if place.run_id else None

    def _run(
        self, session: Session, place: SparcPlace, explored: str | None, question: str | None, *controls: Any
    ) -> Iterator[Update]:
        """The run as it grows. An error becomes a sentence beside the buttons; what was shown stays."""
        documents = open_in_explore(self.services, session)
        order = read_order((self.asking.asked(question, explored, place.seen), *controls))
        asked = {} if question else {self.asking.question: order.question}
        yield {**self.asking.begun(), **asked, self.grown: None}
        llm, gone = self.services.language_models.get(session), Event()
        latest: SparcRun | None = None

        def going(item: SparcRun | OpenProgress) -> Update:
            nonlocal latest
            if not isinstance(item, SparcRun):
                return {self.asking.progress: progress(item)}
            if item is latest:  # a cancel gets through only where something is yielded
                return {self.asking.progress: []}
            latest = item
            return {self.asking.progress: [], self.grown: OpenRun(item.run_id)}

        def done(run: SparcRun) -> Iterator[Update]:
            yield {**self.asking.work.free(), self.grown: OpenRun(run.run_id)}
            self.services.log.flush([run.run_id])

        def failed(words: str) -> Update:
            more = {} if latest is None else {self.grown: OpenRun(latest.run_id)}
            return {**self.asking.work.free(), **more, self.asking.notice: passing(words)}

        try:
            yield from self.asking.work.follow(
                lambda report: self.runs.run(documents, order, llm, report, gone.is_set),
                going,
                done,
                "running",
                failed,
            )
        finally:
            gone.set()

    def _grown(self, session: Session, place: SparcPlace, grown: OpenRun | None, *controls: Any) -> Update:
        """The run at work as far as it is, beside the chunk that somebody reads of it."""
        if grown is None:
            return {}
        place, run = _at(place, grown), self.runs.view(grown.run_id, session.owner)
        return {**self._drawn(session, place, run), **self._on_controls(session, place, *controls)}

    def _cancelled(self, session: Session, place: SparcPlace, grown: OpenRun | None) -> Update:
        place = _at(place, grown)
        self.runs.call_off(place.run_id, session.owner)
        is_over, kept = self.runs.wait_ended(place.run_id, 10), "the rounds so far are kept"
        update = self.asking.work.cancelled(is_over, "the turn at work ends first", kept)
        with suppress(UserError):
            if (run := self._in_view(session, place)) is not None:
                update |= self._drawn(session, place, run)
        return update

    def _on_wanted(self, session: Session, place: SparcPlace, wanted: OpenRun) -> Update:
        """A logged run, drawn from the log alone, with its question and settings in the form."""
        run = self.runs.view(wanted.run_id, session.owner)
        place = SparcPlace(wanted.run_id, seen=place.seen)
        documents = self.services.library.corpora.get(session.corpus)
        order = self._order_of(run, STRATEGIES if documents is None else self.runs.strategies(documents))
        asked = dict(zip(self.controls.list(), order, strict=True))
        return {**asked, **self._drawn(session, place, run), **self._on_controls(session, place, *order)}

    @staticmethod
    def _order_of(run: SparcRun, offered: Sequence[str]) -> tuple[Any, ...]:
        """The controls' values that ask for a run, as far as its strategies are offered."""
        then, config = run.trace.started, run.trace.started.config
        strategies = [name for name in config.strategies if name in offered]
        size = config.width, config.depth, config.k, strategies, config.first_round
        bounds = config.max_tokens or 0, config.max_calls or 0
        return (then.question, *size, *bounds, config.temperature, config.seed)

    def _on_click(self, session: Session, place: SparcPlace, event: gr.EventData) -> Update:
        """Clicks in any of the trees; arguments come from a browser: out of bounds, nothing happens."""
        action, argument = clicked(event)
        run = self._in_view(session, place)
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
            case "explore":
                return {self.to_explore: self.asking.in_explore(session, run.workspace, chunk_id)}
        return {}

    def _on_share(self, session: Session, place: SparcPlace, event: gr.EventData) -> Iterator[Update]:
        """The run in view as a page."""
        if place.run_id and clicked(event)[0] == PAGE:
            yield from self.sharing.written(
                lambda folder: self.experiments.export([place.run_id], "html", True, session.owner, folder)
            )

    # Views

    def _drawn(self, session: Session, place: SparcPlace, run: SparcRun) -> Update:
        """Everything below the form."""
        unlogged = f"Not all of this run is in the log: {run.log_error}"
        return {
            self.page: f"run={run.run_id}",
            self.asking.status: view.standing_at(run),
            self.story: sparc_line.story(run),
            self.result_notice: notice(unlogged if run.log_error else ""),
            self.final: drawn.final(run),
            self.costs: drawn.costs(run),
            **self._looked(session, place, run),
        }

    def _looked(self, session: Session, place: SparcPlace, run: SparcRun) -> Update:
        """Another chunk is open, or none."""
        in_explore = self.asking.has_open(session, run.workspace)
        pane = view.reading(run, place.chunk_id, place.anchor, in_explore=in_explore)
        return {self.place: place, self.rounds: drawn.rounds(run, place.chunk_id), self.reading: pane}
