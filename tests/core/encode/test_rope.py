"""Rotations against complex numbers: a pair (x, y) turned by an angle is (x + iy) e^(i angle)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.encode.rope import frequencies, on_grid, turn


def turned_by_complex_numbers(vector: np.ndarray, position: float, halves: int, theta: float) -> np.ndarray:
    """R_p v for one vector (D,), float64, component pairs as complex numbers."""
    parts = []
    for part in np.split(vector.astype(np.float64), halves):
        angles = [position * theta ** (-2 * j / len(part)) for j in range(len(part) // 2)]
        pairs = (part[0::2] + 1j * part[1::2]) * np.exp(1j * np.array(angles))
        parts.append(np.stack([pairs.real, pairs.imag], axis=1).ravel())
    return np.concatenate(parts)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(2, 1), (8, 1), (8, 2), (24, 4), (48, 8), (6, 3)]),
    st.sampled_from([10.0, 10_000.0]),
    st.floats(-1e5, 1e5),
)
def test_turn_is_multiplication_by_unit_complex_numbers(
    seed: int, shape: tuple[int, int], theta: float, position: float
) -> None:
    dim, halves = shape
    vector = np.random.default_rng(seed).normal(size=dim)
    expected = turned_by_complex_numbers(vector, position, halves, theta)
    # cos and sin of angles near 1e5 carry rounding of some 1e-11
    np.testing.assert_allclose(
        turn(vector, np.array(position), halves=halves, theta=theta), expected, rtol=0, atol=1e-9
    )


def test_frequencies_start_at_one_turn_per_unit_and_fall() -> None:
    values = frequencies(16, 2, 10_000.0)
    assert values[0] == 1.0
    assert (np.diff(values) < 0).all()
    assert len(values) == 4


@pytest.mark.parametrize(("dim", "halves"), [(6, 2), (7, 1), (10, 3)])
def test_parts_of_odd_size_are_refused(dim: int, halves: int) -> None:
    with pytest.raises(ValueError, match=f"dim={dim}"):
        frequencies(dim, halves, 10_000.0)


@given(st.lists(st.floats(0, 1000), max_size=20), st.sampled_from([0.25, 0.5, 1.0]))
def test_the_grid_floors(values: list[float], resolution: float) -> None:
    positions = np.array(values)
    grid = on_grid(positions, resolution)
    assert (grid <= positions).all()
    assert (positions - grid < resolution).all()
    np.testing.assert_array_equal(np.mod(grid, resolution), 0)
    assert on_grid(positions, None) is positions
