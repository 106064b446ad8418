"""A language model learning to write evidence sets.

What the questions held out say before, after the warm-up and at the end, and what each update of GRPO was
paid, from the events of each tuning (see `core.lab.tune.set_tuner`). Pure functions of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.base.errors import BadRequest
from core.views.charts import Cell, Chart, Line, Report, Table

Events = Sequence[dict[str, Any]]

_MEASURED = {
    "valid": "valid",
    "reward": "reward",
    "answer_f1": "answer F1",
    "support_f1": "support F1",
    "support_recall": "support recall",
    "chunks": "chunks",
    "tokens": "tokens",
}
"""Columns by the name that events have for them."""
_TOLD = {"reward": "Reward of the sets drawn", "valid": "Share of them that are valid actions"}


def tunings(all_events: Sequence[Events]) -> Report:
    """A table, and the curves of GRPO. Raises BadRequest for a tuning that measured nothing yet."""
    rows: list[tuple[Cell, ...]] = []
    for number, events in enumerate(all_events, start=1):
        measured = [event for event in events if event["event"] == "held_out"]
        if not measured:
            raise BadRequest(
                f"tuning {number} has measured nothing yet; wait for its first held-out questions"
            )
        rows += [
            (
                number,
                "before" if event["step"] == 0 else f"after {event['step']} updates",
                events[0]["n_held_out"],
                *(event[name] for name in _MEASURED),
            )
            for event in measured
        ]
    charts = [
        Chart(title, "update", name, lines)
        for name, title in _TOLD.items()
        if (lines := _lines(all_events, name))
    ]
    note = "Held-out questions at temperature 0; a reply that is no action has found nothing and costs most."
    columns = ("tuning", "when", "n", *_MEASURED.values())
    return Report("tunings", (Table("Evidence sets written", columns, tuple(rows)),), tuple(charts), (note,))


def _lines(all_events: Sequence[Events], name: str) -> tuple[Line, ...]:
    lines = []
    for number, events in enumerate(all_events, start=1):
        steps = [event for event in events if event["event"] == "step" and name in event]
        x = tuple(float(event["step"]) for event in steps)
        lines.append(Line(f"tuning {number}", x, tuple(event[name] for event in steps)))
    return tuple(line for line in lines if line.x)
