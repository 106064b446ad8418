"""How an opening says that its documents can be asked already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.services.session import Session
from core.corpus.opening import OpenProgress, Progress

LEAST_WAIT = 5.0
"""Seconds of embedding left for which a part is offered: a page that changes twice within them is no help."""


@dataclass(frozen=True)
class Underway:
    """Progress of documents that can be asked already."""

    progress: OpenProgress
    session: Session
    """Over the part."""


class Opening:
    """How an opening reports, once it can be asked along with the session to ask it with."""

    def __init__(self, report: Callable[[OpenProgress | Underway], None]) -> None:
        self._report = report
        self._session: Session | None = None
        self._offered = False

    def __call__(self, progress: OpenProgress) -> None:
        """A `core.corpus.opening.Progress`."""
        self._offered |= self._session is not None and (progress.seconds_left or 0.0) > LEAST_WAIT
        if self._offered and self._session is not None:
            self._report(Underway(progress, self._session))
        else:
            self._report(progress)

    def can_ask(self, session: Session) -> None:
        """There is a part, which `session` is over."""
        self._session = session


def opening_of(
    work: Callable[[Progress], Session],
) -> Callable[[Callable[[OpenProgress | Underway], None]], Session]:
    """The work of an opening, which says when it can be asked."""
    return lambda report: work(Opening(report))
