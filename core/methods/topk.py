"""The chunks nearest to the query: what a usual retrieval system finds."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from core.base.config import EpisodeConfig
from core.base.events import Event
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder
from core.methods.protocol import Method, allowed, check, one_look_events

TOPK = Method(
    name="topk",
    label="top-k",
    sentence=(
        "The chunks nearest to the question by the untrained encoder, all at once: what a usual RAG system"
        " retrieves"
    ),
    score_name="inner product",
)


class TopK:
    """The k chunks nearest to the query vector, by FAISS; positions play no part."""

    name = TOPK.name

    def __init__(self, encoder: DualEncoder) -> None:
        self.encoder = encoder

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        query = check(query, corpus, config)
        corpus.index.prepare_top_k()
        started = time.perf_counter()
        vector = self.encoder.encode_states([self.encoder.state_tokens(query, [])])[0]
        ids, _ = corpus.index.top_k(vector, min(len(corpus), config.step_budget + len(config.forbidden)))
        scores = corpus.index.q_values(vector, np.zeros(len(corpus)))
        # FAISS orders equals as it likes; here the first in document order wins
        near = np.flatnonzero(scores >= scores[ids].min())
        ranked = allowed(near[np.argsort(-scores[near], kind="stable")], config)
        yield from one_look_events(
            self.name, self.encoder.spec.name, query, corpus, config, scores, ranked, started
        )
