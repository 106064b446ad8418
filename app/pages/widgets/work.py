"""What takes long on a page.

Its button, Cancel beside its progress, and how both stand while it works. Cancel's end is shown twice. The
browser draws what two events sent side by side, so that something the cancelled one had sent may be drawn
after it, and leave the page locked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import gradio as gr

from app.components.tree import packs
from app.gradio_internals import cancel_at_once
from app.pages.widgets.notices import passing
from core.base.errors import UserError
from core.base.progress import InThread, mapped

P = TypeVar("P")
R = TypeVar("R")


def stream(work: Callable[[Callable[[P], None]], R], every: float = 0.2) -> Generator[P, None, R]:
    """The latest progress at most once in `every` seconds; what the work returned, or what it raised."""
    begun = InThread(work)
    try:
        while begun.thread.is_alive():
            begun.thread.join(every)
            latest = None
            while not begun.reports.empty():
                latest = begun.reports.get()
            if latest is not None and begun.thread.is_alive():
                yield latest
    finally:
        begun.close()
    return begun.result()


Update = dict[Any, Any]
QUIET: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "show_progress_on": []}
"""Of every event that is the page's own. Progress is shown on nothing: Gradio keeps a status for each
component that could show some, and looks all of them up in its tree twice an event.
"""
EACH: dict[str, Any] = {"trigger_mode": "multiple"}
"""Of an event that several panels share, or that a reader presses in a row: Gradio drops none of them while
another is under way.
"""


_ANSWERED = """() => document.querySelectorAll(".qx-sent, .qx-cancelling")
  .forEach((card) => card.classList.remove("qx-sent", "qx-cancelling"))"""
"""Unlocks what a press had locked: an answer in the words of the last one changes nothing else."""


def in_line(name: str, at_once: int = 4) -> dict[str, Any]:
    """Arguments of events that wait for one another once `at_once` of them are handled."""
    return {**QUIET, "concurrency_id": name, "concurrency_limit": at_once}


def cancel_button(elem_id: str) -> gr.Button:
    """Stands beside the progress, and only while there is something to cancel."""
    return gr.Button(
        "Cancel",
        variant="stop",
        size="sm",
        elem_id=elem_id,
        elem_classes="qx-cancel",
        interactive=False,
        min_width=60,
    )


@dataclass(frozen=True)
class Work:
    """What starts, stops and tells of something that takes long."""

    run: gr.Button
    cancel: gr.Button
    progress: gr.HTML
    notice: gr.HTML

    def busy(self) -> Update:
        return {self.run: gr.Button(interactive=False), self.cancel: gr.Button(interactive=True)}

    def free(self) -> Update:
        return {
            self.run: gr.Button(interactive=True),
            self.cancel: gr.Button(interactive=False),
            self.progress: [],
        }

    def cancelled(self, is_over: bool, waits: str, kept: str) -> Update:
        """What Cancel answers: what is kept, or, while something still goes on, what it waits for."""
        words = f"Cancelled; {kept}." if is_over else f"Cancelling: {waits}."
        return {**self.free(), self.notice: passing(words, "info")}

    def follow(
        self,
        task: Callable[[Callable[[Any], None]], R],
        going: Callable[[Any], Update],
        done: Callable[[R], Iterable[Update]],
        doing: str,
        failed: Callable[[str], Update] | None = None,
    ) -> Iterator[Update]:
        """What the page shows while `task` is at work: `going` of each report, `done` of its result, `failed`
        of the sentence that its error becomes, a notice by default. doing: what it does, as "comparing".
        """
        try:
            result = yield from mapped(stream(task), going)
            yield from done(result)
        except Exception as error:
            words = str(error)
            if not isinstance(error, UserError):
                logging.getLogger(__name__).exception("%s failed", doing)
                rest = "what is shown is kept, and the server's log says why"
                words = f"something failed while {doing}; {rest}"
            yield failed(words) if failed else {**self.free(), self.notice: passing(words)}

    def wire_cancel(
        self,
        running: Sequence[gr.events.Dependency],
        cancelled: Callable[..., Any],
        inputs: Any,
        outputs: Sequence[Any],
        settled: tuple[Callable[..., Any], Any] | None = None,
        **listener: Any,
    ) -> None:
        """Has Cancel end `running`. `settled`: how the page stands without it, by default free, and that
        handler's inputs. Both handlers pack their trees themselves, see `packs`.
        """
        again, its_inputs = settled or (packs(self.free), None)
        cancel_at_once(self.cancel, running)
        first = self.cancel.click(cancelled, inputs, outputs, **listener)
        for event in (*running, first.then(again, its_inputs, outputs, **QUIET)):
            event.then(None, js=_ANSWERED, **QUIET)
