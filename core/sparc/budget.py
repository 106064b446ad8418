"""What a run may still spend on language models, shared by branches that run at once.

Decides that a call is only begun while both budgets have something left, and that its reply may be no longer than what is left of the
tokens. So calls never exceed their bound but by an endpoint's own retries, tokens by no more than the prompts on their way.
Knows nothing of prompts and agents.
"""

from __future__ import annotations

from threading import Lock
from typing import Literal

from core.sparc.events import Cost


class OutOfBudget(Exception):
    """No further call may be made. `reason` is the budget that is used up."""

    def __init__(self, reason: Literal["tokens", "calls"]) -> None:
        super().__init__(reason)
        self.reason: Literal["tokens", "calls"] = reason


class Budget:
    """Tokens and calls of one run. Safe to use from several threads."""

    def __init__(self, max_tokens: int | None = None, max_calls: int | None = None) -> None:
        """None is no bound."""
        self._max_tokens, self._max_calls = max_tokens, max_calls
        self._lock = Lock()
        self._tokens = self._calls = 0

    def begin(self, most_tokens: int) -> int:
        """Books a call; returns how many tokens its reply may have, at most `most_tokens`. Raises OutOfBudget."""
        with self._lock:
            if self._max_calls is not None and self._calls >= self._max_calls:
                raise OutOfBudget("calls")
            left = most_tokens if self._max_tokens is None else self._max_tokens - self._tokens
            if left <= 0:
                raise OutOfBudget("tokens")
            self._calls += 1
            return min(most_tokens, left)

    def book(self, cost: Cost) -> None:
        """Adds what a finished call took; its first attempt was counted when it began."""
        with self._lock:
            self._tokens += cost.prompt_tokens + cost.completion_tokens
            self._calls += cost.calls - 1
