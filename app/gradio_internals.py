"""Where the app reaches into Gradio's private code.

Written for Gradio 6.31. CONTRIBUTING.md says of each what Gradio does without it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from datetime import datetime
from functools import cache
from inspect import signature, unwrap
from math import inf
from pathlib import Path
from random import sample
from types import SimpleNamespace
from typing import Any, NamedTuple

import gradio as gr
from fastapi import FastAPI
from gradio import state_holder
from gradio.blocks import Block, BlockFunction
from gradio.components import Number
from gradio.context import LocalContext
from gradio.events import EventListenerMethod, set_cancel_events
from gradio.queueing import Event, Queue
from gradio.routes import App, templates
from gradio.server_messages import EventMessage, ProcessCompletedMessage
from gradio.state_holder import SessionState

from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from app.services.visitors import ACTIONS_WAITING, Turns, owner_of, owner_of_user
from core.base.errors import BadRequest, UserError

LOOK_PAUSE = 0.02
"""Seconds between two looks for work; Gradio's thousand a second take a twentieth of a core."""
PROGRESS_PAUSE = 0.1
"""Seconds between two looks for progress to tell; Gradio looks a hundred times a second."""
BROKEN = "That failed by a fault of the app, which its log describes; reload the page and try again"
_NO_PAGE = "no page"
UNFETCHED_SECONDS = 600.0
"""A result waits so long for who asked."""
CLOSED_SECONDS = 60.0
"""A page that is loaded again within this time finds its documents and its run as they were."""


class Pages(gr.Blocks):
    """Pages whose handlers return or yield updates by component; others cost nothing. A fault is told."""

    async def process_api(
        self, block_fn: BlockFunction, inputs: list[Any], *arguments: Any, **named: Any
    ) -> dict[str, Any]:
        """Handles an event. Raises gr.Error with the sentence to show."""
        if len(inputs) < (n := len(block_fn.inputs)):
            few = f"{len(inputs)} values came, and {n} are needed; load the page again"
            raise gr.Error(few, print_exception=False)
        try:
            return dict(await super().process_api(block_fn, inputs, *arguments, **named))
        except gr.Error:
            raise
        except UserError as error:
            raise gr.Error(str(error), print_exception=False) from error
        except Exception as fault:
            raise gr.Error(BROKEN) from fault
        finally:
            if block_fn.api_visibility == "public":
                self._forget_call(str(named.get("session_hash")))

    def _forget_call(self, session: str) -> None:
        """A call that names no page keeps nothing: remembered, a thousand would push out pages."""
        if not _states(self, session):
            self.state_holder.session_data.pop(session, None)
            self.state_holder.time_last_used.pop(session, None)

    async def postprocess_data(
        self, block_fn: BlockFunction, predictions: Any, state: SessionState | None
    ) -> list[Any]:
        """What goes to the browser, an entry an output."""
        if predictions == gr.skip():
            predictions = {}
        if not isinstance(predictions, dict) or not all(isinstance(key, Block) for key in predictions):
            return list(await super().postprocess_data(block_fn, predictions, state))
        sent: dict[Any, Any] = {}
        if predictions:
            few = copy(block_fn)
            few.outputs = [block for block in block_fn.outputs if block in predictions]
            said = await super().postprocess_data(few, predictions, state)
            sent = dict(zip(few.outputs, said, strict=True))
        return [sent.get(block, gr.skip()) for block in block_fn.outputs]


def keep_signatures(kind: type[Block] = Block) -> None:
    """Works out once what a kind of component, and all that derive from it, take."""
    plain = unwrap(kind.__init__)
    plain.__signature__ = signature(plain)
    for derived in kind.__subclasses__():
        keep_signatures(derived)


class _Session(SessionState):
    """What the states of a page or call hold, and nothing else of it."""

    def __init__(self, blocks: gr.Blocks) -> None:
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks={}))

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: Any) -> None:
        pass


@cache
def begin_pages_with(script: str) -> None:
    """Has each page run a script before Gradio's own, one of which adds the `head` that it was given."""
    plain = templates.env.loader.get_source
    charset = '<meta charset="utf-8" />'
    first = f"{charset}<script>{{% raw %}}{script}{{% endraw %}}</script>"

    def get_source(environment: Any, template: str) -> tuple[str, *tuple[Any, ...]]:
        page, *rest = plain(environment, template)
        return page.replace(charset, first, 1), *rest

    templates.env.loader.get_source = get_source


def keep_no_configs() -> None:
    """Has sessions keep what their states hold alone: what events brought takes as much memory as anybody
    sends.
    """
    state_holder.SessionState = _Session


class _Result(NamedTuple):
    session: str
    visitor: str
    ended_at: float


class TurnQueue(Queue):
    """A page's events of a line one after another, visitors by turns, and of each visitor only so many."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        super().__init__(**options)
        self.sleep_when_free, self.progress_update_sleep_when_free = LOOK_PAUSE, PROGRESS_PAUSE
        self._settings, self._turns = settings, Turns()
        self._results: dict[str, _Result] = {}
        """By the ids of their events; some were fetched since."""

    def get_events(self) -> tuple[list[Event], bool, str] | None:
        """The next event of any line with room, unless the line is at work for its page."""
        lines = list(self.event_queue_per_concurrency_id.values())
        busy = {(event.concurrency_id, event.session_hash) for job in self.active_jobs for event in job or ()}
        for line in sample(lines, len(lines)):
            name = line.concurrency_id
            waiting = [event for event in line.queue if (name, event.session_hash) not in busy]
            if waiting and line.current_concurrency < (line.concurrency_limit or inf):
                event = waiting[self._turns.next(name, self._visitors(waiting))]
                line.queue.remove(event)
                return [event], False, name
        return None

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        """Takes an event in, unless its visitor has too many waiting."""
        if self._settings.public:
            visitor = self._visitor(body, username)
            lines = self.event_queue_per_concurrency_id.values()
            n_waiting = sum(self._visitors(line.queue).count(visitor) for line in lines)
            n_waiting += [result.visitor for result in self._unfetched()].count(visitor)
            if n_waiting >= ACTIONS_WAITING:
                words = (
                    f"{n_waiting} of your actions wait for their turn or to be fetched,"
                    f" and {ACTIONS_WAITING} may"
                )
                return False, f"{words}; wait until some are done, and fetch their results", "queue_full"
        return await super().push(body, request, username)

    def send_message(self, event: Event, event_message: EventMessage) -> None:
        """To whoever listens to an event's page or call."""
        super().send_message(event, event_message)
        if event.alive and isinstance(event_message, ProcessCompletedMessage):
            visitor = self._visitor(event.data, event.username)
            self._results[event._id] = _Result(str(event.session_hash), visitor, time.monotonic())
            self._unfetched()

    def _unfetched(self) -> list[_Result]:
        """Results that wait for who asked; forgets the others, and gives up those that wait for too long."""
        for event_id, result in list(self._results.items()):
            ids = self.pending_event_ids_session.get(result.session, set())
            waits = event_id in ids and result.session in self.pending_messages_per_session
            if waits and time.monotonic() < result.ended_at + UNFETCHED_SECONDS:
                continue
            del self._results[event_id]
            ids.discard(event_id)
            if not ids:
                self.pending_event_ids_session.pop(result.session, None)
                if waits:
                    self.pending_messages_per_session.pop(result.session, None)
        return list(self._results.values())

    def _visitors(self, events: Sequence[Event]) -> list[str]:
        return [self._visitor(event.data, event.username) for event in events]

    def _visitor(self, body: Any, username: str | None) -> str:
        """Whose an event is: who signed in, else its page's session says so; loading a page, and calls
        without one, send the visitor's key as their last value; else page and call are told apart.
        """
        if username and (owner := owner_of_user(self._settings, username)):
            return owner
        states = _states(self.blocks, str(body.session_hash))
        owner = next((state.owner for state in states if isinstance(state, Session)), None)
        if not owner and body.data and isinstance(body.data[-1], str):
            with suppress(BadRequest):
                owner = owner_of(self._settings, body.data[-1])
        return owner or str(body.session_hash)


def take_turns(blocks: gr.Blocks, settings: Settings, max_size: int) -> None:
    """`blocks.queue`, by turns. Calls that would take no turn are not answered."""
    plain = blocks.queue(max_size=max_size, api_open=False)._queue
    blocks._queue = TurnQueue(
        settings,
        live_updates=plain.live_updates,
        concurrency_count=plain.max_thread_count,
        update_intervals=plain.update_intervals,
        max_size=max_size,
        blocks=blocks,
        default_concurrency_limit=plain.default_concurrency_limit,
    )


def cancel_at_once(button: gr.Button, running: Sequence[gr.events.Dependency]) -> None:
    """A click cancels what runs then, and nothing that begins later. To be called before other listeners."""
    for event in running:
        set_cancel_events([EventListenerMethod(button, "click")], [event])


def caller_at_hand() -> Callable[[], bool]:
    """Whether this thread's caller has hung up, for any thread. Who has not asked for a result has not."""
    blocks, event_id = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = None if blocks is None or event_id is None else blocks._queue.event_ids_to_events.get(event_id)
    return lambda: event is not None and not event.alive


def keep_sliders_in_bounds() -> None:
    """A value beyond a slider's ends is taken as that end; None, of an emptied field, is left as it is."""

    def preprocess(slider: gr.Slider, payload: float | None) -> float | None:
        if payload is None:
            return None
        within = min(max(payload, slider.minimum), slider.maximum)
        value: float = Number.round_to_precision(within, slider.precision)
        return value

    gr.Slider.preprocess = preprocess


def let_go_of_closed_pages(blocks: gr.Blocks, services: Services) -> None:
    """Gives up what a page had open a minute after it was closed, unless it came back or another page has it
    open, too; inside `with blocks`.
    """

    async def closed(request: gr.Request) -> None:
        loop, page = asyncio.get_running_loop(), str(request.session_hash)
        loop.call_later(CLOSED_SECONDS, loop.run_in_executor, None, let_go, page, datetime.now())

    def let_go(page: str, closed_at: datetime) -> None:
        holder = blocks.state_holder
        if holder.time_last_used.get(page, datetime.max) > closed_at:
            return
        tokens = _tokens(blocks, page)
        holder.session_data.pop(page, None)
        holder.time_last_used.pop(page, None)
        services.release(tokens, in_use())

    def in_use() -> set[str]:
        return {token for page in list(blocks.state_holder.session_data) for token in _tokens(blocks, page)}

    services.in_use = in_use
    blocks.unload(closed)


def _states(blocks: gr.Blocks, page: str) -> list[Any]:
    session = blocks.state_holder.session_data.get(page)
    return [] if session is None else list(session.state_data.values())


def _tokens(blocks: gr.Blocks, page: str) -> set[str]:
    """Of the documents, runs and language models that a page's states name, see `Session.tokens`."""
    return {token for state in _states(blocks, page) for token in getattr(state, "tokens", ())}


def mounted_in(app: FastAPI) -> App:
    """Gradio's part of the app."""
    parts = (getattr(route, "app", None) for route in app.routes)
    return next(part for part in parts if isinstance(part, App))


def of_known_page(app: FastAPI, body: bytes) -> bytes:
    """A request to a component, in the name of one page for all where its own is not loaded: each new name
    would begin a session, and a thousand push out those of others. Raises ValueError unless it is JSON and
    asks a component.
    """
    asked, gradio = json.loads(body), mounted_in(app)
    if not isinstance(asked, dict) or asked.get("component_id") not in list(gradio.get_blocks().blocks):
        raise ValueError("no request to a component")
    is_known = str(asked.get("session_hash")) in gradio.state_holder
    return body if is_known else json.dumps({**asked, "session_hash": _NO_PAGE}).encode()


def upload_to(app: FastAPI, folder: Path) -> None:
    """Has the next uploads written into `folder`."""
    mounted_in(app).uploaded_file_dir = str(folder)


def serve_mcp(app: FastAPI, url: str) -> None:
    """Has the MCP server, if there is one, call the app at `url`, its tools answer in JSON, and none of them
    hold one of the threads that all requests share.
    """

    async def result_of(job: Any) -> list[Any]:
        return [await asyncio.wrap_future(job.future)]

    server = mounted_in(app).get_blocks().mcp_server_obj
    if server is not None:
        text = server.types.TextContent
        server._local_url = url
        server._execute_tool_without_progress = result_of
        server.postprocess_output_data = lambda data, _: [
            text(type="text", text=json.dumps(output, ensure_ascii=False)) for output in data
        ]
