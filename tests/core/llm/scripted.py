"""A stand-in that says what its script tells it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence

from core.llm.client import Ask, Client, estimated
from core.llm.protocol import Cost, LlmCancelled, LlmError, Message, Reply

Script = Callable[[Sequence[Message]], str]


class ScriptedLlm(Client):
    """Replies from a queue, or from a function of the conversation."""

    def __init__(self, script: Iterable[str] | Script, name: str = "scripted") -> None:
        super().__init__(name)
        self.calls: list[tuple[Message, ...]] = []
        """Every conversation that it was given, in order."""
        self._lock = threading.Lock()
        self._script: Script = script if callable(script) else self._queued(list(script))

    def _queued(self, replies: list[str]) -> Script:
        def next_reply(_: Sequence[Message]) -> str:
            with self._lock:
                if not replies:
                    raise LlmError(f"the script of {self.name} has no reply left; give it one for every call")
                return replies.pop(0)

        return next_reply

    def _complete(self, ask: Ask) -> Reply:
        messages = ask.told()
        ask.draft.clear()
        with self._lock:
            self.calls.append(tuple(messages))
        try:
            text = self._script(messages)
        except LlmError as error:
            raise type(error)(str(error), Cost(1)) from None
        for word in re.findall(r"\s*\S+|\s+\Z", text):
            if ask.cancelled():
                raise LlmCancelled
            ask.draft.add(word)
        return estimated(ask)
