"""When an episode ends by itself (Q-RAG appendix B)."""

from __future__ import annotations

from core.base.events import Stopped
from core.methods.protocol import reaches
from core.methods.qrag.episode import Look
from core.methods.qrag.policy import greedy


def stop_of(look: Look, n_chosen: int, threshold: float | None) -> Stopped | None:
    """The end before the next choice, None to go on; without a threshold as long as chunks last."""
    q_values = look.scores.q_values
    if not look.available.any():
        return Stopped("exhausted", n_chosen, milliseconds=look.milliseconds, scores=look.scores)
    if threshold is None:
        return None
    best, _ = greedy(q_values, look.available)
    if reaches(q_values[best], threshold):
        return None
    return Stopped("threshold", n_chosen, best, float(q_values[best]), look.milliseconds, look.scores)
