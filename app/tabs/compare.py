"""The Compare tab: which component starts which action, and what is shown then. What is run is in app.comparing, how it reads in app.compare_view."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import gradio as gr

from app import compare_view as view
from app.comparing import MAX_K, ColumnRef, Compared, Comparing, ComparisonOrder, Comparisons
from app.components.tree import clicked, packs
from app.jobs import Finished, stream
from app.present import notice, question_label
from app.services import OpenDocuments, Services
from app.session import Session
from app.tabs.compare_layout import OWN_STOP, CompareLayout
from core.errors import BadRequest, UserError
from core.experiments import new_run_id

Update = dict[Any, Any]


def read_order(query: str | None, methods: Sequence[str] | None, size: str, k: float | None) -> ComparisonOrder:
    """What is asked for, out of the controls' values. Raises BadRequest."""
    if k is None:
        raise BadRequest(f"the number of chunks is empty; give one between 1 and {MAX_K}")
    return ComparisonOrder((query or "").strip(), tuple(methods or ()), int(k), size == OWN_STOP)


class CompareTab(CompareLayout):
    """Built once; handlers are methods."""

    def __init__(self, services: Services, session: gr.State, explored: gr.Textbox) -> None:
        """session, explored: the visitor's place in Explore, and the question there."""
        self.services, self.comparisons = services, Comparisons(services)
        super().__init__(self.comparisons)
        self.session, self.explored = session, explored
        self.compared = gr.State(Compared())
        self.to_explore: gr.State = gr.State(None)
        """("run", run id, number) when a column is to be opened in Explore."""
        self._packed = {component for component in vars(self).values() if isinstance(component, gr.HTML)}
        self._wire()

    def _wire(self) -> None:
        self._outputs = [
            *(self.compared, self.to_explore, self.header, self.question, self.known, self.methods, self.k, self.run, self.cancel, self.progress),
            *(self.notice, self.standing, self.heading, self.result_notice, self.columns, self.reading, self.support, self.common),
        ]
        self._controls = [self.question, self.methods, self.size, self.k]
        place = [self.session, self.compared, *self._controls]
        quick: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "concurrency_id": "compare-look", "concurrency_limit": 4}
        slow: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "concurrency_id": "compare", "concurrency_limit": 1}
        run = self._sends(self._run)
        running = [event(run, place, self._outputs, **slow) for event in (self.run.click, self.question.submit, self.standing.select)]
        self.cancel.click(self._sends(self._cancelled), self.compared, self._outputs, cancels=running, **quick)
        self.known.input(lambda question: question, self.known, self.question, **quick)
        for panel in (self.columns, self.reading, self.support, self.common):
            panel.select(self._sends(self._on_click), self.compared, self._outputs, **quick)
        changes = [control.change for control in self._controls]
        gr.on(changes, self._sends(self._on_controls), place, [self.standing], trigger_mode="always_last", **quick)

    def on_show(self, show: Callable[..., Any]) -> None:
        """`show`: the listener of the tab's being opened."""
        inputs = [self.session, self.explored, self.compared, *self._controls]
        show(self._sends(self._shown), inputs, self._outputs, api_visibility="private", show_progress="hidden")

    def _sends(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """The handler with trees packed into strings on their way out (see components.tree)."""
        return packs(handler, self._packed)

    # Handlers; each returns or yields updates by component

    def _shown(self, session: Session, explored: str, compared: Compared, question: str, methods: list[str], size: str, k: float) -> Update:
        """What is open in Explore now; its question too, unless it is the one that was taken over before."""
        documents = self.services.corpora.get(session.corpus)
        if documents is None:
            return {self.header: view.open_documents(None)}
        update: Update = {self.header: view.open_documents(documents), self.methods: self._choices(methods)}
        if compared.seen != (session.corpus, explored):
            question = explored or question
            update[self.question] = question
        before = self.services.corpora.get(compared.seen[0])
        if before is None or before.workspace is not documents.workspace:
            spec = documents.agent.spec
            k, methods = min(spec.step_budget, len(documents.corpus), MAX_K), self.comparisons.usual(spec.name)
            known = [(question_label(known), known.question) for known in documents.questions]
            asked = question if any(question == value for _, value in known) else None
            update |= {self.k: k, self.methods: self._choices(methods), self.known: gr.Dropdown(known, value=asked, visible=bool(known))}
        compared = replace(compared, seen=(session.corpus, explored))
        return {**update, self.compared: compared, **self._on_controls(session, compared, question, methods, size, k)}

    def _choices(self, chosen: Sequence[str]) -> gr.CheckboxGroup:
        """The methods that there are now."""
        keys = self.comparisons.methods()
        return gr.CheckboxGroup([(view.method_label(key), key) for key in keys], value=[key for key in chosen or () if key in keys])

    def _on_controls(self, session: Session, compared: Compared, *controls: Any) -> Update:
        try:
            order = read_order(*controls)
        except UserError as error:
            return {self.standing: notice(str(error))}
        documents, searched = self.services.corpora.get(session.corpus), self.services.corpora.get(compared.corpus)
        same = documents is not None and searched is not None and documents.workspace is searched.workspace
        return {self.standing: view.changes(compared, order, same)}

    def _run(self, session: Session, compared: Compared, *controls: Any) -> Iterator[Update]:
        """Columns as they come."""
        free = {self.run: gr.Button(interactive=True), self.cancel: gr.Button(interactive=False), self.progress: []}
        try:
            documents, order = self._open(session), read_order(*controls)
            yield {self.run: gr.Button(interactive=False), self.cancel: gr.Button(interactive=True), self.notice: [], self.standing: []}

            def work(report: Callable[[Comparing], None]) -> tuple[ColumnRef, ...]:
                return self.comparisons.run(documents, order, report)

            fresh = Compared(session.corpus, order, seen=compared.seen)
            with closing(stream(work)) as items:
                for item in items:
                    found = item.result if isinstance(item, Finished) else item.columns
                    update = free if isinstance(item, Finished) else {self.progress: view.comparing(item)}
                    if len(found) > len(fresh.columns):
                        fresh = replace(fresh, columns=found)
                        update = {**update, **self._results(fresh)}
                    yield update
            self.services.log.flush()
        except UserError as error:
            yield {**free, self.notice: notice(str(error))}
        except Exception:
            logging.getLogger(__name__).exception("a comparison failed")
            yield {**free, self.notice: notice("something failed while comparing; columns that are there are kept, and the server's log says why")}

    def _open(self, session: Session) -> OpenDocuments:
        """What Explore has open. Raises BadRequest."""
        if session.opening:
            raise BadRequest("a document is being opened in Explore; wait until it is there, or cancel it")
        documents = self.services.corpora.get(session.corpus)
        if documents is None:
            raise BadRequest("no document is open; open one in Explore")
        return documents

    def _cancelled(self, compared: Compared) -> Update:
        settled = self.comparisons.wait_idle(10)
        words = "Cancelled; columns that were there are kept." if settled else "Cancelling: the method at work ends first."
        free = {self.run: gr.Button(interactive=True), self.cancel: gr.Button(interactive=False), self.progress: []}
        return {**free, self.compared: compared, self.notice: notice(words, "info")}

    def _on_click(self, compared: Compared, event: gr.EventData) -> Update:
        """Clicks in any of the trees; arguments come from a browser: out of bounds, nothing happens."""
        action, argument = clicked(event)
        number = argument.partition(" ")[0]
        if action == "close":
            return self._looked(replace(compared, chunk_id=None, anchor=None))
        if not number.isdecimal():
            return {}
        try:
            value = int(number)
            if action == "explore" and value < len(compared.columns):
                run = self.comparisons.shown(compared)[value].run
                return {self.to_explore: ("run", run.run_id, new_run_id())} if run is not None else {}
            if action == "why" and value < len(compared.columns):
                shown = {*compared.explained} ^ {value}
                return self._looked(replace(compared, explained=tuple(sorted(shown))))
            if value < len(self.comparisons.workspace(compared)):
                if action in ("open", "show"):
                    return self._looked(replace(compared, chunk_id=value, anchor=None))
                if action == "page":
                    return self._looked(replace(compared, anchor=value))
        except UserError as error:
            return {self.result_notice: notice(str(error))}
        return {}

    # Views

    def _results(self, compared: Compared) -> Update:
        """Everything below the form."""
        columns, workspace = self.comparisons.shown(compared), self.comparisons.workspace(compared)
        return {
            self.compared: compared,
            self.heading: view.heading(compared, columns, workspace),
            self.result_notice: [],
            self.columns: view.results(compared, columns),
            self.reading: view.reading(compared, columns, workspace),
            self.support: view.support(columns),
            self.common: view.common(columns),
        }

    def _looked(self, compared: Compared) -> Update:
        """Another chunk is open, or none, or other columns explain themselves."""
        try:
            columns, workspace = self.comparisons.shown(compared), self.comparisons.workspace(compared)
        except UserError as error:
            return {self.result_notice: notice(str(error))}
        owed = {at: self.comparisons.influence(run) for at in compared.explained if (run := columns[at].run) is not None}
        shown = {self.columns: view.results(compared, columns, owed), self.reading: view.reading(compared, columns, workspace)}
        return {self.compared: compared, self.result_notice: [], **shown}
