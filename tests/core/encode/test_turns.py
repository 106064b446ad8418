"""Who waits for an answer goes before what is embedded for later."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.encode.turns import give_way, urgent


def test_nothing_waits_while_nothing_is_urgent() -> None:
    began = time.monotonic()
    give_way(10)
    assert time.monotonic() - began < 1


def test_what_gives_way_goes_on_when_the_last_urgent_work_ends() -> None:
    went_on = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with urgent():
            with urgent():
                pool.submit(lambda: (give_way(60), went_on.set()))
                assert not went_on.wait(0.2)
            assert not went_on.wait(0.2), "one of the two is still urgent"
        assert went_on.wait(10)


def test_work_that_never_ends_keeps_nobody_for_good() -> None:
    with urgent():
        began = time.monotonic()
        give_way(0.1)
        assert 0.1 <= time.monotonic() - began < 5


def test_work_that_fails_is_over() -> None:
    with pytest.raises(ValueError, match="it failed"), urgent():
        raise ValueError("it failed")
    began = time.monotonic()
    give_way(10)
    assert time.monotonic() - began < 1
