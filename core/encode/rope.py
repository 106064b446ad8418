"""Rotary positions (Q-RAG eq. 9).

Rotations are orthogonal, so <s, R_p a> = <R_-p s, a>: chunk vectors stay as they were embedded and the STATE
vector is turned, once per distinct position. Each of its `halves` equal parts (the reference trains two
critics side by side) is turned on its own by the same frequencies, adjacent components as a complex number,
in torch: numpy's sines take five times as long.
"""

from __future__ import annotations

import numpy as np

from core.base.later import torch


def frequencies(dim: int, halves: int, theta: float) -> np.ndarray:
    """(dim / halves / 2,) float64 angles per unit of position. Raises ValueError for parts that are odd."""
    part = dim // halves
    if part * halves != dim or part % 2:
        raise ValueError(f"dim={dim} can't be split into {halves} parts of even size")
    return theta ** (-np.arange(0, part, 2, dtype=np.float64) / part)


def turn(vectors: np.ndarray, positions: np.ndarray, *, halves: int, theta: float) -> np.ndarray:
    """R_p v for each vector: (..., D) and positions (...,) of the same leading shape (or broadcastable) ->
    (..., D) float64.

    >>> turn(np.array([1.0, 0.0]), np.array(np.pi / 2), halves=1, theta=1.0).round(6).tolist()
    [0.0, 1.0]
    """
    dim = vectors.shape[-1]
    # (..., part / 2)
    angles = np.asarray(positions, dtype=np.float64)[..., None] * frequencies(dim, halves, theta)
    pairs = torch.from_numpy(np.array(vectors, dtype=np.float64, order="C")).reshape(
        *vectors.shape[:-1], halves, dim // halves // 2, 2
    )
    # broadcast over the halves
    turns = torch.polar(torch.ones((), dtype=torch.float64), torch.from_numpy(angles)).unsqueeze(-2)
    turned: np.ndarray = torch.view_as_real(torch.view_as_complex(pairs) * turns).flatten(-3).numpy()
    return turned


def on_grid(positions: np.ndarray, resolution: float | None) -> np.ndarray:
    """Positions floored to multiples of `resolution`; as they are without one."""
    return positions if resolution is None else np.floor(positions / resolution) * resolution
