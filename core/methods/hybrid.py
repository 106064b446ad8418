"""Cosine and words in one sum."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from core.base.config import EpisodeConfig
from core.base.events import Event
from core.corpus.index import Searchable
from core.corpus.words import words_of
from core.encode.encoder import DualEncoder
from core.methods.protocol import Method, check, one_look_events, query_cosines, ranked

HYBRID = Method(
    name="hybrid",
    label="hybrid",
    sentence=(
        "Top-k and BM25 in one sum, all at once: the cosine with the question, and a bonus for sharing its"
        " rare words"
    ),
    score_name="cosine + words",
)
WORD_WEIGHT = 0.3
"""Of BM25's share beside the cosine."""


def hybrid_scores(encoder: DualEncoder, query: str, corpus: Searchable) -> np.ndarray:
    """(N,) float32 cosine + WORD_WEIGHT * BM25 / (largest BM25 of the query over the corpus, if any)."""
    shares = corpus.words.shares(words_of(query))
    return query_cosines(encoder, query, corpus) + np.float32(WORD_WEIGHT) * shares


class Hybrid:
    """Cosine and words in one sum, one weight for all documents."""

    name = HYBRID.name

    def __init__(self, encoder: DualEncoder) -> None:
        self.encoder = encoder

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        query = check(query, corpus, config)
        _ = corpus.words  # counting them is no part of a search's time
        started = time.perf_counter()
        scores = hybrid_scores(self.encoder, query, corpus)
        yield from one_look_events(
            self.name, self.encoder.spec.name, query, corpus, config, scores, ranked(scores, config), started
        )
