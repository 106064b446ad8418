"""The one protocol of all retrieval methods, and the simple ones: dense top-k, cosine threshold, BM25, hybrid
of the first and last, and RES-RAG's sets.

Every method turns (query, corpus, config) into the same events, scores of all chunks included, so that one
view, one log and one comparison serve them all. A method that looks once shows the same scores at each of its
steps. `config.step_budget` bounds the evidence of every method but threshold, whose evidence is as large as
its rule makes it; randomness comes from `config.seed`. Knows nothing of training, logs or pages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from core.bm25 import words_of
from core.config import EpisodeConfig, check_query
from core.encode.encoder import DualEncoder
from core.errors import BadRequest
from core.events import Event, RunStarted, StepScores, StepTaken, Stopped, Trace, fold
from core.index import Searchable
from core.qrag.agent import Agent, Episode
from core.qrag.planner import plan
from core.resrag.action import RESRAG
from core.resrag.features import WORD_WEIGHT, Look, cosines_of, look
from core.resrag.policy import LEAST_CHANCE, EvidencePolicy, load_policy, most_probable_set


class Retriever(Protocol):
    """A method of choosing chunks."""

    name: str
    score_name: str
    """What its scores are, for axes and tables."""

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """Events of one run. Raises BadRequest before the first."""
        ...


class AgentRetriever:
    """A Q-RAG agent, planning where the beam is wider than one. With the untrained encoder: multi-step
    retrieval without fine-tuning.
    """

    score_name = "Q"

    def __init__(self, agent: Agent) -> None:
        self.agent, self.name = agent, agent.name

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        return (
            plan(self.agent, query, corpus, config)
            if config.beam_width > 1
            else self.agent.run(query, corpus, config)
        )


class TopK:
    """The k chunks nearest to the query vector, by FAISS; positions play no part."""

    name, score_name = "topk", "inner product"

    def __init__(self, encoder: DualEncoder) -> None:
        self.encoder = encoder

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        _check(query, corpus, config)
        corpus.index.prepare_top_k()
        started = time.perf_counter()
        vector = self.encoder.encode_states([self.encoder.state_tokens(query, [])])[0]
        ids, _ = corpus.index.top_k(vector, min(len(corpus), config.step_budget + len(config.forbidden)))
        scores = corpus.index.q_values(vector, np.zeros(len(corpus)))
        near = np.flatnonzero(
            scores >= scores[ids].min()
        )  # FAISS orders equals as it likes; here the first in document order wins
        ranked = _allowed(near[np.argsort(-scores[near], kind="stable")], config)
        yield from one_look_events(
            self.name, self.encoder.spec.name, query, corpus, config, scores, ranked, started
        )


class Threshold:
    """Every chunk whose cosine with the query reaches a threshold, best first (the label heuristic of RES-RAG
    section 3.4.1), however many these are.

    The run's own configuration says so: its step budget is the smaller of MAX_CHUNKS and the number of
    chunks, whatever was asked for.
    """

    name, score_name = "threshold", "cosine"
    PAPER_THRESHOLD = 0.4
    MAX_CHUNKS = 500
    """Most chunks kept: a page, a log and a reader have room for them. `cut_short` tells when it cuts."""

    def __init__(self, encoder: DualEncoder) -> None:
        """The default threshold is the encoder's calibrated one; RES-RAG's 0.4 holds for another encoder and
        is the fall-back.
        """
        self.encoder = encoder
        self.threshold = (
            encoder.spec.cosine_threshold
            if encoder.spec.cosine_threshold is not None
            else self.PAPER_THRESHOLD
        )

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        started = time.perf_counter()
        threshold = self.threshold if config.stop_threshold is None else config.stop_threshold
        _check(query, corpus, config)
        config = config.with_(
            stop_threshold=threshold, step_budget=min(self.MAX_CHUNKS, len(corpus))
        )  # so that the run says what it used
        scores = _cosines(self.encoder, query, corpus)
        best = _ranked(scores, config)
        ranked = [i for i in best if scores[i] >= threshold]
        stop_at = best[len(ranked)] if len(ranked) < len(best) else None
        yield from one_look_events(
            self.name, self.encoder.spec.name, query, corpus, config, scores, ranked, started, stop_at
        )


def cut_short(trace: Trace) -> str:
    """That the threshold method found more than it may keep, in a sentence; empty for every other run."""
    seen, config = trace.scores_at(1), trace.started.config
    if trace.started.method != Threshold.name or seen is None or config.stop_threshold is None:
        return ""
    reaching = np.flatnonzero(seen.q_values >= config.stop_threshold)
    n = len({*reaching.tolist()} - {*config.forbidden})
    kept = len(trace.steps)
    return (
        ""
        if n <= kept
        else (
            f"{n:,} chunks reach the threshold of {config.stop_threshold:.2f} and the best {kept:,} are kept;"
            " raise the threshold for fewer"
        )
    )


class Bm25:
    """Lexical BM25 over the chunks' texts, see `core.bm25`."""

    name, score_name = "bm25", "BM25"

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`. Chunks that share no word with the query are never retrieved."""
        _check(query, corpus, config)
        if corpus.words.is_empty:
            raise BadRequest(
                "no chunk of the document holds a word that BM25 could count; choose another method"
            )
        started = time.perf_counter()
        scores = corpus.words.scores(words_of(query))
        ranked = [i for i in _ranked(scores, config) if scores[i] > 0]
        yield from one_look_events(self.name, "", query, corpus, config, scores, ranked, started)


class Hybrid:
    """Cosine and words in one sum: cosine + WORD_WEIGHT * BM25 / (largest BM25 of the query over the corpus),
    one weight for all documents.

    The words' part is 0 for all chunks where none shares a word with the query.
    """

    name, score_name = "hybrid", "cosine + words"

    def __init__(self, encoder: DualEncoder) -> None:
        self.encoder = encoder

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        _check(query, corpus, config)
        words = corpus.words  # counting them is no part of a search's time
        started = time.perf_counter()
        scores = _cosines(self.encoder, query, corpus) + np.float32(WORD_WEIGHT) * words.shares(
            words_of(query)
        )
        yield from one_look_events(
            self.name, self.encoder.spec.name, query, corpus, config, scores, _ranked(scores, config), started
        )


class EvidenceSet:
    """RES-RAG's light policy: the most probable set of chunks over all documents, at most as many as the
    budget, see `core.resrag`.

    `config.stop_threshold` is the chance above which a chunk is taken, by default that of being likelier
    taken than not; the run's own configuration says so. A set may be empty.
    """

    name, score_name = RESRAG, "chance"

    def __init__(self, encoder: DualEncoder, policy: EvidencePolicy | None = None) -> None:
        """policy: the one that ships by default. Raises BadCheckpoint."""
        self.encoder, self.policy = encoder, policy or load_policy()

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`."""
        _check(query, corpus, config)
        _ = corpus.words  # counting them is no part of a search's time
        started = time.perf_counter()
        yield from self.events(query, corpus, config, look(query, corpus, self.encoder), started)

    def events(
        self, query: str, corpus: Searchable, config: EpisodeConfig, seen: Look, started: float
    ) -> Iterator[Event]:
        """Those of `retrieve`, from a look at the question that was taken already; `started`: its beginning
        by `time.perf_counter`.
        """
        least = LEAST_CHANCE if config.stop_threshold is None else config.stop_threshold
        config = config.with_(stop_threshold=least)
        chances = self.policy.chances(seen.with_budget(config.step_budget))
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


def _cosines(encoder: DualEncoder, query: str, corpus: Searchable) -> np.ndarray:
    """(N,) float32 cosine of the query with every chunk."""
    return cosines_of(encoder.encode_states([encoder.state_tokens(query, [])])[0], corpus)


def _check(query: str, corpus: Searchable, config: EpisodeConfig) -> None:
    check_query(query)
    config.check_against(len(corpus))


def _ranked(scores: np.ndarray, config: EpisodeConfig) -> list[int]:
    """Ids of the best `step_budget` chunks that aren't forbidden, equals in document order."""
    wanted = min(len(scores), config.step_budget + len(config.forbidden))
    if wanted < len(scores):
        kth = np.partition(scores, len(scores) - wanted)[len(scores) - wanted]
        ids = np.flatnonzero(scores >= kth)
    else:
        ids = np.arange(len(scores))
    return _allowed(ids[np.argsort(-scores[ids], kind="stable")], config)


def _allowed(ids: np.ndarray, config: EpisodeConfig) -> list[int]:
    """The first `step_budget` of ranked ids that aren't forbidden."""
    forbidden = set(config.forbidden)
    return [i for i in ids.tolist() if i not in forbidden][: config.step_budget]


def one_look_events(
    method: str,
    checkpoint: str,
    query: str,
    corpus: Searchable,
    config: EpisodeConfig,
    scores: np.ndarray,
    ranked: Sequence[int],
    started: float,
    stop_at: int | None = None,
) -> Iterator[Event]:
    """The events of a method that scored once: `ranked` in order; `stop_at` is the best chunk it rejected by
    its threshold.
    """
    yield RunStarted(query, method, checkpoint, len(corpus), config)
    looked = StepScores(scores, None)
    milliseconds = 1000 * (time.perf_counter() - started)
    for step, chunk_id in enumerate(ranked, start=1):
        score = float(scores[chunk_id])
        text = corpus.text(chunk_id)
        yield StepTaken(
            step, chunk_id, score, 1.0, score, None, text, milliseconds if step == 1 else 0.0, scores=looked
        )
    if stop_at is not None:
        yield Stopped("threshold", len(ranked), stop_at, float(scores[stop_at]), scores=looked)
    else:
        yield Stopped("budget" if len(ranked) == config.step_budget else "exhausted", len(ranked))


def retrieve_all(retriever: Retriever, episodes: Sequence[Episode]) -> list[Trace]:
    """Complete runs, in order; an agent that doesn't plan embeds the states of all of them together. Raises
    BadRequest.
    """
    if not isinstance(retriever, AgentRetriever) or any(
        episode.config.beam_width > 1 for episode in episodes
    ):
        return [
            fold(retriever.retrieve(episode.query, episode.corpus, episode.config)) for episode in episodes
        ]
    events: list[list[Event]] = [[] for _ in episodes]
    for i, event in retriever.agent.run_batch(episodes):
        events[i].append(event)
    return [fold(own) for own in events]


METHODS = ("qrag", "topk", "bm25", "hybrid", "threshold", "multistep", "resrag")


def build_retriever(name: str, agent: DualEncoder, plain: DualEncoder) -> tuple[Retriever, DualEncoder]:
    """A method by its name, and the encoder whose vectors it searches. `plain` is the
    untrained base encoder.
    """
    match name:
        case "qrag":
            return AgentRetriever(Agent(agent)), agent
        case "multistep":
            return AgentRetriever(Agent(plain, "multistep")), plain
        case "topk":
            return TopK(plain), plain
        case "threshold":
            return Threshold(plain), plain
        case "bm25":
            return Bm25(), plain
        case "hybrid":
            return Hybrid(plain), plain
        case "resrag":
            return EvidenceSet(plain), plain
    raise BadRequest(f"method {name!r} does not exist; choose among {', '.join(METHODS)}")
