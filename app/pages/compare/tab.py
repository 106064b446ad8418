"""The Compare tab: what starts which action, and what is shown then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import gradio as gr

from app.components.address import asked
from app.components.tree import clicked, packs
from app.pages.compare import difference as difference_view
from app.pages.compare import view
from app.pages.compare.difference import Cuts
from app.pages.compare.layout import OWN_STOP, SAME, CompareLayout
from app.pages.widgets.asking import known_questions
from app.pages.widgets.notices import notice, notice_in, passing_in, progress
from app.pages.widgets.requests import OpenRun
from app.pages.widgets.text import file_button, open_documents
from app.pages.widgets.work import EACH, Update, Work, in_line
from app.services.comparisons import (
    MAX_COMPARED,
    MAX_K,
    PLAIN,
    ColumnRef,
    Compared,
    Comparing,
    ComparisonOrder,
    Comparisons,
    CutRow,
    FromExplore,
    ShownColumn,
    own_key,
)
from app.services.explorer import open_in_explore
from app.services.in_view import OpenDocuments
from app.services.session import Session
from app.services.shared import Services
from app.services.sparc_runs import SparcRuns
from core.base.config import SETS, EpisodeConfig
from core.base.errors import BadRequest, UserError
from core.base.types import Workspace
from core.methods.sparc.retriever import SPARC
from core.runs.whatif.variant import MAX_TEXT, Change

C = TypeVar("C", ColumnRef, CutRow)

SHOW_TRIED = (
    "() => requestAnimationFrame(() => document.querySelector('#qx-compare-tried .qx-tree >"
    " *')?.scrollIntoView())"
)


def read_order(
    query: str | None, methods: Sequence[str] | None, size: str, k: float | None
) -> ComparisonOrder:
    """What is asked for, out of the controls' values. Raises BadRequest."""
    if k is None:
        raise BadRequest(f"the number of chunks is empty; give one between 1 and {MAX_K}")
    return ComparisonOrder((query or "").strip(), tuple(methods or ()), int(k), size == OWN_STOP)


class CompareTab(CompareLayout):
    """Built once; handlers are methods."""

    def __init__(
        self, services: Services, session: gr.State, explored: gr.Textbox, sparc: SparcRuns | None = None
    ) -> None:
        """session, explored: the visitor's place in Explore, and the question there. sparc: what
        SPARC's column is made with; one of its own by default.
        """
        self.services, self.comparisons = services, Comparisons(services, sparc)
        super().__init__(self.comparisons, session)
        self.session, self.explored = session, explored
        self.compared = gr.State(Compared())
        self.to_explore, self.to_sparc, self.to_sets = gr.State(None), gr.State(None), gr.State(None)
        """An OpenRun each, when a column is to be opened there."""
        self.wanted: gr.State = gr.State(None)
        """The run of Explore that is to be compared, a FromExplore; None before the first."""
        self.came: gr.State = gr.State(Compared())
        """What is there of the comparison at work, without what a reader does meanwhile."""
        self.cut_rows: gr.State = gr.State(Cuts())
        """What is shown of the ways of cutting."""
        self._wire()

    def _wire(self) -> None:
        self._outputs = [
            *(self.compared, self.to_explore, self.to_sparc, self.to_sets),
            *(self.header, *self.asking.parts, self.as_explore, self.methods, self.size, self.k),
            *(self.heading, self.page, self.result_notice, self.columns, self.reading, self.support),
            *(self.common, self.change_panel, self.changed, self.change_notice, self.tried),
            *(*vars(self.cutting).values(), self.cuts, self.cuts_of, self.cut_rows, self.came),
        ]
        self._controls = [self.asking.question, self.methods, self.size, self.k]
        place = [self.session, self.compared, *self._controls]
        quick = in_line("compare-look")
        slow = in_line("compare", 1)
        run, ordered = packs(self._run, passing_in(self.asking.work.notice)), [*place, self.explored]
        asked = self.asking.wire(run, ordered, self._outputs, **slow)
        judged = [self.session, self.compared, self.cut_rows, *self._controls]
        handed_over = [self.session, self.explored, self.compared, self.wanted, *judged[2:]]
        takes_over = self.wanted.change(packs(self._shown), handed_over, self._outputs, **quick)
        pressed_there = takes_over.then(run, ordered, self._outputs, **slow)
        self.asking.work.wire_cancel(
            [asked, pressed_there], packs(self._cancelled), None, self._outputs, **quick
        )
        run_cuts = packs(self._run_cuts, notice_in(self.cutting.notice))
        cutting = self.cutting.run.click(run_cuts, place, self._outputs, **in_line("compare-cuts", 1))
        self.cutting.wire_cancel([cutting], packs(self._cuts_cancelled), None, self._outputs, **quick)
        self.cuts.select(packs(self._on_cut), self.cut_rows, self._outputs, **quick)
        trying = packs(self._try, notice_in(self.change_notice, {self.tried: []}))
        for button, changed in ((self.try_text, [self.changed]), (self.try_without, [])):
            button.click(trying, [self.compared, *changed], self._outputs, **quick).success(
                None, js=SHOW_TRIED, api_visibility="private"
            )
        self.asking.wire_known(self.session)
        refusal = notice_in(self.result_notice)
        grown = [self.session, self.compared, self.came, *judged[2:]]
        self.came.change(packs(self._grown, refusal), grown, self._outputs, **quick)
        panels = (self.columns, self.reading, self.support, self.common, self.tried)
        selects = [panel.select for panel in panels]
        gr.on(selects, packs(self._on_click, refusal), self.compared, self._outputs, **EACH, **quick)
        self.heading.select(packs(self._export, refusal), self.compared, self._outputs, **slow)
        self.as_explore.select(packs(self._on_settings), judged, self._outputs, **quick)
        changes = [control.change for control in self._controls]
        judges = packs(self._on_controls)
        self.asking.wire_controls(
            changes, judges, judged, [asked, pressed_there], beside=[self.cuts_of], **quick
        )

    def on_show(self, show: Callable[..., Any]) -> None:
        """`show`: the listener of the tab's being opened."""
        inputs = [self.session, self.explored, self.compared, self.wanted, self.cut_rows, *self._controls]
        self.asking.wire_shown(show, self._shown, inputs, self._outputs)
        self.llm_panel.on_show(show)

    def on_arrival(self, arrives: Callable[..., Any], came: gr.Textbox) -> None:
        """`arrives`: the listener of a page's beginning; `came`: the address that it began with."""
        opens = packs(self._open, passing_in(self.asking.work.notice))
        arrives(opens, [self.session, self.compared, came], self._outputs, **in_line("compare", 1))

    # Handlers; each returns or yields updates by component

    def _shown(
        self,
        session: Session,
        explored: str,
        compared: Compared,
        wanted: FromExplore | None,
        cut: Cuts,
        question: str,
        methods: list[str],
        size: str,
        k: float,
    ) -> Update:
        """What is open in Explore now; its question too, unless it is the one that was taken over
        before; and a run that was opened here from there.
        """
        taken = self.asking.take_over(session, explored, compared.seen, question)
        if taken is None:
            return {self.header: open_documents(None, session.awaits)}
        update: Update = {}
        documents, question = taken.documents, taken.question
        spec, stays = documents.agent.spec, not taken.is_new
        if taken.is_new:
            k, methods = self.comparisons.usual_k(documents), self.comparisons.usual(spec.name)
            methods = [*methods, *self.comparisons.imported(documents)]
            update |= {self.asking.known_questions: known_questions(documents.questions), self.k: k}
            compared = replace(compared, lifted=())
        number = compared.taken and compared.taken.number
        if wanted is not None and wanted.config is not None and wanted.number != number:
            question, config = wanted.query, wanted.config
            k = min(config.step_budget, MAX_K)
            size = SAME if config.stop_threshold is None or spec.name == PLAIN else OWN_STOP
            methods, stays = list(dict.fromkeys([own_key(spec.name), *methods])), False
            update |= {self.size: size, self.k: k}
            compared = replace(compared, taken=wanted)
        compared = replace(compared, seen=taken.seen)
        return {
            **update,
            self.asking.question: question,
            self.methods: self._choices(methods, documents, stays=stays),
            self.compared: compared,
            **self._on_controls(session, compared, cut, question, methods, size, k),
            self.header: open_documents(documents),
            self.as_explore: self._as_explore(session, compared, documents),
        }

    def _as_explore(self, session: Session, compared: Compared, documents: OpenDocuments) -> list[Any]:
        """What of Explore's settings counts."""
        spec = self.services.agents.served(documents.agent.spec)
        order = ComparisonOrder(
            settings=self._settings(session, compared), forbidden=self._forbidden(session, compared)
        )
        lifted = [chunk_id for chunk_id in session.forbidden if chunk_id in compared.lifted]
        return view.as_in_explore(own_key(spec.name), order, spec.episode_config(), lifted)

    def _forbidden(self, session: Session, compared: Compared) -> tuple[int, ...]:
        """Those of Explore, but for what the person allowed here."""
        return tuple(chunk_id for chunk_id in session.forbidden if chunk_id not in compared.lifted)

    def _settings(self, session: Session, compared: Compared) -> EpisodeConfig | None:
        """Those of the run from Explore, as long as its documents are open there under its agent."""
        taken = compared.taken
        return taken.config if taken is not None and taken.corpus == session.corpus else None

    def _order(self, session: Session, compared: Compared, *controls: Any) -> ComparisonOrder:
        """What is asked for. Raises BadRequest."""
        return replace(
            read_order(*controls),
            settings=self._settings(session, compared),
            forbidden=self._forbidden(session, compared),
        )

    def _on_settings(
        self, session: Session, compared: Compared, cut: Cuts, event: gr.EventData, *controls: Any
    ) -> Update:
        """Back to the agent's own settings, or on with other chunks forbidden than in Explore."""
        documents, action = self.services.library.corpora.get(session.corpus), clicked(event)[0]
        if documents is None:
            return {}
        if action == "defaults" and compared.taken is not None:
            compared = replace(compared, taken=replace(compared.taken, config=None))
        elif action in ("lift", "keep"):
            compared = replace(compared, lifted=session.forbidden if action == "lift" else ())
        return {
            self.compared: compared,
            self.as_explore: self._as_explore(session, compared, documents),
            **self._on_controls(session, compared, cut, *controls),
        }

    def _choices(
        self, chosen: Sequence[str] | None, documents: OpenDocuments, *, stays: bool = False
    ) -> gr.CheckboxGroup:
        """The methods that there are now. stays: what is chosen stays as it is in the browser by now, where a
        link may have brought others since, unless one is gone: Gradio refuses a value that is no choice.
        """
        keys, chosen = self.comparisons.methods(documents), chosen or ()
        names = [(view.method_label(key), key) for key in keys]
        if stays and {*chosen} <= {*keys}:
            return gr.CheckboxGroup(names)
        return gr.CheckboxGroup(names, value=[key for key in keys if key in chosen])

    def _on_controls(self, session: Session, compared: Compared, cut: Cuts, *controls: Any) -> Update:
        documents = self.services.library.corpora.get(session.corpus)
        of = {self.cuts_of: difference_view.cuts_of(cut, controls[0] or "", documents)}
        try:
            order = self._order(session, compared, *controls)
        except UserError as error:
            line = view.settings_line(None)
            return {**of, self.asking.standing: notice(str(error)), self.asking.line: line}
        waits = None
        if documents is not None and not documents.searched:
            waits = self.comparisons.to_embed(documents, order.methods)
        searched = self.services.library.corpora.get(compared.corpus)
        same = searched is not None and self.asking.has_open(session, searched.workspace)
        return {
            **of,
            self.asking.standing: view.changes(compared, order, same),
            self.asking.line: view.settings_line(order, waits),
        }

    def _run(
        self,
        session: Session,
        compared: Compared,
        question: str | None,
        methods: list[str],
        size: str,
        k: float | None,
        explored: str | None,
    ) -> Iterator[Update]:
        """Columns as they come."""
        documents = open_in_explore(self.services, session)
        asked = self.asking.asked(question, explored, compared.seen)
        order = self._order(session, compared, asked, methods, size, k)
        for column in compared.columns:
            self.services.leave_run(column.run)
        yield {self.asking.standing: [], **({} if question else {self.asking.question: order.query})}

        def show(columns: tuple[ColumnRef, ...]) -> Update:
            return {self.came: Compared(session.corpus, order, columns)}

        llm = self.services.language_models.get(session)
        yield from self._working(
            self.asking.work, lambda report: self.comparisons.run(documents, order, report, llm), show
        )

    def _grown(
        self, session: Session, compared: Compared, came: Compared, cut: Cuts, *controls: Any
    ) -> Update:
        """Another column, beside what a reader has open of those before; a new comparison begins with nothing
        open.
        """
        n_before, closed = len(compared.columns), dict[Any, Any]()
        now = replace(compared, corpus=came.corpus, order=came.order, columns=came.columns)
        if n_before == 0 or came.columns[:n_before] != compared.columns:
            now = replace(now, chunk_id=None, anchor=None, explained=())
            closed = {self.change_panel: gr.Column(visible=False), self.tried: []}
        return {**self._results(now), **closed, **self._on_controls(session, now, cut, *controls)}

    def _open(self, session: Session, compared: Compared, came: str) -> Iterator[Update]:
        """The comparison that the page's address asks for, and its order in the form."""
        run_ids = asked(came, "compare", MAX_COMPARED)
        if not run_ids or compared.columns or session.awaits:
            yield {}
            return

        def done(opened: Compared) -> Iterator[Update]:
            order, documents = opened.order, open_in_explore(self.services, session)
            yield {
                **self.asking.work.free(),
                self.came: opened,
                self.compared: replace(compared, seen=(session.corpus, "")),  # nothing usual in its place
                self.asking.known_questions: known_questions(documents.questions),
                self.asking.question: order.query,
                self.methods: self._choices(order.methods, documents),
                self.size: OWN_STOP if order.own_stop else SAME,
                self.k: order.k,
            }

        yield self.asking.begun()
        yield from self.asking.work.follow(
            lambda report: self.comparisons.open(run_ids, session.owner, report),
            lambda report: {self.asking.progress: progress(report)},
            done,
            "opening",
        )

    def _run_cuts(self, session: Session, compared: Compared, *controls: Any) -> Iterator[Update]:
        """Ways of cutting as they come."""
        documents = open_in_explore(self.services, session)
        order = self._order(session, compared, *controls)

        def show(rows: tuple[CutRow, ...]) -> Update:
            cut = Cuts.over(documents, order.query, rows)
            of = difference_view.cuts_of(cut, order.query, documents)
            return {self.cut_rows: cut, self.cuts: difference_view.cuts(rows), self.cuts_of: of}

        yield from self._working(
            self.cutting, lambda report: self.comparisons.across_cuts(documents, order, report), show
        )

    def _working(
        self,
        work: Work,
        do: Callable[[Callable[[Comparing[C]], None]], tuple[C, ...]],
        show: Callable[[tuple[C, ...]], Update],
    ) -> Iterator[Update]:
        """Progress while `do` works, and all that is there by then. An error becomes a sentence."""
        n_shown = 0

        def fresh(columns: tuple[C, ...]) -> Update:
            nonlocal n_shown
            more, n_shown = len(columns) > n_shown, len(columns)
            return show(columns) if more else {}

        def done(columns: tuple[C, ...]) -> Iterator[Update]:
            yield {**work.free(), **fresh(columns)}
            self.comparisons.settle(columns)

        yield {**work.busy(), work.notice: []}
        yield from work.follow(
            do,
            lambda report: {work.progress: view.comparing(report), **fresh(report.columns)},
            done,
            "comparing",
        )

    def _cancelled(self) -> Update:
        is_over, kept = self.comparisons.comparing.wait(10), "columns that were there are kept"
        return self.asking.work.cancelled(is_over, "what is at work ends first", kept)

    def _cuts_cancelled(self) -> Update:
        kept = "rows that were there are kept, and so are the vectors"
        is_over = self.comparisons.cutting.wait(10)
        return self.cutting.cancelled(is_over, "what is at work ends first", kept)

    def _try(self, compared: Compared, text: str | None = None) -> Update:
        """The agents again, with the open chunk changed or gone."""
        if compared.chunk_id is None:
            return {}
        runs = self.comparisons.try_out(compared, Change(compared.chunk_id, text))
        return {self.change_notice: difference_view.unread(runs), self.tried: difference_view.tried(runs)}

    def _on_cut(self, cut: Cuts, event: gr.EventData) -> Update:
        action, argument = clicked(event)
        if action != "explore" or not argument.isdecimal() or int(argument) >= len(cut.rows):
            return {}
        run_id = cut.rows[int(argument)].run_id
        return {self.to_explore: OpenRun(run_id)} if run_id else {}

    def _export(self, compared: Compared, event: gr.EventData) -> Iterator[Update]:
        """The columns as a page to download; Gradio keeps a copy of what a handler hands out."""
        if clicked(event)[0] != "export":
            return
        with TemporaryDirectory(prefix="qrag-page-") as folder:
            file = self.comparisons.page(compared, Path(folder))
            yield {self.page: file_button(file), self.result_notice: []}

    def _on_click(self, compared: Compared, event: gr.EventData) -> Update:
        """Clicks in any of the trees; arguments come from a browser: out of bounds, nothing happens."""
        action, argument = clicked(event)
        number = argument.partition(" ")[0]
        if action == "close":
            return self._reading(compared, None)
        if action == "forget":
            return {self.tried: []}
        if not number.isdecimal():
            return {}
        value = int(number)
        if action == "explore" and value < len(compared.columns):
            run = self.comparisons.shown_columns(compared)[value].run
            if run is None:
                return {}
            method = run.trace.started.method
            place = self.to_sparc if method == SPARC else self.to_sets if method in SETS else self.to_explore
            return {place: OpenRun(run.run_id)}
        if action == "why" and value < len(compared.columns):
            explained = {*compared.explained} ^ {value}
            return self._looked(replace(compared, explained=tuple(sorted(explained))))
        if value < len(self.comparisons.workspace(compared)):
            if action in ("open", "show"):
                return self._reading(compared, value)
            if action == "change":
                return self._changing(compared, value)
            if action == "page":
                return self._looked(replace(compared, anchor=value))
        return {}

    # Views

    def _results(self, compared: Compared) -> Update:
        """Everything below the form."""
        columns, workspace = self.comparisons.shown_columns(compared), self.comparisons.workspace(compared)
        return {
            **self._open_chunk(compared, columns, workspace),
            self.heading: view.heading(compared, columns, workspace),
            self.page: gr.DownloadButton(visible=False),
            self.support: view.support(columns),
            self.common: view.common(columns),
        }

    def _changing(self, compared: Compared, chunk_id: int) -> Update:
        """A chunk's text, to be changed."""
        text = self.comparisons.workspace(compared)[chunk_id].text
        first = f" (its first {MAX_TEXT:,} characters)" if len(text) > MAX_TEXT else ""
        return {
            self.compared: replace(compared, chunk_id=chunk_id),
            self.change_panel: gr.Column(visible=True),
            self.changed: gr.Textbox(text[:MAX_TEXT], label=f"Chunk {chunk_id:,} reads{first}"),
            self.change_notice: [],
        }

    def _reading(self, compared: Compared, chunk_id: int | None) -> Update:
        """Another chunk is open, or none; whatever was being changed is not."""
        shown = self._looked(replace(compared, chunk_id=chunk_id, anchor=None))
        return {**shown, self.change_panel: gr.Column(visible=False)}

    def _looked(self, compared: Compared) -> Update:
        """Other columns explain themselves, or another page of the text is open."""
        columns = self.comparisons.shown_columns(compared)
        return self._open_chunk(compared, columns, self.comparisons.workspace(compared))

    def _open_chunk(self, compared: Compared, columns: Sequence[ShownColumn], workspace: Workspace) -> Update:
        """The columns, with what some of them owe, and the chunk that is read."""
        owed = {
            at: self.comparisons.influence(run)
            for at in compared.explained
            if (run := columns[at].run) is not None
        }
        return {
            self.compared: compared,
            self.result_notice: [],
            self.columns: view.results(compared, columns, owed),
            self.reading: view.reading(compared, columns, workspace),
        }
