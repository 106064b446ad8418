"""Blocks as a server of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr

from app.services.settings import LOOPBACK, Settings
from app.web import Serving, listen, web_app


@contextmanager
def served(blocks: gr.Blocks, settings: Settings | None = None, **options: Any) -> Iterator[str]:
    """Its address while it answers, behind the app's own doors. `options`: of `mount_gradio_app`."""
    serving = Serving(web_app(blocks, settings or Settings(), **options), listen(LOOPBACK, None))
    try:
        yield serving.url
    finally:
        serving.close()
