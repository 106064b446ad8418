"""Bounds of every number and date that comes from outside."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from core.base.config import MAX_SEED
from core.base.errors import LogError

EARLIEST, BEFORE = datetime(1970, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)
"""When anything may have been made: traces count nanoseconds since 1970 in 64 bits."""
MAX_INTEGER = 2**53 - 1
"""Largest integer of which no reader of JSON makes another one."""
MAX_FLOAT = 1e38
"""Near the largest of 32 bits, as Q-values are: sums of many stay finite."""
MAX_COUNT = 1_000_000_000
"""Inside columns of 32 bits, with room for the row behind the last step."""
MAX_MILLISECONDS = 86_400_000
"""A day: as many as a run may have events, one after the other, end before those 64 bits do."""

_COUNTS = ("step", "n_steps", "fork_step", "n_tied", "step_budget", "beam_width", "top_k_actions")
_BY_NAME = dict.fromkeys(_COUNTS, (0, MAX_COUNT)) | {
    "seed": (0, MAX_SEED),
    "milliseconds": (0, MAX_MILLISECONDS),
}


def check_bounds(value: Any, name: str = "") -> None:
    """Raises LogError for a number or a date in `value` that is out of bounds. `name`: of the field."""
    match value:
        case dict():
            for key, inner in value.items():
                check_bounds(inner, str(key))
        case list() | tuple():
            for inner in value:
                check_bounds(inner, name)
        case int() | float():
            most = MAX_INTEGER if isinstance(value, int) else MAX_FLOAT
            low, high = _BY_NAME.get(name, (-most, most))
            if not low <= value <= high:  # true of what is not a number, too
                raise LogError(f"{name[:40]!r} is {str(value)[:40]} and must be between {low} and {high}")
        case datetime() if not EARLIEST <= value < BEFORE:
            raise LogError(
                f"{name!r} is {value} and must be in the years {EARLIEST.year} to {BEFORE.year - 1}"
            )
