"""The agent over shards, which are asked for their best chunks alone.

A greedy choice, its ties, the rejected action and the lead over the fourth chunk need the best few chunks of
a look, so the shards tell no others: Q of those is NaN, as of chunks that were not searched. A run that
draws, or in which a person took part, asks for all scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.base.events import StepScores
from core.encode.encoder import DualEncoder
from core.encode.forward import StateTokens
from core.integrations.cluster.sharded import ShardedIndex
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode, Look
from core.methods.qrag.positions import chunk_positions

FEWEST = 4
"""Chunks that a look is asked for: the fourth tells how far the first is ahead
(`core.lab.evaluate.completeness`).
"""


class ShardedAgent(Agent):
    """An agent over corpora in a `ShardedIndex`. What a question's words add is computed and sent once."""

    def __init__(self, encoder: DualEncoder) -> None:
        super().__init__(encoder)
        self._last: tuple[object, np.ndarray | None, list[Any] | None] = (None, None, None)

    def seen(
        self, episode: Episode, chosen: Sequence[int], tokens: StateTokens, state_vector: np.ndarray
    ) -> Look:
        """A look with Q of the best chunks, where the others are not needed."""
        corpus, config, index = episode.corpus, episode.config, episode.corpus.index
        if not isinstance(index, ShardedIndex) or config.temperature or config.forced or config.searched:
            return super().seen(episode, chosen, tokens, state_vector)
        positions = chunk_positions(self.spec, corpus.borders, chosen, use_positions=config.use_positions)
        words = self._words_part(episode)
        sent = self._last[2]
        reranked = None
        if self.encoder.reranker is not None:
            first = index.look(state_vector, positions, words=sent, left_out=self._read(chosen))
            pool = _spread(index.best(first, self.spec.rerank_pool), len(corpus))
            available = np.isfinite(pool)
            available[[*chosen, *config.forbidden]] = False
            reranked = self._reranked(episode, chosen, pool, available)
        look = index.look(
            state_vector,
            positions,
            words=sent,
            added=None if reranked is None else (reranked.chunk_ids, reranked.parts),
            left_out=(*chosen, *config.forbidden),
        )
        q_values = _spread(index.best(look, max(FEWEST, config.beam_width)), len(corpus))
        turned = self.spec.position_kind != "none" and config.use_positions
        scores = StepScores(q_values, positions if turned else None)
        return Look(tokens, state_vector, words, reranked, scores, np.isfinite(q_values))

    def _words_part(self, episode: Episode) -> np.ndarray | None:
        key = (episode.corpus, episode.query)
        if self._last[0] != key:
            words, index = super()._words_part(episode), episode.corpus.index
            sent = index.keep(words) if words is not None and isinstance(index, ShardedIndex) else None
            self._last = (key, words, sent)
        return self._last[1]


def _spread(best: tuple[np.ndarray, np.ndarray], n_chunks: int) -> np.ndarray:
    """(N,) float32: Q of the chunks that were told, NaN for the others."""
    q_values = np.full(n_chunks, np.nan, np.float32)
    q_values[best[0]] = best[1]
    return q_values
