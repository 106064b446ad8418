"""The dual encoder of one checkpoint: states and chunks -> vectors (Q-RAG section 3.2).

Decides batching and precision. Distinct texts are embedded once, in batches
sorted by token count. bfloat16 where the processor has it, float32 for checkpoints whose vectors must equal the reference's.
Knows nothing of caches and positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedModel

from core.encode.checkpoint import SPEC_FILE, CheckpointSpec, find_base, find_checkpoint, load_towers, read_spec
from core.encode.familiarity import load_familiarity
from core.encode.forward import StateTokens, batches_by_length, chunk_row, join_state, padded_rows, pooled_vectors
from core.encode.in_use import InUse
from core.encode.tokens import FastTokenizer
from core.encode.traced import Pass, traced
from core.errors import BadCheckpoint, BadRequest

_TOKENIZE_BLOCK = 16_384
"""Texts tokenized at once: the memory of their ids, and the horizon of the sort by length."""
_BATCH_TOKENS = {"cpu": 4_096, "cuda": 131_072}
"""Padded tokens a batch."""


@cache
def processor_has_bfloat16() -> bool:
    """Whether bfloat16 matrix products are hardware instructions here (AVX512-BF16 or AMX); emulated ones are slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def compute_dtype(spec: CheckpointSpec, device: torch.device) -> torch.dtype:
    """Precision of the towers on a device."""
    return torch.float32 if spec.vectors == "float32" else fast_dtype(device)


def fast_dtype(device: torch.device) -> torch.dtype:
    """The precision in which a device multiplies fastest without losing the range of float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    return torch.bfloat16 if processor_has_bfloat16() else torch.float32


class DualEncoder:
    """State and action embedder of one checkpoint on one device."""

    def __init__(self, folder: Path, device: str | None = None) -> None:
        """Raises BadCheckpoint, and BadRequest for a device that isn't there."""
        self.spec = read_spec(folder)
        self.device = find_device(device)
        self.tokenizer = FastTokenizer(find_base(self.spec.base, folder))
        towers = load_towers(folder, self.spec)
        self.dtype = compute_dtype(self.spec, self.device)
        self._state_tower = towers.state.to(self.device, self.dtype)
        self._action_tower = self._state_tower if towers.action is towers.state else towers.action.to(self.device, self.dtype)
        self._state_pass = self._pass(self._state_tower)
        self._action_pass = self._state_pass if self._action_tower is self._state_tower else self._pass(self._action_tower)
        self.familiarity = load_familiarity(folder, self.tokenizer)
        self.fingerprint = towers.fingerprint
        self.max_positions = towers.max_positions
        self.dim = int(towers.state.config.hidden_size)
        if self.dim % (2 * self.spec.halves):
            raise BadCheckpoint(
                f"halves={self.spec.halves} of {self.spec.name} don't split its {self.dim} dimensions into parts of even size; correct {SPEC_FILE}"
            )
        embedding = f"{towers.action_sha256[:16]}-{self.spec.max_chunk_tokens}-{self.spec.scale:g}-{int(self.spec.normalize)}"
        self.vector_fingerprint = f"{embedding}-{str(self.dtype).removeprefix('torch.')}-{self.spec.vectors}"
        """Names the chunk vectors: everything they depend on but the text. Key of the cache."""

    @property
    def max_state_chunks(self) -> int:
        """Most chunks a state may hold: the query and each of them need a token and a separator within the encoder's window."""
        return (self.max_positions - 1) // 2 - 1

    def state_tokens(self, query: str, chunks: Sequence[str]) -> StateTokens:
        """The state's token row, see `join_state`; at most `max_state_chunks` chunks."""
        return join_state(self.tokenizer.ids([query, *chunks]), self.spec, self.tokenizer, self.max_positions)

    def encode_states(self, states: Sequence[StateTokens]) -> np.ndarray:
        """(B, D) float32."""
        return self._embed(self._state_pass, [state.ids for state in states])

    def iter_encode_chunks(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields (indices (b,), vectors (b, D) float32) batch by batch until every text has its vector once; not in order."""
        budget = _BATCH_TOKENS[self.device.type]
        for block in range(0, len(texts), _TOKENIZE_BLOCK):
            parts = self.tokenizer.ids(texts[block : block + _TOKENIZE_BLOCK])
            rows = [chunk_row(part, self.spec, self.tokenizer, self.max_positions) for part in parts]
            for batch in batches_by_length([len(row) for row in rows], budget):
                yield np.array(batch) + block, self._embed(self._action_pass, [rows[i] for i in batch])

    def encode_chunks(self, texts: Sequence[str]) -> np.ndarray:
        """(N, D) float32, in the order of `texts`."""
        out = np.empty((len(texts), self.dim), dtype=np.float32)
        for indices, vectors in self.iter_encode_chunks(texts):
            out[indices] = vectors
        return out

    def _pass(self, tower: PreTrainedModel) -> Pass:
        return traced(partial(pooled_vectors, tower, self.spec), tower)

    @torch.inference_mode()
    def _embed(self, pass_: Pass, rows: Sequence[list[int]]) -> np.ndarray:
        vectors: np.ndarray = pass_(*padded_rows(rows, self._state_tower, self.tokenizer.pad_id)).cpu().numpy()
        return vectors


def find_device(name: str | None) -> torch.device:
    """A device by name, cuda where there is one by default. Raises BadRequest."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch was built without CUDA
        raise BadRequest(f"device {name!r} is not on this machine; choose cpu, or cuda where there is a GPU") from error
    if device.type not in _BATCH_TOKENS:
        raise BadRequest(f"device {name!r} is not supported; choose {' or '.join(_BATCH_TOKENS)}")
    return device


encoders_in_use = InUse(lambda folder, device: DualEncoder(folder, str(device)))
"""Of this process."""


def load_encoder(name_or_dir: str | None = None, device: str | None = None) -> DualEncoder:
    """The encoder of a shipped checkpoint, a folder, or the default; the one in use where there is one.

    Raises BadCheckpoint, and BadRequest for a device that isn't there.
    """
    return encoders_in_use.get(find_checkpoint(name_or_dir), find_device(device))
