"""Rows for tests: what a method did, without a model."""

from __future__ import annotations

from typing import Any

from core.base.rows import EpisodeRow


def make_row(
    chosen: tuple[int, ...] = (4, 9, 2),
    best_q: tuple[float, ...] = (0.9, 0.8, 0.1, 0.0),
    support: tuple[int, ...] = (4, 9),
    **changes: Any,
) -> EpisodeRow:
    """A greedy agent's row over 20 chunks of 10 tokens."""
    values: dict[str, Any] = {
        "id": "q1",
        "task": "qa2",
        "split": "test",
        "length": 1000,
        "seed": 0,
        "n_chunks": 20,
        "support": support,
        "method": "qrag",
        "checkpoint": "agent",
        "fingerprint": "f0",
        "trained_on": "stories",
        "step_budget": max(1, len(chosen)),
        "stop_threshold": 0.5,
        "chosen": chosen,
        "q_values": best_q[: len(chosen)],
        "best_q": best_q,
        "tokens": (10,) * len(chosen),
        "milliseconds": 1.5,
    }
    return EpisodeRow(**values | changes)
