"""Scores of all chunks by turning the state, against turning every chunk in float64 with complex numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.types import workspace_of_chunks
from core.corpus.index import ChunkIndex, Corpus
from core.encode.checkpoint import CheckpointSpec
from core.methods.qrag.positions import chunk_positions

TOLERANCE = 2e-6
"""Of a float32 inner product, as a share of the product of the two lengths; 16 to 48 dimensions."""


def turned_chunk_scores(
    state: np.ndarray, vectors: np.ndarray, positions: np.ndarray, index: ChunkIndex
) -> np.ndarray:
    """(N,) float64: the grid, the rotation of every chunk, and the product, each written out once more."""
    grid = (
        positions
        if index.resolution is None
        else np.array([(p // index.resolution) * index.resolution for p in positions])
    )
    out = np.zeros(len(vectors))
    for state_part, chunk_parts in zip(
        np.split(state.astype(np.float64), index.halves),
        np.split(vectors.astype(np.float64), index.halves, axis=1),
        strict=True,
    ):
        size = len(state_part)
        frequencies = index.theta ** (-np.arange(0, size, 2) / size)
        turned = (chunk_parts[:, 0::2] + 1j * chunk_parts[:, 1::2]) * np.exp(1j * np.outer(grid, frequencies))
        out += (turned * np.conj(state_part[0::2] + 1j * state_part[1::2])).real.sum(axis=1)
    return out


def assert_same_scores(index: ChunkIndex, state: np.ndarray, positions: np.ndarray) -> None:
    vectors = index.vectors.cpu().numpy()
    scores = index.q_values(state, positions)
    assert scores.shape == (len(index),)
    assert scores.dtype == np.float32
    bound = TOLERANCE * np.linalg.norm(vectors, axis=1) * np.linalg.norm(state) + 1e-6
    assert (np.abs(scores - turned_chunk_scores(state, vectors, positions, index)) <= bound).all()


@st.composite
def position_specs(draw: st.DrawFn) -> CheckpointSpec:
    """Any position setting that a checkpoint may have."""
    return CheckpointSpec(
        name="drawn",
        trained=False,
        position_kind=draw(st.sampled_from(["none", "absolute", "relative"])),
        position_formula=draw(st.sampled_from(["paper", "linspace"])),
        position_scope=draw(st.sampled_from(["workspace", "document"])),
        position_step=draw(st.sampled_from([10.0, 20.0, 7.5])),
        position_span=draw(st.sampled_from([9.0, 18.0, 5.3])),
        position_resolution=draw(st.sampled_from([None, 0.25, 1.0])),
        halves=draw(st.sampled_from([1, 2, 4])),
    )


@given(
    position_specs(),
    st.lists(st.integers(0, 40), min_size=1, max_size=4),
    st.data(),
    st.integers(0, 2**32 - 1),
    st.sampled_from([np.float16, np.float32]),
)
def test_turned_state_equals_turned_chunks(
    spec: CheckpointSpec, sizes: list[int], data: st.DataObject, seed: int, dtype: type
) -> None:
    """Several documents of 0 to 40 chunks, any chosen set, D = 16."""
    borders = np.concatenate([[0], np.cumsum(sizes)])
    n = int(borders[-1])
    chosen = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=5)) if n else []
    rng = np.random.default_rng(seed)
    index = ChunkIndex(
        rng.normal(size=(n, 16)).astype(dtype),
        halves=spec.halves,
        theta=spec.rope_theta,
        resolution=spec.position_resolution,
    )
    assert_same_scores(index, rng.normal(size=16).astype(np.float32), chunk_positions(spec, borders, chosen))


@given(
    st.lists(st.floats(0, 50), max_size=60),
    st.sampled_from([None, 0.25, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_any_positions_at_all(positions: list[float], resolution: float | None, seed: int) -> None:
    """Positions in no order: runs of neighbours that share a grid point are found whatever the values are."""
    rng = np.random.default_rng(seed)
    index = ChunkIndex(
        rng.normal(size=(len(positions), 48)).astype(np.float32), halves=2, resolution=resolution
    )
    assert_same_scores(index, rng.normal(size=48).astype(np.float32), np.array(positions))


@pytest.mark.parametrize("resolution", [None, 0.25, 1.0])
def test_more_distinct_positions_than_are_turned_at_once(resolution: float | None) -> None:
    """20,000 chunks: absolute positions (all distinct), then long runs, then both kinds in one index."""
    rng = np.random.default_rng(1)
    index = ChunkIndex(rng.normal(size=(20_000, 16)).astype(np.float32), halves=2, resolution=resolution)
    state = rng.normal(size=16).astype(np.float32)
    every = np.arange(20_000, dtype=np.float64)
    for positions in (every, every / 1000, np.where(every < 9_000, every, 9_000 + every / 1000)):
        assert_same_scores(index, state, positions)


def test_a_corpus_refuses_vectors_of_other_texts() -> None:
    with pytest.raises(ValueError, match="2 chunks but 3 vectors"):
        Corpus(workspace_of_chunks(["a", "b"], np.ones(2)), ChunkIndex(np.ones((3, 4), np.float32)))


@given(
    position_specs(),
    st.lists(st.integers(0, 11), min_size=1, max_size=60),
    st.data(),
    st.integers(0, 2**32 - 1),
)
def test_an_arranged_index_is_an_index_over_the_rows_it_names(
    spec: CheckpointSpec, rows: list[int], data: st.DataObject, seed: int
) -> None:
    """Rows in any order, repeated or not, neighbours or not: the same scores as a copy of those vectors
    gives, and no copy is made.
    """
    rng = np.random.default_rng(seed)
    matrix, state = rng.standard_normal((12, 16), np.float32), rng.standard_normal(16, np.float32)
    chosen = data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=3))
    positions = chunk_positions(spec, np.array([0, len(rows)]), sorted(chosen))
    turning = {"halves": spec.halves, "theta": spec.rope_theta, "resolution": spec.position_resolution}
    whole, copy = ChunkIndex(matrix, **turning), ChunkIndex(matrix[rows], **turning)
    arranged = whole.arranged(np.array(rows))
    assert arranged.vectors.data_ptr() == whole.vectors.data_ptr()
    assert len(arranged) == len(rows)
    np.testing.assert_allclose(
        arranged.q_values(state, positions), copy.q_values(state, positions), atol=1e-4
    )
    np.testing.assert_allclose(arranged.norms, copy.norms)
    for position in (0.0, 13.7):
        one = arranged.q_value(state, len(rows) - 1, position)
        assert one == pytest.approx(copy.q_values(state, np.full(len(rows), position))[-1], abs=1e-4)


def test_an_arranged_index_scores_long_runs_of_rows() -> None:
    """Two stretches of one matrix around a row from elsewhere, as a haystack is: long enough to be scored
    stretch by stretch.
    """
    rng = np.random.default_rng(0)
    matrix, state = rng.standard_normal((100, 16), np.float32), rng.standard_normal(16, np.float32)
    rows = np.concatenate([np.arange(60, 99), [7], np.arange(0, 40)])
    index = ChunkIndex(matrix, halves=2).arranged(rows)
    np.testing.assert_allclose(index.q_values(state, np.zeros(80)), matrix[rows] @ state, atol=1e-5)
    index.prepare_top_k()
    ids, products = index.top_k(state, 5)
    best = np.argsort(-(matrix[rows] @ state))[:5]
    assert rows[ids].tolist() == rows[best].tolist()
    np.testing.assert_allclose(products, (matrix[rows] @ state)[best], atol=1e-5)
