"""What every retrieval method keeps to, and the simple ones against a second way of computing them."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import Stopped, event_from_json, event_to_json, fold
from core.base.types import workspace_of_chunks
from core.corpus.index import ChunkIndex, Corpus
from core.encode.encoder import DualEncoder
from core.methods.bm25 import Bm25
from core.methods.hybrid import Hybrid
from core.methods.protocol import reaches
from core.methods.qrag.agent import Agent
from core.methods.registry import BY_ENCODER, build_retriever, vectors_of
from core.methods.threshold import Threshold, cut_short
from core.methods.topk import TopK, TopKInOrder
from tests.core.conftest import CorpusOf, timeless

CHUNKS = [
    "mary went to the kitchen .",
    "john got the milk there .",
    "the milk was cold .",
    "the river was cold and long .",
    "john travelled to the office .",
    "john left the milk in the office .",
    "daniel picked up the apple .",
    "the milk was cold .",
    "mary came to the milk milk milk .",
    "sandra journeyed to the garden .",
]
QUERY = "where is the milk of john ?"
CONFIGS = {
    "greedy": EpisodeConfig(step_budget=4),
    "sampled": EpisodeConfig(step_budget=5, temperature=0.5, seed=3),
    "forbidden": EpisodeConfig(step_budget=8, forbidden=(1, 2, 5, 8)),
    "threshold": EpisodeConfig(step_budget=6, stop_threshold=1e6),
    "all": EpisodeConfig(step_budget=10),
    "planned": EpisodeConfig(step_budget=3, beam_width=3),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=list(CONFIGS))
@pytest.mark.parametrize("method", BY_ENCODER)
def test_every_method_keeps_the_protocol(
    agents: dict[str, Agent], corpus_of: CorpusOf, method: str, config: EpisodeConfig
) -> None:
    retriever, encoder = build_retriever(method, agents["relative10"].encoder, agents["none"].encoder)
    corpus = corpus_of(encoder, CHUNKS)
    events = list(retriever.retrieve(QUERY, corpus, config))
    again = list(retriever.retrieve(QUERY, corpus, config))
    assert timeless(events) == timeless(again)
    trace = fold(events)
    assert (trace.started.method, trace.started.query, trace.started.n_chunks) == (method, QUERY, len(CHUNKS))
    assert isinstance(events[-1], Stopped)
    budget = trace.started.config.step_budget
    assert budget == (len(CHUNKS) if method == "threshold" else config.step_budget)
    assert len(set(trace.chosen)) == len(trace.chosen) == trace.stopped.n_steps <= budget
    assert (trace.stopped.reason == "budget") == (len(trace.chosen) == budget)
    assert not set(trace.chosen) & set(config.forbidden)
    assert trace.stopped.chunk_id not in config.forbidden
    for step in trace.steps:
        assert step.scores.q_values.shape == (len(CHUNKS),)
        assert step.q_value == step.scores.q_values[step.chunk_id]
        assert step.text == CHUNKS[step.chunk_id]
        assert 0 < step.probability <= 1
    assert [
        event_from_json(json.loads(json.dumps(event_to_json(event), allow_nan=False))) for event in events
    ] == events


@pytest.mark.parametrize("method", BY_ENCODER)
def test_every_method_refuses_what_it_can_not_run(
    agents: dict[str, Agent], corpus_of: CorpusOf, method: str
) -> None:
    retriever, encoder = build_retriever(method, agents["relative10"].encoder, agents["none"].encoder)
    corpus = corpus_of(encoder, CHUNKS)
    with pytest.raises(BadRequest, match="step budget 11 is above 10"):
        next(retriever.retrieve(QUERY, corpus, EpisodeConfig(step_budget=11)))
    with pytest.raises(BadRequest, match="question is empty"):
        next(retriever.retrieve(" \n", corpus, EpisodeConfig()))
    empty = Corpus(workspace_of_chunks([], np.zeros(0)), ChunkIndex(np.zeros((0, encoder.dim), np.float32)))
    with pytest.raises(BadRequest, match="no chunks"):
        next(retriever.retrieve(QUERY, empty, EpisodeConfig()))
    with pytest.raises(BadRequest, match="'dense' does not exist; choose among qrag, hybrid"):
        build_retriever("dense", encoder, encoder)


def test_whose_vectors_a_method_searches() -> None:
    own = {agent: vectors_of("resrag", agent) for agent in ("multi-hop", "general", "narrative", "mine")}
    assert own == {"multi-hop": "multi-hop", "general": "general", "narrative": "general", "mine": "general"}
    assert {vectors_of(name, "multi-hop") for name in BY_ENCODER if name != "resrag"} == {"base"}


def cosines(encoder: DualEncoder, query: str, chunks: Sequence[str]) -> np.ndarray:
    """(N,) float64."""
    vectors = encoder.encode_chunks(chunks).astype(np.float64)
    state = encoder.encode_states([encoder.state_tokens(query, [])])[0].astype(np.float64)
    return vectors @ state / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(state))


def test_topk_sorts_all_chunks_by_inner_product(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    """Equal texts, 2 and 7 or all of 300, stay in document order wherever the list is cut; `document-order`
    takes the same chunks."""
    encoder = agents["none"].encoder
    corpus = corpus_of(encoder, CHUNKS)
    state = encoder.encode_states([encoder.state_tokens(QUERY, [])])[0]
    ranked = np.argsort(-corpus.index.q_values(state, np.zeros(len(CHUNKS))), kind="stable").tolist()
    for k in range(1, 11):
        trace = fold(TopK(encoder).retrieve(QUERY, corpus, EpisodeConfig(step_budget=k)))
        assert list(trace.chosen) == ranked[:k]
        in_order = fold(TopKInOrder(encoder).retrieve(QUERY, corpus, EpisodeConfig(step_budget=k)))
        assert list(in_order.chosen) == sorted(ranked[:k])
    config = EpisodeConfig(step_budget=4, forbidden=tuple(ranked[:2]))
    assert list(fold(TopK(encoder).retrieve(QUERY, corpus, config)).chosen) == ranked[2:6]
    equal = corpus_of(encoder, ["mary went there ."] * 300)
    trace = fold(TopK(encoder).retrieve("mary", equal, EpisodeConfig(step_budget=5)))
    assert trace.chosen == (0, 1, 2, 3, 4)


def test_threshold_keeps_exactly_what_reaches_it(
    agents: dict[str, Agent], corpus_of: CorpusOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = agents["none"].encoder
    corpus, expected = corpus_of(encoder, CHUNKS), cosines(encoder, QUERY, CHUNKS)
    method = Threshold(encoder)
    assert method.threshold == Threshold.PAPER_THRESHOLD == 0.4  # this checkpoint has none of its own
    between = [(a + b) / 2 for a, b in pairwise(sorted(expected)) if b - a > 1e-4]
    assert len(between) > 3
    for threshold in (-1.0, *between, 1.0):
        method.threshold = threshold
        # as many as reach it, whatever the other methods may take
        trace = fold(method.retrieve(QUERY, corpus, EpisodeConfig(step_budget=1)))
        assert set(trace.chosen) == set(np.flatnonzero(expected >= threshold).tolist())
        assert not cut_short(trace)
        worth = [step.q_value for step in trace.steps]
        assert worth == sorted(worth, reverse=True)
        np.testing.assert_allclose(worth, expected[list(trace.chosen)], atol=1e-6)
        if trace.stopped.reason == "threshold":
            assert trace.stopped.q_value == pytest.approx(max(expected[expected < threshold]), abs=1e-6)
    monkeypatch.setattr(Threshold, "MAX_CHUNKS", 3)
    config = EpisodeConfig(step_budget=1, stop_threshold=-1.0, forbidden=(4,))
    trace = fold(Threshold(encoder).retrieve(QUERY, corpus, config))
    assert (len(trace.chosen), trace.stopped.reason) == (3, "budget")
    told = "9 chunks reach the threshold of -1.00 and the best 3 are kept; raise the threshold for fewer"
    assert cut_short(trace) == told


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_threshold_is_reached_in_the_precision_of_q() -> None:
    q_values = np.array([0.7, 0.6], dtype=np.float32)
    reached = {threshold: reaches(q_values, threshold).tolist() for threshold in (0.7, 1e300, -1e300)}
    assert reached == {0.7: [True, False], 1e300: [False, False], -1e300: [True, True]}


def lucene_bm25(
    words: list[str], documents: list[list[str]], k1: float = 1.5, b: float = 0.75
) -> list[float]:
    """ln(1 + (N - n + 1/2) / (n + 1/2)) * f / (f + k1 (1 - b + b |d| / mean |d|)), summed over the words of
    the query.
    """
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        counts, score = Counter(document), 0.0
        for word in words:
            n = sum(word in other for other in documents)
            if n:
                rarity = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
                score += rarity * counts[word] / (counts[word] + k1 * (1 - b + b * len(document) / mean))
        scores.append(score)
    return scores


def test_bm25_is_lucenes_formula(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    corpus = corpus_of(agents["none"].encoder, CHUNKS)
    stop_words = {"the", "to", "was", "and", "in", "there"}  # those of Lucene that occur here
    documents = [
        [word for word in chunk.split() if word != "." and word not in stop_words] for chunk in CHUNKS
    ]
    trace = fold(
        Bm25().retrieve("where is the milk of John, and the zebra?", corpus, EpisodeConfig(step_budget=10))
    )
    scores = trace.steps[0].scores.q_values
    np.testing.assert_allclose(scores, lucene_bm25(["milk", "john"], documents), atol=1e-5)
    assert list(trace.chosen) == [i for i in np.argsort(-scores, kind="stable").tolist() if scores[i] > 0]
    assert trace.stopped.reason == "exhausted"  # the others share no word with the question


def test_without_a_known_word_bm25_has_nothing_and_hybrid_the_cosine(
    agents: dict[str, Agent], corpus_of: CorpusOf
) -> None:
    encoder, method = agents["none"].encoder, Bm25()
    trace = fold(method.retrieve("zebra ?", corpus_of(encoder, CHUNKS), EpisodeConfig()))
    assert (trace.chosen, trace.stopped.reason) == ((), "exhausted")
    assert trace.milliseconds > 0, "it has looked, though no step says how long"
    with pytest.raises(BadRequest, match="no chunk of the document holds a word"):
        next(method.retrieve("milk", corpus_of(encoder, ["...", "?"]), EpisodeConfig(step_budget=1)))
    for query, chunks in (("zebra ?", CHUNKS), ("milk", ["...", "?", "!"])):
        corpus = corpus_of(encoder, chunks)
        trace = fold(Hybrid(encoder).retrieve(query, corpus, EpisodeConfig(step_budget=2)))
        np.testing.assert_allclose(trace.steps[0].scores.q_values, cosines(encoder, query, chunks), atol=1e-6)


def test_hybrid_adds_words_to_the_cosine(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    """Equal texts, 2 and 7, stay in document order."""
    encoder = agents["none"].encoder
    corpus = corpus_of(encoder, CHUNKS)
    lexical = [[word for word in chunk.split() if word in ("milk", "john")] for chunk in CHUNKS]
    words = fold(Bm25().retrieve(QUERY, corpus, EpisodeConfig(step_budget=1))).steps[0].scores.q_values
    assert [score > 0 for score in words] == [bool(shared) for shared in lexical]
    expected = cosines(encoder, QUERY, CHUNKS) + 0.3 * words / max(words)
    trace = fold(Hybrid(encoder).retrieve(QUERY, corpus, EpisodeConfig(step_budget=10)))
    np.testing.assert_allclose(trace.steps[0].scores.q_values, expected, atol=1e-6)
    assert list(trace.chosen) == np.argsort(-trace.steps[0].scores.q_values, kind="stable").tolist()
    assert trace.chosen.index(2) < trace.chosen.index(7)


def test_a_slow_listener_is_no_time_of_the_method(
    agents: dict[str, Agent], corpus_of: CorpusOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    events = Bm25().retrieve(QUERY, corpus_of(agents["none"].encoder, CHUNKS), EpisodeConfig())
    next(events)
    clock[0] = 60.0
    assert next(events).milliseconds == 0.0
