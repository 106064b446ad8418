"""The chunks nearest to the query, by rank or by place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

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


DOCUMENT_ORDER = replace(
    TOPK,
    name="document-order",
    label="document order",
    sentence="The chunks of top-k, handed over in the order of the text (DOS RAG)",
)


class TopK:
    """The k chunks nearest to the query vector, by FAISS; positions play no part."""

    name = TOPK.name
    in_document_order = False

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
        ranked = sorted(ranked) if self.in_document_order else ranked
        yield from one_look_events(
            self.name, self.encoder.spec.name, query, corpus, config, scores, ranked, started
        )


class TopKInOrder(TopK):
    """The chunks of top-k, each later in the text than the one before.

    The order is one for a language model that reads chunks as they are chosen. Our readers read evidence in
    document order whatever the method.
    """

    name = DOCUMENT_ORDER.name
    in_document_order = True
