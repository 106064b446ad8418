"""The Evidence sets tab: what starts which action, what is shown then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import gradio as gr

from app.components.tree import clicked, packs
from app.pages.evidence import documents as documents_view
from app.pages.evidence import frontier as frontier_view
from app.pages.evidence import reward as reward_view
from app.pages.evidence import view
from app.pages.evidence.documents import Shown
from app.pages.evidence.layout import LIGHT, MODEL, EvidenceLayout
from app.pages.widgets.asking import known_questions
from app.pages.widgets.notices import notice, passing_in, progress
from app.pages.widgets.requests import OpenRun, OpenSample, PageRequest
from app.pages.widgets.text import open_documents
from app.pages.widgets.work import EACH, QUIET, Update, in_line
from app.services.evidence_sets import (
    MAX_BUDGET,
    USUAL_BUDGET,
    EvidenceSets,
    Report,
    SetInView,
    SetOrder,
    measured,
)
from app.services.explorer import open_in_explore
from app.services.in_view import RunInView
from app.services.session import Session
from app.services.shared import Services
from core.base.errors import BadRequest, UserError
from core.runs.log import new_run_id

_MOST_PAGES = 1_000_000


@dataclass(frozen=True)
class EvidencePlace:
    """A visitor's place in the tab."""

    run: str = ""
    """Token of the run in view; empty before the first."""
    budget: int = USUAL_BUDGET
    shown: Shown = field(default_factory=Shown)
    chunk_id: int | None = None
    """Chunk that is open in the reading place."""
    anchor: int | None = None
    """Chunk around which its page lies, where that is not the open one."""
    task: str = ""
    """Questions of the frontier; empty for the first."""
    measure: str = "f1"
    seen: tuple[str, str] = ("", "")
    """(token of documents, question) last taken over from Explore."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """Of the run that must stay in memory for it."""
        return (self.run,)


@dataclass(frozen=True)
class CameSet(PageRequest):
    """A run that has been made, or opened."""

    run: str
    """Its token."""
    brings: bool = False
    """Whether question and budget come along."""


def read_order(question: str | None, budget: float | None, who: str | None = LIGHT) -> SetOrder:
    """What is asked for, out of the controls' values. Raises BadRequest."""
    if budget is None or not float(budget).is_integer():
        given = "the budget is empty" if budget is None else f"budget {budget:g} is no whole number"
        raise BadRequest(f"{given}; give the number of chunks that may be taken")
    return SetOrder(question or "", int(budget), who == MODEL)


class EvidenceTab(EvidenceLayout):
    """Built once; handlers are methods."""

    def __init__(self, services: Services, session: gr.State, explored: gr.Textbox, page: gr.HTML) -> None:
        """session, explored, page: the place in Explore, the question there, what keeps the run's id."""
        super().__init__(services, session)
        self.services, self.sets = services, EvidenceSets(services)
        self.session, self.explored, self.page = session, explored, page
        self.place = gr.State(EvidencePlace())
        self.wanted: gr.State = gr.State(None)
        """(run id, number) of a logged run that is to be shown here; the number tells requests apart."""
        self.came: gr.State = gr.State(None)
        """The CameSet that is to be shown; a reader moves the budget and looks around until it is there."""
        self.to_explore: gr.State = gr.State(None)
        """An OpenChunk when one is to be opened in Explore."""
        self.to_sample: gr.State = gr.State(None)
        """An OpenSample when one is to be opened there and asked here."""
        self.to_experiments: gr.State = gr.State(None)
        """(method, number) when its runs are to be listed."""
        self._wire()

    def _wire(self) -> None:
        self._drawing = [
            *(self.sentence, self.budget_words, self.tokens, self.documents, self.reading),
            *(self.reward, self.action, self.frontier, self.frontier_notice),
        ]
        self._outputs = [
            *(self.place, self.to_explore, self.to_sample, self.to_experiments, self.page, self.header),
            *(*self.asking.parts, self.budget, self.who, self.came, *self._drawing),
        ]
        place = [self.session, self.place]
        quick = in_line("sets-look")
        slow = in_line("sets", 2)
        order = [*place, self.asking.question, self.budget, self.who]
        refusal = passing_in(self.asking.notice)
        asked = self.asking.wire(packs(self._run, refusal), [*order, self.explored], self._outputs, **slow)
        opens = packs(self._on_wanted)
        wanted = self.wanted.change(opens, [self.session, self.wanted], self._outputs, **slow)
        self.asking.work.wire_cancel([asked, wanted], packs(self._cancelled), None, self._outputs, **quick)
        came = packs(self._came, refusal)
        here = [self.budget, self.asking.question, self.who]
        self.came.change(came, [*place, self.came, *here], self._outputs, **quick)
        self.budget.change(
            packs(self._on_budget, refusal),
            [*place, self.budget],
            [self.place, self.asking.notice, self.asking.status, *self._drawing],
            trigger_mode="always_last",
            **quick,
        )
        self.asking.wire_known(self.session)
        panels = (self.sentence, self.documents, self.reading, self.action, self.frontier)
        selects = [panel.select for panel in panels]
        gr.on(selects, packs(self._on_click, refusal), place, self._outputs, **EACH, **quick)
        judges = packs(self._on_question)
        judged = [*place, self.asking.question, self.who]
        changes = [self.asking.question.change, self.who.change, self.llm_panel.changed.change]
        self.asking.wire_controls(changes, judges, judged, [asked], **quick)

    def on_show(self, show: Callable[..., Any]) -> None:
        """`show`: the listener of the tab's being opened."""
        inputs = [self.session, self.explored, self.place, self.asking.question, self.who]
        self.asking.wire_shown(show, self._shown, inputs, self._outputs)
        show(self._address, self.place, self.page, **QUIET)
        self.llm_panel.on_show(show)

    def on_sample(self, opened: Callable[..., Any]) -> None:
        """`opened`: the listener of Explore's having opened what `to_sample` asks for."""
        inputs = [self.session, self.place, self.budget, self.who]
        opened(packs(self._on_sample), inputs, [*self._outputs, self.explored], **in_line("sets", 2))

    # Handlers; each returns or yields updates by component

    def _address(self, place: EvidencePlace) -> Any:
        """The run in view, where there is one: another tab's may stand in the address."""
        run = self.services.library.runs.get(place.run)
        return gr.skip() if run is None else f"run={run.run_id}"

    def _on_sample(
        self, session: Session, place: EvidencePlace, budget: float | None, who: str
    ) -> Iterator[Update]:
        """The example's set, where its document is open now."""
        documents = self.services.library.corpora.get(session.corpus)
        if documents is None or documents.label_of(view.EXAMPLE) is None:
            yield self.asking.work.free()
            return
        place = replace(place, seen=("", ""))
        yield {**self._shown(session, view.EXAMPLE, place, "", who), self.explored: view.EXAMPLE}
        place = replace(place, seen=(session.corpus, view.EXAMPLE))
        yield from self._run(session, place, view.EXAMPLE, budget, who)

    def _shown(
        self, session: Session, explored: str, place: EvidencePlace, question: str, who: str = LIGHT
    ) -> Update:
        """What is open in Explore now, its question too, unless it is the one that was taken over before."""
        taken = self.asking.take_over(session, explored, place.seen, question)
        frontier = {**self._measured(place), self.frontier_notice: []}
        if taken is None:
            header = {self.header: open_documents(None, session.awaits)}
            return {**frontier, **self._line(session, who), **header}
        place = replace(place, seen=taken.seen)
        labelled = known_questions(taken.documents.questions)
        return {
            **frontier,
            **({self.asking.known_questions: labelled} if taken.is_new else {}),
            self.place: place,
            self.asking.question: taken.question,
            self.header: open_documents(taken.documents),
            **self._on_question(session, place, taken.question, who),
        }

    def _on_question(self, session: Session, place: EvidencePlace, question: str, who: str = LIGHT) -> Update:
        line = self._line(session, who)
        try:
            in_view = self._in_view(session, place)
        except UserError as error:
            return {**line, self.asking.standing: notice(str(error))}
        same = in_view is not None and self.asking.has_open(session, in_view.run.documents.workspace)
        return {**line, self.asking.standing: view.changes(in_view, question or "", same, who == MODEL)}

    def _line(self, session: Session, who: str) -> Update:
        llm = self.services.language_models.get(session)
        return {self.asking.line: view.policy_line(who == MODEL, "" if llm is None else llm.name)}

    def _in_view(self, session: Session, place: EvidencePlace) -> SetInView | None:
        """The run's set at the budget that is set. Raises BadRequest when the run is gone."""
        if not place.run:
            return None
        run = self.services.library.runs.get(place.run)
        if run is None or run.owner != session.owner:
            raise BadRequest("this run is not in memory any more; run it again, the vectors are kept")
        return self.sets.at(run, place.budget)

    def _run(
        self,
        session: Session,
        place: EvidencePlace,
        question: str | None,
        budget: float | None,
        who: str = LIGHT,
        explored: str | None = None,
    ) -> Iterator[Update]:
        """A new run. An error becomes a sentence beside the buttons; what was there by then stays."""
        documents = open_in_explore(self.services, session)
        order = read_order(self.asking.asked(question, explored, place.seen), budget, who)
        yield {} if question else {self.asking.question: order.query}
        llm = self.services.language_models.get(session)
        yield from self._working(lambda report: self.sets.run(documents, order, report, llm))

    def _on_wanted(self, session: Session, wanted: OpenRun) -> Iterator[Update]:
        """A logged run, its documents opened again."""
        open_run = partial(self.sets.open, wanted.run_id, session.owner)
        yield from self._working(open_run, brings=True)

    def _working(self, work: Callable[[Report], RunInView], *, brings: bool = False) -> Iterator[Update]:
        """Progress while `work` makes a run. `brings`: see `CameSet`."""

        def done(run: RunInView) -> Iterator[Update]:
            yield {**self.asking.work.free(), self.came: CameSet(run.token, brings)}
            self.services.log.flush([run.run_id])

        yield self.asking.begun()
        yield from self.asking.work.follow(
            work, lambda report: {self.asking.progress: progress(report)}, done, "choosing"
        )

    def _came(
        self,
        session: Session,
        place: EvidencePlace,
        came: CameSet,
        budget: float | None,
        question: str,
        who: str = LIGHT,
    ) -> Iterator[Update]:
        """A run in the place of the one before, at the budget that is set by now, then with its answer."""
        run = self.services.library.runs.get(came.run)
        if run is None or run.owner != session.owner:
            return
        if place.run not in ("", run.token):
            self.services.leave_run(place.run)
        at = min(run.config.step_budget, MAX_BUDGET)
        if not came.brings:
            with suppress(BadRequest):  # while it is typed, at that which was asked for
                at = read_order("", budget).budget
        in_view, brought = self.sets.at(run, at), dict[Any, Any]()
        rows = documents_view.at_first(in_view, place.shown.only_taken)
        place = replace(place, run=run.token, budget=at, chunk_id=None, anchor=None, shown=rows)
        if came.brings:
            question, who = run.trace.started.query, MODEL if in_view.by_model else LIGHT
            brought = {self.asking.question: question, self.budget: at, self.who: who}
        yield {
            **brought,
            self.page: f"run={run.run_id}",
            **self._on_question(session, place, question, who),
            **self._drawn(session, place, in_view),
        }
        if in_view.answer is None:
            yield self._drawn(session, place, self.sets.answered(in_view))

    def _cancelled(self) -> Update:
        is_over, kept = self.sets.idle.wait(10), "what was embedded so far is kept"
        return self.asking.work.cancelled(is_over, "the batch at work ends first", kept)

    def _on_budget(self, session: Session, place: EvidencePlace, budget: float | None) -> Iterator[Update]:
        """The set at another budget at once, then with its answer."""
        order = read_order("", budget)
        if order.budget == place.budget:
            yield {self.asking.notice: []}
            return
        place = replace(place, budget=order.budget)
        in_view = self._in_view(session, place)
        if in_view is None:
            yield {self.place: place, **self._measured(place)}
            return
        yield {self.asking.notice: [], **self._drawn(session, place, in_view)}
        if in_view.answer is None:
            yield self._drawn(session, place, self.sets.answered(in_view))

    def _on_click(self, session: Session, place: EvidencePlace, event: gr.EventData) -> Update:
        """Clicks in any of the trees; arguments come from a browser: out of bounds, nothing happens."""
        act, argument = clicked(event)
        match act:
            case "task" | "measure":
                place = replace(place, task=argument) if act == "task" else replace(place, measure=argument)
                return {self.place: place, **self._measured(place)}
            case "runs":
                return self._runs_of(session, argument)
            case "sample":
                return {**self.asking.begun(), self.to_sample: OpenSample(argument)}
        in_view = self._in_view(session, place)
        return {} if in_view is None else self._on_set(session, place, in_view, act, argument)

    def _on_set(
        self, session: Session, place: EvidencePlace, in_view: SetInView, act: str, argument: str
    ) -> Update:
        if act == "close":
            return self._read(session, replace(place, chunk_id=None, anchor=None), in_view)
        if act == "rows":
            shown = replace(place.shown, only_taken=argument == "taken", page=0)
            return self._listed(replace(place, shown=shown), in_view)
        if not argument.isdecimal() or int(argument) >= _MOST_PAGES:
            return {}
        number = int(argument)
        if act == "docs-page":
            return self._listed(replace(place, shown=replace(place.shown, page=number)), in_view)
        if act == "row" and number < len(in_view.documents):
            opened = tuple(sorted({*place.shown.opened} ^ {number}))
            return self._listed(replace(place, shown=replace(place.shown, opened=opened)), in_view)
        if number >= in_view.run.n_chunks:
            return {}
        match act:
            case "open":
                return self._read(session, replace(place, chunk_id=number, anchor=None), in_view)
            case "page":
                return self._read(session, replace(place, anchor=number), in_view)
            case "explore":
                workspace = in_view.run.documents.workspace
                return {self.to_explore: self.asking.in_explore(session, workspace, number)}
        return {}

    def _runs_of(self, session: Session, method: str) -> Update:
        """The visitor's runs of a method, where there are any. Raises LogError."""
        if method not in {curve.method for curve in measured()}:
            return {}
        if self.services.own_log.search(owner=session.owner, method=method, limit=1).total:
            return {self.to_experiments: (method, new_run_id()), self.frontier_notice: []}
        return {self.frontier_notice: frontier_view.no_runs(method)}

    # Views

    def _drawn(self, session: Session, place: EvidencePlace, in_view: SetInView) -> Update:
        """Everything that changes with the set."""
        return {
            self.asking.status: view.took(in_view),
            self.sentence: view.sentence(in_view),
            self.budget_words: view.budget_words(in_view),
            self.tokens: view.tokens(in_view),
            self.reward: reward_view.reward(in_view),
            self.action: reward_view.action(in_view),
            **self._measured(place),
            **self._listed(place, in_view),
            **self._read(session, place, in_view),
        }

    def _measured(self, place: EvidencePlace) -> Update:
        return {self.frontier: frontier_view.frontier(measured(), place.task, place.measure, place.budget)}

    def _listed(self, place: EvidencePlace, in_view: SetInView) -> Update:
        return {self.place: place, self.documents: documents_view.documents(in_view, place.shown)}

    def _read(self, session: Session, place: EvidencePlace, in_view: SetInView) -> Update:
        in_explore = self.asking.has_open(session, in_view.run.documents.workspace)
        pane = view.reading(in_view, place.chunk_id, place.anchor, in_explore)
        return {self.place: place, self.reading: pane}
