"""Names and passwords.

Each wrong password doubles the time until the next one is looked at, for a name from one network, so that
nobody locks another out. So that many networks together guess no faster, a name has so many wrong passwords
an hour, wherever they come from; networks that signed in under that name before are exempt, so that an attack
doesn't lock its owner out. A name that nobody has is slowed down as any other, and passwords are compared in
constant time. Counts and networks live in memory: a restart forgets both.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from ipaddress import IPv4Address, IPv6Network, ip_address
from math import ceil
from typing import TypeVar

from fastapi import HTTPException
from pydantic import SecretStr

from app.front_door import caller

FREE_GUESSES = 3
"""Wrong passwords for a name from one network before the next waits a second, then twice that."""
LONGEST_WAIT = 300.0
"""Seconds; a day has 290 guesses from one network then."""
GUESSES_AN_HOUR = 60
"""Wrong passwords for a name from all networks but those it signed in from; then one a minute is tried."""
FORGET_SECONDS = 3600.0
"""Without a wrong password for so long, a network begins anew."""
MOST_KEPT = 10_000
"""Names, and pairs of names and networks, that are remembered; the one not seen for longest goes first, but
no name that may sign in.
"""
_WAITS = "each further one has to wait: a second, then twice as long each time."
SIGN_IN_HINT = f"After {FREE_GUESSES} wrong passwords {_WAITS}"
"""On the page that asks for name and password, which shows the same two words for every refusal."""
_SHARE = 3600.0 / GUESSES_AN_HOUR
_LONGEST_NAME = 200
"""Characters of a name that are remembered: anybody may send a long one."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class Guesses:
    """Wrong passwords of late. One per process, for any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, names: Collection[str] = ()) -> None:
        """names: those that may sign in."""
        self._clock, self._names = clock, frozenset(names)
        self._of_each: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        """By name and network: how many, and when the last one was."""
        self._of_all: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By name: how many, less one for each share of an hour since, and when the last one was."""
        self._signed_in: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Names, and networks from which their passwords came."""
        self._lock = threading.Lock()

    def wait(self, name: str, network: str) -> float:
        """Seconds until this network may try a password for this name; 0 is now."""
        with self._lock:
            n, last = self._of_each.get((name, network), (0.0, 0.0))
            pause = 0.0
            if n >= FREE_GUESSES:
                pause = last + min(LONGEST_WAIT, 2.0 ** min(n - FREE_GUESSES, 30.0)) - self._clock()
            if (name, network) not in self._signed_in:
                pause = max(pause, (self._level(name) + 1 - GUESSES_AN_HOUR) * _SHARE)
            return max(0.0, pause)

    def count(self, name: str, network: str) -> None:
        """Takes note of a wrong password."""
        with self._lock:
            now = self._clock()
            n, last = self._of_each.get((name, network), (0.0, now))
            _keep(self._of_each, (name, network), (n + 1 if now - last < FORGET_SECONDS else 1.0, now))
            _keep(self._of_all, name, (self._level(name) + 1, now), self._names)

    def welcome(self, name: str, network: str) -> None:
        """Takes note of the right password: the network's count begins anew."""
        with self._lock:
            self._of_each.pop((name, network), None)
            _keep(self._signed_in, (name, network), None)

    def _level(self, name: str) -> float:
        n, last = self._of_all.get(name, (0.0, 0.0))
        return max(0.0, n - (self._clock() - last) / _SHARE)


def _keep(kept: OrderedDict[_K, _V], key: _K, value: _V, always: Collection[_K] = ()) -> None:
    """Puts an entry last; where there are too many the first goes that isn't one of `always`."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > MOST_KEPT + len(always):
        kept.pop(next(one for one in kept if one not in always))


def network_of(address: str) -> str:
    """What counts as one guesser: an IPv4 address, or the /64 of an IPv6 address: one line has all of it."""
    try:
        found = ip_address(address)
    except ValueError:
        return address  # of a proxy that names none
    if isinstance(found, IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or IPv6Network((int(found), 64), strict=False))


def sign_in(users: Sequence[tuple[str, SecretStr]], guesses: Guesses) -> Callable[[str, str], bool]:
    """Whether name and password belong together. Raises HTTPException after many wrong guesses."""
    passwords = dict(users)

    def fits(name: str, password: str) -> bool:
        who = (name[:_LONGEST_NAME], network_of(caller.get()))
        if pause := guesses.wait(*who):
            detail = f"too many wrong passwords for this name; try again in {ceil(pause)} seconds"
            raise HTTPException(400, detail)  # of any other status Gradio's page says nothing
        secret = passwords.get(name, SecretStr("")).get_secret_value()
        given = password.encode(errors="replace")  # a form may say that it is in UTF-7, with half characters
        right = secrets.compare_digest(secret.encode(), given) and name in passwords
        guesses.welcome(*who) if right else guesses.count(*who)
        return right

    return fits
