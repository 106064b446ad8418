"""The dual encoder of one checkpoint: states and chunks -> vectors (Q-RAG section 3.2).

Decides batching, precision and how a state that outgrows the encoder's window is cut. Distinct texts are embedded once, in batches
sorted by token count. bfloat16 where the processor has it, float32 for checkpoints whose vectors must equal the reference's.
Knows nothing of caches and positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from core.encode.checkpoint import SPEC_FILE, CheckpointSpec, find_base, find_checkpoint, load_towers, read_spec
from core.encode.tokens import FastTokenizer
from core.errors import BadCheckpoint, BadRequest

_TOKENIZE_BLOCK = 16_384
"""Texts tokenized at once: the memory of their ids, and the horizon of the sort by length."""
_BATCH_TOKENS = {"cpu": 4_096, "cuda": 131_072}
"""Padded tokens a batch."""


@dataclass(frozen=True, slots=True)
class StateTokens:
    """A state as the encoder reads it."""

    ids: list[int]
    n_dropped: int
    """Tokens of query and chunks that were cut away."""


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
    if spec.vectors == "float32":
        return torch.float32
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    return torch.bfloat16 if processor_has_bfloat16() else torch.float32


class DualEncoder:
    """State and action embedder of one checkpoint on one device."""

    def __init__(self, folder: Path, device: str | None = None) -> None:
        """Raises BadCheckpoint, and BadRequest for a device that isn't there."""
        self.spec = read_spec(folder)
        self.device = _find_device(device)
        self.tokenizer = FastTokenizer(find_base(self.spec.base, folder))
        towers = load_towers(folder, self.spec)
        self.dtype = compute_dtype(self.spec, self.device)
        self._state_tower = towers.state.to(self.device, self.dtype)
        self._action_tower = self._state_tower if towers.action is towers.state else towers.action.to(self.device, self.dtype)
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
        """[CLS] query [SEP] chunk [SEP] ... chunk [SEP]; each part cut to `max_state_part_tokens`, special tokens counted.

        Where even that outgrows the window, the longest parts are cut further, all to one common length. At most `max_state_chunks` chunks.
        """
        parts = self.tokenizer.ids([query, *chunks])
        lengths = np.array([len(part) for part in parts])
        kept = np.minimum(lengths, self.spec.max_state_part_tokens - 2)
        kept = np.minimum(kept, _common_cap(kept, self.max_positions - 1 - len(parts)))
        ids = [self.tokenizer.cls_id]
        for part, n in zip(parts, kept.tolist(), strict=True):
            ids += [*part[:n], self.tokenizer.sep_id]
        return StateTokens(ids, int((lengths - kept).sum()))

    def encode_states(self, states: Sequence[StateTokens]) -> np.ndarray:
        """(B, D) float32."""
        return self._embed(self._state_tower, [state.ids for state in states])

    def iter_encode_chunks(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields (indices (b,), vectors (b, D) float32) batch by batch until every text has its vector once; not in order."""
        budget = _BATCH_TOKENS[self.device.type]
        room = min(self.spec.max_chunk_tokens, self.max_positions) - 2
        for block in range(0, len(texts), _TOKENIZE_BLOCK):
            ids = [[self.tokenizer.cls_id, *part[:room], self.tokenizer.sep_id] for part in self.tokenizer.ids(texts[block : block + _TOKENIZE_BLOCK])]
            order = sorted(range(len(ids)), key=lambda i: len(ids[i]), reverse=True)
            lo = 0
            while lo < len(order):
                hi = lo + max(1, budget // len(ids[order[lo]]))
                batch = order[lo:hi]
                yield np.array(batch) + block, self._embed(self._action_tower, [ids[i] for i in batch])
                lo = hi

    def encode_chunks(self, texts: Sequence[str]) -> np.ndarray:
        """(N, D) float32, in the order of `texts`."""
        out = np.empty((len(texts), self.dim), dtype=np.float32)
        for indices, vectors in self.iter_encode_chunks(texts):
            out[indices] = vectors
        return out

    @torch.inference_mode()
    def _embed(self, tower: PreTrainedModel, ids: Sequence[list[int]]) -> np.ndarray:
        width = max(len(row) for row in ids)
        tokens = torch.full((len(ids), width), self.tokenizer.pad_id, dtype=torch.long)
        mask = torch.zeros((len(ids), width), dtype=torch.long)
        for row, part in enumerate(ids):
            tokens[row, : len(part)] = torch.tensor(part)
            mask[row, : len(part)] = 1
        mask = mask.to(self.device)
        hidden = tower(input_ids=tokens.to(self.device), attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(torch.float32)
        pooled = (hidden.to(torch.float32) * weights).sum(1) / weights.sum(1) * self.spec.scale
        if self.spec.normalize:
            pooled = nn.functional.normalize(pooled, dim=-1)
        vectors: np.ndarray = pooled.cpu().numpy()
        return vectors


def _find_device(name: str | None) -> torch.device:
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch was built without CUDA
        raise BadRequest(f"device {name!r} is not on this machine; choose cpu, or cuda where there is a GPU") from error
    if device.type not in _BATCH_TOKENS:
        raise BadRequest(f"device {name!r} is not supported; choose {' or '.join(_BATCH_TOKENS)}")
    return device


def _common_cap(lengths: np.ndarray, room: int) -> int:
    """The largest cap c with sum(min(lengths, c)) <= room; room is at least the number of lengths.

    >>> _common_cap(np.array([10, 100, 100]), 110)
    50
    """
    cap, remaining = int(lengths.max(initial=0)), np.sort(lengths)
    for i, length in enumerate(remaining):
        share = (room - int(remaining[:i].sum())) // (len(remaining) - i)
        if share < length:
            cap = share
            break
    return cap


def load_encoder(name_or_dir: str | None = None, device: str | None = None) -> DualEncoder:
    """The encoder of a shipped checkpoint, a folder, or the default. Raises BadCheckpoint."""
    return DualEncoder(find_checkpoint(name_or_dir), device)
