"""A language model learning to write evidence sets.

What the held-out questions say before, after the warm-up and at the end, and what each update of GRPO was
paid, from the events of each tuning (see `core.lab.tune.set_tuner`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from core.base.errors import BadRequest
from core.lab.studies.tables import filled, lines_of
from core.views.charts import Cell, Chart, Report

Event = dict[str, Any]
Measured = tuple[int, Event, Event]
"""Number of a tuning, its first event, and one on held-out questions."""

_COLUMNS: dict[str, Callable[[Measured], Cell]] = {
    "tuning": lambda of: of[0],
    "when": lambda of: f"after {of[2]['step']} updates" if of[2]["step"] else "before",
    "n": lambda of: of[1]["n_held_out"],
    "valid": lambda of: of[2]["valid"],
    "reward": lambda of: of[2]["reward"],
    "answer F1": lambda of: of[2]["answer_f1"],
    "support F1": lambda of: of[2]["support_f1"],
    "support recall": lambda of: of[2]["support_recall"],
    "chunks": lambda of: of[2]["chunks"],
    "tokens": lambda of: of[2]["tokens"],
}
_TOLD = {"reward": "Reward of the sets drawn", "valid": "Share of them that are valid actions"}


def tunings(all_events: Sequence[Sequence[Event]]) -> Report:
    """A table, and the curves of GRPO. Raises BadRequest for a tuning that measured nothing yet."""
    measured: list[Measured] = []
    charts = []
    for number, events in enumerate(all_events, start=1):
        held_out = [event for event in events if event["event"] == "held_out"]
        if not held_out:
            raise BadRequest(
                f"tuning {number} has measured nothing yet; wait for its first held-out questions"
            )
        measured += [(number, events[0], event) for event in held_out]
    for name, title in _TOLD.items():
        lines = lines_of(
            (f"tuning {number}", float(event["step"]), event[name])
            for number, events in enumerate(all_events, start=1)
            for event in events
            if event["event"] == "step" and name in event
        )
        if lines:
            charts.append(Chart(title, "update", name, lines))
    note = "Held-out questions at temperature 0; a reply that is no action has found nothing and costs most."
    return Report("tunings", (filled("Evidence sets written", _COLUMNS, measured),), tuple(charts), (note,))
