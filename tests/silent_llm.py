"""A language model that never answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from core.llm.protocol import LlmCancelled, Reply, never


class SilentLlm:
    """An `Llm` that can only be cancelled."""

    name = "silent"
    reply_tokens = None
    is_asked = False

    def chat(self, *_: Any, cancelled: Callable[[], bool] = never, **__: Any) -> Reply:
        self.is_asked, until = True, time.monotonic() + 20
        while not cancelled():
            assert time.monotonic() < until, "nobody cancelled"
            time.sleep(0.005)
        raise LlmCancelled
