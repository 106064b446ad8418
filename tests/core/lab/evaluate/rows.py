"""Rows for tests: what a method did, without a model."""

from __future__ import annotations

from typing import Any

from core.base.rows import EpisodeRow
from core.lab.evaluate.documents import DocumentRow


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


def document_row(**changes: Any) -> DocumentRow:
    """A question with one quote, found by the first of two chunks of a document of nine."""
    values: dict[str, Any] = {
        "id": "a",
        "kind": "single",
        "document": "d",
        "method": "auto",
        "ran": "qrag",
        "checkpoint": "general",
        "k": 4,
        "stops": False,
        "covered": (True,),
        "n_chunks": 9,
        "chunk_ids": (3, 1),
        "scores": (0.5, 0.25),
        "evidence": ((30, 40), (10, 20)),
        "stopped": False,
        "answer": None,
        "answer_confidence": 0.75,
        "answer_reliable": True,
        "answers": (),
        "milliseconds": 2.0,
    }
    return DocumentRow(**values | changes)
