"""The Evaluate tab: what starts which action, and what is shown then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from app.components.address import address_part, asked, part_of
from app.components.tree import clicked, packs
from app.pages.evaluate import view
from app.pages.evaluate.layout import DOCUMENTS_TAB, NOBODY, EvaluateLayout
from app.pages.widgets.figures import drawn
from app.pages.widgets.notices import notice, notice_in
from app.pages.widgets.requests import OpenEpisode
from app.pages.widgets.work import EACH, QUIET, Update, in_line
from app.services.document_evaluations import DocumentsProgress
from app.services.evaluations import (
    OWN,
    EvaluationOrder,
    Evaluations,
    StopCurve,
    at_threshold,
    failures,
    stop_intervals,
)
from app.services.session import Session
from app.services.shared import Services
from app.services.visitors import newcomer
from core.base.config import help_of
from core.base.errors import BadRequest, UserError
from core.base.rows import EpisodeRow
from core.lab.evaluate.outcomes import FAILURES, Stop
from core.lab.tasks.catalog import PARTS, TASKS
from core.views.draw.nodes import Node
from core.views.draw.tables import on_page, report_table
from core.views.figures import card_figure, stops_figure


@dataclass(frozen=True)
class EvaluatePlace:
    """What of the log is on the page; ids and numbers come from a browser: checked where they are used."""

    owner: str | None = None
    """Whose evaluations: the visitor's who has the page open; None in local mode."""
    first: str = ""
    second: str = ""
    page: int = 0
    kind: str = ""
    """Class of the episodes that are listed; empty is all."""
    episode_page: int = 0
    episode: int | None = None
    """Position of the row that is open."""
    threshold: float | None = None
    """At which episodes are stopped in the figures; None: the agent's own."""


class EvaluateTab(EvaluateLayout):
    """Built once; handlers are methods."""

    def __init__(self, services: Services, evaluations: Evaluations, session: gr.State) -> None:
        """session: the visitor's place in Explore, which knows who they are."""
        super().__init__(services, session)
        self.services, self.evaluations, self.session = services, evaluations, session
        self.looking = gr.State(EvaluatePlace(owner=newcomer(services.settings)))
        self.to_explore: gr.State = gr.State(None)
        """An OpenEpisode when one is to be opened in Explore."""
        self.address = address_part("evaluate", "evaluation")
        self._wire()

    def _wire(self) -> None:
        results = [
            *(self.looking, self.to_explore, self.list, self.list_notice, self.results),
            *(self.score_heading, self.scores, self.filter, self.failures, self.episode, self.episode_notice),
            *(self.calibrator, self.calibrator_notice, self.threshold, self.stops, self.stops_figure),
            *(self.make_default, self.default_words, self.default_notice),
            *(self.reliability_card, self.reliability_heading, self.reliability, self.reliability_table),
            *(self.run, self.cancel, self.progress, self.notice, self.agent, self.second),
        ]
        looking = self.looking
        quick = in_line("evaluate-look")
        order = [
            *(self.task, self.questions, self.part, self.length, self.n),
            *(self.step_budget, self.seed, self.agent, self.second),
        ]
        run = packs(self._run, notice_in(self.notice))
        running = self.run.click(run, [looking, *order], results, **in_line("evaluate", 1))
        self._told = told = [looking, self.task, self.length, self.n, self.second]
        running.then(packs(self._estimated), told, self.estimate, **quick)
        self.work.wire_cancel([running], packs(self._cancelled), looking, results, **quick)
        self.looking.change(_addressed, self.looking, self.address, trigger_mode="always_last", **quick)
        self.task.change(self._on_task, self.task, [self.length, self.part, self.questions], **quick)
        panels = (self.list, self.filter, self.failures, self.episode, self.episode_notice)
        gr.on([panel.select for panel in panels], packs(self._on_click), looking, results, **EACH, **quick)
        latest = {"trigger_mode": "always_last", **quick}
        changes = [control.change for control in told[1:]]
        gr.on(changes, packs(self._estimated), told, self.estimate, **latest)
        if not self.services.settings.public:
            self.whole.wanted.change(lambda: gr.Tabs(selected=DOCUMENTS_TAB), None, self.forms, **QUIET)
        threshold = [looking, self.stops, self.stops_figure, self.default_notice]
        refusal = notice_in(self.default_notice)
        moved = packs(self._on_threshold, refusal)
        self.threshold.input(moved, [looking, self.threshold], threshold, **latest)
        self.best.click(packs(self._to_best, refusal), looking, [self.threshold, *threshold], **quick)
        made = self.evaluations
        for button, action in ((self.make_default, made.make_default), (self.use_for_now, made.use_for_now)):
            settle = packs(self._settled(action), refusal)
            button.click(settle, [looking, self.threshold], self.default_notice, **quick)
        self._results = results

    def on_show(self, show: Callable[..., Any]) -> None:
        """`show`: the listener of the tab's being opened."""
        show(packs(self._shown), [self.looking, self.session], self._results, **QUIET)
        show(packs(self._estimated), self._told, self.estimate, **QUIET)
        if not self.services.settings.public:
            self.whole.llm_panel.on_show(show)

    def on_arrival(self, arrives: Callable[..., Any], came: gr.Textbox) -> None:
        """`arrives`: the listener of a page's beginning; `came`: the address that it began with."""
        handler = packs(self._arrived)
        arrives(handler, [self.session, self.looking, came], self._results, **in_line("evaluate-look"))
        if not self.services.settings.public:
            whole = self.whole
            handler = packs(self._documents_arrived, notice_in(whole.notice))
            arrives(handler, [self.session, whole.measured, came], [self.forms, *whole.shown], **QUIET)

    # Handlers; each returns or yields updates by component

    def _shown(self, looking: EvaluatePlace, session: Session) -> Update:
        """The list as the log has it now, the agents that there are now, and figures: those that
        came while the tab was hidden were not drawn.
        """
        looking = replace(looking, owner=session.owner)
        agents = list(self.services.agents.checkpoints)
        return {
            **self._listed(looking),
            **self._figures(looking),
            self.agent: gr.Dropdown(agents),
            self.second: gr.Dropdown([("none", NOBODY), *agents]),
        }

    def _arrived(self, session: Session, looking: EvaluatePlace, came: str) -> Iterator[Update]:
        """What the page's address asks for."""
        evaluations = asked(came, "evaluation", 2)
        if not evaluations or looking.first or not session.llm:
            yield {}
            return
        first, second = (*evaluations, "")[:2]
        yield from self._choose(EvaluatePlace(owner=session.owner, first=first, second=second))

    def _documents_arrived(self, session: Session, measured: DocumentsProgress | None, came: str) -> Update:
        opened = self.whole.arrived(session, measured, came)
        return {**opened, self.forms: gr.Tabs(selected=DOCUMENTS_TAB)} if opened else {}

    def _estimated(
        self,
        looking: EvaluatePlace,
        task: str,
        length: str | None,
        n: float | None,
        second: str,
    ) -> Update:
        """How long it will take, by those that were made before."""
        n_asked = int(n or 0) * (2 if second else 1)
        try:
            pace = None if task == OWN else self.evaluations.pace(task, length, looking.owner)
        except UserError:
            return {self.estimate: []}
        return {self.estimate: view.estimate(pace, n_asked)}

    def _figures(self, looking: EvaluatePlace) -> Update:
        """Of the evaluation in view; none without one, or where its rows give no threshold."""
        if not looking.first:
            return {}
        try:
            curve = self.evaluations.stop_curve(looking.first, looking.owner)
            charts = self.evaluations.reliability(looking.first, looking.owner).charts
            return {**self._stops(looking, curve), self.reliability: drawn(lambda: card_figure(charts[0]))}
        except UserError:
            return {}

    def _run(
        self,
        looking: EvaluatePlace,
        task: str,
        questions: str | None,
        part: str,
        length: str | None,
        n: float | None,
        step_budget: float | None,
        seed: float | None,
        agent: str,
        second: str,
    ) -> Iterator[Update]:
        order = EvaluationOrder(
            task=task,
            agents=tuple(name for name in (agent, second) if name),
            part=next(name for name in PARTS if name == part),
            length=length if task in TASKS and TASKS[task].length is not None else None,
            n=int(n or 0) or None,
            step_budget=int(step_budget or 0) or None,
            seed=int(seed or 0),
            questions=Path(questions) if task == OWN and questions else None,
            owner=looking.owner,
        )
        yield {**self.work.busy(), self.notice: []}

        def done(evaluation_ids: list[str]) -> Iterator[Update]:
            first, *others = evaluation_ids
            measured = EvaluatePlace(owner=looking.owner, first=first, second=others[0] if others else "")
            yield {**self.work.free(), **self._listed(measured)}
            yield from self._results_of(measured)

        yield from self.work.follow(
            lambda report: self.evaluations.run(order, report),
            lambda report: {self.progress: view.measuring(report)},
            done,
            "evaluating",
        )

    def _cancelled(self, looking: EvaluatePlace) -> Update:
        words = "Cancelling: what is measured by then is kept, and listed when this tab is opened again."
        if self.evaluations.idle.wait(10):
            words = "Cancelled; what was measured so far is kept."
        return {**self.work.free(), **self._listed(looking), self.notice: notice(words, "info")}

    def _on_task(self, task: str) -> Update:
        task_spec = TASKS.get(task)
        length, parted = (task_spec.length, task_spec.has_training_part) if task_spec else (None, False)
        return {
            self.length: gr.Dropdown(
                value=length,
                interactive=length is not None,
                info=help_of(EvaluationOrder, "length") if length else "Its chunks are given",
            ),
            self.part: gr.Dropdown(
                value="test",
                interactive=parted,
                info=help_of(EvaluationOrder, "part") if parted else "There is only this one",
            ),
            self.questions: gr.File(visible=task == OWN),
        }

    def _on_click(self, looking: EvaluatePlace, event: gr.EventData) -> Iterator[Update]:
        """Clicks in any of the trees."""
        action, argument = clicked(event)
        number = int(argument) if argument.isdecimal() else None
        match action:
            case "first":
                second = looking.first if argument == looking.second else looking.second  # they change places
                yield from self._choose(
                    EvaluatePlace(owner=looking.owner, page=looking.page, second=second, first=argument)
                )
            case "second" if looking.first:
                second = "" if argument in (looking.first, looking.second) else argument
                yield from self._choose(replace(looking, second=second))
            case "second":
                yield from self._choose(EvaluatePlace(owner=looking.owner, page=looking.page, first=argument))
            case "evaluations-page" if number is not None:
                yield self._listed(replace(looking, page=number))
            case "class" if argument in ("", *FAILURES):
                yield from self._episodes(replace(looking, kind=argument, episode_page=0, episode=None))
            case "episodes-page" if number is not None:
                yield from self._episodes(replace(looking, episode_page=number, episode=None))
            case "episode" if number is not None:
                opened = None if number == looking.episode else number
                yield from self._episodes(replace(looking, episode=opened))
            case "close":
                yield from self._episodes(replace(looking, episode=None))
            case "explore" | "explore-anyway" if looking.episode is not None:
                yield self._explore(looking, looking.episode, announced=action == "explore-anyway")

    def _explore(self, looking: EvaluatePlace, position: int, *, announced: bool) -> Update:
        """Asks for the episode in Explore, after saying what a long one costs."""
        try:
            row = self._rows(looking, looking.first)[position]
            if view.is_long(row) and not announced:
                encoder = self.services.agents.load(row.checkpoint).encoder
                return {self.episode_notice: view.cost(row, encoder.dim)}
        except UserError as error:
            return {self.episode_notice: notice(str(error))}
        return {self.to_explore: OpenEpisode(looking.first, position), self.episode_notice: []}

    def _on_threshold(self, looking: EvaluatePlace, threshold: float | None) -> Update:
        looking = replace(looking, threshold=float(threshold or 0))
        curve = self.evaluations.stop_curve(looking.first, looking.owner)
        return {self.looking: looking, **self._stops(looking, curve), self.default_notice: []}

    def _to_best(self, looking: EvaluatePlace) -> Update:
        best = self.evaluations.stop_curve(looking.first, looking.owner).best
        return {**self._on_threshold(looking, best), self.threshold: best}

    def _settled(self, action: Callable[[str, float], str]) -> Callable[..., Update]:
        """A handler that does something lasting with the threshold, and says what was done."""

        def handler(looking: EvaluatePlace, threshold: float | None) -> Update:
            if threshold is None:
                raise BadRequest("the threshold is empty; give a number")
            return {self.default_notice: notice(action(looking.first, round(float(threshold), 4)), "info")}

        return handler

    # Views

    def _rows(self, looking: EvaluatePlace, evaluation_id: str) -> tuple[EpisodeRow, ...]:
        return self.evaluations.get(evaluation_id, looking.owner).rows

    def _listed(self, looking: EvaluatePlace) -> Update:
        """A page of the log's evaluations."""
        try:
            entries = self.evaluations.all(looking.owner)
            scores = {
                entry.evaluation_id: self.evaluations.fact_f1(entry.evaluation_id, looking.owner)
                for entry in on_page(entries, looking.page)
            }
        except UserError as error:
            return {self.list_notice: notice(str(error))}
        return {
            self.looking: looking,
            self.list: view.evaluation_list(entries, scores, looking.first, looking.second, looking.page),
            self.list_notice: notice(self.services.log_notice, "info"),
        }

    def _choose(self, looking: EvaluatePlace) -> Iterator[Update]:
        yield self._listed(looking)
        yield from self._results_of(looking)

    def _results_of(self, looking: EvaluatePlace) -> Iterator[Update]:
        """Everything below the list: what is quick first, then the intervals."""
        try:
            first = self._rows(looking, looking.first)
            second = self._rows(looking, looking.second) if looking.second else None
            yield {
                self.results: gr.Column(visible=True),
                self.score_heading: view.score_heading(first, second),
                self.scores: notice("Making intervals and tests…", "info"),
                **self._calibrator(looking, first),
            }
            yield from self._episodes(looking)
            yield {self.scores: self._score_table(looking)}
        except UserError as error:
            yield {self.list_notice: notice(str(error)), self.scores: []}

    def _score_table(self, looking: EvaluatePlace) -> list[Node]:
        first = self.evaluations.summary(looking.first, looking.owner)
        if not looking.second:
            return view.score_table(first, None, None)
        refused, comparison = "", None
        try:
            comparison = self.evaluations.comparison(looking.first, looking.second, looking.owner)
        except BadRequest as error:
            refused = str(error)
        second = self.evaluations.summary(looking.second, looking.owner)
        return [*notice(refused, "info"), *view.score_table(first, second, comparison)]

    def _calibrator(self, looking: EvaluatePlace, rows: tuple[EpisodeRow, ...]) -> Update:
        """Slider, curve and reliability; a sentence instead where no threshold can be read off the rows."""
        try:
            curve = self.evaluations.stop_curve(looking.first, looking.owner)
            report = self.evaluations.reliability(looking.first, looking.owner)
        except BadRequest as error:
            return {
                self.calibrator: gr.Column(visible=False),
                self.calibrator_notice: notice(str(error), "info"),
                self.reliability_card: gr.Column(visible=False),
            }
        threshold = self._threshold(looking, curve)
        lo, hi = min(curve.points[0].threshold, threshold), max(curve.points[-1].threshold, threshold)
        is_own, public = self.services.agents.is_own(rows[0].checkpoint), self.services.settings.public
        return {
            self.calibrator: gr.Column(visible=True),
            self.calibrator_notice: [],
            self.threshold: gr.Slider(lo, hi, value=threshold, step=round((hi - lo) / 400, 4)),
            **self._stops(looking, curve),
            self.make_default: gr.Button(visible=is_own and not public),
            self.default_words: [] if public else view.default_words(rows[0], is_own),
            self.default_notice: [],
            self.reliability_card: gr.Column(visible=True),
            self.reliability_heading: view.reliability_heading(report.notes[0]),
            self.reliability: drawn(lambda: card_figure(report.charts[0])),
            self.reliability_table: report_table(report.tables[0]),
        }

    def _threshold(self, looking: EvaluatePlace, curve: StopCurve) -> float:
        """Where episodes are stopped; at the best where the agent never stops by itself."""
        own = self._rows(looking, looking.first)[0].stop_threshold
        return looking.threshold if looking.threshold is not None else curve.best if own is None else own

    def _stops(self, looking: EvaluatePlace, curve: StopCurve) -> Update:
        rows, threshold = self._rows(looking, looking.first), self._threshold(looking, curve)
        order: tuple[Stop, ...] = ("perfect", "late", "early", "never")
        shares: dict[str, list[float]] = {
            name: [point.shares[name] for point in curve.points] for name in order
        }
        at, f1 = [point.threshold for point in curve.points], [point.fact_f1 for point in curve.points]
        now, ends = at_threshold(rows, threshold), stop_intervals(rows, threshold)
        return {
            self.stops: view.stops(now, ends, curve, rows[0].stop_threshold),
            self.stops_figure: drawn(lambda: stops_figure(at, shares, threshold, f1)),
        }

    def _episodes(self, looking: EvaluatePlace) -> Iterator[Update]:
        """The failure browser; an open episode's texts come later, since its task may have to be loaded."""
        try:
            rows = self._rows(looking, looking.first)
            others: dict[tuple[object, ...], EpisodeRow] = (
                self.evaluations.beside(looking.first, looking.second, looking.owner)
                if looking.second
                else {}
            )
        except UserError as error:
            yield {self.episode_notice: notice(str(error))}
            return
        kinds = failures(rows)
        positions = [
            position
            for name, found_here in kinds.items()
            if looking.kind in ("", name)
            for position in found_here
        ]
        if looking.episode is not None and looking.episode >= len(rows):
            looking = replace(looking, episode=None)

        def table(questions: Mapping[str, str]) -> list[Node]:
            place = looking.episode, looking.episode_page
            return view.failure_table(rows, sorted(positions), others, *place, questions)

        listed = {
            self.looking: looking,
            self.filter: view.failure_filter(kinds, looking.kind),
            self.failures: table({}),
            self.episode_notice: [],
        }
        if looking.episode is None:
            yield {**listed, self.episode: []}
        if not view.is_long(rows[0]):
            with suppress(UserError):  # a task that can't be loaded again leaves the rows their ids
                listed[self.failures] = table(self.evaluations.questions(looking.first, looking.owner))
        if looking.episode is None:
            yield {self.failures: listed[self.failures]}
            return
        row = rows[looking.episode]
        other = others.get(row.key)
        waits = "" if view.is_long(row) else "Reading the task…"
        yield {**listed, self.episode: view.episode(row, other, None, waits)}
        if waits:
            try:
                example, refused = self.evaluations.example(looking.first, looking.episode, looking.owner), ""
            except UserError as error:
                example, refused = None, str(error)
            yield {self.episode: view.episode(row, other, example, refused)}


def _addressed(looking: EvaluatePlace) -> str:
    """Where the evaluations in view are found."""
    return part_of(evaluation=[each for each in (looking.first, looking.second) if each])
