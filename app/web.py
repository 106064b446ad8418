"""The pages as a web app behind the app's own doors."""

from __future__ import annotations

import errno
import socket
import threading
import time
from pathlib import Path
from typing import Any

import gradio as gr
import uvicorn
from fastapi import FastAPI
from gradio.utils import get_upload_folder
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from app.calls.endpoints import refuse_call
from app.doors import Doors
from app.front_door import Addresses, OwnPages
from app.gradio_internals import serve_mcp, take_turns
from app.services.settings import EVERYWHERE, Settings
from app.streams import Streams
from core.base.errors import BadRequest

QUEUE_SIZE = 64
"""Events that may wait in all."""
MAX_SESSIONS = 1_000
"""Pages and calls that Gradio remembers; the longest unused goes first, a page is to be loaded again then."""
PORTS = range(7860, 7960)
"""Tried one after another where none is given."""


def web_app(blocks: gr.Blocks, settings: Settings, **options: Any) -> FastAPI:
    """`options`: of `mount_gradio_app`."""
    folder = get_upload_folder()
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        middleware=[
            Middleware(OwnPages, Addresses.of(settings)),
            Middleware(Doors, Path(folder), asks_who=options.get("auth") is not None),
            Middleware(CORSMiddleware),  # allows nobody; without it, Gradio lets other websites read along
            Middleware(Streams, blocks),
        ],
    )
    blocks.state_session_capacity = MAX_SESSIONS
    take_turns(blocks, settings, QUEUE_SIZE)
    gr.mount_gradio_app(
        app,
        blocks,
        "/",
        app_kwargs={"exception_handlers": {KeyError: refuse_call, TypeError: refuse_call}},
        allowed_paths=[folder],  # Gradio allows it by itself until `Doors` gives uploads folders of their own
        footer_links=[],
        run_history=False,
        show_error=False,
        ssr_mode=False,
        enable_monitoring=False,
        **options,
    )
    blocks.has_launched = True  # else Gradio doesn't look where a file lies that an event names
    return app


def listen(host: str, port: int | None) -> socket.socket:
    """At a port, or the first free one. Raises BadRequest where that can't be."""
    host = host.removeprefix("[").removesuffix("]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for tried in PORTS if port is None else (port,):
        try:
            return socket.create_server((host, tried), family=family)
        except (OSError, TypeError) as error:  # the second where no host can have that name
            if not isinstance(error, OSError) or error.errno != errno.EADDRINUSE:
                why = getattr(error, "strerror", error)
                wrong = f"the app can't listen at host {host!r}, port {tried}: {why}"
                raise BadRequest(f"{wrong}; choose others with --host and --port") from error
    taken = f"ports {PORTS[0]} to {PORTS[-1]} are" if port is None else f"port {port} is"
    other = "" if port is None else ", or leave it out for the first free one"
    raise BadRequest(f"{taken} taken; choose another one with --port{other}")


class Serving:
    """A web app that answers, from now on, in a thread of its own."""

    def __init__(self, app: FastAPI, listening: socket.socket) -> None:
        host, port = listening.getsockname()[:2]
        host = "localhost" if host in (EVERYWHERE, "::") else f"[{host}]" if ":" in host else host
        self.url = f"http://{host}:{port}"
        serve_mcp(app, self.url)
        # pages listen for as long as they are open: a server that ends waits a second for them
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listening],), daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("the web server did not start; the lines above say why")
            time.sleep(0.005)

    def wait(self) -> None:
        """Until it ends."""
        self._thread.join()

    def close(self) -> None:
        """Ends it, whoever still listens."""
        self._server.should_exit = True
        self._thread.join(10)
