"""An episode, and what an agent sees before each of its actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.base.config import EpisodeConfig, check_query
from core.base.events import StepScores
from core.corpus.index import Searchable
from core.encode.forward import StateTokens


@dataclass(frozen=True, eq=False)
class Episode:
    """One query over one corpus. `id`: of its random stream in a batch. Raises BadRequest for a bad query."""

    query: str
    corpus: Searchable
    config: EpisodeConfig
    id: str = ""
    prefix: tuple[int, ...] = ()
    """Chunks already chosen, in order of choice."""
    hears: Callable[[int, int], None] | None = None
    """Told how many of how many chunks a reranker has read for a step; ends the run by raising."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "query", check_query(self.query))


@dataclass(frozen=True, eq=False, slots=True)
class Reranked:
    """A part of Q that only some chunks have."""

    chunk_ids: np.ndarray
    """(n,) the chunks that were read, best first by the rest of Q."""
    parts: np.ndarray
    """(n,) float32, what is added to Q of each."""
    log_odds: np.ndarray
    """(n,) float32, what the reranker said of each, with the chosen chunks that the state holds."""

    def part_of(self, chunk_id: int) -> float:
        """What is added to Q of a chunk; 0 for one that was not read."""
        return float(self.parts[self.chunk_ids == chunk_id].sum())


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    """What the agent sees before an action: Q of all chunks, which are available, and what it cost."""

    tokens: StateTokens
    state_vector: np.ndarray
    """(D,) float32."""
    words: np.ndarray | None
    """(N,) float32, the words' part of Q; None for an agent that counts none."""
    reranked: Reranked | None
    """The reranker's part of Q; None for an agent without one."""
    scores: StepScores
    available: np.ndarray
    milliseconds: float = 0.0
    """With its share of what was embedded together; 0 until that is known."""
