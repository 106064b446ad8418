"""What a reranker adds to Q of a look's best chunks.

And the last of it that was computed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from core.index import Searchable

if TYPE_CHECKING:
    from core.qrag.agent import Episode

_MOST_KEPT = 256
"""States of a corpus whose parts are kept: some hundred bytes each."""


@dataclass(frozen=True, eq=False, slots=True)
class Reranked:
    """A part of Q that only some chunks have."""

    chunk_ids: np.ndarray
    """(n,) the chunks that were read, best first by the rest of Q."""
    parts: np.ndarray
    """(n,) float32, what is added to Q of each."""

    def part_of(self, chunk_id: int) -> float:
        """What is added to Q of a chunk; 0 for one that was not read."""
        return float(self.parts[self.chunk_ids == chunk_id].sum())


def rerank_parts(log_odds: np.ndarray, weight: float) -> np.ndarray:
    """(n,) float32, what is added to Q of the chunks of a pool: nothing for the least likely, so that no
    chunk of it falls below those that were not read.
    """
    parts: np.ndarray = np.float32(weight) * (log_odds - log_odds.min(initial=np.inf))
    return parts


class Reranks:
    """Parts by corpus, question, what was searched and which chosen chunks were read. Thread-safe."""

    def __init__(self) -> None:
        self._by_corpus: WeakKeyDictionary[Searchable, OrderedDict[object, Reranked]] = WeakKeyDictionary()
        self._changing = threading.Lock()

    def get(self, episode: Episode, read: Sequence[int]) -> Reranked | None:
        """What was kept of a state, whose chunks `read` were read with the question."""
        with self._changing:
            return self._by_corpus.get(episode.corpus, OrderedDict()).get(_key(episode, read))

    def keep(self, episode: Episode, read: Sequence[int], reranked: Reranked) -> Reranked:
        """Keeps it for the next looks, and gives it back."""
        with self._changing:
            of_corpus = self._by_corpus.setdefault(episode.corpus, OrderedDict())
            of_corpus[_key(episode, read)] = reranked
            while len(of_corpus) > _MOST_KEPT:
                of_corpus.popitem(last=False)
        return reranked


def _key(episode: Episode, read: Sequence[int]) -> object:
    return episode.query, episode.config.searched, tuple(read)
