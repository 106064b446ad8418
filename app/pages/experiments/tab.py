"""The Experiments tab: what starts which action, what is shown then."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import gradio as gr

from app.components.address import address_part, asked, part_of
from app.components.tree import clicked, packs
from app.pages.experiments import view
from app.pages.experiments.layout import ANY, FORMATS, MATCHING, OPENED, OUTCOMES, SELECTED, ExperimentsLayout
from app.pages.widgets.figures import drawn
from app.pages.widgets.notices import notice, notice_in, passing, preparing, progress
from app.pages.widgets.requests import OpenRun
from app.pages.widgets.text import file_button
from app.pages.widgets.work import EACH, Update, in_line
from app.services.experiments import GROUPS, MAX_SELECTED, Experiments, RunFilters
from app.services.explorer import open_in_explore
from app.services.session import Session
from app.services.shared import Services
from core.base.errors import BadRequest, RunNotFound, UserError
from core.methods.registry import facts_of
from core.runs.export.runs import FORMATS as ALL_FORMATS
from core.runs.foreign.files import files_of, is_export
from core.runs.foreign.traces import found_sentence
from core.runs.log.queries import SORTS
from core.runs.log.records import RunPage, moment
from core.runs.log.sql import EXAMPLES, SqlResult
from core.views.draw.tables import PAGE
from core.views.draw.words import counted
from core.views.figures import counts_figure, curves_figure

_ID = re.compile(r"[0-9a-f]{32}")
_MOST_PAGES = 1_000_000
LARGEST_FIRST = ("sure", "steps", "support", "made", "chunks", "seed", "took", "shared")
"""Columns that are sorted so by the first click."""
_HIDES = "() => [{__type__: 'update', visible: false}, '[]']"
"""In the browser, before the next press: the file at hand, and what is said of it, are of earlier choices."""
_ADDRESS = re.compile(r"https?://[\w.:\[\]-]+")


@dataclass(frozen=True)
class ExperimentsPlace:
    """What of the log is on the page; ids and numbers come from a browser: checked where they are used."""

    filters: RunFilters = field(default_factory=RunFilters)
    columns: tuple[str, ...] = view.USUAL_COLUMNS
    page: int = 0
    selected: tuple[str, ...] = ()
    opened: str = ""
    sort: str = "made"
    descends: bool = True
    by: str = next(iter(GROUPS))
    """What the chart of outcomes puts together."""
    asking: Literal["", "share", "delete"] = ""
    """What waits for its second click."""


def _method_choices(names: set[str]) -> list[tuple[str, str]]:
    """Of the filter: methods by what the list calls them."""
    facts = [facts_of(name) for name in sorted(names - {ANY})]
    return [("any", ANY), *((method.long_label or method.label, method.name) for method in facts)]


def read_filters(*controls: str | None) -> RunFilters:
    """What is looked for, out of the controls' values. Raises BadRequest."""
    values = ((value or "").strip() for value in controls)
    text, document, method, agent, status, outcome, since, until = values
    return RunFilters(
        text=text[:1_000],
        document=document[:1_000],
        method=method,
        checkpoint=agent,
        status=status,
        hit=OUTCOMES.get(outcome),
        since=moment(since) if since else None,
        until=moment(until, end=True) if until else None,
    )


LOOK = "experiments-look"
"""The line of what changes the list."""


class ExperimentsTab(ExperimentsLayout):
    """Built once; handlers are methods."""

    def __init__(self, services: Services, session: gr.State) -> None:
        """session: the visitor's place in Explore, which says who they are."""
        super().__init__(services)
        self.services, self.experiments, self.session = services, Experiments(services), session
        self.looking = gr.State(ExperimentsPlace())
        self.to_explore, self.to_sparc, self.to_sets = gr.State(None), gr.State(None), gr.State(None)
        """An OpenRun each: what is to be opened there."""
        self.address = address_part("experiments", "runs", "opened")
        self._wire()

    def _wire(self) -> None:
        self._filters = [
            *(self.text, self.document, self.method, self.agent),
            *(self.status, self.outcome, self.since, self.until),
        ]
        self._outputs = [
            *(self.looking, self.to_explore, self.to_sparc, self.to_sets, self.method, self.agent),
            *(self.list, self.list_notice, self.address, self.detail, self.head, self.replayed),
            *(self.run_notice, self.steps, self.reproduce, self.replay, self.cancel, self.explore),
            *(self.charts, self.charts_heading, self.curves_card, self.curves, self.curve_table),
            *(self.counts, self.count_table, self.scope, self.download, self.export),
            *(self.export_notice, self.upload, self.import_notice),
        ]
        place = [self.session, self.looking]
        quick = in_line(LOOK)
        slow = in_line("experiments", 2)
        in_list, in_run = notice_in(self.list_notice), notice_in(self.run_notice)
        latest = {"trigger_mode": "always_last", **quick}
        changes = [control.change for control in self._filters]
        filters = packs(self._on_filters, in_list)
        gr.on(changes, filters, [*place, *self._filters], self._outputs, **latest)
        self.clear.click(self._cleared, None, self._filters, **quick)
        columns = packs(self._on_columns, in_list)
        self.columns.change(columns, [*place, self.columns], self._outputs, **latest)
        self.by.input(packs(self._on_by, in_list), [*place, self.by], self._outputs, **quick)
        self.list.select(packs(self._on_click, in_list), place, self._outputs, **EACH, **quick)
        in_steps = [self.head.select, self.steps.select]
        gr.on(in_steps, packs(self._on_click, in_run), place, self._outputs, **EACH, **quick)
        self.explore.click(packs(self._explore, in_run), place, self._outputs, **quick)
        replaying = self.replay.click(packs(self._replay, in_run), place, self._outputs, **slow)
        self.work.wire_cancel([replaying], packs(self._cancelled), None, self._outputs, **quick)
        choices = [control.change for control in (self.scope, self.form, self.with_text)]
        at_hand = [self.download, self.export_notice]
        gr.on(choices, None, outputs=at_hand, js=_HIDES, api_visibility="private")
        ready = {self.export: gr.update(interactive=True)}  # a component made here would stand on the page
        export = packs(self._export, notice_in(self.export_notice, ready))
        self.export.click(export, [*place, self.scope, self.form, self.with_text], self._outputs, **slow)
        take_in = packs(self._import, notice_in(self.import_notice, {self.upload: None}))
        self.upload.upload(take_in, [*place, self.upload], self._outputs, **slow)
        if not self.services.settings.public:
            self._wire_sql(quick)

    def _wire_sql(self, quick: dict[str, Any]) -> None:
        result = gr.State(None)
        answers = [result, self.answer, self.sql_notice, self.ask]
        for button, sql in zip(self.examples, EXAMPLES.values(), strict=True):
            button.click(lambda sql=sql: sql, None, self.sql, **quick)
        self._sql_result = result
        ask = packs(self._ask, notice_in(self.sql_notice, {self.answer: [], result: None}))
        self.ask.click(ask, self.sql, answers, **in_line("experiments-sql", 1))
        self.answer.select(packs(self._on_answer), result, answers, **EACH, **quick)

    def on_show(self, show: Callable[..., Any]) -> None:
        """`show`: the listener of the tab's being opened. It waits in line with the filters: another page may
        set one as it opens the tab, and the list without it would come last.
        """
        shown = packs(self._shown, notice_in(self.list_notice))
        show(shown, [self.session, self.looking], self._outputs, **in_line(LOOK))

    def on_arrival(self, arrives: Callable[..., Any], came: gr.Textbox) -> None:
        """`arrives`: the listener of a page's beginning; `came`: the address that it began with."""
        handler = packs(self._arrived, notice_in(self.list_notice))
        arrives(handler, [self.session, self.looking, came], self._outputs, **in_line(LOOK))

    def filtered(self, session: Session, method: str) -> gr.Dropdown:
        """The filter set to a method; its change lists the runs. Raises LogError."""
        methods = self.experiments.facets(session.owner).methods
        return gr.Dropdown(_method_choices({*methods, method}), value=method)

    # Handlers; each returns or yields updates by component

    def _shown(self, session: Session, looking: ExperimentsPlace) -> Update:
        """The list as the log has it now, and what there is to filter by."""
        return {**self._facets(session, looking.filters), **self._listed(session, looking)}

    def _on_filters(self, session: Session, looking: ExperimentsPlace, *controls: Any) -> Update:
        listed = self._listed(session, replace(looking, filters=read_filters(*controls), page=0))
        return {**listed, **self._no_file()}

    def _arrived(self, session: Session, looking: ExperimentsPlace, came: str, request: gr.Request) -> Update:
        """The selection, and the open run, that the page's address asks for, where it is still there."""
        runs, opened = asked(came, "runs", MAX_SELECTED), asked(came, "opened", 1)
        if not (runs or opened) or looking.selected or looking.opened or not session.llm:
            return {}
        looking = replace(looking, selected=runs, opened="".join(opened))
        gone: Update = {}
        try:
            shown = self._opened(session, looking, request)
        except RunNotFound as error:
            looking, gone = replace(looking, opened=""), {self.list_notice: notice(str(error))}
            shown = self._opened(session, looking, request)
        return {**shown, **self._charted(session, looking), **gone}

    def _cleared(self) -> list[str]:
        """Values of the filters' controls; their change lists all."""
        return [ANY, ANY, ANY, ANY, ANY, next(iter(OUTCOMES)), "", ""]

    def _on_columns(self, session: Session, looking: ExperimentsPlace, columns: list[str] | None) -> Update:
        return self._listed(session, replace(looking, columns=tuple(columns or ())))

    def _on_by(self, session: Session, looking: ExperimentsPlace, by: str) -> Update:
        looking = replace(looking, by=by if by in GROUPS else looking.by)
        return {self.looking: looking, **self._charted(session, looking)}

    def _on_click(
        self, session: Session, looking: ExperimentsPlace, event: gr.EventData, request: gr.Request
    ) -> Update:
        """Clicks in the list and in the open run; out of bounds, nothing happens."""
        action, argument = clicked(event)
        chosen = argument if _ID.fullmatch(argument) else ""
        match action:
            case "open" if chosen:
                opened = "" if chosen == looking.opened else chosen
                return self._opened(session, replace(looking, opened=opened, asking=""), request)
            case "close":
                return self._opened(session, replace(looking, opened="", asking=""), request)
            case "toggle" if chosen:
                return self._select(session, looking, [chosen])
            case "select-page":
                run_ids = [row.run_id for row in self._page(session, looking, looking.page).rows]
                return self._select(session, looking, [one for one in run_ids if one not in looking.selected])
            case "sort" if argument in SORTS:
                turned = not looking.descends if argument == looking.sort else argument in LARGEST_FIRST
                return self._listed(session, replace(looking, sort=argument, descends=turned, page=0))
            case "clear":
                return self._select(session, replace(looking, selected=()), [])
            case "runs-page" if argument.isdecimal():
                return self._listed(session, replace(looking, page=int(argument)))
            case "continue" if argument.isdecimal() and looking.opened:
                return {self.to_explore: OpenRun(looking.opened, int(argument))}
            case "share" | "delete":
                asking = "" if looking.asking == action else action
                return self._headed(session, replace(looking, asking=asking))
            case "keep":
                return self._headed(session, replace(looking, asking=""))
            case "share-now" if looking.asking == "share" and chosen == looking.opened:
                self.experiments.share(chosen, session.owner)
                looking = replace(looking, asking="")
                return {**self._headed(session, looking), **self._listed(session, looking)}
            case "delete-now" if looking.asking == "delete" and chosen == looking.opened:
                self.experiments.delete(chosen, session.owner)
                left = tuple(run_id for run_id in looking.selected if run_id != chosen)
                looking = replace(looking, opened="", asking="", selected=left)
                gone = {**self._opened(session, looking, request), **self._charted(session, looking)}
                return {**gone, self.list_notice: notice("The run is deleted.", "info")}
        return {}

    def _explore(self, session: Session, looking: ExperimentsPlace) -> Update:
        """The open run where it shows best: branches in SPARC, sets in Evidence sets, steps in Explore."""
        if not looking.opened:
            return {}
        run = self.experiments.run(looking.opened, session.owner)
        places = {"SPARC": self.to_sparc, "Evidence sets": self.to_sets, "Explore": self.to_explore}
        return {places[view.opens_in(run)]: OpenRun(looking.opened)}

    def _replay(self, session: Session, looking: ExperimentsPlace) -> Iterator[Update]:
        """The open run made again, and how it compares; by name, since another may be open by then."""
        name = view.replay_of(self.experiments.run(looking.opened, session.owner))

        def failed(words: str) -> Update:
            return {**self.work.free(), self.run_notice: passing(f"run {looking.opened[:8]}: {words}")}

        yield {**self.work.busy(), self.replayed: [name, *preparing()], self.run_notice: []}
        yield from self.work.follow(
            lambda report: self.experiments.replay(looking.opened, session.owner, report),
            lambda report: {self.replayed: [name, *progress(report)]},
            lambda replay: [{**self.work.free(), self.replayed: [name, *view.replayed(replay)]}],
            "replaying",
            failed,
        )

    def _cancelled(self) -> Update:
        words = notice("Cancelled; what was embedded so far is kept.", "info")
        return {**self.work.free(), self.run_notice: words}

    def _export(
        self, session: Session, looking: ExperimentsPlace, scope: str, form: str, with_text: bool
    ) -> Iterator[Update]:
        """A file to download; Gradio keeps a copy of what a handler hands out, so ours goes at once."""
        yield {
            self.download: gr.DownloadButton(visible=False),
            self.export: gr.Button(interactive=False),
            self.export_notice: notice("Writing…", "info"),
        }
        if FORMATS.get(form) not in ALL_FORMATS:
            raise BadRequest(f"format {form[:40]!r} is not on offer; choose one of {', '.join(FORMATS)}")
        run_ids = self._in_scope(session, looking, scope)
        with TemporaryDirectory(prefix="qrag-export-") as folder:
            how = FORMATS[form], bool(with_text)
            file = self.experiments.export(run_ids, *how, session.owner, Path(folder))
            yield {
                self.export: gr.Button(interactive=True),
                self.download: file_button(file),
                self.export_notice: notice(f"{counted(len(run_ids), 'run')} in the file.", "info"),
            }

    def _in_scope(self, session: Session, looking: ExperimentsPlace, scope: str) -> list[str]:
        if scope == MATCHING:
            return self.experiments.all_ids(looking.filters, session.owner)
        if scope == OPENED and not looking.opened:
            raise BadRequest("no run is open; open one in the list, or choose others")
        if scope != OPENED and not looking.selected:
            raise BadRequest(
                "no run is selected; select some in the list, or choose the open run or all that match"
            )
        return [looking.opened] if scope == OPENED else list(looking.selected)

    def _import(
        self, session: Session, looking: ExperimentsPlace, paths: list[str] | None
    ) -> Iterator[Update]:
        """Exported runs as they were, what another retriever found over the documents open in Explore."""
        if not paths:
            return
        yield {self.import_notice: notice("Checking the file…", "info")}
        files = [Path(path) for path in paths]
        exports = [file for file in files if is_export(file)]
        foreign = [file for file in files if file not in exports]
        words, refused, count = list[str](), list[str](), 0
        if foreign:
            try:
                opened = open_in_explore(self.services, session)
                brought = self.experiments.bring(files_of(foreign), opened, on_fault=words.append)
                words.append(f"{counted(len(brought), 'run')} came in. {found_sentence(brought)}")
            except UserError as error:
                refused.append(str(error))
        for file in exports:
            try:
                count += self.experiments.take_in(file, session.owner)
            except UserError as error:  # the next file may be better
                refused.append(str(error))
        if count:
            words.append(f"{counted(count, 'new run')} came in.")
        elif exports and not refused:
            words.append("Nothing new came in: every run of the file is in the log already.")
        told = [*notice(" ".join(words), "info"), *chain.from_iterable(map(notice, refused))]
        yield {**self._shown(session, looking), self.upload: None, self.import_notice: told}

    def _ask(self, sql: str) -> Update:
        result = self.experiments.query(sql or "")
        return {self.sql_notice: [], self.answer: view.sql_result(result, 0), self._sql_result: result}

    def _on_answer(self, result: SqlResult | None, event: gr.EventData) -> Update:
        action, argument = clicked(event)
        if result is None or action != "sql-page" or not argument.isdecimal():
            return {}
        return {self.answer: view.sql_result(result, int(argument))}

    # Views

    def _facets(self, session: Session, filters: RunFilters) -> Update:
        """What there is, and what is filtered by: Gradio refuses a value that is no choice any more."""
        facets = self.experiments.facets(session.owner)
        agents = sorted({*facets.checkpoints, filters.checkpoint} - {ANY})
        return {
            self.method: gr.Dropdown(_method_choices({*facets.methods, filters.method})),
            self.agent: gr.Dropdown([("any", ANY), *agents]),
        }

    def _listed(self, session: Session, looking: ExperimentsPlace) -> Update:
        """A page of runs; the state goes with it."""
        number = min(looking.page, _MOST_PAGES)
        page = self._page(session, looking, number)
        if number and not page.rows:  # what stood there is deleted
            number = max(0, (page.total - 1) // PAGE)
            page = self._page(session, looking, number)
        shown = looking.columns, looking.selected, looking.opened
        filtered = looking.filters != RunFilters()
        listing = view.run_list(
            page, number, *shown, filtered=filtered, sort=looking.sort, descends=looking.descends
        )
        address = part_of(runs=looking.selected, opened=[looking.opened] if looking.opened else [])
        state = replace(looking, page=number)
        return {self.looking: state, self.list: listing, self.list_notice: [], self.address: address}

    def _page(self, session: Session, looking: ExperimentsPlace, number: int) -> RunPage:
        return self.experiments.page(
            looking.filters, number, PAGE, session.owner, looking.sort, looking.descends
        )

    def _select(self, session: Session, looking: ExperimentsPlace, toggled: list[str]) -> Update:
        """Selects runs that are not, and the other way round."""
        selected = [run_id for run_id in looking.selected if run_id not in toggled] + [
            run_id for run_id in toggled if run_id not in looking.selected
        ]
        if len(selected) > MAX_SELECTED:
            raise BadRequest(
                f"{len(selected)} runs are more than {MAX_SELECTED}; for exports, narrow the filters and"
                " choose all that match"
            )
        looking = replace(looking, selected=tuple(selected))
        return {
            **self._listed(session, looking),
            **self._charted(session, looking),
            **self._no_file(),
            self.scope: SELECTED if selected or not looking.opened else OPENED,
        }

    def _charted(self, session: Session, looking: ExperimentsPlace) -> Update:
        if not looking.selected:
            return {self.charts: gr.Column(visible=False)}
        charted = self.experiments.charted(looking.selected, session.owner, looking.by)
        with_q = view.with_q(charted)
        names = view.run_names([row for row, _ in with_q], looking.selected)
        curves = [(name, curve.chosen, curve.refused) for name, (_, curve) in zip(names, with_q, strict=True)]
        return {
            self.charts: gr.Column(visible=True),
            self.charts_heading: view.charts_heading(charted, len(looking.selected)),
            self.curves_card: gr.Column(visible=bool(curves)),
            self.curves: drawn(lambda: curves_figure(curves)),
            self.curve_table: view.curve_table(charted, looking.selected),
            self.counts: drawn(lambda: counts_figure(charted.counts)),
            self.count_table: view.count_table(charted, looking.by),
        }

    def _opened(self, session: Session, looking: ExperimentsPlace, request: gr.Request) -> Update:
        """The open run, or none."""
        listed = {**self._listed(session, looking), **self._no_file()}
        if not looking.opened:
            return {**listed, self.detail: gr.Column(visible=False), self.scope: SELECTED}
        run = self.experiments.run(looking.opened, session.owner)
        address = str(request.headers.get("origin", "")) if request else ""
        address = address if _ADDRESS.fullmatch(address) else "http://127.0.0.1:7860"
        snippets = self.experiments.reproduce(run, address)
        return {
            **listed,
            self.scope: OPENED,
            self.detail: gr.Column(visible=True),
            self.head: view.run_head(run, looking.asking),
            self.explore: gr.Button(f"Open in {view.opens_in(run)}"),
            **{button: gr.Button(visible=view.can_replay(run)) for button in (self.replay, self.cancel)},
            self.replayed: [],
            self.run_notice: [],
            self.steps: view.run_steps(run),
            self.reproduce: view.reproduce(snippets, self.services.settings.public),
        }

    def _no_file(self) -> Update:
        """The file at hand is of earlier choices."""
        return {self.download: gr.DownloadButton(visible=False), self.export_notice: []}

    def _headed(self, session: Session, looking: ExperimentsPlace) -> Update:
        """The head of the open run alone."""
        if not looking.opened:
            return {}
        run = self.experiments.run(looking.opened, session.owner)
        return {self.looking: looking, self.head: view.run_head(run, looking.asking), self.run_notice: []}
