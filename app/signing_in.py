"""Names and passwords.

Who may sign in, and how often one may guess. Decides that each wrong password doubles the time until the next
one is looked at, for a name from one network address, so that nobody locks another out; and, so that many
addresses together guess no faster, that a name has so many wrong passwords an hour, wherever they come from.
A name that nobody has is slowed down as any other, and passwords are compared in constant time. Counts live
in memory.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from math import ceil

from gradio.routes import HTTPException
from pydantic import SecretStr

from app.front_door import caller

FREE_GUESSES = 3
"""Wrong passwords for a name from one address before the next waits a second, then twice that."""
LONGEST_WAIT = 300.0
"""Seconds; a day has 290 guesses from one address then."""
GUESSES_AN_HOUR = 60
"""Wrong passwords for a name from all addresses; beyond them one a minute is looked at."""
FORGET_SECONDS = 3600.0
"""Without a wrong password for so long, an address begins anew."""
MOST_KEPT = 10_000
"""Names, and pairs of names and addresses, that are remembered; the one not seen for longest goes first."""
SIGN_IN_HINT = (
    f"After {FREE_GUESSES} wrong passwords each further one has to wait: a second, then twice as long each"
    " time."
)
"""On the page that asks for name and password, which shows the same two words for every refusal."""
_SHARE = 3600.0 / GUESSES_AN_HOUR
_LONGEST_NAME = 200
"""Characters of a name that are remembered: anybody may send a long one."""


class Guesses:
    """Wrong passwords of late. One per process, for any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of_each: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        """By name and address: how many, and when the last one was."""
        self._of_all: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By name: how many, less one for each share of an hour that has passed, and when the last one was.
        """
        self._lock = threading.Lock()

    def wait(self, name: str, address: str) -> float:
        """Seconds until this address may try a password for this name; 0 is now."""
        with self._lock:
            n, last = self._of_each.get((name, address), (0.0, 0.0))
            pause = 0.0
            if n >= FREE_GUESSES:
                pause = last + min(LONGEST_WAIT, 2.0 ** min(n - FREE_GUESSES, 30.0)) - self._clock()
            return max(0.0, pause, (self._level(name) + 1 - GUESSES_AN_HOUR) * _SHARE)

    def count(self, name: str, address: str) -> None:
        """Takes note of a wrong password."""
        with self._lock:
            now = self._clock()
            n, last = self._of_each.pop((name, address), (0.0, now))
            self._of_each[name, address] = (n + 1 if now - last < FORGET_SECONDS else 1.0, now)
            level = self._level(name) + 1
            self._of_all.pop(name, None)
            self._of_all[name] = (level, now)
            for kept in (self._of_each, self._of_all):
                if len(kept) > MOST_KEPT:
                    kept.popitem(last=False)

    def forget(self, name: str, address: str) -> None:
        """Begins anew for somebody who knew the password."""
        with self._lock:
            self._of_each.pop((name, address), None)

    def _level(self, name: str) -> float:
        n, last = self._of_all.get(name, (0.0, 0.0))
        return max(0.0, n - (self._clock() - last) / _SHARE)


def sign_in(users: Sequence[tuple[str, SecretStr]], guesses: Guesses) -> Callable[[str, str], bool]:
    """Whether name and password belong together. Raises HTTPException after many wrong guesses."""
    passwords = dict(users)

    def fits(name: str, password: str) -> bool:
        who = (name[:_LONGEST_NAME], caller.get())
        if pause := guesses.wait(*who):
            detail = f"too many wrong passwords for this name; try again in {ceil(pause)} seconds"
            raise HTTPException(400, detail)  # of any other status Gradio's page says nothing
        secret = passwords.get(name, SecretStr(""))
        right = (
            secrets.compare_digest(secret.get_secret_value().encode(), password.encode())
            and name in passwords
        )
        guesses.forget(*who) if right else guesses.count(*who)
        return right

    return fits
