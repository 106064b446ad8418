"""What the policy sees: each column where it could go wrong, at borders of documents and for equals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.types import join_workspaces, workspace_of_chunks
from core.corpus.index import ChunkIndex, Corpus
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.methods.resrag.features import NAMES, columns, look

CorpusOf = Callable[[DualEncoder, Sequence[str]], Corpus]


def column(table: np.ndarray, name: str) -> list[float]:
    return table[:, NAMES.index(name)].astype(np.float64).round(4).tolist()


def test_columns_know_where_documents_end() -> None:
    """Three documents of 2, 0 and 3 chunks."""
    cosines = np.array([0.1, 0.5, 0.4, 0.9, 0.9], np.float32)
    shares = np.array([1.0, 0.0, 0.5, 0.0, 0.2], np.float32)
    table = columns(
        cosines, shares, cosines + 0.1, np.ones(5), np.array([9, 9, 9, 9, 9]), np.array([0, 2, 2, 5])
    )
    assert table.shape == (5, len(NAMES))
    assert column(table, "cosine below the best") == [-0.8, -0.4, -0.5, 0.0, 0.0]
    assert column(table, "cosine below its document's best") == [-0.4, 0.0, -0.5, 0.0, 0.0]
    assert np.expm1(column(table, "rank by cosine")).round().tolist() == [4, 2, 3, 0, 1], (
        "equals in document order"
    )
    assert np.expm1(column(table, "rank by cosine in its document")).round().tolist() == [1, 0, 2, 0, 1]
    assert column(table, "cosine of the chunk before") == [0.1, 0.1, 0.4, 0.4, 0.9], (
        "the first of a document has its own"
    )
    assert column(table, "cosine of the chunk after") == [0.5, 0.5, 0.9, 0.9, 0.9]
    assert column(table, "words of the chunk before") == [0.0, 1.0, 0.0, 0.5, 0.0]
    assert column(table, "words of the chunk after") == [0.0, 0.0, 0.0, 0.2, 0.0]
    assert column(table, "first of its document") == [1, 0, 1, 0, 0]
    assert np.expm1(column(table, "chunks of its document")).round().tolist() == [2, 2, 3, 3, 3]
    assert np.expm1(column(table, "rank of the document by cosine")).round().tolist() == [1, 1, 0, 0, 0]
    assert np.expm1(column(table, "documents")).round().tolist() == [2] * 5, (
        "one without chunks is none to choose from"
    )
    assert column(table, "gain of the second look") == pytest.approx([0.1] * 5)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any), st.integers(0, 2**32 - 1))
def test_columns_are_finite_and_a_document_alone_has_the_same_ranks(sizes: list[int], seed: int) -> None:
    borders = np.concatenate([[0], np.cumsum(sizes)])
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, borders[-1]).astype(np.float32) for _ in range(5)]
    arrays[4] = np.abs(arrays[4]) * 100
    table = columns(*arrays, borders)  # type: ignore[arg-type]
    assert np.isfinite(table).all()
    for first, last in zip(borders.tolist(), borders[1:].tolist(), strict=False):
        if last > first:
            alone = columns(*(values[first:last] for values in arrays), np.array([0, last - first]))  # type: ignore[arg-type]
            for name in (
                "rank by cosine in its document",
                "cosine below its document's best",
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
    asked = encoder.encode_states([encoder.state_tokens(query, [])])[0].astype(np.float64)
    assert seen.cosines == pytest.approx(vectors @ asked / np.linalg.norm(asked), abs=2e-3)
    best = int(np.argmin(np.abs(np.array(column(seen.features, "cosine and words below the best")))))
    again = encoder.encode_states([encoder.state_tokens(query, [texts[best]])])[0].astype(np.float64)
    assert column(seen.features, "second look") == pytest.approx(
        (vectors @ again / np.linalg.norm(again)).tolist(), abs=2e-3
    )
    assert column(seen.features, "likeness to the best chunk") == pytest.approx(
        (vectors @ vectors[best]).tolist(), abs=2e-3
    )
    shuffled = Corpus(
        corpus.workspace, ChunkIndex(corpus.index.vectors[[3, 2, 1, 0]]).arranged(np.array([3, 2, 1, 0]))
    )
    assert look(query, shuffled, encoder).features == pytest.approx(seen.features, abs=1e-4), (
        "vectors may lie in any order"
    )


def test_the_budget_is_a_column_of_its_own(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    encoder = agents["none"].encoder
    seen = look("milk ?", corpus_of(encoder, ["the milk .", "the river ."]), encoder)
    few, many = seen.with_budget(1), seen.with_budget(8)
    assert (few[:, :-1] == many[:, :-1]).all()
    assert np.expm1(many[:, -1]) == pytest.approx(8)
    assert (seen.features[:, -1] == 0).all(), "what was seen stays as it is"
