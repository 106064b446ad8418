"""Passes through an encoder: tokens in, vectors out.

In serving a pass is traced, and so becomes one call of C++ instead of some four hundred calls out of Python.
Each of those takes the interpreter's lock anew; beside a thread that is busy in Python, which draws a page or
reads a document, each waits 5 ms for it, so that a pass takes fifty times as long (`python -m benchmarks
busy`). A traced pass takes the lock once. It is made of the same kernels, and a trace whose values are not
the same bit for bit is not used. Only passes on a CPU are traced: on a GPU tracing also fuses kernels, which
changes values.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Sequence

import torch
from torch import nn
from transformers import PreTrainedModel

from core.encode.checkpoint import CheckpointSpec
from core.encode.forward import padded, rounded_width
from core.encode.weights import max_positions_of

SERVED_WIDTH_STEP = 16
"""Widths of half-precision batches are multiples: every other one compiles kernels that stay in memory."""

tracing = threading.Lock()
"""torch names the modules of what it traces in one table for all threads."""
_TRACED = (2, 32, 5)
"""Rows, tokens and padding of the batch that is traced."""
_COMPARED = ((1, 16, 0), _TRACED, (3, 48, 7))


class Pass(nn.Module):
    """An encoder, and what is made of its last hidden states."""

    def __init__(
        self, encoder: PreTrainedModel, vectors_of: Callable[..., torch.Tensor], n_inputs: int = 2
    ) -> None:
        """`vectors_of` takes the encoder and `n_inputs` tensors (B, T): ids, mask and perhaps segments."""
        super().__init__()
        self.encoder, self.n_inputs, self._vectors_of = encoder, n_inputs, vectors_of

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What `vectors_of` gives."""
        return self._vectors_of(self.encoder, ids, mask, *([] if segments is None else [segments]))

    def example(self, shape: tuple[int, int, int] = _TRACED) -> tuple[torch.Tensor, ...]:
        """Inputs of so many rows and tokens, the last row with so much padding."""
        n_rows, n_tokens, padding = shape
        n_tokens = min(n_tokens, max_positions_of(self.encoder))
        ids = (torch.arange(n_rows * n_tokens) % self.encoder.config.vocab_size).reshape(n_rows, n_tokens)
        mask, segments = torch.ones_like(ids), torch.zeros_like(ids)
        mask[-1, n_tokens - min(padding, n_tokens // 2) :] = 0
        segments[:, n_tokens // 2 :] = 1
        return (ids, mask, segments)[: self.n_inputs]


def reads_segments(encoder: PreTrainedModel) -> bool:
    """Whether an encoder of two texts is told which of them a token belongs to."""
    return int(getattr(encoder.config, "type_vocab_size", 0)) > 1


def last_states(
    encoder: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor, *segments: torch.Tensor
) -> torch.Tensor:
    """(B, T, D) hidden states of (B, T) integers; segments for an encoder that reads them."""
    more = {"token_type_ids": segments[0]} if segments else {}
    states: torch.Tensor = encoder(input_ids=ids, attention_mask=mask, **more).last_hidden_state
    return states


def pooled_vectors(
    encoder: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor, *, spec: CheckpointSpec
) -> torch.Tensor:
    """(B, D) float32: masked mean of last hidden states, special tokens too, scaled, perhaps normalised."""
    weights = mask.unsqueeze(-1).to(torch.float32)
    states = last_states(encoder, ids, mask).to(torch.float32)
    pooled: torch.Tensor = (states * weights).sum(1) / weights.sum(1) * spec.scale
    return nn.functional.normalize(pooled, dim=-1) if spec.normalize else pooled


def padded_width(n_tokens: int, tower: PreTrainedModel, step: int) -> int:
    """Tokens of a row after padding, a multiple of `step`. Float32 rows, whose vectors must equal the
    reference's, are as wide as the longest of them.
    """
    if tower.dtype == torch.float32:
        return n_tokens
    return rounded_width(n_tokens, step, max_positions_of(tower))


def padded_rows(
    rows: Sequence[list[int]], tower: PreTrainedModel, pad_id: int, width_step: int = SERVED_WIDTH_STEP
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask (B, T) on the tower's device."""
    tokens, mask = padded(rows, padded_width(max(map(len, rows)), tower, width_step), pad_id)
    return torch.from_numpy(tokens).to(tower.device), torch.from_numpy(mask).to(tower.device)


def traced(plain: Pass) -> nn.Module:
    """The same pass, quicker where it can be; its encoder then stays on its device."""
    if plain.encoder.device.type != "cpu":
        return plain
    try:
        with tracing, torch.no_grad(), warnings.catch_warnings():
            # of constants, which a comparison finds out, and of newer ways, which come back to Python
            warnings.simplefilter("ignore")
            quick: nn.Module = torch.jit.trace(plain, plain.example(), check_trace=False)  # type: ignore[no-untyped-call]
            same = all(torch.equal(plain(*batch), quick(*batch)) for batch in map(plain.example, _COMPARED))
    except Exception:
        logging.getLogger(__name__).info("an encoder can't be traced", exc_info=True)
        return plain
    return quick if same else plain
