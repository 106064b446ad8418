"""Every chunk that is like enough to the query, however many."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from core.base.config import EpisodeConfig
from core.base.events import Event, Trace
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder
from core.methods.protocol import Method, check, one_look_events, query_cosines, ranked, reaches

THRESHOLD = Method(
    name="threshold",
    label="threshold",
    sentence=(
        "Every chunk whose cosine with the question reaches the encoder's threshold, best first, however many"
    ),
    score_name="cosine",
)


class Threshold:
    """Every chunk whose cosine reaches a threshold, best first (label heuristic of RES-RAG section 3.4.1).

    The step budget of its runs is the smaller of MAX_CHUNKS and the number of chunks.
    """

    name = THRESHOLD.name
    PAPER_THRESHOLD = 0.4
    MAX_CHUNKS = 500
    """Most chunks kept: a page, a log and a reader have room for them. `cut_short` tells when it cuts."""

    def __init__(self, encoder: DualEncoder) -> None:
        """By default the encoder's calibrated threshold, else RES-RAG's 0.4, made for another encoder."""
        self.encoder, own = encoder, encoder.spec.cosine_threshold
        self.threshold = self.PAPER_THRESHOLD if own is None else own

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        started = time.perf_counter()
        threshold = self.threshold if config.stop_threshold is None else config.stop_threshold
        query = check(query, corpus, config)
        # so that the run says what it used
        config = config.with_(stop_threshold=threshold, step_budget=min(self.MAX_CHUNKS, len(corpus)))
        scores = query_cosines(self.encoder, query, corpus)
        best = ranked(scores, config)
        is_reached = reaches(scores, threshold)
        reaching = [i for i in best if is_reached[i]]
        stop_at = best[len(reaching)] if len(reaching) < len(best) else None
        yield from one_look_events(
            self.name, self.encoder.spec.name, query, corpus, config, scores, reaching, started, stop_at
        )


def cut_short(trace: Trace) -> str:
    """That the threshold method found more than it may keep, in a sentence; empty for every other run."""
    seen, config = trace.scores_at(1), trace.started.config
    if trace.started.method != THRESHOLD.name or seen is None or config.stop_threshold is None:
        return ""
    reaching = np.flatnonzero(reaches(seen.q_values, config.stop_threshold))
    n = len({*reaching.tolist()} - {*config.forbidden})
    n_kept = len(trace.steps)
    if n <= n_kept:
        return ""
    return (
        f"{n:,} chunks reach the threshold of {config.stop_threshold:.2f} and the best {n_kept:,} are kept;"
        " raise the threshold for fewer"
    )
