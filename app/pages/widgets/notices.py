"""What needs attention, and how far something is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from core.base.errors import UserError
from core.corpus.opening import OpenProgress
from core.views.draw.nodes import Node, h
from core.views.draw.words import duration

_NOTHING: Mapping[Any, Any] = MappingProxyType({})


def notice(text: str, kind: str = "error", *buttons: Node) -> list[Node]:
    """One sentence where something needs attention; nothing for an empty text."""
    if not text:
        return []
    role = "alert" if kind == "error" else "status"
    return [h("div", {"class": f"qx-notice qx-{kind}", "role": role}, h("span", text), *buttons)]


def changed_since(made: str, differs: Mapping[str, bool], *buttons: Node, joint: str = ", ") -> list[Node]:
    """Whether what is shown still fits what is asked for. differs: by name, what may have changed."""
    words = joint.join(name for name, changed in differs.items() if changed)
    return notice(f"Changed since {made}: {words}." if words else "", "outdated", *buttons)


def passing(text: str, kind: str = "error") -> list[Node]:
    """A notice that stands until it is closed, or something else happens."""
    return notice(
        text, kind, h("button.qx-btn.qx-close", {"data-dismiss": "", "aria-label": "Close this notice"}, "×")
    )


def notice_in(place: Any, beside: Mapping[Any, Any] = _NOTHING) -> Callable[[UserError], dict[Any, Any]]:
    """What a handler could not do becomes a notice there (see `packs`), and the page changes `beside`."""
    return lambda error: {**beside, place: notice(str(error))}


def passing_in(place: Any) -> Callable[[UserError], dict[Any, list[Node]]]:
    """The same with a notice that can be closed."""
    return lambda error: {place: passing(str(error))}


_STAGES = {
    "reading": ("Reading", "parts"),
    "chunking": ("Cutting into chunks", "characters"),
    "embedding": ("Embedding", "chunks"),
    "indexing": ("Building the index", "chunks"),
}
"""What is said of a stage, and what it counts."""


def progress(report: OpenProgress) -> list[Node]:
    """A stage's bar, with the time left where it is known."""
    name, unit = _STAGES[report.stage]
    cached = f" · {report.n_cached:,} known already" if report.n_cached else ""
    if report.total <= 1:
        return bar(report, f"{name}…")
    left = time_left(report.seconds_left)
    return bar(report, f"{name}: {report.done:,} of {report.total:,} {unit}{cached}{left}")


def time_left(seconds: float | None) -> str:
    """The end of a line; empty where it is not known."""
    return "" if seconds is None else f" · about {duration(seconds)} left"


def bar(report: OpenProgress, words: str) -> list[Node]:
    """How far a stage is, beside words of it."""
    return progress_bar(words, _STAGES[report.stage][0], report.done, max(report.total, 1))


def progress_bar(words: str, name: str, done: int | None = None, total: int = 1) -> list[Node]:
    """Words and a bar of that name. `done`: None where nobody knows how far it is."""
    reached = {} if done is None else {"value": done, "max": total}
    bar = h("progress", {**reached, "aria-label": name})
    return [h("div.qx-progress", {"role": "status"}, h("span", words), bar)]


def preparing() -> list[Node]:
    """Before the first progress comes in."""
    return progress_bar("Reading…", "Reading")
