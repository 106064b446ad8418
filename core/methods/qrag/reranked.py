"""What a reranker adds to Q of a look's best chunks.

It reads them from the best on, by the rest of Q. An agent may have it end early: after the first ones it
reads four more at a time as long as they changed which chunks lead: for the first choice the best one, for
each further choice one more. Evidence often goes on in the next chunk, so a chunk may get a share of what its
neighbour got. At a further step it may read those that lead once more, behind the chosen ones.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from core.corpus.index import Searchable
from core.corpus.tiles import best_chunks
from core.encode.checkpoint import CheckpointSpec
from core.methods.qrag.episode import Episode, Reranked

FURTHER = 4
"""Chunks that are read at a time after the first."""
_MOST_KEPT = 256
"""States of a corpus whose parts are kept: some hundred bytes each."""


def read_best(
    read: Callable[[np.ndarray], np.ndarray],
    pool: np.ndarray,
    q_values: np.ndarray,
    borders: np.ndarray,
    spec: CheckpointSpec,
    n_leading: int,
    known: Reranked | None = None,
    forbidden: Sequence[int] = (),
) -> Reranked:
    """What is added to those chunks of `pool` (n,) that were read; `q_values` (n,): the rest of Q, falling.

    `read`: log-odds of chunks by their ids. `borders`: first chunks of documents. `n_leading`: as many chunks
    lead, the choice and those before it. `known`: what was read for a look before. `forbidden`: ids of chunks
    that never lead.
    """
    first = len(pool) if spec.rerank_first is None else min(spec.rerank_first, len(pool))
    log_odds = np.zeros(0, np.float32) if known is None else known.log_odds

    def parts_of(n_read: int) -> np.ndarray:
        nonlocal log_odds
        if n_read > len(log_odds):
            log_odds = np.concatenate((log_odds, read(pool[len(log_odds) : n_read])))
        parts = rerank_parts(log_odds[:n_read], spec.rerank_weight)
        parts += np.float32(spec.rerank_beside) * parts_beside(pool[:n_read], parts, borders)
        return parts

    def leading(n_read: int, n: int) -> set[int]:
        return set(best_chunks(may_lead[:n_read] + parts_of(n_read), 0, n).tolist())

    may_lead = np.where(np.isin(pool, forbidden), -np.inf, q_values)
    n_read = first
    for n in range(1, min(n_leading, spec.step_budget) + 1):  # what a step reads, the next ones have read
        settled = False
        while n_read < len(pool) and not settled:
            before = leading(n_read, n)
            n_read = min(n_read + FURTHER, len(pool))
            settled = leading(n_read, n) == before
    parts = parts_of(n_read)
    return Reranked(pool[:n_read], parts, log_odds[:n_read])


def read_again(
    read: Callable[[np.ndarray], np.ndarray],
    reranked: Reranked,
    q_values: np.ndarray,
    available: np.ndarray,
    spec: CheckpointSpec,
) -> Reranked:
    """`reranked` as it is behind the chosen chunks, for the `spec.rerank_again` that lead.

    `read`: log-odds behind the chosen chunks, by ids. `q_values` (n,): the rest of Q. `available` (n,): which
    may be chosen.
    """
    ranked = np.argsort(-np.where(available, q_values + reranked.parts, -np.inf), kind="stable")
    rows = ranked[: min(spec.rerank_again, int(available.sum()))]
    parts = reranked.parts.copy()
    parts[rows] += np.float32(spec.rerank_weight) * (read(reranked.chunk_ids[rows]) - reranked.log_odds[rows])
    return replace(reranked, parts=parts)


def rerank_parts(log_odds: np.ndarray, weight: float) -> np.ndarray:
    """(n,) float32, what is added to Q in a pool: 0 for the least, so that none falls below the unread."""
    parts: np.ndarray = np.float32(weight) * (log_odds - log_odds.min(initial=np.inf))
    return parts


def parts_beside(chunk_ids: np.ndarray, parts: np.ndarray, borders: np.ndarray) -> np.ndarray:
    """(n,) float32: the larger part of the two chunks next to each in its document; 0 without either."""
    order = np.argsort(chunk_ids)
    ids, sorted_parts = chunk_ids[order], parts[order]
    adjoin = np.flatnonzero((np.diff(ids) == 1) & ~np.isin(ids[1:], borders))
    beside, found = np.zeros_like(parts), np.zeros_like(parts)
    beside[adjoin + 1] = sorted_parts[adjoin]
    beside[adjoin] = np.maximum(beside[adjoin], sorted_parts[adjoin + 1])
    found[order] = beside
    return found


class Reranks:
    """The last parts by corpus, question, what was searched, which chosen chunks were read, and which of the
    leading ones were not to be read behind them. Thread-safe.
    """

    def __init__(self) -> None:
        self._by_corpus: WeakKeyDictionary[Searchable, OrderedDict[object, Reranked]] = WeakKeyDictionary()
        self._changing = threading.Lock()

    def kept(
        self, episode: Episode, read: Sequence[int], left_out: Sequence[int] | None = None
    ) -> Reranked | None:
        """What was kept of a state, whose chunks `read` were read with the question. `left_out`: those that
        were not to be read behind them; None where nothing was read behind the chosen ones.
        """
        with self._changing:
            return self._by_corpus.get(episode.corpus, OrderedDict()).get(self._key(episode, read, left_out))

    def keep(
        self, reranked: Reranked, episode: Episode, read: Sequence[int], left_out: Sequence[int] | None = None
    ) -> None:
        """Keeps it for the next looks."""
        with self._changing:
            of_corpus = self._by_corpus.setdefault(episode.corpus, OrderedDict())
            of_corpus[self._key(episode, read, left_out)] = reranked
            while len(of_corpus) > _MOST_KEPT:
                of_corpus.popitem(last=False)

    @staticmethod
    def _key(episode: Episode, read: Sequence[int], left_out: Sequence[int] | None) -> object:
        aside = None if left_out is None else tuple(left_out)
        return episode.query, episode.config.searched, tuple(read), aside
