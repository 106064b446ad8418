"""Blocks as a server of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import gradio as gr


@contextmanager
def served(blocks: gr.Blocks, **options: Any) -> Iterator[str]:
    """Its address while it answers. `options`: of `launch`."""
    _, url, _ = blocks.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False, **options)
    try:
        yield url.rstrip("/")
    finally:
        # gradio sets an event of the server's loop from this thread, and that fails, before the server ends,
        # where a page leaves in the same moment
        with suppress(RuntimeError):
            blocks.close()
        blocks.server.close()
