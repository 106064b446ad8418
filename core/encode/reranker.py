"""The reranker of an agent.

A cross-encoder that reads the question, the chosen chunks and one more chunk together, and says whether
that one belongs to the evidence, at the cost of a pass for each chunk. It is a base encoder, the agent's or a
larger one, with a LoRA adapter of its own and one linear output on the first token, under `reranker/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from core.encode.adapter import adapter_file
from core.encode.checkpoint import (
    CheckpointSpec,
    adapted_encoder,
    check_files,
    load_head,
    max_positions_of,
    sha256_of,
)
from core.encode.engine import Batch, Engine, TorchEngine, openvino_engine
from core.encode.forward import batches_by_length, last_states, padded, reads_segments
from core.encode.mpnet import Encoder
from core.encode.tokens import FastTokenizer
from core.encode.traced import Pass
from core.encode.turns import urgent

RERANKER_FOLDER, HEAD_FILE = "reranker", "head.safetensors"
WINDOW = 320
"""Tokens read at once where nothing was chosen; a longer chunk is cut."""
STATE_WINDOW = 512
"""The same with chosen chunks, which share what the question and the chunk leave."""
QUESTION_TOKENS, CHUNK_TOKENS = 64, 222
"""At most; those of a chunk beside chosen ones."""
MOST_CHOSEN = (STATE_WINDOW - QUESTION_TOKENS - CHUNK_TOKENS - 3) // 2
"""Chosen chunks beside the longest question and chunk, where each takes a token and a separator."""
LEAST_COSINE = 0.99
"""Between what two engines make of any row of tokens; at 0.998 they chose the same chunks of real texts."""
LARGEST_ODDS = 8.0
"""Log-odds beyond are no surer."""

Pair = tuple[list[int], int]
"""Token ids of a state and a chunk with the marks around them, and how many of them are the state's."""


def window_of(chosen: Sequence[object], most: int) -> int:
    """Tokens of a pair with these chosen chunks, for an encoder that reads `most`."""
    return min(STATE_WINDOW if chosen else WINDOW, most)


def pair(
    tokenizer: FastTokenizer,
    query: list[int],
    chunk: list[int],
    window: int = WINDOW,
    chosen: Sequence[list[int]] = (),
) -> Pair:
    """[CLS] question [SEP] chosen chunk [SEP] ... chunk [SEP] from token ids."""
    first = [tokenizer.cls_id, *query[:QUESTION_TOKENS], tokenizer.sep_id]
    if chosen:
        chunk = chunk[:CHUNK_TOKENS]
        share = max(0, (window - len(first) - len(chunk) - 1 - len(chosen)) // len(chosen))
        first += [token for one in chosen for token in (*one[:share], tokenizer.sep_id)]
    first = first[: window - 1]
    return [*first, *chunk[: window - len(first) - 1], tokenizer.sep_id], len(first)


def padded_pairs(pairs: Sequence[Pair], width: int, pad_id: int, *, segments: bool) -> tuple[np.ndarray, ...]:
    """(B, `width`) int64 each: ids, mask and, where asked for, segments, which are 1 for the chunk."""
    ids, mask = padded([tokens for tokens, _ in pairs], width, pad_id)
    if not segments:
        return ids, mask
    of_chunk = mask.copy()
    for row, (_, n_first) in enumerate(pairs):
        of_chunk[row, :n_first] = 0
    return ids, mask, of_chunk


class RerankerNetwork(nn.Module):
    """What `padded_pairs` makes -> (B,) float32: log-odds that the chunk belongs to the evidence."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(int(encoder.config.hidden_size), 1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(first_states(self.encoder, *inputs))[:, 0]
        return logits


def first_states(encoder: Encoder, *inputs: torch.Tensor) -> torch.Tensor:
    """(B, D) float32: the last hidden state of each first token."""
    return last_states(encoder, *inputs)[:, 0].float()


class Reranker:
    """A trained reranker on one device. Thread-safe."""

    def __init__(
        self,
        folder: Path,
        spec: CheckpointSpec,
        tokenizer: FastTokenizer,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        """`folder` is the agent's. Raises BadCheckpoint."""
        own, what = folder / RERANKER_FOLDER, f"the reranker of checkpoint {spec.name}"
        base_name = spec.rerank_base or spec.base
        encoder, base = adapted_encoder(base_name, folder, spec.rerank_base_sha256, own, what)
        network = RerankerNetwork(encoder)
        load_head(network.head, own / HEAD_FILE, what)
        network.eval().requires_grad_(False)
        self._head, self._segments = network.head, reads_segments(encoder)
        self._most = max_positions_of(encoder)
        self._tokenizer = tokenizer if spec.rerank_base is None else FastTokenizer(base)
        openvino, n_inputs = None, 2 + self._segments
        if device.type == "cpu":
            openvino = openvino_engine(
                encoder, _pass_of, dtype, n_inputs, least_cosine=LEAST_COSINE, exact=spec.vectors == "float32"
            )
        self._engine: Engine = openvino or TorchEngine(encoder.to(device, dtype), _pass_of, n_inputs)

    def log_odds(
        self,
        query: str,
        texts: Sequence[str],
        chosen: Sequence[str] = (),
        told: Callable[[int], object] = lambda _: None,
    ) -> np.ndarray:
        """(n,) float32, -8 to 8: how surely each text is evidence beside `chosen`. `told`: hears how many
        were read; may raise."""
        if not texts:
            return np.zeros(0, np.float32)
        query_ids, *parts = self._tokenizer.ids([query, *chosen, *texts])
        beside, chunks = parts[: len(chosen)], parts[len(chosen) :]
        window = window_of(beside, self._most)
        pairs = [pair(self._tokenizer, query_ids, chunk, window, beside) for chunk in chunks]
        logits = np.empty(len(pairs), np.float32)
        with urgent(), torch.inference_mode():
            told(n_read := 0)
            for places, states in self._engine.run(self._batches(pairs)):
                logits[places] = self._head(torch.from_numpy(states))[:, 0].numpy()
                told(n_read := n_read + len(places))
        return logits.clip(-LARGEST_ODDS, LARGEST_ODDS)

    def _batches(self, pairs: Sequence[Pair]) -> Iterator[Batch]:
        lengths = [len(tokens) for tokens, _ in pairs]
        a_share = -(-len(pairs) * self._engine.width(max(lengths)) // self._engine.at_once)  # none waits idle
        for batch in batches_by_length(lengths, min(self._engine.batch_tokens, a_share)):
            width, some = self._engine.width(lengths[batch[0]]), [pairs[i] for i in batch]
            yield batch, padded_pairs(some, width, self._tokenizer.pad_id, segments=self._segments)


def _pass_of(encoder: Encoder) -> Pass:
    return partial(first_states, encoder)


def hash_of(folder: Path, spec: CheckpointSpec) -> str:
    """Hash of an agent's reranker weights; "" without one. Raises BadCheckpoint where a file is missing."""
    if not spec.rerank_weight:
        return ""
    files = [adapter_file(folder / RERANKER_FOLDER), folder / RERANKER_FOLDER / HEAD_FILE]
    check_files(files, f"the reranker of checkpoint {spec.name}")
    return "".join(map(sha256_of, files))
