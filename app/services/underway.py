"""Runs at work, each in a thread that its page follows.

A page that is loaded again finds its run going on. One that nobody follows any more ends after a while.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from app.services.explorer import RUNS_AT_ONCE, Explorer
from app.services.session import Session
from core.base.errors import Cancelled

LEFT_SECONDS = 60.0
"""A run goes on for so long without a page: as long as a closed page keeps what it had open."""
Action = Callable[[Explorer, Session], Generator[Session]]
"""One of the explorer's actions from a visitor's session, another session an event."""


@dataclass(frozen=True)
class HowFar:
    """How far a run is."""

    session: Session | None = None
    """After its last event; None before the first."""
    n_read: int = 0
    """Chunks that were read again for the next step."""
    n_to_read: int = 0
    """0: none are."""


class RunAtWork:
    """One action at work. `followed` tells of it until it ends."""

    def __init__(self, key: str, owner: str | None) -> None:
        self.key, self.owner = key, owner
        self.run_token = ""
        """Of the run, once it has begun."""
        self.began = time.monotonic()
        self._now, self._n_changes = HowFar(), 0
        self.is_over, self._cancelled = False, False
        self.is_left = False
        """Whether its page shows something else, which what comes of it must not undo."""
        self._failure: Exception | None = None
        self._changed = threading.Condition()
        self._n_followers, self._was_followed = 0, False  # who starts it may never come
        self._left_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since it was asked for."""
        return time.monotonic() - self.began

    def begun(self, run_token: str) -> None:
        """The run that it drives."""
        self.run_token = run_token

    def reads(self, done: int, total: int) -> None:
        """So many chunks of a step were read again. Raises Cancelled where nobody waits for it any more."""
        if self._is_unwanted():
            raise Cancelled
        self._tell(replace(self._now, n_read=done, n_to_read=total))

    def work(self, action: Action, explorer: Explorer, session: Session, turn: threading.Semaphore) -> None:
        """Takes the action to its end."""
        session = replace(session, underway=self.key)
        try:
            driven = replace(explorer, begun=self.begun, reads=self.reads)
            with turn, closing(action(driven, session)) as sessions:
                if self._is_unwanted():  # while it waited for its turn
                    raise Cancelled
                for session in sessions:
                    self._tell(HowFar(session))
                    if self._is_unwanted():
                        break
        except Cancelled:
            pass
        except Exception as error:
            self._failure = error
        finally:
            with self._changed:
                is_alone = (self._was_followed and not self._n_followers) or self._is_unwanted()
            try:
                if is_alone and self.run_token:
                    explorer.services.leave_run(self.run_token)
            finally:
                with self._changed:
                    self.is_over = True
                    self._changed.notify_all()

    def followed(self, silent: float = 0.0) -> Iterator[HowFar]:
        """How far it is, at each change, an end within `silent` seconds first, until its page leaves it.
        Raises what it failed with.
        """
        seen = -1
        with self._changed:
            self._changed.wait_for(lambda: self.is_over or self.is_left, silent)
        while not self.is_left:
            with self._changed:
                if not self.is_over and self._n_changes == seen:
                    self._changed.wait(0.5)
                over, now, is_new = self.is_over, self._now, self._n_changes != seen
                seen = self._n_changes
            if over and self._failure is not None:
                raise self._failure
            if is_new:
                yield now
            if over:
                return

    @contextmanager
    def in_view(self) -> Iterator[None]:
        """Held by a page as long as it shows what comes of it."""
        with self._changed:
            self._n_followers, self._was_followed = self._n_followers + 1, True
        try:
            yield
        finally:
            with self._changed:
                self._n_followers, self._left_at = self._n_followers - 1, time.monotonic()
                self._changed.notify_all()

    def leave(self, wait: float = 3.0) -> None:
        """Ends it unseen; waits for what its page is being told at the moment, but not for long."""
        self.is_left = self._cancelled = True
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._n_followers, wait)

    def cancel(self, wait: float = 3.0) -> None:
        """Ends it at its next event; waits for that, but not for long."""
        self._cancelled = True
        with self._changed:
            self._changed.wait_for(lambda: self.is_over, wait)

    def _is_unwanted(self) -> bool:
        left = not self._n_followers and time.monotonic() - self._left_at > LEFT_SECONDS
        return self._cancelled or left

    def _tell(self, now: HowFar) -> None:
        with self._changed:
            self._now, self._n_changes = now, self._n_changes + 1
            self._changed.notify_all()


class RunsUnderway:
    """Those of all pages."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._turn = threading.Semaphore(RUNS_AT_ONCE)
        self._all: dict[str, RunAtWork] = {}
        self._changing = threading.Lock()

    def start(self, session: Session, action: Action) -> RunAtWork:
        """Has a thread take an action of a visitor. Its sessions name it as `underway`."""
        underway = RunAtWork(secrets.token_hex(8), session.owner)
        with self._changing:
            at_work = {key: other for key, other in self._all.items() if not other.is_over}
            self._all = {**at_work, underway.key: underway}
        arguments = action, self._explorer, session, self._turn
        threading.Thread(target=underway.work, args=arguments, daemon=True).start()
        return underway

    def of_run(self, run_id: str, owner: str | None) -> RunAtWork | None:
        """What a visitor's run is driven by, while it is."""
        theirs = [one for one in list(self._all.values()) if one.owner == owner and not one.is_over]
        for underway in theirs:
            run = self._explorer.services.library.runs.get(underway.run_token)
            if run is not None and run.run_id == run_id:
                return underway
        return None

    def cancel(self, session: Session) -> None:
        """Ends what a page has under way, if anything."""
        if (underway := self._of_page(session)) is not None:
            underway.cancel()

    def leave(self, session: Session) -> Session:
        """The session of a page that goes on to something else: what it has under way ends unseen."""
        if (underway := self._of_page(session)) is not None:
            underway.leave()
        return replace(session, underway="")

    def _of_page(self, session: Session) -> RunAtWork | None:
        underway = self._all.get(session.underway)
        return underway if underway is not None and underway.owner == session.owner else None
