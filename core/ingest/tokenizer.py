"""What chunking needs to know of a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Tokenizer(Protocol):
    """Counts and locates tokens. No special tokens, no truncation, no padding."""

    def count(self, texts: Sequence[str]) -> np.ndarray:
        """(N,) int32: tokens of each text."""
        ...

    def spans(self, text: str) -> np.ndarray:
        """(n_tokens, 2) int64: start and end of each token in code points of `text`, in order."""
        ...
