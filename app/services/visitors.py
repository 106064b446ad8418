"""Who a visitor is, and every bound of public mode.

A visitor is the hash of a secret which only their browser holds, or of the name they signed in with; local
mode has one person, whom nothing is counted for. A day's tokens are those that have to be embedded, so
documents that a visitor had open before cost nothing. Counts live in memory. They keep visitors from crowding
each other out; whoever makes one key after another escapes them, and only signing in stops that.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from math import inf

from app.services.settings import Settings
from core.base.errors import BadRequest
from core.base.events import StepTaken, Stopped
from core.corpus.opening import OpenProgress
from core.llm.protocol import LlmError

TOKENS_PER_DAY = 20_000_000
"""Embedded for one visitor between two midnights (UTC): two documents of ten million."""
DOCUMENTS_OPEN = 12
"""Of one visitor, in memory; opening one more closes the one not used for longest."""
RUNS_IN_FLIGHT = 8
"""Unfinished runs of one visitor; one more closes the one left for longest, to be forked from."""
MOST_STEPS = 32
"""Most steps of a visitor's run or evaluation: the page offers 12, and a review asks of each anew."""
READING_SECONDS_PER_DAY = 1_200
"""Computing time a day for one visitor's files: a dozen books of 500 pages as PDF."""
LOGGED_BYTES_PER_DAY = 4_000_000_000
"""Q-values logged for one visitor a day: 200 runs of ten steps over 400,000 chunks."""
ACTIONS_WAITING = 16
"""Clicks and calls of one visitor that may wait their turn."""
TURNS_KEPT = 10_000
"""Pairs of line and visitor of which the last turn is remembered."""
LLM_TOKENS_PER_HOUR = 300_000
"""Read and written for one visitor an hour by the operator's language model: a handful of SPARC runs."""
RETENTION = timedelta(hours=24)
"""A visitor's runs go this long after they ended, their part of the caches after it was used."""

CHARACTERS_PER_TOKEN = 4
"""What is read is counted before it is cut, so by its length."""
NOBODY = ""
"""Owner of a session whose page has not said who it is: nothing is opened, logged or found for it."""


def owner_of(settings: Settings, key: str) -> str | None:
    """The visitor's name in the log by `key`, 32 hex digits; None in local mode. Raises BadRequest."""
    if not settings.public:
        return None
    if not re.fullmatch(r"[0-9a-f]{32}", key):
        raise BadRequest(
            f"the visitor key has {len(key)} characters but must be 32 hex digits in lower case; make 128"
            " random bits and keep them"
        )
    return hashlib.sha256(bytes.fromhex(key)).hexdigest()


def owner_of_user(settings: Settings, name: str) -> str | None:
    """What the log calls who signed in, None in local mode. No key hashes to it: keys are 16 bytes."""
    return hashlib.sha256(b"signed in as: " + name.encode()).hexdigest() if settings.public else None


def newcomer(settings: Settings) -> str | None:
    """The owner of a session that has just begun."""
    return NOBODY if settings.public else None


def check_known(owner: str | None) -> None:
    """Raises BadRequest for a session whose page has not said who it is."""
    if owner == NOBODY:
        raise BadRequest("this page was away for too long, or came without its visitor key; reload it")


def check_steps(owner: str | None, step_budget: int) -> None:
    """Raises BadRequest for a visitor's run that is longer than they may make one."""
    if owner is not None and step_budget > MOST_STEPS:
        most = f"{MOST_STEPS}, the most that a visitor's run may have"
        raise BadRequest(f"step budget {step_budget} is above {most}; lower it")


def n_values(events: Iterable[StepTaken | Stopped | None]) -> int:
    """How many Q-values the log keeps of some events."""
    scores = (event.scores for event in events if event is not None)
    return sum(len(of_look.q_values) for of_look in scores if of_look is not None)


class Turns:
    """Whose turn it is among those who wait in a line: everyone's first before anyone's second."""

    def __init__(self) -> None:
        self._n = 0
        self._last: dict[tuple[str, str], int] = {}
        """By line and visitor, the one served last at the end."""

    def next(self, line: str, waiting: Sequence[str]) -> int:
        """The place that is served now. `waiting`: the visitor at each place, in the order of arrival."""
        place = min(range(len(waiting)), key=lambda place: self._last.get((line, waiting[place]), 0))
        self._n += 1
        self._last.pop((line, waiting[place]), None)
        self._last[line, waiting[place]] = self._n
        if len(self._last) > TURNS_KEPT:
            del self._last[next(iter(self._last))]
        return place


class _Used:
    """What visitors used since a period began, by what it is. For any thread."""

    def __init__(self, period: Callable[[], object]) -> None:
        """period: the one that is now; with the next, all counts begin anew."""
        self._period, self._now = period, period()
        self._of: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def spend(
        self, what: str, owner: str | None, n: float, most: float = inf, *, only_in: object = None
    ) -> float:
        """What a visitor had used before; n more are counted unless that is above `most`, or the period is
        another than `only_in`. Local mode counts nothing and has used less than nothing. Raises BadRequest as
        `check_known`.
        """
        check_known(owner)
        if owner is None:
            return -inf
        with self._lock:
            if self._now != (now := self._period()):
                self._now, self._of = now, {}
            used = self._of.get((what, owner), 0)
            if used + n <= most and only_in in (None, now):
                self._of[what, owner] = used + n
            return used


class Allowance:
    """What visitors read and logged today, and how long reading took. One per process, for any thread."""

    def __init__(self, today: Callable[[], date] = lambda: datetime.now(UTC).date()) -> None:
        self._used = _Used(today)

    def read(self, owner: str | None, n_tokens: int) -> None:
        """Counts tokens about to be embedded. Raises BadRequest, counting nothing, when the day has fewer."""
        used = self._used.spend("read", owner, n_tokens, TOKENS_PER_DAY)
        if used + n_tokens > TOKENS_PER_DAY:
            raise BadRequest(
                f"this takes about {n_tokens:,} tokens to read, and {TOKENS_PER_DAY - used:,} of the"
                f" {TOKENS_PER_DAY:,} that a visitor has for a day are left; choose something shorter, or"
                " come back after midnight UTC"
            )

    def read_today(self, owner: str | None) -> int:
        """Tokens counted for a visitor since midnight; 0 in local mode."""
        return 0 if owner is None else int(self._used.spend("read", owner, 0))

    def log(self, owner: str | None, n_values: int) -> None:
        """Counts Q-values about to be logged, four bytes each. Raises BadRequest as `read`."""
        n_bytes = 4 * n_values
        if self._used.spend("logged", owner, n_bytes, LOGGED_BYTES_PER_DAY) + n_bytes > LOGGED_BYTES_PER_DAY:
            raise BadRequest(
                f"your runs of today fill the {LOGGED_BYTES_PER_DAY:,} bytes of Q-values that a visitor may"
                " log in a day; search a shorter document, or come back after midnight UTC"
            )

    def take_time(self, owner: str | None, seconds: float) -> None:
        """Counts time spent on a visitor's files or map. Raises BadRequest beyond the day's."""
        if self._used.spend("seconds", owner, seconds) + seconds >= READING_SECONDS_PER_DAY:
            raise BadRequest(
                f"reading your files and making maps of them took the {READING_SECONDS_PER_DAY:,} s that a"
                " visitor has for it in a day; open plain text or Markdown, or come back after midnight UTC"
            )

    def meter(self, owner: str | None, n_characters: int) -> Callable[[OpenProgress], OpenProgress]:
        """Passes on an opening's events, and counts what must be embedded. Raises BadRequest as `read`."""
        check_known(owner)
        counted = False

        def count(progress: OpenProgress) -> OpenProgress:
            nonlocal counted
            if progress.stage == "embedding" and not counted:
                counted = True
                missing = 1 - progress.n_cached / max(progress.total, 1)
                self.read(owner, int(missing * n_characters / CHARACTERS_PER_TOKEN))
            return progress

        return count


class LlmAllowance:
    """What the app's own language model read and wrote for visitors this hour. One a process, thread-safe."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._hour = lambda: now().replace(minute=0, second=0, microsecond=0)
        self._used = _Used(self._hour)

    def reserve(self, owner: str | None, n_tokens: int) -> datetime:
        """Counts what a call may take; the hour it counts for. Raises LlmError, counting nothing."""
        hour = self._hour()  # first: of one that ends right now nothing may be given back to the next
        used = self._used.spend("tokens", owner, n_tokens, LLM_TOKENS_PER_HOUR)
        if used + n_tokens > LLM_TOKENS_PER_HOUR:
            raise LlmError(
                f"this call of the server's language model may take {n_tokens:,} tokens, and"
                f" {max(0, LLM_TOKENS_PER_HOUR - used):,} of the {LLM_TOKENS_PER_HOUR:,} that a visitor has"
                f" for an hour are left; come back after {hour + timedelta(hours=1):%H:%M} UTC"
            )
        return hour

    def settle(self, owner: str | None, hour: datetime, reserved: int, spent: int) -> None:
        """What a call has really taken, in the place of what was reserved for it."""
        self._used.spend("tokens", owner, spent - reserved, only_in=hour)
