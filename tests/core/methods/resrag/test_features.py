"""What the policy sees: each column where it could go wrong, at borders of documents and for equals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.types import join_workspaces, workspace_of_chunks
from core.corpus.index import ChunkIndex, Corpus
from core.methods.qrag.agent import Agent
from core.methods.resrag.features import NAMES, columns, look
from tests.core.conftest import CorpusOf


def column(table: np.ndarray, name: str) -> list[float]:
    return table[:, NAMES.index(name)].astype(np.float64).round(4).tolist()


def test_columns_know_where_documents_end() -> None:
    """Three documents of 2, 0 and 3 chunks; equals in document order."""
    cosines = np.array([0.1, 0.5, 0.4, 0.9, 0.9], np.float32)
    shares = np.array([1.0, 0.0, 0.5, 0.0, 0.2], np.float32)
    table = columns(cosines, shares, cosines + 0.1, np.ones(5), np.full(5, 9), np.array([0, 2, 2, 5]))
    assert table.shape == (5, len(NAMES))
    for name, values in {
        "cosine below the best": [-0.8, -0.4, -0.5, 0.0, 0.0],
        "cosine below its document's best": [-0.4, 0.0, -0.5, 0.0, 0.0],
        "cosine of the chunk before": [0.1, 0.1, 0.4, 0.4, 0.9],  # the first of a document has its own
        "cosine of the chunk after": [0.5, 0.5, 0.9, 0.9, 0.9],
        "words of the chunk before": [0.0, 1.0, 0.0, 0.5, 0.0],
        "words of the chunk after": [0.0, 0.0, 0.0, 0.2, 0.0],
        "first of its document": [1, 0, 1, 0, 0],
        "gain of the second look": [0.1] * 5,
    }.items():
        assert column(table, name) == pytest.approx(values), name
    for name, counts in {
        "rank by cosine": [4, 2, 3, 0, 1],
        "rank by cosine in its document": [1, 0, 2, 0, 1],
        "chunks of its document": [2, 2, 3, 3, 3],
        "rank of the document by cosine": [1, 1, 0, 0, 0],
        "documents": [2] * 5,  # one without chunks is none to choose from
    }.items():
        assert np.expm1(column(table, name)).round().tolist() == counts, name


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any), st.integers(0, 2**32 - 1))
def test_columns_are_finite_and_a_document_alone_has_the_same_ranks(sizes: list[int], seed: int) -> None:
    borders = np.concatenate([[0], np.cumsum(sizes)])
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, borders[-1]).astype(np.float32) for _ in range(5)]
    arrays[4] = np.abs(arrays[4]) * 100
    table = columns(*arrays, borders)
    assert np.isfinite(table).all()
    for first, last in zip(borders.tolist(), borders[1:].tolist(), strict=False):
        if last > first:
            alone = columns(*(values[first:last] for values in arrays), np.array([0, last - first]))
            for name in (
                "rank by cosine in its document",
                "cosine of the chunk after",
                "chunks of its document",
            ):
                assert column(table[first:last], name) == column(alone, name)


def test_a_look_at_a_corpus(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    encoder = agents["none"].encoder
    texts = [
        "mary went to the kitchen .",
        "john got the milk there .",
        "the milk was cold .",
        "the river was long .",
    ]
    query = "who got the cold milk ?"
    parts = [workspace_of_chunks(part, np.ones(2)) for part in (texts[:2], texts[2:])]
    corpus = Corpus(join_workspaces(parts), corpus_of(encoder, texts).index)
    seen = look(query, corpus, encoder)
    vectors = encoder.encode_chunks(texts).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    def cosines(chosen: list[str]) -> list[float]:
        state = encoder.encode_states([encoder.state_tokens(query, chosen)])[0].astype(np.float64)
        return (vectors @ state / np.linalg.norm(state)).tolist()

    assert seen.cosines == pytest.approx(cosines([]), abs=2e-3)
    best = int(np.argmin(np.abs(np.array(column(seen.features, "cosine and words below the best")))))
    assert column(seen.features, "second look") == pytest.approx(cosines([texts[best]]), abs=2e-3)
    likeness = (vectors @ vectors[best]).tolist()
    assert column(seen.features, "likeness to the best chunk") == pytest.approx(likeness, abs=2e-3)
    index = ChunkIndex(corpus.index.vectors[[3, 2, 1, 0]]).arranged(np.array([3, 2, 1, 0]))
    shuffled = look(query, Corpus(corpus.workspace, index), encoder)
    assert shuffled.features == pytest.approx(seen.features, abs=1e-4), "vectors may lie in any order"
    few, many = seen.with_budget(1), seen.with_budget(8)
    assert (few[:, :-1] == many[:, :-1]).all()
    assert np.expm1(many[:, -1]) == pytest.approx(8), "the budget is a column of its own"
    assert (seen.features[:, -1] == 0).all(), "what was seen stays as it is"
