"""Keeps a page's stream of events open where one may follow."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

import gradio as gr

DATA, JOIN = "/gradio_api/queue/data", "/gradio_api/queue/join"
LINGER_SECONDS = 0.3
"""After the last event: what follows it, and a quick click, come within these."""
APART_SECONDS = 0.1
"""Between the end of a stream and the answer to an event."""
_CLOSES = b'"close_stream"'


class Streams:
    """Gradio ends a page's stream with its last event. Where a click comes at this moment, its answer
    overtakes the stream's end in the page, which then waits on a stream that is over. So a stream lingers,
    and an answer waits until an end that was just sent has arrived.
    """

    def __init__(self, app: Any, blocks: gr.Blocks) -> None:
        self._app, self._blocks = app, blocks
        self._ended_at = 0.0
        """When the last stream did, anybody's."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path")
        if path == DATA:
            await self._lingering(scope, receive, send)
        elif path == JOIN:
            await self._app(scope, receive, self._behind_ends(send))
        else:
            await self._app(scope, receive, send)

    async def _lingering(self, scope: Any, receive: Any, send: Any) -> None:
        [session] = parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[:1]
        has_begun, held = False, list[Any]()

        async def pass_on(message: Any) -> None:
            nonlocal has_begun
            begins = message["type"] == "http.response.start"
            if not begins and (_CLOSES in message["body"] or not message.get("more_body")):
                held.append(message)
            elif not (begins and has_begun):
                has_begun = True
                await send(message)

        while True:
            held.clear()
            await self._app(dict(scope), receive, pass_on)  # routes write into it
            is_at_end = any(_CLOSES in message["body"] for message in held)
            if not (is_at_end and await self._goes_on(session, receive)):
                break
        self._ended_at = time.monotonic()
        for message in held:
            await send(message)

    async def _goes_on(self, session: str, receive: Any) -> bool:
        """Whether an event of the page comes soon, and it still listens."""
        until = time.monotonic() + LINGER_SECONDS
        while time.monotonic() < until:
            with suppress(TimeoutError):
                await asyncio.wait_for(receive(), 0.02)
                return False  # nothing comes but that it left
            if self._blocks._queue.pending_event_ids_session.get(session):
                return True
        return False

    def _behind_ends(self, send: Any) -> Any:
        async def later(message: Any) -> None:
            await asyncio.sleep(max(0.0, self._ended_at + APART_SECONDS - time.monotonic()))
            await send(message)

        return later
