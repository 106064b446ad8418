"""Gradio's memory of pages and callers, and when it lets go.

Gradio copies the settings of every component for every session, half a megabyte and 40 ms, for deep links,
which this app does without; it keeps the session of each single HTTP call as long as a page's, and a closed
page's for an hour. Decides that a session holds its own values only, that the newest few of those without any
stay, and that a page which was closed gives its documents and runs up a minute later, unless another page
shows them. Leans on Gradio's private `state_holder` (6.31).
"""

from __future__ import annotations

import threading
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import gradio as gr
from gradio.state_holder import SessionState, StateHolder

from app.services.shared import Services

MAX_SESSIONS = 1_000
"""Pages whose place is kept; the longest unused goes first, and begins anew when it is loaded again."""
MAX_EMPTY = 64
"""Sessions without a value of their own, calls without a page among them."""
CLOSED_SECONDS = 60.0
"""A page that is loaded again within this time finds its documents and its run as they were."""


class OwnValues(SessionState):
    """A session without copies of what all sessions share."""

    def __init__(self, blocks: Any) -> None:
        # no blocks, no copies
        super().__init__(SimpleNamespace(default_config=blocks.default_config, blocks={}))

    def _update_config(self, key: int) -> None:
        """Nothing: only deep links read it."""

    def _update_value_in_config(self, key: int, value: Any) -> None:
        """Nothing: only deep links read it."""

    def __setitem__(self, key: int, value: Any) -> None:
        """Without the settings of the component, which only deep links read, too."""
        if isinstance(self.blocks_config.blocks.get(key), gr.State):
            super().__setitem__(key, value)
            self.config_values.clear()
        else:
            self.blocks_config.blocks[key] = value


class Sessions(StateHolder):
    """All sessions of one server."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    def __getitem__(self, session_id: str) -> SessionState:
        if session_id not in self.session_data:
            self._forget_empty()
            self.session_data[session_id] = OwnValues(self.blocks)
        return super().__getitem__(session_id)

    def page_closed(self, session_id: str) -> None:
        """Lets go of what a page had open, but later: a reload closes it, too. Anybody may close any page."""
        if session_id not in self.session_data:
            return
        timer = threading.Timer(CLOSED_SECONDS, self._let_go, [session_id, datetime.now()])
        timer.daemon = True
        timer.start()

    def _let_go(self, session_id: str, closed_at: datetime) -> None:
        if (
            self.time_last_used.get(session_id, datetime.max) > closed_at
        ):  # gone already, or its page came back
            return
        values = list(self.session_data.pop(session_id).state_data.values())
        self.time_last_used.pop(session_id, None)
        others = [
            value
            for session in list(self.session_data.values())
            for value in list(session.state_data.values())
        ]
        self._services.release(_tokens(values), _tokens(others))

    def _forget_empty(self) -> None:
        empty = [
            session_id for session_id, session in list(self.session_data.items()) if not session.state_data
        ]
        for session_id in empty[: max(0, len(empty) - MAX_EMPTY)]:
            self.session_data.pop(session_id, None)
            self.time_last_used.pop(session_id, None)


def _tokens(values: list[Any]) -> set[str]:
    """Tokens of the documents and runs that states name, see `Session.tokens`."""
    return {token for value in values for token in getattr(value, "tokens", ())}


def keep_lean(blocks: gr.Blocks, services: Services) -> Sessions:
    """Puts these sessions in the place of a launched app's own."""
    sessions = Sessions(services)
    sessions.set_blocks(blocks)
    blocks.app.state_holder = sessions
    return sessions


def closed_by(blocks: gr.Blocks) -> None:
    """Makes the pages of an app say when they are closed; inside `with blocks`."""

    def closed(request: gr.Request) -> None:
        holder = blocks.state_holder
        if isinstance(holder, Sessions) and request.session_hash:
            holder.page_closed(request.session_hash)

    blocks.unload(closed)
