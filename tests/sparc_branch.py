"""A branch of a SPARC round as tests write it down: from what it found to its verdict."""

from __future__ import annotations

from collections.abc import Sequence

from core.llm.protocol import Cost
from core.methods.sparc.events import Answered, Hit, Judged, Note, NoteUpdated, Retrieved, SparcEvent, Verdict


def branch_events(
    number: int,
    branch: int,
    texts: dict[int, str],
    notes: tuple[Note, Note],
    answer: str,
    verdict: Verdict,
    *,
    reason: str,
    cost: Cost,
    confidence: float | None = None,
    citations: Sequence[int] = (),
    milliseconds: float = 2.0,
) -> list[SparcEvent]:
    """`texts`: what was found, best first, by chunk id. `notes`: the memory before and after. `cost`: of each
    of the three agents.
    """
    found = tuple(
        Hit(chunk_id, 1.0 / place, text) for place, (chunk_id, text) in enumerate(texts.items(), start=1)
    )
    return [
        Retrieved(number, branch, found, milliseconds),
        NoteUpdated(number, branch, *notes, cost),
        Answered(number, branch, answer, confidence, tuple(citations), cost),
        Judged(number, branch, verdict, reason, cost),
    ]
