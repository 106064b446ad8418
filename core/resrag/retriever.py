"""RES-RAG's light policy as one retrieval method among others."""

from __future__ import annotations

import time
from collections.abc import Iterator

from core.config import EpisodeConfig
from core.encode.encoder import DualEncoder
from core.events import Event
from core.index import Searchable
from core.methods.protocol import Method, check, one_look_events
from core.resrag.features import look
from core.resrag.policy import LEAST_CHANCE, EvidencePolicy, load_policy, most_probable_set

RESRAG = Method(
    name="resrag",
    label="RES-RAG",
    sentence=(
        "The smallest set over all documents that should answer, chosen at once by a small policy trained for"
        " answer and cost; it may take fewer"
    ),
    score_name="chance",
)


class EvidenceSet:
    """RES-RAG's light policy: the most probable set of chunks over all documents, at most as many as the
    budget, see `core.resrag`.

    `config.stop_threshold` is the chance above which a chunk is taken, by default that of being likelier
    taken than not; the run's own configuration says so. A set may be empty.
    """

    name = RESRAG.name

    def __init__(self, encoder: DualEncoder, policy: EvidencePolicy | None = None) -> None:
        """policy: the one that ships by default. Raises BadCheckpoint."""
        self.encoder, self.policy = encoder, policy or load_policy()

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        check(query, corpus, config)
        least = LEAST_CHANCE if config.stop_threshold is None else config.stop_threshold
        config = config.with_(stop_threshold=least)
        _ = corpus.words  # counting them is no part of a search's time
        started = time.perf_counter()
        chances = self.policy.chances(look(query, corpus, self.encoder).with_budget(config.step_budget))
        taken = most_probable_set(chances, config.step_budget, least, config.forbidden)
        left = (
            most_probable_set(chances, len(taken) + 1, -1.0, config.forbidden)[len(taken) :]
            if len(taken) < config.step_budget
            else []
        )
        yield from one_look_events(
            self.name,
            self.encoder.spec.name,
            query,
            corpus,
            config,
            chances,
            taken,
            started,
            left[0] if left else None,
        )
