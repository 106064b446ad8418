"""The lines in front of the machine.

A page's events one after another, and in public mode fair: those who wait get their turn in rounds. Gradio
works a line off in the order of arrival, and has one for each kind of work. Where a line takes several at
once, it would take two of one page, too; here they wait for each other, since a step starts where the last
one ended. In public mode a newcomer is put behind everyone's first, before anyone's second. Decides that too
many events of one visitor are refused at once. Visitors are told apart by what their page's session says;
without one, by the key that loading a page and calls without a page send as their last value; without a key,
by connection. Leans on Gradio's private queue (6.31).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import sample
from typing import Any

import gradio as gr
from gradio.queueing import EventQueue, Queue

from app.services.session import Session
from app.services.settings import Settings
from app.services.visitors import ACTIONS_WAITING, NOBODY, owner_of
from core.base.errors import BadRequest


def place(waiting: Sequence[str], visitor: str) -> int:
    """Where in a line a visitor's next event goes; `waiting`: whose the events in it are.

    >>> place(["ann", "ann", "ann"], "bob"), place(["ann", "bob", "ann"], "bob"), place(["ann", "bob"], "ann")
    (1, 3, 2)
    """
    turn, seen = waiting.count(visitor), Counter[str]()
    for index, other in enumerate(waiting):
        if seen[other] > turn:
            return index
        seen[other] += 1
    return len(waiting)


class FairLine(list[Any]):
    """Events of one kind of work, in the order in which they are taken."""

    def __init__(self, visitor_of: Callable[[Any], str]) -> None:
        super().__init__()
        self._visitor_of = visitor_of

    def append(self, event: Any) -> None:
        """Puts an event where its visitor's turn is."""
        self.insert(place([self._visitor_of(other) for other in self], self._visitor_of(event)), event)


LOOK_PAUSE = 0.02
"""Seconds between two looks for work; Gradio's thousand a second take a tenth of a core."""
PROGRESS_PAUSE = 0.1
"""Seconds between two looks for progress to tell; Gradio looks a hundred times a second."""


class PageQueue(Queue):
    """Gradio's queue, where a page's events of one kind of work never overtake each other."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.sleep_when_free, self.progress_update_sleep_when_free = LOOK_PAUSE, PROGRESS_PAUSE

    def get_events(self) -> tuple[list[Any], bool, str] | None:
        """The next one out of any line that has room; none of a page that the line is working for."""
        working = {
            (event.concurrency_id, event.session_hash)
            for events in self.active_jobs
            for event in events or ()
        }
        lines = list(self.event_queue_per_concurrency_id.values())
        for line in sample(lines, len(lines)):
            if line.concurrency_limit is not None and line.current_concurrency >= line.concurrency_limit:
                continue
            event = next(
                (event for event in line.queue if (event.concurrency_id, event.session_hash) not in working),
                None,
            )
            if event is not None:
                line.queue.remove(event)
                return [event], False, event.concurrency_id
        return None

    def compute_analytics_summary(self, _: Any) -> dict[str, Any]:
        """Nothing: nobody looks, and it takes milliseconds an event."""
        return {}


class FairQueue(PageQueue):
    """With fair lines."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(**options)
        self._settings = settings

    def create_event_queue_for_fn(self, block_fn: Any) -> None:
        """Makes the line of a listener, if it is not there yet."""
        super().create_event_queue_for_fn(block_fn)
        line: EventQueue = self.event_queue_per_concurrency_id[block_fn.concurrency_id]
        if not isinstance(line.queue, FairLine):
            line.queue = FairLine(self._visitor_of)

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        """Takes an event in, unless its visitor has too many waiting."""
        visitor = self._visitor(body)
        waiting = sum(
            self._visitor_of(event) == visitor
            for line in self.event_queue_per_concurrency_id.values()
            for event in line.queue
        )
        if waiting >= ACTIONS_WAITING:
            return (
                False,
                (
                    f"{waiting} of your actions wait for their turn, and {ACTIONS_WAITING} may; wait until"
                    " some are done"
                ),
                "queue_full",
            )
        return await super().push(body, request, username)

    def _visitor_of(self, event: Any) -> str:
        return self._visitor(event.data)

    def _visitor(self, body: Any) -> str:
        """Whose an event is, by what it sends."""
        owner = self._session_owner(str(body.session_hash)) or NOBODY
        if owner == NOBODY and body.data and isinstance(body.data[-1], str):
            with suppress(BadRequest):
                owner = owner_of(self._settings, body.data[-1]) or NOBODY
        return owner or str(body.session_hash)

    def _session_owner(self, session_hash: str) -> str | None:
        holder = self.blocks.state_holder
        if session_hash not in holder:  # asking for it would make it
            return None
        values = list(holder.session_data[session_hash].state_data.values())
        return next((value.owner for value in values if isinstance(value, Session)), None)


def queue_up(blocks: gr.Blocks, settings: Settings, max_size: int) -> gr.Blocks:
    """`blocks.queue(max_size=...)` with these lines, fair ones in public mode, on the same server."""
    blocks.api_open = False  # open, it would answer calls that take no turn
    plain = blocks._queue
    queue: Callable[..., PageQueue] = partial(FairQueue, settings=settings) if settings.public else PageQueue
    blocks._queue = queue(
        live_updates=plain.live_updates,
        concurrency_count=plain.max_thread_count,
        update_intervals=plain.update_intervals,
        max_size=max_size,
        blocks=blocks,
        default_concurrency_limit=plain.default_concurrency_limit,
    )
    return blocks
