"""A pass through an encoder as one call of C++.

Some two hundred calls out of Python each wait 5 ms for the interpreter's lock beside a busy thread: a traced
pass takes it once. Its values are checked to be the same bit for bit; where they aren't, the pass stays as it
is. Modules are traced, since torch keeps the graphs of functions, with all weights, for good; on a CPU alone,
since on a GPU kernels are fused. Tracing takes as long as some ten batches, so the first few do without.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from core.encode.bert import PlainEncoder
from core.encode.checkpoint import max_positions_of
from core.encode.in_use import MadeOnce
from core.encode.mpnet import Encoder

Pass = Callable[..., torch.Tensor]
"""What an encoder makes of (B, T) integers: token ids, attention mask and perhaps segments."""

_tracing = threading.Lock()
"""torch names the modules of what it traces in one table for all threads."""
_TRACED = (2, 32, 5)
"""Rows, tokens and padding of the batch that is traced."""
_COMPARED = ((1, 16, 0), _TRACED, (3, 48, 7))
_WITHOUT = 8
"""Calls before the one that traces."""


class _Module(nn.Module):
    """A pass with the weights that it needs."""

    def __init__(self, plain: Pass, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self._plain = encoder, plain

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self._plain(*inputs)


class TracedLater:
    """A pass that is traced when it has shown to be needed often. Thread-safe."""

    def __init__(self, plain: Pass, encoder: Encoder, n_inputs: int = 2) -> None:
        """`encoder` is not to be changed from now on."""
        self._plain, self._encoder, self._n_inputs = plain, encoder, n_inputs
        self._n_calls = 0

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor:
        self._n_calls += 1  # threads may miss a call: it is traced one later
        return (self._plain if self._n_calls <= _WITHOUT else self._quick)(*inputs)

    @MadeOnce
    def _quick(self) -> Pass:
        return traced(self._plain, self._encoder, self._n_inputs)


def traced(plain: Pass, encoder: Encoder, n_inputs: int = 2) -> Pass:
    """The same pass of `n_inputs` tensors, quicker where it can be; `encoder` then stays on its device."""
    if encoder.device.type != "cpu":
        return plain
    try:
        quick, _ = trace(plain, encoder, n_inputs)
        with torch.no_grad():
            same = all(
                torch.equal(plain(*batch), quick(*batch))
                for batch in (_batch(encoder, shape)[:n_inputs] for shape in _COMPARED)
            )
    except Exception:
        logging.getLogger(__name__).info("an encoder can't be traced", exc_info=True)
        return plain
    return quick if same else plain


def trace(plain: Pass, encoder: Encoder, n_inputs: int = 2) -> tuple[Pass, tuple[torch.Tensor, ...]]:
    """A pass of `n_inputs` tensors as a script module, not compared yet, and the batch it was traced with.
    Raises what tracing raises.
    """
    example = _batch(encoder, _TRACED)[:n_inputs]
    with _tracing, torch.no_grad(), warnings.catch_warnings(), _quiet(encoder):
        # of constants, which a comparison finds out, and of newer ways, which come back to Python
        warnings.simplefilter("ignore")
        jit: Callable[..., Pass] = torch.jit.trace
        return jit(_Module(plain, encoder), example, check_trace=False), example


@contextmanager
def _quiet(encoder: Encoder) -> Iterator[None]:
    """Tracing asks a model for everything that it has; transformers logs that a loss is missing."""
    if isinstance(encoder, PlainEncoder):
        yield
        return
    # loaded already: the encoder is of transformers
    from transformers.utils import logging as transformers_logging

    said = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(said)


def _batch(encoder: Encoder, shape: tuple[int, int, int]) -> tuple[torch.Tensor, ...]:
    """ids, mask and segments of some tokens, the last row with padding."""
    n_rows, n_tokens, padding = shape
    n_tokens = min(n_tokens, max_positions_of(encoder))
    ids = (torch.arange(n_rows * n_tokens) % encoder.config.vocab_size).reshape(n_rows, n_tokens)
    mask, segments = torch.ones_like(ids), torch.zeros_like(ids)
    mask[-1, n_tokens - min(padding, n_tokens // 2) :] = 0
    segments[:, n_tokens // 2 :] = 1
    return ids, mask, segments
