"""Settings of a tuning on preferences.

They feed flags, the folder's record and its card. Defaults are those of SPARC-RAG appendix A.4, with one
exception: its effective batch of 16 pairs, four on each of four GPUs, is accumulated on one device.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from core.base.config import MAX_SEED, check_numbers
from core.base.errors import BadRequest

_LEAST = {"epochs": 1, "accumulate": 1, "rank": 1, "max_tokens": 16, "seed": 0}
"""Smallest value of each whole number."""


@dataclass(frozen=True, kw_only=True)
class TuneConfig:
    """One tuning by DPO."""

    weight_lambda: float = 2.0
    """lambda: weight of pairs in which going on is preferred to stopping; others weigh as their file says."""
    beta: float = 0.1
    """Scale of the difference of log-probabilities within the loss."""
    reference: bool = True
    """Log-probabilities count relative to the untuned model; False as SPARC-RAG section 3.4 displays it."""
    epochs: int = 3
    """Times that all pairs are gone through."""
    learning_rate: float = 5e-5
    """At the first step; falls linearly to 0."""
    accumulate: int = 16
    """Pairs of one step of the optimizer."""
    rank: int = 16
    """Of the LoRA changes."""
    lora_alpha: float = 32.0
    """The changes are scaled by lora_alpha / rank."""
    max_tokens: int = 8192
    """Of prompt and reply together; longer pairs are left out."""
    seed: int = 42
    """Of everything random."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        check_numbers(self, _LEAST, ("beta", "learning_rate", "lora_alpha", "weight_lambda"))
        if self.seed > MAX_SEED:
            raise BadRequest(f"seed {self.seed} is above {MAX_SEED}; choose a smaller one")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)
