"""What the buttons of Explore do.

Functions from one session to the next; an opening comes to one, a run yields one per event. A logged run
never changes. Run and Step continue a run in progress on the same question, where steps that Back took away
come back as they were; with other settings they go on from the cursor as a child run; else they begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from types import MappingProxyType

from app.services.in_view import Labelled, OpenDocuments, RunInView
from app.services.kept_open import kept_documents
from app.services.library import OpenOrder
from app.services.session import Session
from app.services.shared import Services
from core.base.config import ChunkConfig, EpisodeConfig
from core.base.errors import BadRequest, Cancelled
from core.base.events import Event, RunStarted
from core.base.progress import mapped
from core.base.types import Document, Workspace
from core.corpus.opening import Opening, OpenProgress
from core.methods.qrag.agent import Agent
from core.runs.whatif.influence import without_each
from core.views.draw.words import counted

LEAST_WAIT = 5.0
"""Seconds of embedding left for which a part is offered: a page that changes twice within them is no help."""
RUNS_AT_ONCE = 3
"""Runs that go on at once: one is scored, another's page is drawn, a third waits for the log."""


def open_in_explore(services: Services, session: Session) -> OpenDocuments:
    """The documents that other tabs work on. Raises BadRequest."""
    if session.opening:
        raise BadRequest("a document is being opened in Explore; wait until it is there, or cancel it")
    documents = services.library.corpora.get(session.corpus)
    if documents is None or documents.owner != session.owner:
        raise BadRequest("no document is open; open one in Explore")
    if documents.searched:
        raise BadRequest("a document is being embedded in Explore; wait until all of it is there")
    return documents


@dataclass(frozen=True, kw_only=True)
class Underway(OpenProgress):
    """Progress of documents that can be asked in part."""

    session: Session
    """Of the page that they are opened for."""
    order: OpenOrder


Offer = tuple[OpenProgress, Session | None]
"""Progress, and the session to ask what is there by then; None where it is not worth a change of the page."""


@dataclass(frozen=True)
class Explorer:
    """The actions, over shared services."""

    services: Services
    begun: Callable[[str], None] = lambda _: None
    """Told the token of a run that goes on."""
    reads: Callable[[int, int], None] | None = None
    """See `Episode.hears`."""

    def documents(self, session: Session) -> OpenDocuments:
        """What this visitor has open. Raises BadRequest."""
        documents = self.services.library.corpora.get(session.corpus)
        if documents is None or documents.owner != session.owner:
            raise BadRequest("the document is not open any more; open it again, its vectors are kept")
        return documents

    def usual_config(self, documents: OpenDocuments) -> EpisodeConfig:
        """How a run over documents begins: the agent's defaults, its budget at most their chunks."""
        spec = self.services.agents.served(documents.agent.spec)
        return spec.episode_config(step_budget=min(spec.step_budget, documents.n_searched))

    def run_of(self, session: Session) -> RunInView | None:
        """The run that this visitor has in view."""
        run = self.services.library.runs.get(session.run)
        return run if run is not None and run.owner == session.owner else None

    def without_each(self, run: RunInView, step: int) -> tuple[float, ...]:
        """Q of the choice at a 1-based step without each choice before it: why it was chosen."""
        documents, query = run.documents, run.trace.started.query
        return without_each(documents.agent, query, documents.corpus, run.config, run.trace.chosen[:step])

    def open(
        self,
        session: Session,
        documents: Sequence[Document],
        agent_name: str,
        configs: Sequence[ChunkConfig] | None = None,
        label: Callable[[Workspace], tuple[Labelled, ...]] = lambda _: (),
        spent: Mapping[str, float] = MappingProxyType({}),
    ) -> Opening[Session]:
        """A fresh session over other documents. `spent`: milliseconds of the stages before."""
        order = OpenOrder(self.services.agents.load(agent_name), session.owner, label)
        opening = self.services.library.open(order, documents, configs, spent)
        return (yield from self._freshly(replace(session, forbidden=()), order, opening))

    def open_again(self, session: Session, name: str) -> Opening[Session]:
        """A fresh session over documents that were open, by `Library.name_of`. Raises BadRequest."""
        library = self.services.library
        for documents in library.corpora.all():
            if documents.owner == session.owner and library.name_of(documents) == name:
                return self.fresh(session, documents)
        found = kept_documents(name, session.owner)
        if found is None:
            raise BadRequest(
                "the document that was open here is closed by now; open it again, its vectors are kept"
            )
        kept, workspace = found
        agent = self.services.agents.load(kept.checkpoint)
        order = OpenOrder(agent, session.owner, lambda _: kept.questions, kept.token)
        return (yield from self._freshly(session, order, library.reopen(order, workspace)))

    def change_agent(self, session: Session, agent_name: str) -> Opening[Session]:
        """The same chunks under another agent; the run in view belongs to the old one and leaves."""
        agent = self.services.agents.load(agent_name)
        return (yield from self._reopened(replace(session, agent_chosen=True), agent))

    def embed_the_rest(self, session: Session) -> Opening[Session]:
        """The same chunks under the same agent, all of them."""
        return (yield from self._reopened(session, self.documents(session).agent))

    def _reopened(self, session: Session, agent: Agent) -> Opening[Session]:
        now = self.documents(session)
        order = OpenOrder(agent, session.owner, lambda _: now.questions)
        return self._freshly(session, order, self.services.library.reopen(order, now.workspace))

    def _freshly(
        self, session: Session, order: OpenOrder, opening: Opening[OpenDocuments]
    ) -> Opening[Session]:
        """A fresh session over what is opened; events say what it takes to ask a part of it meanwhile."""

        def askable(event: OpenProgress) -> OpenProgress:
            return event if event.so_far is None else Underway(**vars(event), session=session, order=order)

        return self.fresh(session, (yield from mapped(opening, askable)))

    def offering(self, opening: Opening[Session]) -> Generator[Offer, None, Session]:
        """The events of an opening; once the rest takes long, with the session to ask what is there."""
        offered: Session | None = None

        def offer(event: OpenProgress) -> Offer:
            nonlocal offered
            if isinstance(event, Underway) and (offered or (event.seconds_left or 0.0) > LEAST_WAIT):
                assert event.so_far is not None
                part = self.services.library.take_part(event.order, event.so_far)
                offered = offered or self.fresh(event.session, part)
            return event, offered

        return mapped(opening, offer)

    def fresh(self, session: Session, opened: OpenDocuments) -> Session:
        """A session over documents without a run; the one in view leaves."""
        self.leave(session)
        if not opened.searched:
            self.services.library.keep(opened)
        return Session(
            corpus=opened.token,
            anchor=0,
            forbidden=session.forbidden,
            agent_chosen=session.agent_chosen,
            owner=session.owner,
            llm=session.llm,
        )

    def attach(self, run_id: str, owner: str | None = None) -> Opening[Session]:
        """A visitor's session at the end of a logged run. Raises RunNotFound unless it's theirs or shared."""
        run = yield from self.services.attach(run_id, owner)
        steps = len(run.trace.steps)
        return replace(self.at_end(Session(owner=owner), run), reads="evidence" if steps else "text")

    def made_before(self, session: Session, query: str, config: EpisodeConfig) -> Session | None:
        """At the end of the run that the log has of a question over what is open, if it has one."""
        run = self.services.made_before(self.documents(session), query, config)
        return None if run is None else self._at(session, run, len(run.trace.steps))

    def advance(
        self, session: Session, query: str, config: EpisodeConfig, steps: int | None
    ) -> Generator[Session]:
        """Takes `steps` more steps (None: to the end), a session an event. Closing it cancels the run."""
        documents, run = self.documents(session), self._in_progress(session, query)
        searched = documents.searched if run is None else run.config.searched
        config = config.with_(forbidden=session.forbidden, searched=searched)
        if run is not None and same_settings(run.config, config):
            while session.cursor < len(run.trace.steps):  # what Back took away
                session = self._at(session, run, session.cursor + 1)
                yield session
                if steps == 1:
                    return
            if run.trace.stopped is not None:
                return
            if not run.ended:
                yield from self._go_on(session, run, steps)
                return
        ended = self._in_progress(session, query, finished_too=True)
        if run is None and ended is not None and steps == 1:
            if same_settings(ended.config, config):
                raise BadRequest(
                    "this run has stopped; change a setting or go Back to go on from it, or press Run for a"
                    " new one"
                )
            run = ended  # with other settings, a larger budget say, there may be more to take
        n_kept = 0 if run is None or config.beam_width > 1 else min(session.cursor, config.step_budget)
        yield from self._begin(session, query, config, run if n_kept else None, n_kept, steps)

    def force(self, session: Session, query: str, config: EpisodeConfig, chunk_id: int) -> Generator[Session]:
        """The person chooses the next chunk."""
        run = self._in_progress(session, query, finished_too=True)
        n_kept = 0 if run is None else session.cursor
        if n_kept >= config.step_budget:
            budget = f"budget of {counted(config.step_budget, 'step')}"
            raise BadRequest(f"the {budget} is used up; go Back a step or raise the budget")
        if run is not None and chunk_id in run.trace.chosen[:n_kept]:
            raise BadRequest(f"chunk {chunk_id} is already chosen; choose another one")
        session = self.allow(session, chunk_id)
        config = config.with_(forced=((n_kept + 1, chunk_id),), forbidden=session.forbidden)
        yield from self._begin(session, query, config, run if n_kept else None, n_kept, 1)

    def take(self, session: Session, query: str, config: EpisodeConfig, chunk_id: int) -> Generator[Session]:
        """The person chooses the next chunk, and the agent goes on from there until it stops."""
        latest = session
        for latest in self.force(session, query, config, chunk_id):
            yield latest
        run = self.run_of(latest)
        if run is not None and run.trace.stopped is None:
            yield from self.advance(latest, query, config, None)

    def forbid(
        self, session: Session, query: str, config: EpisodeConfig, chunk_id: int
    ) -> Generator[Session]:
        """Forbids a chunk; a run that chose it forks before that and shows what comes instead."""
        if not 0 <= chunk_id < len(self.documents(session).corpus):
            raise BadRequest(f"chunk {chunk_id} does not exist; choose one of the document's chunks")
        session = replace(session, forbidden=tuple(sorted({*session.forbidden, chunk_id})))
        run = self._in_progress(session, query, finished_too=True)
        if run is None or chunk_id not in run.trace.chosen[: session.cursor]:
            yield session
            return
        n_kept = 0 if config.beam_width > 1 else run.trace.chosen.index(chunk_id)  # a plan begins anew
        steps = None if run.trace.stopped is not None else 1
        session, config = replace(session, cursor=n_kept), config.with_(forbidden=session.forbidden)
        yield from self._begin(session, query, config, run if n_kept else None, n_kept, steps)

    def allow(self, session: Session, chunk_id: int) -> Session:
        """Takes a forbidding back."""
        return replace(session, forbidden=tuple(other for other in session.forbidden if other != chunk_id))

    def back(self, session: Session) -> Session:
        """One step fewer; the run itself stays as it was logged."""
        run = self.run_of(session)
        return session if run is None or session.cursor == 0 else self._at(session, run, session.cursor - 1)

    def reset(self, session: Session) -> Session:
        """No run in view; documents and forbidden chunks stay."""
        self.leave(session)
        return replace(session, run="", cursor=0, look=1, anchor=None)

    def _in_progress(self, session: Session, query: str, *, finished_too: bool = False) -> RunInView | None:
        """The run in view, if it is about this question and documents and its cursor is not at its end."""
        run = self.run_of(session)
        if run is None or not run.asks(query) or run.documents.token != session.corpus:
            return None
        at_end = run.trace.stopped is not None and session.cursor == len(run.trace.steps)
        return run if finished_too or not at_end else None

    def _begin(
        self,
        session: Session,
        query: str,
        config: EpisodeConfig,
        parent: RunInView | None,
        n_kept: int,
        steps: int | None,
    ) -> Generator[Session]:
        documents = self.documents(session)
        if documents.searched:
            documents = self.services.library.with_likeliest(documents, query)
        config = config.with_(searched=documents.searched)
        kept = parent.trace.chosen[:n_kept] if parent else ()
        if parent is not None and not parent.is_made_by(documents.agent):
            config, steps = _from_scratch(config, kept), None if steps is None else steps + n_kept
            kept, n_kept = (), 0
        events = documents.agent.run(query, documents.corpus, config, kept, self.reads)
        started = next(events)  # what can't be run is refused here
        assert isinstance(started, RunStarted)
        self.leave(session)
        run = self.services.begin_run(started, documents, parent, n_kept if parent else None)
        session = replace(session, run=run.token, cursor=n_kept, look=n_kept + 1)
        yield from self._drive(session, run, events, steps, has_begun=True)

    def _go_on(self, session: Session, run: RunInView, steps: int | None) -> Generator[Session]:
        about = run.trace.started.query, run.documents.corpus, run.config, run.trace.chosen
        events = run.documents.agent.run(*about, self.reads)
        next(events)  # the run has started before
        yield from self._drive(session, run, events, steps)

    def _drive(
        self,
        session: Session,
        run: RunInView,
        events: Generator[Event],
        steps: int | None,
        *,
        has_begun: bool = False,
    ) -> Generator[Session]:
        """Takes events from the agent into the run, `steps` or all; left early, it is closed as cancelled."""
        if run.config.beam_width > 1:
            steps = None
        enough = run.config.step_budget if steps is None else len(run.trace.steps) + steps
        self.begun(run.token)
        with self.services.driving(run, has_begun=has_begun), closing(events):
            try:
                for event in events:
                    assert not isinstance(event, RunStarted)
                    run = self.services.add_event(run, event)
                    n_steps = len(run.trace.steps)
                    session = self._at(session, run, n_steps)
                    yield session
                    if enough <= n_steps < run.config.step_budget:
                        return
            except (GeneratorExit, Cancelled):
                self.services.end_run(run, "cancelled")
                raise
            except Exception as error:
                self.services.end_run(run, "failed", str(error))
                raise

    def _at(self, session: Session, run: RunInView, cursor: int) -> Session:
        """The session with the first `cursor` steps kept, showing the look that chose the last of them."""
        chunk_id = run.trace.chosen[cursor - 1] if cursor else None
        at = replace(session, run=run.token, ran=True, cursor=cursor, look=max(1, cursor))
        return replace(at, chunk_id=chunk_id, anchor=None, reads="evidence")

    def at_end(self, session: Session, run: RunInView) -> Session:
        """The session with all that a run has come to."""
        at = replace(session, corpus=run.documents.token, forbidden=run.config.forbidden)
        return self._at(at, run, len(run.trace.steps))

    def leave(self, session: Session) -> None:
        """Nobody will go on with the run in view."""
        run = self.run_of(session)
        if run is not None:
            self.services.leave_run(run.token)


def _from_scratch(config: EpisodeConfig, kept: Sequence[int]) -> EpisodeConfig:
    """The configuration that chooses again what a run keeps of one that scored otherwise: scores of two kinds
    in one run mean nothing.
    """
    later = (pair for pair in config.forced if pair[0] > len(kept))
    forbidden = tuple(chunk_id for chunk_id in config.forbidden if chunk_id not in kept)
    return config.with_(forced=(*enumerate(kept, start=1), *later), forbidden=forbidden)


def same_settings(a: EpisodeConfig, b: EpisodeConfig) -> bool:
    """Whether two runs would go alike, a person's choices aside."""
    return a.with_(forced=()) == b.with_(forced=())
