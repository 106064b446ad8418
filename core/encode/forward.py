"""What goes into a tower and comes out.

Serving and training share these functions, so that an agent is served as it was trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.base.later import torch
from core.encode.checkpoint import CheckpointSpec, max_positions_of
from core.encode.tokens import FastTokenizer

if TYPE_CHECKING:
    from core.encode.mpnet import Encoder

SERVED_WIDTH_STEP = 16
"""Widths of half-precision batches are multiples: every other one compiles kernels that stay in memory."""


@dataclass(frozen=True, slots=True)
class StateTokens:
    """A state as the encoder reads it."""

    ids: list[int]
    n_dropped: int
    """Tokens of query and chunks that were cut away."""


def join_state(
    parts: Sequence[list[int]], spec: CheckpointSpec, tokenizer: FastTokenizer, max_positions: int
) -> StateTokens:
    """[CLS] query [SEP] chunk [SEP] ... chunk [SEP] from token ids, each cut to `max_state_part_tokens`,
    special tokens counted.

    Where even that outgrows the window, the longest parts are cut further, all to one common length.
    """
    lengths = np.array([len(part) for part in parts])
    kept = np.minimum(lengths, spec.max_state_part_tokens - 2)
    kept = np.minimum(kept, _common_cap(kept, max_positions - 1 - len(parts)))
    ids = [tokenizer.cls_id]
    for part, n in zip(parts, kept.tolist(), strict=True):
        ids += [*part[:n], tokenizer.sep_id]
    return StateTokens(ids, int((lengths - kept).sum()))


def chunk_row(
    part: list[int], spec: CheckpointSpec, tokenizer: FastTokenizer, max_positions: int
) -> list[int]:
    """[CLS] chunk [SEP] from its token ids, cut to what the action tower reads."""
    return [tokenizer.cls_id, *part[: min(spec.max_chunk_tokens, max_positions) - 2], tokenizer.sep_id]


def reads_segments(encoder: Encoder) -> bool:
    """Whether an encoder of two texts is told which of them a token belongs to."""
    return int(getattr(encoder.config, "type_vocab_size", 0)) > 1


def last_states(
    encoder: Encoder, ids: torch.Tensor, mask: torch.Tensor, *segments: torch.Tensor
) -> torch.Tensor:
    """(B, T, D) hidden states of (B, T) integers; segments for an encoder that reads them."""
    more = {"token_type_ids": segments[0]} if segments else {}
    states: torch.Tensor = encoder(input_ids=ids, attention_mask=mask, **more).last_hidden_state
    return states


def batches_by_length(lengths: Sequence[int], token_budget: int) -> Iterator[list[int]]:
    """Rows, longest first, in batches of `token_budget` padded tokens; a longer row stands alone."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i], reverse=True)
    lo = 0
    while lo < len(order):
        hi = lo + max(1, token_budget // lengths[order[lo]])
        yield order[lo:hi]
        lo = hi


def padded_width(n_tokens: int, tower: Encoder, step: int) -> int:
    """Tokens of a row after padding, a multiple of `step`; in float32, as the reference, unpadded."""
    if tower.dtype == torch.float32:
        return n_tokens
    return rounded_width(n_tokens, step, max_positions_of(tower))


def rounded_width(n_tokens: int, step: int, most: int) -> int:
    """The next multiple of `step`, but no more than the `most` that an encoder reads.

    >>> rounded_width(17, 16, 512), rounded_width(500, 16, 501)
    (32, 501)
    """
    return max(n_tokens, min(-(-n_tokens // step) * step, most))


def padded(rows: Sequence[list[int]], width: int, pad_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Token ids and attention mask (B, `width`) int64."""
    tokens = np.full((len(rows), width), pad_id, dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.int64)
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = row
        mask[i, : len(row)] = 1
    return tokens, mask


def padded_rows(
    rows: Sequence[list[int]], tower: Encoder, pad_id: int, width_step: int = SERVED_WIDTH_STEP
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask (B, T) on the tower's device."""
    tokens, mask = padded(rows, padded_width(max(map(len, rows)), tower, width_step), pad_id)
    return torch.from_numpy(tokens).to(tower.device), torch.from_numpy(mask).to(tower.device)


def pooled_vectors(
    tower: Encoder, spec: CheckpointSpec, tokens: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """(B, D) float32: masked mean of last hidden states, special tokens too, scaled, perhaps normalised."""
    hidden = tower(input_ids=tokens, attention_mask=mask).last_hidden_state
    weights = mask.unsqueeze(-1).to(torch.float32)
    pooled: torch.Tensor = (hidden.to(torch.float32) * weights).sum(1) / weights.sum(1) * spec.scale
    return torch.nn.functional.normalize(pooled, dim=-1) if spec.normalize else pooled


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
