"""The dual encoder of one checkpoint.

States and chunks -> vectors (Q-RAG section 3.2), in batches sorted by token count. In bfloat16 where the
processor has it, in float32 for checkpoints whose vectors must equal the reference's.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from core.base.errors import BadCheckpoint, BadRequest
from core.base.later import torch
from core.encode.checkpoint import (
    SPEC_FILE,
    CheckpointSpec,
    as_served,
    find_base,
    find_checkpoint,
    load_towers,
    max_positions_of,
    read_spec,
)
from core.encode.engine import Batch, Engine, TorchEngine, cpuinfo, openvino_engine
from core.encode.familiarity import load_familiarity
from core.encode.forward import StateTokens, batches_by_length, chunk_row, join_state, padded, pooled_vectors
from core.encode.in_use import InUse, MadeOnce
from core.encode.spread import PART_CHARACTERS
from core.encode.tokens import FastTokenizer

if TYPE_CHECKING:
    from core.encode.mpnet import Encoder
    from core.encode.reranker import Reranker
    from core.encode.traced import Pass

_DEVICES = ("cpu", "cuda")


def compute_dtype(spec: CheckpointSpec, device: torch.device) -> torch.dtype:
    """Precision of the towers on a device."""
    return torch.float32 if spec.vectors == "float32" else fast_dtype(device)


def fast_dtype(device: torch.device) -> torch.dtype:
    """The precision in which a device multiplies fastest without losing the range of float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    # as hardware instructions: emulated, they are slow
    has_bfloat16 = any(flag in cpuinfo() for flag in ("avx512_bf16", "amx_bf16"))
    return torch.bfloat16 if has_bfloat16 else torch.float32


class DualEncoder:
    """State and action embedder of one checkpoint on one device."""

    def __init__(self, folder: Path, device: str | None = None) -> None:
        """Raises BadCheckpoint, and BadRequest for a device that isn't there."""
        self.spec = as_served(read_spec(folder))
        self.device = find_device(device)
        self.tokenizer = FastTokenizer(find_base(self.spec.base, folder))
        towers = load_towers(folder, self.spec)
        self.dtype = compute_dtype(self.spec, self.device)
        openvino = None
        if self.device.type == "cpu":
            tower = towers.action
            if tower is towers.state and self.dtype != torch.float32:
                tower = copy.deepcopy(tower)  # states are about to be computed in half precision
            openvino = openvino_engine(tower, self._pass_of, self.dtype, exact=self.spec.vectors == "float32")
        self._states = self._torch_engine(towers.state)
        self._chunks: Engine = openvino or (
            self._states if towers.action is towers.state else self._torch_engine(towers.action)
        )
        self.familiarity = load_familiarity(folder, self.tokenizer)
        self._folder, self.fingerprint = folder, towers.fingerprint
        if self.spec.rerank_weight:
            from core.encode.reranker import hash_of

            known = towers.fingerprint + hash_of(folder, self.spec)
            self.fingerprint = hashlib.sha256(known.encode()).hexdigest()[:32]
        self.max_positions = max_positions_of(towers.state)
        self.dim = int(towers.state.config.hidden_size)
        if self.dim % (2 * self.spec.halves):
            raise BadCheckpoint(
                f"halves={self.spec.halves} of {self.spec.name} don't split its {self.dim} dimensions into"
                f" parts of even size; correct {SPEC_FILE}"
            )
        cut = f"{self.spec.max_chunk_tokens}-{self.spec.scale:g}-{int(self.spec.normalize)}"
        embedding = f"{towers.action_sha256[:16]}-{cut}"
        self.vector_fingerprint = f"{embedding}-{self._chunks.vectors_name}-{self.spec.vectors}"
        """Names the chunk vectors: everything they depend on but the text. Key of the cache."""

    @property
    def engine(self) -> str:
        """What embeds chunks, in which precision."""
        return self._chunks.name

    @property
    def rate(self) -> float | None:
        """Tokens a second that it embedded when it was measured; None where it was not."""
        return self._chunks.rate

    @property
    def max_state_chunks(self) -> int:
        """Most chunks of a state: the query and each take a token and a separator of the encoder's window,
        and of a reranker's that reads them.
        """
        most = (self.max_positions - 1) // 2 - 1
        if not self.spec.rerank_weight or not (self.spec.reads_choices or self.spec.rerank_again):
            return most
        from core.encode.reranker import MOST_CHOSEN  # what ships does without

        return min(most, MOST_CHOSEN)

    @MadeOnce
    def reranker(self) -> Reranker | None:
        """What reads the best chunks of a first look, loaded when needed, if any. Raises BadCheckpoint."""
        if not self.spec.rerank_weight:
            return None
        from core.encode.reranker import Reranker  # what ships does without

        return Reranker(self._folder, self.spec, self.tokenizer, self.device, self.dtype)

    def warm_up(self) -> None:
        """Makes what a first step waits for: the passes of states and reranker. Raises BadCheckpoint."""
        self.encode_states([self.state_tokens("?", [])])
        if self.reranker is not None:
            self.reranker.log_odds("?", ["."])

    def state_tokens(self, query: str, chunks: Sequence[str]) -> StateTokens:
        """The state's token row, see `join_state`; at most `max_state_chunks` chunks."""
        return join_state(self.tokenizer.ids([query, *chunks]), self.spec, self.tokenizer, self.max_positions)

    def encode_states(self, states: Sequence[StateTokens]) -> np.ndarray:
        """(B, D) float32."""
        return self._states.vectors(*self._padded([state.ids for state in states], self._states))

    def iter_encode_chunks(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(indices (b,), vectors (b, D) float32) of each batch, in order but within PART_CHARACTERS."""
        for places, vectors in self._chunks.run(self._batches(texts)):
            yield np.array(places), vectors

    def _batches(self, texts: Sequence[str]) -> Iterator[Batch]:
        """Tokens of texts of one length together, and the places of these texts."""
        for block, end in _blocks(texts):
            parts = self.tokenizer.ids(texts[block:end])
            rows = [chunk_row(part, self.spec, self.tokenizer, self.max_positions) for part in parts]
            for batch in batches_by_length([len(row) for row in rows], self._chunks.batch_tokens):
                yield [block + i for i in batch], self._padded([rows[i] for i in batch], self._chunks)

    def encode_chunks(self, texts: Sequence[str]) -> np.ndarray:
        """(N, D) float32, in the order of `texts`."""
        out = np.empty((len(texts), self.dim), dtype=np.float32)
        for indices, vectors in self.iter_encode_chunks(texts):
            out[indices] = vectors
        return out

    def _torch_engine(self, tower: Encoder) -> TorchEngine:
        return TorchEngine(tower.to(self.device, self.dtype), self._pass_of)

    def _pass_of(self, tower: Encoder) -> Pass:
        return partial(pooled_vectors, tower, self.spec)

    def _padded(self, rows: Sequence[list[int]], engine: Engine) -> tuple[np.ndarray, np.ndarray]:
        return padded(rows, engine.width(max(map(len, rows))), self.tokenizer.pad_id)


def _blocks(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Ranges [first, last) of texts that reach PART_CHARACTERS each, the last one as many as are left."""
    first = characters = 0
    for last, text in enumerate(texts, start=1):
        characters += len(text)
        if characters >= PART_CHARACTERS:
            yield first, last
            first, characters = last, 0
    if first < len(texts):
        yield first, len(texts)


def find_device(name: str | None) -> torch.device:
    """A device by name, cuda where there is one by default. Raises BadRequest."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch was built without CUDA
        raise BadRequest(
            f"device {name!r} is not on this machine; choose cpu, or cuda where there is a GPU"
        ) from error
    if device.type not in _DEVICES:
        raise BadRequest(f"device {name!r} is not supported; choose {' or '.join(_DEVICES)}")
    return device


encoders_in_use = InUse(lambda folder, device: DualEncoder(folder, str(device)))


def load_encoder(name_or_dir: str | Path | None = None, device: str | None = None) -> DualEncoder:
    """The encoder as `find_checkpoint` finds it, the one in use if any.

    Raises BadCheckpoint, and BadRequest for a device that isn't there.
    """
    return encoders_in_use.get(find_checkpoint(name_or_dir), find_device(device))
