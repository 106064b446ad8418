"""Documents on their way to the page.

What opens them, their progress, and what can be asked while they are embedded. What was open stays until the
new documents are there, and whenever they fail or are cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr

from app.components.tree import clicked, packs
from app.pages.explore.at_work import earlier, part_progress
from app.pages.explore.layout import ExploreLayout
from app.pages.explore.view import agent_note
from app.pages.widgets.notices import notice, passing, preparing, progress
from app.pages.widgets.work import QUIET, Update
from app.services.explorer import Explorer, Offer
from app.services.opener import Opener
from app.services.session import Session
from core.base.progress import finish
from core.corpus.opening import Opening, OpenProgress
from core.ingest import ReadingConfig
from core.runs.log import new_run_id


class Openings:
    """Handlers of the panel that changes the documents, and what other handlers open documents with."""

    def __init__(
        self,
        page: ExploreLayout,
        explorer: Explorer,
        session: gr.State,
        filled: gr.State,
        opened: Callable[[Session], Update],
        leave: Callable[[Session], Session],
    ) -> None:
        """filled: hears when all is there of what could be asked in part. opened: the page of a session.
        leave: the session of a page whose run, if one is under way, is to be seen no more.
        """
        self._page, self._explorer, self._session, self._filled = page, explorer, session, filled
        self._opened, self._leave = opened, leave
        self._wanted: set[str] = set()
        """Documents that are being opened for pages that still wait for them."""
        self._again: set[str] = set()
        """Those of them at whose end the run in view is to be made again, over all of them."""

    def wire(self, opens: dict[str, Any]) -> list[gr.events.Dependency]:
        """Returns what Cancel ends. opens: outputs and line of what opens documents."""
        page = self._page
        settings = [page.agent, page.chunker, page.max_tokens, page.encoding, page.keep_side_matter]
        self._closes_panel(page.keep)
        panel = [page.change_panel, page.change_notice]
        opened = packs(lambda: {page.change_panel: gr.Column(visible=True), page.change_notice: []})
        page.change.click(opened, None, panel, **QUIET)
        page.asking.progress.select(self._on_progress, self._session, None, api_visibility="private")
        ways = (
            (page.open_sample, page.sample, self._opener(_sample)),
            (page.open_files, page.files, self._opener(Opener.files)),
            (page.add_files, page.files, self._opener(Opener.files, adds=True)),
            (page.open_pasted, page.pasted, self._opener(Opener.pasted)),
            (page.add_pasted, page.pasted, self._opener(Opener.pasted, adds=True)),
            (page.open_generated, page.length, self._opener(Opener.generated)),
        )
        return [
            self._closes_panel(button).then(handler, [self._session, source, *settings], **opens)
            for button, source, handler in ways
        ]

    def _closes_panel(self, button: gr.Button) -> gr.events.Dependency:
        """An open panel would lie over progress, Cancel and errors."""
        return button.click(lambda: gr.Column(visible=False), None, self._page.change_panel, **QUIET)

    def _opener(self, way: Callable[..., Opening[Session]], *, adds: bool = False) -> Callable[..., Any]:
        """The handler of a button. adds: behind the documents that are open, and the question stays."""

        def handler(
            session: Session,
            source: Any,
            agent: str,
            chunker: str,
            max_tokens: float | None,
            encoding: str,
            keep_side_matter: bool,
        ) -> Iterator[Update]:
            beside = self._explorer.services.library.corpora.get(session.corpus) if adds else None
            reading = ReadingConfig(encoding=encoding, keep_side_matter=keep_side_matter)
            opener = Opener(self._explorer, session, agent, chunker, max_tokens, reading, beside)
            for update in self.run(session, way(opener, source), from_panel=True):
                if adds:
                    update.pop(self._page.controls.query, None)
                yield update

        return packs(handler)

    def run(
        self, session: Session, opening: Opening[Session], *, from_panel: bool = False
    ) -> Iterator[Update]:
        """Progress of an opening, then the fresh page. from_panel: it shows errors, too."""
        asking, token, can_ask = self._page.asking, new_run_id(), False

        def going(offer: Offer) -> Update:
            nonlocal can_ask
            event, part = offer
            if token not in self._wanted:
                return self.free()  # what comes late must not undo what Cancel has shown
            if part is None:
                return {asking.progress: progress(event)}
            first, can_ask = not can_ask, True
            if first:
                self._again.add(token)
            return self._underway(event, replace(part, filling=token), first=first)

        def done(opened: Session) -> Iterable[Update]:
            if token not in self._wanted:
                yield self.free()
            elif can_ask:
                yield {**self.free(), self._filled: (token, token in self._again)}
            else:
                yield {**self._opened(opened), **self.busy(False), self._page.files: None}

        def failed(words: str) -> Update:
            before = {self._session: replace(session, opening=""), **self.agent_of(session)}
            settled = {**self.free(), **({} if can_ask else before)}
            if from_panel:
                panel = gr.Column(visible=True)
                return {**settled, self._page.change_panel: panel, self._page.change_notice: notice(words)}
            return {**settled, asking.notice: passing(words)}

        session = self._leave(session)  # the page is to show something else
        self._wanted.discard(session.filling)
        self._wanted.add(token)
        try:
            yield {
                self._session: replace(session, opening=token),
                asking.progress: preparing(),
                asking.notice: [],
                self._page.change_notice: [],
                self._page.earlier: earlier(self._explorer.run_of(session)),
                self._page.reset: gr.update(interactive=bool(session.run)),
                **self.busy(True),
            }
            work = self._explorer.offering(opening)
            yield from asking.work.follow(partial(finish, work), going, done, "opening documents", failed)
        finally:
            self._wanted.discard(token)
            self._again.discard(token)

    def sample(self, session: Session, key: str) -> Iterator[Update]:
        """A sample, as from the panel."""
        yield from self.run(session, _sample(Opener(self._explorer, session, ""), key), from_panel=True)

    def generated(self, session: Session, length: int) -> Iterator[Update]:
        """A generated story, as from the panel."""
        opener = Opener(self._explorer, replace(session, agent_chosen=False), "")
        yield from self.run(session, opener.generated(length))

    def _underway(self, event: OpenProgress, session: Session, *, first: bool) -> Update:
        """What can be asked while documents are embedded, and how far they are."""
        page = self._page
        ready = gr.update(interactive=True)
        bar = part_progress(event, session.filling in self._again)
        update = {page.asking.progress: bar, page.asking.cancel: ready}
        if not first:
            return update
        # files that stay in their box would be opened again with the next
        return {**self._opened(session), page.asking.run: ready, page.step: ready, page.files: None, **update}

    def _on_progress(self, session: Session, event: gr.EventData) -> None:
        """Whether the run in view is made again at the end, which the next progress shows."""
        if clicked(event)[0] == "at-end" and self.is_filling(session):
            self._again ^= {session.filling}

    def is_filling(self, session: Session) -> bool:
        """Whether the rest of what can be asked in part is on its way."""
        return session.filling in self._wanted

    def cancel(self, session: Session) -> Session:
        """The session of a page that waits for nothing any more."""
        self._wanted -= {session.opening, session.filling}
        return replace(session, opening="", filling="")

    def busy(self, opening_documents: bool) -> Update:
        """Nothing runs over documents that are about to be replaced."""
        asking, ready = self._page.asking, gr.update(interactive=not opening_documents)
        return {
            asking.cancel: gr.update(interactive=opening_documents),
            asking.run: ready,
            self._page.step: ready,
            **dict.fromkeys(self._page.openers, ready),
        }

    def agent_of(self, session: Session) -> Update:
        """The agent of what is open, where another one was chosen in vain."""
        services = self._explorer.services
        documents = services.library.corpora.get(session.corpus)
        if documents is None:
            return {}
        spec = services.agents.served(documents.agent.spec)
        return {self._page.agent: gr.update(value=spec.name, info=agent_note(spec))}

    def free(self) -> Update:
        """Nothing is opened."""
        return {self._page.asking.progress: [], self._page.earlier: [], **self.busy(False)}


def _sample(opener: Opener, key: str) -> Opening[Session]:
    """A sample comes with the agent that it was written for."""
    return replace(opener, session=replace(opener.session, agent_chosen=False)).sample(key)
