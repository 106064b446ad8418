"""One step of the agent over 160,000 and 400,000 chunks.

Documents of some 10 and 25 million tokens. Ours turns the state once for each grid position. Compared with
turning every chunk, as the reference implementation does, in vectorised torch; and with a plain FAISS
inner-product search over the same vectors, which knows no positions and returns ten chunks instead of all
scores. Four relative intervals, as after three choices. The numbers are compared too.
"""

from __future__ import annotations

import numpy as np
import torch

from benchmarks import Row, median_times
from core.corpus.index import ChunkIndex
from core.encode.checkpoint import CheckpointSpec
from core.encode.rope import frequencies, on_grid
from core.methods.qrag.positions import chunk_positions

SIZES = (160_000, 400_000)
DIM = 384
HALVES = 2
GRIDS = (1.0, 0.25)
REPEATS = 7
_BLOCK = 65_536
"""Chunks turned at once: the complex copies of all would not stay in small machines."""


def rows() -> list[Row]:
    """Milliseconds a step, and the largest difference of a Q."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out = []
    for n in SIZES:
        rng = np.random.default_rng(0)
        vectors = rng.standard_normal((n, DIM), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        state = rng.standard_normal(DIM, dtype=np.float32)
        state /= np.linalg.norm(state)
        chosen = (n // 5, n // 2, n // 2 + 40)
        for grid in GRIDS:
            out += _compare(vectors, state, chosen, grid, device)
    return out


def _compare(
    vectors: np.ndarray, state: np.ndarray, chosen: tuple[int, ...], grid: float, device: str
) -> list[Row]:
    n = len(vectors)
    spec = CheckpointSpec(name="benchmark", trained=False, position_kind="relative", position_resolution=grid)
    positions = chunk_positions(spec, np.array([0, n]), chosen)
    index = ChunkIndex(vectors, halves=HALVES, theta=spec.rope_theta, resolution=grid, device=device)
    index.top_k(state, 10)  # FAISS takes its copy of the vectors before the clock starts
    turned = "turning every chunk"
    works = {
        "ours": lambda: index.q_values(state, positions),
        turned: lambda: turn_every_chunk(index, state, positions),
        "FAISS IndexFlatIP, no positions, 10 best": lambda: index.top_k(state, 10),
    }
    seconds = {name: taken.wall for name, taken in median_times(works, REPEATS).items()}
    where = f"{n:,} chunks, grid {grid:g}"
    ours = seconds.pop("ours")
    difference = float(np.abs(works["ours"]() - works[turned]()).max())
    return [
        *(
            Row(f"one step, {where}", 1000 * ours, "ms", against, ours / theirs)
            for against, theirs in seconds.items()
        ),
        Row(f"largest difference of a Q, {where}", difference, "Q at vectors of length 1", turned),
    ]


@torch.inference_mode()
def turn_every_chunk(index: ChunkIndex, state: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """(N,) float32: each chunk as complex numbers, turned by its position, multiplied with the state."""
    device = index.vectors.device
    angles_per_unit = torch.from_numpy(frequencies(index.dim, index.halves, index.theta)).to(device)
    rho = torch.from_numpy(on_grid(positions, index.resolution)).to(device)
    query = torch.from_numpy(state).to(device)
    out = torch.empty(len(index), device=device)
    for lo in range(0, len(index), _BLOCK):
        pairs = torch.view_as_complex(
            index.vectors[lo : lo + _BLOCK].reshape(-1, index.halves, index.dim // index.halves // 2, 2)
        )
        angles = torch.outer(rho[lo : lo + _BLOCK], angles_per_unit).to(torch.float32)
        turned = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)[:, None, :])
        out[lo : lo + _BLOCK] = turned.reshape(len(pairs), -1) @ query
    scores: np.ndarray = out.cpu().numpy()
    return scores
