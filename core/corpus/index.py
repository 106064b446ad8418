"""Row i <-> chunk i.

The vectors of all chunks, and the scores of ALL of them for one state: float32 inner products. The state is
turned instead of the chunks, once per run of neighbouring chunks that share a grid position (Q-RAG eq. 7 with
rotations moved to the other side), so a step is one pass over the vectors. Haystacks made of the same texts
share one matrix, each with its own order of rows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from core.base.later import torch
from core.base.types import Workspace
from core.corpus.bm25 import WordIndex, word_index
from core.corpus.context import texts_in_context
from core.encode.rope import on_grid, turn

_TURN_BLOCK = 8_192
"""Distinct positions whose turned states are held at once."""
_SHORT_RUN = 4
"""Mean run length below which one product per chunk beats one call per run."""


class ChunkIndex:
    """Vectors of N chunks, resident once, in float32: half-precision products are slow on CPUs."""

    def __init__(
        self,
        vectors: np.ndarray | torch.Tensor,
        *,
        halves: int = 1,
        theta: float = 10000.0,
        resolution: float | None = None,
        device: torch.device | str = "cpu",
        rows: np.ndarray | None = None,
    ) -> None:
        """`vectors`: (R, D) float16 or float32. `rows`: (N,) integers, each chunk's row; default: its own."""
        tensor = (
            vectors if isinstance(vectors, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(vectors))
        )
        self.vectors = tensor.to(device, torch.float32)
        self.rows = rows
        self.halves, self.theta, self.resolution = halves, theta, resolution
        self._faiss_lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.vectors if self.rows is None else self.rows)

    def arranged(self, rows: np.ndarray) -> ChunkIndex:
        """An index whose chunk i has row rows[i] of this one's matrix, which the two share. rows: (N,)."""
        return ChunkIndex(
            self.vectors,
            halves=self.halves,
            theta=self.theta,
            resolution=self.resolution,
            device=self.vectors.device,
            rows=rows,
        )

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])

    @cached_property
    def norms(self) -> np.ndarray:
        """(N,) float32 L2 norms of the vectors."""
        lengths: np.ndarray = torch.linalg.vector_norm(self.vectors, dim=1).cpu().numpy()
        return lengths if self.rows is None else lengths[self.rows]

    def q_values(self, state_vector: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """<s, R_p c> for every chunk: state (D,), positions (N,) before rounding -> (N,) float32."""
        with torch.inference_mode():
            return self._q_values(state_vector, on_grid(positions, self.resolution))

    def _q_values(self, state_vector: np.ndarray, grid: np.ndarray) -> np.ndarray:
        # <s, R_p c> = <R_-p s, c>: chunks in a row at one position share a state that is turned once.
        breaks = grid[1:] != grid[:-1]
        if self.rows is not None:
            breaks |= self.rows[1:] != self.rows[:-1] + 1
        starts = np.flatnonzero(np.concatenate([[True], breaks])[: len(grid)])
        out = torch.empty(len(self), dtype=torch.float32, device=self.vectors.device)
        ends = np.append(starts[1:], len(self))
        # Blocks of runs bound the memory of turned states, of which there may be one a chunk.
        for block in range(0, len(starts), _TURN_BLOCK):
            lo, hi = starts[block : block + _TURN_BLOCK], ends[block : block + _TURN_BLOCK]
            turned = turn(state_vector, -grid[lo], halves=self.halves, theta=self.theta)
            states = torch.from_numpy(turned.astype(np.float32)).to(self.vectors.device)
            first, last = int(lo[0]), int(hi[-1])
            # Short runs: one product of rows, each with its state, is quicker than a product a run.
            if last - first < _SHORT_RUN * len(lo):
                runs = torch.from_numpy(np.repeat(np.arange(len(lo)), hi - lo)).to(self.vectors.device)
                torch.linalg.vecdot(states[runs], self._vectors_of(first, last), out=out[first:last])
                continue
            rows = (lo if self.rows is None else self.rows[lo]).tolist()
            for state, start, end, row in zip(states, lo.tolist(), hi.tolist(), rows, strict=True):
                torch.mv(self.vectors[row : row + end - start], state, out=out[start:end])
        scores: np.ndarray = out.cpu().numpy()
        return scores

    def q_value(self, state_vector: np.ndarray, chunk_id: int, position: float = 0.0) -> float:
        """<s, R_p c> of one chunk: state (D,), position not rounded; at 0 what the content contributes."""
        back = -on_grid(np.array([position]), self.resolution)
        [turned] = turn(state_vector[None], back, halves=self.halves, theta=self.theta)
        return float(self.vector(chunk_id) @ turned.astype(np.float32))

    def vector(self, chunk_id: int) -> np.ndarray:
        """(D,) float32 of one chunk, as it is stored."""
        row: np.ndarray = self._vectors_of(chunk_id, chunk_id + 1)[0].cpu().numpy()
        return row

    def _vectors_of(self, first: int, last: int) -> torch.Tensor:
        """(last - first, D) vectors of neighbouring chunks."""
        if self.rows is None:
            return self.vectors[first:last]
        return self.vectors[torch.from_numpy(self.rows[first:last]).to(self.vectors.device)]

    def prepare_top_k(self) -> None:
        """Builds what `top_k` searches, once; without it the first search does."""
        _ = self._faiss

    def top_k(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(ids (k,), inner products (k,) float32) of the k best chunks without positions, by FAISS."""
        with self._faiss_lock:  # on a GPU it serves one thread at a time, and branches search side by side
            products, ids = self._faiss.search(np.ascontiguousarray(vector[None], dtype=np.float32), k)
        return ids[0], products[0]

    @cached_property
    def _faiss(self):  # type: ignore[no-untyped-def]  # faiss ships no types
        import faiss

        flat: faiss.Index = faiss.IndexFlatIP(self.dim)
        if hasattr(faiss, "get_num_gpus") and faiss.get_num_gpus() > 0:
            flat = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, flat)
        flat.add(self._vectors_of(0, len(self)).cpu().numpy())
        return flat


class VectorIndex(Protocol):
    """What a retriever asks of N vectors, as `ChunkIndex` says. `core.integrations.cluster` has shards."""

    @property
    def dim(self) -> int: ...
    @property
    def norms(self) -> np.ndarray: ...
    def __len__(self) -> int: ...
    def q_values(self, state_vector: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """(N,) float32."""

    def q_value(self, state_vector: np.ndarray, chunk_id: int, position: float = 0.0) -> float:
        """Of one chunk."""

    def vector(self, chunk_id: int) -> np.ndarray:
        """(D,) float32."""

    def prepare_top_k(self) -> None:
        """Once, before the first `top_k`."""

    def top_k(self, vector: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(ids (k,), inner products (k,))."""


class Searchable(Protocol):
    """What a retriever needs of the thing it searches: vectors, texts, and where documents end."""

    @property
    def index(self) -> VectorIndex: ...
    @property
    def borders(self) -> np.ndarray:
        """(documents + 1,) int64, see `Workspace.borders`."""

    def __len__(self) -> int: ...
    def text(self, chunk_id: int) -> str:
        """The text of one chunk."""

    def texts(self) -> Sequence[str]:
        """The text of every chunk, by chunk id."""

    @property
    def words(self) -> WordIndex:
        """The words of the chunks and of what they stand under, counted when they are first asked for."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """What a retriever searches: the documents with their chunks, and one encoder's index over them."""

    workspace: Workspace
    index: ChunkIndex
    kept_words: Path | None = None
    """File that the words are kept in until the documents are opened again; None: nowhere."""

    def __post_init__(self) -> None:
        if len(self.workspace) != len(self.index):
            raise ValueError(
                f"{len(self.workspace)} chunks but {len(self.index)} vectors: they were not made from the"
                " same texts"
            )

    def __len__(self) -> int:
        return len(self.index)

    @property
    def borders(self) -> np.ndarray:
        """See `Searchable`."""
        return self.workspace.borders

    def text(self, chunk_id: int) -> str:
        """See `Searchable`."""
        return self.workspace[chunk_id].text

    def texts(self) -> list[str]:
        """See `Searchable`."""
        return self.workspace.texts()

    @property
    def words(self) -> WordIndex:
        """See `Searchable`: of the chunks in their context. Corpora over one workspace share it."""
        return word_index(self.workspace, lambda: texts_in_context(self.workspace), self.kept_words)
