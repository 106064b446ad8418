"""RES-RAG's light policy as one retrieval method among others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from core.base.config import RESRAG, EpisodeConfig
from core.base.events import Event
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder
from core.methods.protocol import Method, check, one_look_events
from core.methods.resrag.card import policy_for
from core.methods.resrag.features import QuestionFeatures, look
from core.methods.resrag.sets import most_probable_set

if TYPE_CHECKING:
    from core.methods.resrag.policy import EvidencePolicy

RESRAG_METHOD = Method(
    name=RESRAG,
    label="RES-RAG",
    sentence=(
        "The smallest set over all documents that should answer, chosen at once by a small policy trained for"
        " answer and cost; it may take fewer"
    ),
    score_name="chance",
)


class EvidenceSet:
    """RES-RAG's light policy: the most probable set over all documents, within the budget, perhaps empty.

    `config.stop_threshold` is the chance above which a chunk is taken, by default the policy's own.
    """

    name = RESRAG

    def __init__(self, encoder: DualEncoder, policy: EvidencePolicy | None = None) -> None:
        """policy: by default the one that ships for the encoder. Raises BadCheckpoint."""
        from core.methods.resrag.policy import load_policy  # with torch

        self.encoder, self.policy = encoder, policy or load_policy(policy_for(encoder.spec.name))

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        query = check(query, corpus, config)
        _ = corpus.words  # counting them is no part of a search's time
        started = time.perf_counter()
        yield from self.events(query, corpus, config, look(query, corpus, self.encoder), started)

    def events(
        self, query: str, corpus: Searchable, config: EpisodeConfig, seen: QuestionFeatures, started: float
    ) -> Iterator[Event]:
        """Those of `retrieve` from a look already taken; `started`: its beginning by `time.perf_counter`."""
        least = self.policy.least_chance if config.stop_threshold is None else config.stop_threshold
        config = config.with_(stop_threshold=least)
        chances = self.policy.chances(seen.with_budget(config.step_budget))
        taken = most_probable_set(chances, config.step_budget, least, config.forbidden)
        left: list[int] = []
        if len(taken) < config.step_budget:
            left = most_probable_set(chances, len(taken) + 1, -1.0, config.forbidden)[len(taken) :]
        stopped_at = left[0] if left else None
        yield from one_look_events(
            self.name, self.encoder.spec.name, query, corpus, config, chances, taken, started, stopped_at
        )
