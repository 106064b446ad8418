"""What an agent is trained on.

Where each update's examples come from, and the fixed ones that validate it.
"""

from __future__ import annotations

from random import Random
from typing import Any, Protocol

from core.lab.tasks.example import Example


class Mixture(Protocol):
    """A source of training episodes."""

    name: str
    """As the checkpoint and every evaluation row name the training set."""

    def draw(self, rng: Random, n: int) -> list[Example]:
        """n training examples; everything random comes from `rng`."""
        ...

    def validation(self, n: int) -> list[Example]:
        """About n examples that `draw` never gives, the same at every call."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the mixture consists of, for the checkpoint's record: plain JSON values."""
        ...
