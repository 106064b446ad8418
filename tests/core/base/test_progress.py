"""Work as a generator of its progress, and work that reports through a callback as one."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Generator
from contextlib import suppress

import pytest

from core.base.errors import BadDocument, Cancelled
from core.base.progress import finish, mapped, reported

Report = Callable[[int], None]


def test_what_reports_becomes_a_generator() -> None:
    def work(report: Report) -> str:
        for i in range(3):
            report(i)
        return "done"

    heard: list[int] = []
    assert finish(mapped(reported(work), lambda i: 10 * i), heard.append) == "done"
    assert heard == [0, 10, 20]


def test_whoever_hears_may_end_it_at_every_layer() -> None:
    ended: list[str] = []

    def work(report: Report) -> None:
        try:
            for i in range(1_000_000):
                report(i)
        except Cancelled:
            ended.append("the callback")
            raise

    def outer() -> Generator[int, None, None]:
        try:
            yield from reported(work)
        finally:
            ended.append("the generator")

    def hear(i: int) -> None:
        if i == 2:
            raise BadDocument("enough")

    with pytest.raises(BadDocument, match="enough"):
        finish(outer(), hear)
    assert ended == ["the callback", "the generator"], "its end was waited for"


def test_errors_arrive() -> None:
    def work(_: Report) -> None:
        raise BadDocument("page.html is empty")

    with pytest.raises(BadDocument, match="is empty"):
        finish(reported(work))


def test_what_failed_is_let_go_of_at_once() -> None:
    class Payload:
        """Large, say."""

    def asked() -> weakref.ref[Payload]:
        payload = Payload()

        def work(_: Report) -> None:
            raise BadDocument(str(payload))

        with suppress(BadDocument):
            finish(reported(work))
        return weakref.ref(payload)

    gc.disable()
    try:
        assert asked()() is None
    finally:
        gc.enable()
