"""The Explore tab: what starts which action, and what is shown then."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr

from app.components.address import asked
from app.components.page import KEY_SCRIPT, NOTHING
from app.components.strip import strip_loading
from app.components.tree import clicked, packs
from app.pages.experiments.view import sharing
from app.pages.explore import view as present
from app.pages.explore.answers import Answers, Said
from app.pages.explore.at_work import (
    AT_ONCE,
    SOON,
    earlier,
    first_question,
    likeliest_first,
    run_progress,
)
from app.pages.explore.controls import MAX_BUDGET, control_values, read_controls
from app.pages.explore.documents import Openings
from app.pages.explore.layout import ExploreLayout
from app.pages.explore.mark_view import BELONGS, DOES_NOT
from app.pages.explore.panels import Panels
from app.pages.explore.strip_source import RunStrip
from app.pages.widgets.asking import known_questions
from app.pages.widgets.notices import notice, notice_in, passing, passing_in
from app.pages.widgets.requests import (
    AskDocument,
    ChangeRun,
    OpenChunk,
    OpenEpisode,
    OpenGenerated,
    OpenRun,
    OpenSample,
    PageRequest,
    UseAgent,
)
from app.pages.widgets.sharing import PAGE
from app.pages.widgets.work import EACH, QUIET, Update, in_line
from app.services.comparisons import FromExplore
from app.services.evaluations import Evaluations, ShownEpisode, open_episode
from app.services.experiments import Experiments
from app.services.explorer import RUNS_AT_ONCE, Explorer
from app.services.in_view import RunInView
from app.services.language_models import new_token
from app.services.opener import Opener, find_chunk, open_recut
from app.services.session import Session
from app.services.shared import Services
from app.services.underway import RunAtWork, RunsUnderway
from app.services.visitors import newcomer, owner_of, owner_of_user
from core.base.config import SETS, EpisodeConfig
from core.base.errors import BadRequest, UserError
from core.corpus.opening import Opening, OpenProgress
from core.encode.checkpoint import CheckpointSpec
from core.lab.tasks.samples import list_samples
from core.methods.sparc.retriever import SPARC
from core.runs.log import new_run_id
from core.views.draw.nodes import Node

CHANGES = {"forbid", "take", "longer", "cut", "keep"}
"""What buttons of cards ask for, see `ChangeRun`."""
RunAction = Callable[[Explorer, Session, str, EpisodeConfig, Any], Generator[Session]]
"""What is done about a question with settings, and a value of its own."""
_LEADS = {**in_line("lead", 2), **EACH}
"""Of what opens documents beside the panel: in the line of runs, a question to what is embedded so far would
wait until all is.
"""


class ExploreTab(ExploreLayout):
    """Built once; handlers are methods."""

    def __init__(self, services: Services, evaluations: Evaluations, page: gr.HTML) -> None:
        session = gr.State(Session(owner=newcomer(services.settings)))
        super().__init__(services, self._find_strip, page, session)
        self.services, self.evaluations = services, evaluations
        self.explorer, self.experiments = Explorer(services), Experiments(services)
        self.wanted: gr.State = gr.State(None)
        """A request of another tab or of a card, see `app.pages.widgets.requests`."""
        self.to_compare: gr.State = gr.State(None)
        """A FromExplore when the run in view is to be compared."""
        self.to_sparc, self.to_sets = gr.State(None), gr.State(None)
        """An OpenRun each, when the run of the page's address is one of SPARC, or an evidence set."""
        self.filled: gr.State = gr.State(None)
        """(name of the opening, whether to run again) when all is there of what could be asked in part."""
        self.runs = RunsUnderway(self.explorer)
        self.openings = Openings(
            self, self.explorer, self.session, self.filled, self._opened, self.runs.leave
        )
        self.answers = Answers(self, self.explorer, self.session)
        self.panels = Panels(self, self.explorer, self.session)
        self._wire()

    def _wire(self) -> None:
        self._panels = [
            *(self.session, self.page, self.header, self.change_panel, self.change_notice),
            *(*self.asking.parts, self.warning, self.sharing.said, self.strip, self.earlier, self.story),
            *(self.diagnosis, self.chunker, self.max_tokens, self.agent, self.step, self.back, self.reset),
            *(self.steps, self.find, self.reading_view, self.reading, self.reading_notice, self.evidence),
            *(self.near, self.figures, self.decision, self.best, self.distribution_title),
            *(self.distribution, self.parts_card, self.parts, self.trail_card, self.trail),
            *(self.answer, self.cite, self.cited, self.to_compare, self.to_sparc, self.to_sets),
            *(self.answers.ended, self.wanted, self.answers.read, self.filled, *self.own.shown),
            *(self.answers.said, self.files, *self.openers, *self.controls.list()[1:]),
        ]
        quick: dict[str, Any] = {"outputs": self._panels, **QUIET}
        runs = {**quick, **in_line("agent", RUNS_AT_ONCE), **EACH}
        opens = {**quick, **in_line("open", 2)}
        leads = {**opens, **_LEADS}
        inputs = [self.session, *self.controls.list()]
        other = [self.session, self.agent, *self.controls.list()]
        running = self._wire_runs(runs)
        cancelled = [
            *self.openings.wire(opens),
            # one that is picked is told twice, and Cancel would end the first alone
            self.agent.input(packs(self._on_agent), other, trigger_mode="once", **opens),
            *running,
            self.wanted.change(packs(self._on_lead), [self.session, self.wanted, *inputs[1:]], **leads),
            self.asking.standing.select(packs(self._on_rest), inputs, **leads),
            *self.answers.wire(inputs, quick, runs),
        ]
        settled = packs(self._settled), self.session
        self.asking.work.wire_cancel(cancelled, packs(self._cancelled), inputs, settled=settled, **quick)
        self._wire_looking(quick)
        self._wire_controls(running)
        self.own.wire(self.session, self.controls.query)
        self.own.changed.change(packs(self._counted_anew), inputs, **quick)

    def _wire_runs(self, runs: dict[str, Any]) -> list[gr.events.Dependency]:
        """What goes on with a run, one event after another; returns what Cancel ends."""
        controls = self.controls.list()
        inputs = [self.session, *controls]
        self.back.click(packs(self._back), inputs, **runs)
        self.reset.click(packs(self._reset), inputs, **runs)
        return [
            gr.on([self.asking.run.click, self.controls.query.submit], packs(self._run), inputs, **runs),
            self.step.click(packs(self._step), inputs, **runs),
            self.asking.standing.select(packs(self._on_standing), inputs, **runs),
            self.reading.select(packs(self._on_reading), inputs, **runs),
            self.wanted.change(packs(self._on_wanted), [self.session, self.wanted, *controls], **runs),
            self.filled.change(packs(self._on_filled), [self.session, self.filled, *controls], **runs),
        ]

    def _wire_looking(self, quick: dict[str, Any]) -> None:
        """Where a person looks, and where the run is found from now on."""
        inputs = [self.session, *self.controls.list()]
        sharing = [self.sharing.said, self.sharing.file]
        shares = packs(self._on_share, passing_in(self.sharing.said))
        shared = [self.asking.status.select, self.sharing.said.select]
        gr.on(shared, shares, [self.session, self.sharing.said], sharing, **EACH, **QUIET)
        panels = (
            *(self.header, self.diagnosis, self.steps, self.answer, self.cited, self.evidence),
            *(self.trail, self.reading_view, self.asking.line, self.story),
        )
        looks = {**quick, **in_line("look"), **EACH}
        gr.on([panel.select for panel in panels], packs(self._on_tree), inputs, **looks)
        self.demo.select(lambda: OpenGenerated(present.DEMO_TOKENS), None, self.wanted, **QUIET)
        self.near.select(packs(self._on_near), self.session, **quick)
        for event in (self.strip.select, self.strip.look):
            event(packs(self._on_strip), inputs, **looks)
        finds = packs(self._find, notice_in(self.reading_notice))
        gr.on([self.find.submit, self.find_next.click], finds, [self.session, self.find], **quick)

    def _wire_controls(self, running: list[gr.events.Dependency]) -> None:
        """What the settings say of themselves."""
        controls = self.controls.list()
        self.asking.wire_known(self.session)
        for switch, slider in (
            (self.controls.stops, self.controls.threshold),
            (self.controls.reviews, self.controls.review),
        ):
            switch.input(lambda on: gr.Slider(interactive=on), switch, slider, **QUIET)
        self.asking.wire_controls(
            [control.change for control in controls],
            packs(self._on_controls, notice_in(self.asking.standing)),
            [self.session, *controls],
            running,
            **QUIET,
        )

    def opens(self, wanted: gr.State) -> gr.events.Dependency:
        """Has what another tab asks for opened here, while that one stays in front."""
        inputs = [self.session, wanted, *self.controls.list()]
        return wanted.change(packs(self._on_lead), inputs, self._panels, **_LEADS)

    def on_load(self, blocks: gr.Blocks) -> None:
        """What a visitor meets. Not in line behind those who open long documents."""
        blocks.load(
            packs(self._load, passing_in(self.asking.notice)),
            [self.session, self.visitor_key],
            self._panels,
            js=KEY_SCRIPT if self.services.settings.public else None,
            **in_line("load", 4),
        )

    # Handlers; each returns or yields updates by component

    def _load(
        self, session: Session, key: str | None, request: gr.Request, profile: gr.OAuthProfile | None
    ) -> Iterator[Update]:
        name, settings = request.username or (profile.username if profile else None), self.services.settings
        owner = owner_of_user(settings, name) if name else owner_of(settings, key or "")
        session = replace(session, owner=owner, llm=new_token())
        tab, run_id, doc = (str(request.query_params.get(key, ""))[:64] for key in ("tab", "run", "doc"))
        if not run_id and not doc:
            run_id = next(iter(asked(str(request.url.query), "compare", 1)), "")
        if (underway := self.runs.of_run(run_id, owner)) is not None:
            yield from self._found_again(session, underway)
            return
        refused: list[Node] = []
        default = self.services.agents.default_checkpoint
        waits = replace(session, opening=new_run_id())  # other tabs wait for what is opened from here on
        yield {self.session: waits, self.strip: strip_loading("A document is being opened…")}
        method = self._method_of(run_id, owner) if run_id else ""
        if tab in ("", "sparc") and method == SPARC:
            yield {self.to_sparc: OpenRun(run_id)}
        elif tab in ("", "evidence") and method in SETS:
            yield {self.to_sets: OpenRun(run_id)}
        updates = (
            self._beneath(session, run_id)
            if method == SPARC
            else self._attaching(session, run_id)
            if run_id
            else self.openings.run(session, Opener(self.explorer, session, default).named(doc))
            if doc
            else ()
        )
        for update in updates:
            yield update
            if self.header in update:  # open
                return
            refused = update.get(self.asking.notice) or refused
        sample = list_samples()[0]
        refused = refused or passing(self.services.log_notice)
        is_open = False
        opening = Opener(self.explorer, session, default).sample(sample.key)
        told = {self.page: NOTHING, **({self.asking.notice: refused} if refused else {})}
        for update in self.openings.run(session, opening):
            if self.header in update:
                is_open, session = True, update[self.session]
                update |= self._made_before(session)
                session = update[self.session]
            yield update | (told if is_open else {})
        if not is_open:
            yield {**self._nothing_open(), **({self.asking.notice: refused} if refused else {})}
        elif not session.run:
            for update in self._acting(session, self._usual(session), _anew):
                yield update | told

    def _usual(self, session: Session) -> tuple[Any, ...]:
        """What the controls hold over documents that have just been opened."""
        documents = self.explorer.documents(session)
        return control_values(first_question(documents), self.explorer.usual_config(documents))

    def _made_before(self, session: Session) -> Update:
        """The sample's run, where the visitor's log has it; else what stands there until it is made."""
        documents = self.explorer.documents(session)
        query, config = first_question(documents), self.explorer.usual_config(documents)
        made = self.explorer.made_before(session, query, config)
        if made is None:
            return {self.strip: strip_loading("The agent picks its passages…")}
        run = self.explorer.run_of(made)
        assert run is not None
        shown = {**self.panels.view(made, query, config), **self.panels.figures(run, made)}
        return {**shown, **self.answers.to_read(run), **self.answers.look_again(run)}

    def _found_again(self, session: Session, underway: RunAtWork) -> Iterator[Update]:
        """A run that goes on, on a page that was loaded again."""
        run = self.services.library.runs.get(underway.run_token)
        assert run is not None
        session = replace(self.explorer.at_end(session, run), underway=underway.key)
        query, config = run.trace.started.query, run.config
        controls = self.controls.showing(run.spec, config)
        yield {**self._opened(session), **controls, self.controls.query: query}
        with underway.in_view():
            yield from self._following(underway, session, query, config)

    def _nothing_open(self) -> Update:
        """Where the page had said that a document is being opened."""
        return {self.header: present.document_header(None), self.strip: None}

    def _method_of(self, run_id: str, owner: str | None) -> str:
        """Of a logged run; empty for one that can't be opened, which attaching says."""
        try:
            return self.services.method_of(run_id, owner)
        except UserError:
            return ""

    def _attaching(self, session: Session, run_id: str, n_kept: int | None = None) -> Iterator[Update]:
        """A logged run and its controls; with `kept`, as Back leaves it after that many steps."""

        def opening() -> Opening[Session]:
            attached = replace((yield from self.explorer.attach(run_id, session.owner)), llm=session.llm)
            while n_kept is not None and attached.cursor > n_kept:
                attached = self.explorer.back(attached)
            return attached

        for update in self.openings.run(session, opening()):
            yield {**update, **self._attached(update[self.session])} if self.header in update else update

    def _beneath(self, session: Session, run_id: str) -> Iterator[Update]:
        """The documents of a run of SPARC, which its own tab shows: its steps score no other chunks."""
        question = self.services.own_log.get(run_id, session.owner).record.query

        def opening() -> Opening[Session]:
            attached = yield from self.explorer.attach(run_id, session.owner)
            return Session(owner=session.owner, corpus=attached.corpus, llm=session.llm)

        shown = {self.page: f"run={run_id}", self.controls.query: question}
        for update in self.openings.run(session, opening()):
            yield {**update, **shown} if self.header in update else update

    def _attached(self, session: Session) -> Update:
        """The controls as they were for the run in view."""
        run = self.services.library.runs.get(session.run)
        assert run is not None
        query, config = run.trace.started.query, run.config
        update = {**self.panels.view(session, query, config), **self.panels.figures(run, session)}
        unread = self.answers.to_read(run) if run.method.foreign and not run.others else {}
        lacks = unread or self.answers.look_again(run)
        return {**update, **self.controls.showing(run.spec, config), self.controls.query: query, **lacks}

    def _on_filled(
        self, session: Session, filled: tuple[str, bool] | None, *controls: Any
    ) -> Iterator[Update]:
        """All is there of what could be asked in part: the run in view says so, and is made again unless that
        is not wanted, somebody had a hand in it, or another question is being typed.
        """
        if filled is None or session.filling != filled[0]:
            return
        session = replace(session, filling="")
        documents, run = self.explorer.documents(session), self.explorer.run_of(session)
        yield {**self.panels.shown(session, controls), self.header: present.document_header(documents)}
        if filled[1] and run is not None and run.ended and is_preview_of(run, str(controls[0] or "")):
            yield from self._acting(session, controls, _anew)

    def _opened(self, session: Session) -> Update:
        """What changes with the documents: known questions, controls at their defaults, empty views."""
        documents = self.explorer.documents(session)
        spec = self.services.agents.served(documents.agent.spec)
        query, config = first_question(documents), self.explorer.usual_config(documents)
        return {
            **self.panels.view(session, query, config),
            **self.panels.figures(None, session),
            **self.controls.showing(spec, config),
            self.controls.query: query,
            **self.own.listed(session),
            self.asking.known_questions: known_questions(documents.questions),
            self.chunker: "",
            self.max_tokens: None,
            self.find: "",
            self.asking.progress: [],
            self.agent: self.agents(spec),
        }

    def agents(self, spec: CheckpointSpec | None) -> gr.Dropdown:
        """The agents that there are now; without a spec, the one that is chosen stays."""
        choice = {} if spec is None else {"value": spec.name, "info": present.agent_note(spec)}
        return gr.Dropdown(list(self.services.agents.checkpoints), **choice)

    def in_front(self, session: Session, address: str | None) -> tuple[gr.Dropdown, Any]:
        """When the tab comes to the front: agents, since what is sent while it is hidden may not reach the
        list; and the run in view, where the address may name another tab's. A first visit's stands in none,
        and one at work, or on its way as the page loads, puts itself there.
        """
        documents = self.services.library.corpora.get(session.corpus)
        spec = None if documents is None else self.services.agents.served(documents.agent.spec)
        stays = address in (None, "", NOTHING) or session.underway
        return self.agents(spec), (not stays and self.panels.address(session)) or gr.skip()

    def _on_agent(self, session: Session, agent: str, *controls: Any) -> Iterator[Update]:
        """Another agent; a list only passed with the Tab key must not cost the run in view."""
        documents = self.services.library.corpora.get(session.corpus)
        if documents is not None and documents.agent.spec.name == agent:
            yield {}
        else:
            yield from self._change_agent(session, agent, *controls)

    def _change_agent(self, session: Session, agent: str, *controls: Any) -> Iterator[Update]:
        query = str(controls[0] or "")
        for update in self.openings.run(session, self.explorer.change_agent(session, agent)):
            if self.controls.query in update:
                update[self.controls.query] = query
            yield update

    def _on_lead(self, session: Session, wanted: PageRequest, *controls: Any) -> Iterator[Update]:
        """What only opens documents."""
        match wanted:
            case UseAgent(name):
                yield from self._change_agent(session, name, *controls)
            case OpenRun(run_id, n_kept):
                yield from self._taking_over(session, run_id, n_kept)
            case OpenSample(key):
                yield from self.openings.sample(session, key)
            case OpenGenerated(length):
                yield from self.openings.generated(session, length)

    def _on_wanted(self, session: Session, wanted: PageRequest, *controls: Any) -> Iterator[Update]:
        match wanted:
            case OpenEpisode(evaluation_id, row):
                yield from self._show_episode(session, evaluation_id, row)
            case AskDocument(path, question):
                yield from self._asked(session, path, question)
            case OpenChunk(chunk_id):
                yield self._navigated(session, controls, "open", str(chunk_id))
            case ChangeRun("forbid", chunk_id):
                yield from self._acting(session, controls, Explorer.forbid, chunk_id)
            case ChangeRun("take", chunk_id):
                budget = max(int(controls[1] or 1), session.cursor + 1)
                yield from self._remedied(session, controls, {"budget": budget}, Explorer.take, chunk_id)
            case ChangeRun("longer", steps) if 1 <= steps <= MAX_BUDGET:
                changes = {"budget": steps, "stops": False, "reviews": False}
                yield from self._remedied(session, controls, changes)
            case ChangeRun("cut", max_tokens):
                yield from self._recut(session, max_tokens, controls)
            case ChangeRun("keep"):
                yield from self._remedied(session, controls, {"reviews": False})

    def _remedied(
        self,
        session: Session,
        controls: tuple[Any, ...],
        changes: dict[str, Any],
        action: RunAction | None = None,
        value: int | None = None,
    ) -> Iterator[Update]:
        """Runs with other settings, which the controls show once it has begun."""
        values = dict(zip(vars(self.controls), controls, strict=True)) | changes
        shown = {getattr(self.controls, name): changed for name, changed in changes.items()}
        for update in self._acting(session, tuple(values.values()), action or _anew, value):
            if shown and update.get(self.session, session).run != session.run:
                update, shown = {**update, **shown}, {}
            yield update

    def _recut(self, session: Session, max_tokens: int, controls: tuple[Any, ...]) -> Iterator[Update]:
        """The open documents in chunks of another size, and the same question with the same settings."""
        recut: Session | None = None
        opening = self.openings.run(session, open_recut(self.explorer, session, max_tokens))
        for update in self._as_set(opening, controls):
            recut = update[self.session] if self.header in update else recut
            yield update
        if recut is not None:
            yield from self._acting(recut, controls, _anew)

    def _as_set(self, opening: Iterator[Update], controls: tuple[Any, ...]) -> Iterator[Update]:
        """An opening beside which the question and the settings stay as they are."""
        kept = self.controls.list()
        for update in opening:
            if self.header in update:
                update |= self.panels.shown(update[self.session], controls)
            yield {part: value for part, value in update.items() if part not in kept}

    def _taking_over(self, session: Session, run_id: str, n_kept: int | None) -> Iterator[Update]:
        """A logged run in the place of what is in view."""
        for update in self._attaching(session, run_id, n_kept):
            if self.header in update and update[self.session].run != session.run:  # open
                self.explorer.leave(session)
            yield update

    def _show_episode(self, session: Session, evaluation_id: str, position: int) -> Iterator[Update]:
        """The example of an evaluation's row, opened and run as it was, with the agent's own threshold."""
        episodes: list[ShownEpisode] = []

        def opening() -> Opening[Session]:
            yield OpenProgress("reading", 0, 1)
            episodes.append(self.evaluations.episode(evaluation_id, position, session.owner))
            return (yield from open_episode(self.explorer, session, episodes[0]))

        for update in self.openings.run(session, opening()):
            session = update.get(self.session, session)
            yield update
        if not episodes or session.opening or self.services.library.corpora.get(session.corpus) is None:
            return
        query, config = episodes[0].example.question, episodes[0].config
        spec = self.explorer.documents(session).agent.spec
        yield self.controls.showing(spec, config)
        yield from self._acting(session, control_values(query, config), Explorer.advance)

    def _asked(self, session: Session, path: Path, question: str) -> Iterator[Update]:
        """A document opened and asked, as its agent usually is."""
        keys = {sample.path: sample.key for sample in list_samples()}
        own = replace(session, agent_chosen=False)
        opener = Opener(self.explorer, own, "")
        opened: Session | None = None
        opening = opener.sample(keys[path]) if path in keys else opener.files([path])
        for update in self.openings.run(session, opening):
            if self.header in update:
                opened, update[self.controls.query] = update[self.session], question
            yield update
        if opened is not None:
            config = self.explorer.usual_config(self.explorer.documents(opened))
            yield from self._acting(opened, control_values(question, config), _anew)

    def _run(self, session: Session, *controls: Any) -> Iterator[Update]:
        yield from self._acting(session, controls, Explorer.advance)

    def _step(self, session: Session, *controls: Any) -> Iterator[Update]:
        """In one piece where it is soon done: to send a piece takes as long as to choose a chunk."""
        yield from self._acting(session, controls, Explorer.advance, 1, silent=SOON)

    def _acting(
        self,
        session: Session,
        controls: tuple[Any, ...],
        action: RunAction,
        value: int | None = None,
        notice: gr.HTML | None = None,
        silent: float = AT_ONCE,
    ) -> Iterator[Update]:
        """A view of each event of a run, the figures once it pauses or ends. `silent`: seconds in which
        nothing is shown but its end.

        An error becomes a sentence in `notice`, beside the buttons by default, and changes nothing else.
        """
        try:
            if session.opening:
                raise BadRequest("a document is being opened; wait until it is there, or cancel")
            if not session.corpus:
                raise BadRequest("no document is open yet; wait until it is there")
            query, config = read_controls(controls)
        except UserError as error:
            yield {notice or self.asking.notice: passing(str(error))}
            return
        if waiting := likeliest_first(self.services.library.corpora.get(session.corpus)):
            yield {self.asking.standing: waiting}
        underway = self.runs.start(session, lambda explorer, at: action(explorer, at, query, config, value))
        with underway.in_view():
            # what the page may go on from at once
            yield {self.session: replace(session, underway=underway.key)}
            yield from self._following(underway, session, query, config, silent, notice)

    def _following(
        self,
        underway: RunAtWork,
        session: Session,
        query: str,
        config: EpisodeConfig,
        silent: float = 0.0,
        notice: gr.HTML | None = None,
    ) -> Iterator[Update]:
        """What the page shows of a run at work, which is `in_view`. A visitor who leaves leaves it at work,
        see `RunAtWork`.
        """
        asking, before, is_first = self.asking, session, True
        in_view = self.explorer.run_of(session)
        try:
            n_chunks = self.explorer.documents(session).n_searched
            for now in underway.followed(silent):
                run, update = self.services.library.runs.get(underway.run_token), {}
                if now.session is not None and now.session is not session:
                    session = now.session
                    update = self.panels.view(session, query, config)
                elif is_first:
                    is_new = in_view is not None and in_view.token != underway.run_token and silent != SOON
                    update = {
                        self.session: replace(session, underway=underway.key),
                        self.earlier: earlier(in_view) if is_new else [],
                        asking.standing: [],
                    }
                if is_first:
                    step = gr.update(interactive=silent == SOON)  # which may be pressed many times
                    pale = gr.update(interactive=False)  # what resets in the middle of a run is Cancel
                    update |= {asking.notice: [], asking.run: pale, self.step: step, self.reset: pale}
                if run is not None:
                    update[self.page] = f"run={run.run_id}"
                if not session.filling:
                    n_steps = 0 if run is None else len(run.trace.steps)
                    bar = run_progress(now, config.step_budget, n_steps, n_chunks)
                    update |= {asking.progress: bar, asking.cancel: gr.update(interactive=True)}
                is_first = False
                yield update
        except Exception as error:
            if underway.is_left:
                return
            words = str(error)
            if not isinstance(error, UserError):
                logging.getLogger(__name__).exception("a run failed")
                words = "the run failed; what is shown is kept, and the server's log says why"
            at_end = self._at_end(session)
            shown = {} if is_first else self.panels.view(session, query, config)
            hollow = {} if before.run else {self.strip: None}
            yield {**shown, **hollow, **at_end, notice or asking.notice: passing(words)}
            return
        if underway.is_left:
            return
        run = self.explorer.run_of(session)
        if run is not None and run.token == underway.run_token:
            run = self.services.waited(run, underway.seconds)
        yield {**self._at_end(session), **self.panels.figures(run, session), **self.answers.to_read(run)}
        self.services.log.flush([] if run is None else [run.run_id])

    def _at_end(self, session: Session) -> Update:
        """Nothing of the page is at work any more."""
        run = self.explorer.run_of(session)
        return {
            self.session: replace(session, underway=""),
            self.earlier: [],
            self.asking.status: present.standing_at(run, session),
            self.reset: gr.update(interactive=run is not None),
            **self._free(session),
        }

    def _free(self, session: Session) -> Update:
        """Nothing is at work but what is opened, or still embeds."""
        if session.opening:
            return {}
        free = self.openings.free()
        if not session.filling:
            return free
        return {part: free[part] for part in (self.asking.run, self.step)}

    def _back(self, session: Session, *controls: Any) -> Update:
        return {**self.panels.shown(self.explorer.back(session), controls), **self._free(session)}

    def _reset(self, session: Session, *controls: Any) -> Update:
        return {**self.panels.shown(self.explorer.reset(session), controls), **self._free(session)}

    def _cancelled(self, session: Session, *controls: Any) -> Update:
        self.runs.cancel(session)
        words = passing("Cancelled; what was done so far is kept.", "info")
        update = {self.asking.progress: [], self.asking.notice: words, **self.openings.busy(False)}
        update |= self.openings.agent_of(session)
        session = replace(self.openings.cancel(session), underway="")
        if session.corpus:
            return {**self.panels.shown(session, controls), **update}
        return {**update, **self._nothing_open(), self.session: session}

    def _settled(self, session: Session) -> Update:
        """Nothing is opened, unless something else is by now, and no language model is asked."""
        opens = session.opening or self.openings.is_filling(session)
        cited = self.panels.cited(self.explorer.run_of(session), session)
        quiet = {self.answers.said: Said()}  # what was on its way would make Cancel ready again
        return {**cited, **quiet} if opens else {**self.openings.free(), **cited, **quiet}

    def _on_tree(self, session: Session, event: gr.EventData, *controls: Any) -> Update:
        run, (action, argument) = self.explorer.run_of(session), clicked(event)
        if action in CHANGES and argument.isdecimal():
            return {self.wanted: ChangeRun(action, int(argument))}
        if action == "agent":
            return {self.wanted: UseAgent(argument)}
        if action == "reads":
            session = replace(session, reads="evidence" if argument == "evidence" else "text")
            return self.panels.reading_only(session)
        if action == "compare" and run is not None:
            asked = run.trace.started.query, run.config
            return {self.to_compare: FromExplore(session.corpus, *asked, new_run_id())}
        return self._navigated(session, controls, action, argument)

    def _on_share(
        self, session: Session, shown: str | None, event: gr.EventData, request: gr.Request
    ) -> Iterator[Update]:
        """Where the run in view is found from now on, until it is asked for again; in public mode for others,
        too, once its owner has said so again; and the run as a page. `shown`: what stands there, packed.
        """
        run, (action, argument) = self.explorer.run_of(session), clicked(event)
        if run is not None and action == PAGE:
            yield from self.sharing.written(
                lambda folder: self.experiments.export([run.run_id], "html", True, session.owner, folder)
            )
            return
        is_open = '"keep"' in (shown or "")
        if run is None or action not in ("share", "share-now") or (action == "share" and is_open):
            yield {self.sharing.said: []}
            return
        if action == "share-now" and argument == run.run_id:
            self.experiments.share(run.run_id, session.owner)
        open_to_all = run.others or not self.services.settings.public
        shared = open_to_all or self.experiments.run(run.run_id, session.owner).shared
        address = str(request.headers.get("origin", ""))
        yield {
            self.sharing.said: sharing(run.run_id, address, asks=not shared),
            self.sharing.file: gr.DownloadButton(visible=False),
        }

    def _on_reading(self, session: Session, event: gr.EventData, *controls: Any) -> Iterator[Update]:
        action, argument = clicked(event)
        if action in ("force", "forbid") and argument.isdecimal():
            act_on = Explorer.force if action == "force" else Explorer.forbid
            yield from self._acting(session, controls, act_on, int(argument), self.reading_notice, SOON)
        else:
            yield self._navigated(session, controls, action, argument)

    def _on_standing(self, session: Session, event: gr.EventData, *controls: Any) -> Iterator[Update]:
        action, argument = clicked(event)
        if action == "again":
            yield from self._acting(session, controls, _anew)
        else:
            yield self._navigated(session, controls, action, argument)

    def _on_rest(self, session: Session, event: gr.EventData, *controls: Any) -> Iterator[Update]:
        if clicked(event)[0] == "rest":
            opening = self.openings.run(session, self.explorer.embed_the_rest(session))
            yield from self._as_set(opening, controls)

    def _on_strip(self, session: Session, event: gr.EventData, *controls: Any) -> Update:
        data = event._data if isinstance(event._data, dict) else {}
        if "look" in data:
            return self._navigated(session, controls, "look", str(data["look"]))
        return self._navigated(session, controls, "open", str(data.get("chunk_id")))

    def _navigated(self, session: Session, controls: tuple[Any, ...], action: str, argument: str) -> Update:
        """Looking around: no run goes on. Arguments come from a browser: out of bounds, nothing happens."""
        documents, run = self.services.library.corpora.get(session.corpus), self.explorer.run_of(session)
        if documents is None or not argument.isdecimal():
            return {}
        value = int(argument)
        if action in ("look", "fold") and run is not None and 1 <= value <= run.trace.n_looks:
            step = run.trace.steps[value - 1] if value <= len(run.trace.steps) else None
            chunk_id = step.chunk_id if step else session.chunk_id
            return self.panels.shown(replace(session, look=value, chunk_id=chunk_id, anchor=None), controls)
        if action == "why" and run is not None and 1 < value <= session.cursor:
            shown = self._navigated(session, controls, "look", argument)
            without = self.explorer.without_each(run, value)
            return {**shown, self.steps: present.steps(run, shown[self.session], without)}
        if value < len(documents.corpus):
            if action == "open":
                return self.panels.reading_only(replace(session, chunk_id=value, anchor=None, reads="text"))
            if action == "page":
                return self.panels.reading_only(replace(session, anchor=value, reads="text"))
            if action == "allow":
                return self.panels.shown(self.explorer.allow(session, value), controls)
            if action in (BELONGS, DOES_NOT):
                return self._marked(session, controls, value, action == BELONGS)
        return {}

    def _marked(self, session: Session, controls: tuple[Any, ...], chunk_id: int, belongs: bool) -> Update:
        run = self.explorer.run_of(session)
        query = run.trace.started.query if run else str(controls[0] or "")
        try:
            session = self.own.mark(session, query, chunk_id, belongs)
        except UserError as error:
            return {self.asking.notice: passing(str(error))}
        return {**self._counted_anew(session, *controls), **self.own.listed(session)}

    def _counted_anew(self, session: Session, *controls: Any) -> Update:
        """The page once other chunks belong to the answer, or another answer is known: a run of that question
        counts them from now on, and what it lacks is looked into again.
        """
        run = self.explorer.run_of(session)
        if run is None:
            return self.panels.shown(session, controls)
        again = self.services.relabel(run)
        lacks = self.answers.look_again(run) if again is not run else {}
        return {**self.panels.shown(session, controls), **lacks}

    def _find(self, session: Session, wanted: str) -> Update:
        workspace = self.explorer.documents(session).workspace
        chunk_id, words = find_chunk(workspace, wanted or "", session.chunk_id)
        session = replace(session, chunk_id=chunk_id, anchor=None, reads="text")
        return {**self.panels.reading_only(session), self.reading_notice: notice(words, "info")}

    def _on_controls(self, session: Session, *controls: Any) -> Update:
        if not session.corpus:
            return {}  # an agent's settings come with its documents
        query, config = read_controls(controls)
        standing = {self.asking.standing: self.panels.standing(session, config, query)}
        return {**standing, **self.panels.line(session, config)}

    def _on_near(self, session: Session) -> Update:
        session = replace(session, draws=True)
        return {self.session: session, **self.panels.figures(self.explorer.run_of(session), session)}

    def _find_strip(self, token: str) -> RunStrip | None:
        run = self.services.library.runs.get(token)
        return None if run is None else RunStrip(run)


def _anew(
    explorer: Explorer, session: Session, query: str, config: EpisodeConfig, _: None
) -> Generator[Session]:
    return explorer.advance(explorer.reset(session), query, config, None)


def is_preview_of(run: RunInView, query: str) -> bool:
    """Whether a run over a part answers this question, as the agent alone would."""
    return bool(run.config.searched) and not run.config.forced and run.asks(query)
