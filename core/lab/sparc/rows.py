"""One row per question and method over a pooled corpus.

Rows become lines of JSON here. A row holds ids, counts and scores, no texts. A SPARC run of some depth gives
a row for each smaller depth as well, since rounds don't know how many may follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from core.base.rows import grouped, read_lines
from core.methods.sparc.events import EndReason, Strategy


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class SparcRow:
    """One question through one method."""

    id: str
    task: str
    split: str
    seed: int
    n_chunks: int
    support: tuple[int, ...]
    method: str
    """"sparc", or a baseline."""
    agents: str
    """Who decided and answered."""
    checkpoint: str
    """Agent behind the strategy qrag."""
    fingerprint: str
    """Of that agent."""
    strategies: tuple[Strategy, ...]
    """What could be searched with; of a baseline with a single search, the one."""
    width: int
    depth: int
    first_round: str
    k: int
    evidence: tuple[int, ...]
    """Final evidence, at most k chunks; IRCoT's is not cut."""
    second_round: tuple[int, ...] | None = None
    """Chunks that the branches of round 2 retrieved; None where there was none."""
    rounds: int
    """Rounds, or steps of a baseline."""
    stop_reason: EndReason | None
    """None for baselines that nothing ended early."""
    overlap: float | None
    """Mean over rounds of the branches' mean pairwise Jaccard index; None below two branches."""
    calls: int
    llm_tokens: int
    """In and out."""
    evidence_tokens: int
    seconds: float
    """Wall clock, branches at the same time, indexes being there."""
    empty: bool
    """No answer was given."""
    confidence: float | None
    em: float
    f1: float
    accuracy: float
    """The answer contains an accepted one."""

    @property
    def question(self) -> tuple[str, str, int, str]:
        """What two methods' rows must have in common to be compared."""
        return self.task, self.split, self.seed, self.id

    @property
    def setting(self) -> tuple[object, ...]:
        """All that rows of one evaluation share."""
        about = (self.task, self.split, self.seed, self.method, self.agents, self.checkpoint)
        how = (self.fingerprint, self.strategies, self.width, self.depth, self.first_round, self.k)
        return about + how


def read_sparc_rows(path: Path) -> list[SparcRow]:
    """The rows of a file, gzipped if its name ends in .gz. Raises BadRequest, naming the wrong line."""
    return read_lines(path, SparcRow, "SPARC row", "study sparc --rows")


def group_sparc(rows: Sequence[SparcRow]) -> list[tuple[SparcRow, ...]]:
    """Rows that differ in nothing but the question, in order of their first rows."""
    return grouped(rows, lambda row: row.setting)
