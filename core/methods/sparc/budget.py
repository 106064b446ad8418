"""What a run may still spend on language models.

Shared by branches that run at once. A call is only begun while both budgets have something left, and its
reply may be no longer than what is left of the tokens. So calls exceed their bound by no more than what one
call asks again (connections that failed, a reply that didn't fit), tokens by no more than the prompts and
replies that were on their way at the same time. What a call that failed had taken counts, too.
"""

from __future__ import annotations

from threading import Lock
from typing import Literal

from core.llm.protocol import Cost


class OutOfBudget(Exception):
    """No further call may be made. `spent`: what a call had taken that came to nothing for want of it."""

    def __init__(self, reason: Literal["tokens", "calls"], spent: Cost = Cost()) -> None:  # noqa: B008 - frozen
        super().__init__(reason)
        self.reason: Literal["tokens", "calls"] = reason
        self.spent = spent


class Budget:
    """Tokens and calls of one run. Safe to use from several threads."""

    def __init__(self, max_tokens: int | None = None, max_calls: int | None = None) -> None:
        """None is no bound."""
        self._max_tokens, self._max_calls = max_tokens, max_calls
        self._lock = Lock()
        self._calls = 0
        self._taken = Cost()

    def begin(self, most_tokens: int) -> int:
        """Books a call; returns the most tokens of its reply, up to `most_tokens`. Raises OutOfBudget."""
        with self._lock:
            if self._max_calls is not None and self._calls >= self._max_calls:
                raise OutOfBudget("calls")
            left = most_tokens if self._max_tokens is None else self._max_tokens - self._tokens
            if left <= 0:
                raise OutOfBudget("tokens")
            self._calls += 1
            return min(most_tokens, left)

    @property
    def taken(self) -> Cost:
        """What all calls took that came to an end."""
        return self._taken

    @property
    def _tokens(self) -> int:
        return self._taken.prompt_tokens + self._taken.completion_tokens

    @property
    def tokens_are_spent(self) -> bool:
        """Whether no reply may be asked for any more."""
        return self._max_tokens is not None and self._tokens >= self._max_tokens

    def book(self, cost: Cost) -> None:
        """Adds what a finished call took; its first attempt was counted when it began."""
        with self._lock:
            self._taken += cost
            self._calls += cost.calls - 1
