"""What a reranker adds to Q of a look's best chunks.

It reads them from the best on, by the rest of Q. An agent may have it end early: after the first ones it goes
on, four chunks at a time, as long as the last four changed which chunks lead. So a question that the first
ones settle costs little, and one that they don't is looked for deeper. Evidence often goes on in the next
chunk, so a chunk may get a share of what its neighbour got. At a further step it may read those that lead
once more, behind the chosen ones. Keeps the last that was computed.
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
AGAIN = 2
"""Those that are read at a time behind the chosen ones, twice as long."""
_MOST_KEPT = 256
"""States of a corpus whose parts are kept: some hundred bytes each."""


def read_best(
    read: Callable[[np.ndarray], np.ndarray],
    pool: np.ndarray,
    q_values: np.ndarray,
    borders: np.ndarray,
    spec: CheckpointSpec,
) -> Reranked:
    """What is added to those chunks of `pool` (n,) that were read; `q_values` (n,): the rest of Q, falling.

    `read`: log-odds of chunks by their ids. `borders`: first chunks of documents. As many chunks lead as the
    agent takes by default.
    """
    n_read = len(pool) if spec.rerank_first is None else min(spec.rerank_first, len(pool))
    log_odds = read(pool[:n_read])
    before: set[int] | None = None
    while True:
        parts = rerank_parts(log_odds, spec.rerank_weight)
        parts += np.float32(spec.rerank_beside) * parts_beside(pool[:n_read], parts, borders)
        leading = set(best_chunks(q_values[:n_read] + parts, 0, spec.step_budget).tolist())
        if n_read == len(pool) or leading == before:
            return Reranked(pool[:n_read], parts, log_odds)
        before = leading
        log_odds = np.concatenate((log_odds, read(pool[n_read : n_read + FURTHER])))
        n_read = len(log_odds)


def read_again(
    read: Callable[[np.ndarray], np.ndarray],
    reranked: Reranked,
    q_values: np.ndarray,
    available: np.ndarray,
    spec: CheckpointSpec,
) -> Reranked:
    """`reranked` as it is behind the chosen chunks, for those that lead: AGAIN are read at a time until the
    best one was, or `spec.rerank_again` were.

    `read`: log-odds behind the chosen chunks, by ids. `q_values` (n,): the rest of Q. `available` (n,): which
    may be chosen.
    """
    parts = reranked.parts.copy()
    is_read = np.zeros(len(parts), dtype=bool)
    while int(is_read.sum()) < spec.rerank_again:
        ranked = np.argsort(-np.where(available, q_values + parts, -np.inf), kind="stable")
        ranked = ranked[: int(available.sum())]
        if not len(ranked) or is_read[ranked[0]]:
            break
        rows = ranked[~is_read[ranked]][: min(AGAIN, spec.rerank_again - int(is_read.sum()))]
        change = read(reranked.chunk_ids[rows]) - reranked.log_odds[rows]
        parts[rows] += np.float32(spec.rerank_weight) * change
        is_read[rows] = True
    return replace(reranked, parts=parts)


def rerank_parts(log_odds: np.ndarray, weight: float) -> np.ndarray:
    """(n,) float32, what is added to Q of the chunks of a pool: nothing for the least likely, so that no
    chunk of it falls below those that were not read.
    """
    parts: np.ndarray = np.float32(weight) * (log_odds - log_odds.min(initial=np.inf))
    return parts


def parts_beside(chunk_ids: np.ndarray, parts: np.ndarray, borders: np.ndarray) -> np.ndarray:
    """(n,) float32: the larger part of the two chunks next to each of (n,) chunks in its document; 0 where
    neither is among them.
    """
    order = np.argsort(chunk_ids)
    ids, sorted_parts = chunk_ids[order], parts[order]
    adjoin = np.flatnonzero((np.diff(ids) == 1) & ~np.isin(ids[1:], borders))
    beside, found = np.zeros_like(parts), np.zeros_like(parts)
    beside[adjoin + 1] = sorted_parts[adjoin]
    beside[adjoin] = np.maximum(beside[adjoin], sorted_parts[adjoin + 1])
    found[order] = beside
    return found


class Reranks:
    """Parts by corpus, question, what was searched, which chosen chunks were read, and which of the leading
    ones were not to be read behind them. Thread-safe.
    """

    def __init__(self) -> None:
        self._by_corpus: WeakKeyDictionary[Searchable, OrderedDict[object, Reranked]] = WeakKeyDictionary()
        self._changing = threading.Lock()

    def of(
        self,
        episode: Episode,
        read: Sequence[int],
        left_out: Sequence[int],
        made: Callable[[], Reranked],
    ) -> Reranked:
        """What was kept of a state, whose chunks `read` were read with the question, or else `made` for the
        next looks.
        """
        key = episode.query, episode.config.searched, tuple(read), tuple(left_out)
        with self._changing:
            kept = self._by_corpus.get(episode.corpus, OrderedDict()).get(key)
        if kept is not None:
            return kept
        reranked = made()
        with self._changing:
            of_corpus = self._by_corpus.setdefault(episode.corpus, OrderedDict())
            of_corpus[key] = reranked
            while len(of_corpus) > _MOST_KEPT:
                of_corpus.popitem(last=False)
        return reranked
