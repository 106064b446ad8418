"""What a reranker learns from, one question after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

import numpy as np

from core.encode.checkpoint import CheckpointSpec

COMPETE = 20
"""The likeliest other chunks of a question, of which those that compete are drawn."""


@dataclass(frozen=True, slots=True)
class Contest:
    """A question with texts of which the first belongs to the evidence, the others to none."""

    question: str
    texts: tuple[str, ...]
    chosen: tuple[str, ...] = ()
    """What is read before each text."""


class Contests(Protocol):
    """Where the contests of an update come from, and what an agent is worth that has the reranker."""

    n_questions: int
    """To learn from."""

    def draw(self, rng: Random, n: int) -> list[Contest]:
        """n of them, or as many as there are, each with equally many texts."""
        ...

    def scores(self, agent: Path, spec: CheckpointSpec, device: str) -> Mapping[float, np.ndarray]:
        """By weight of the reranker in Q, 0 first, the score of each validation question. `agent`: the folder
        of one with the reranker, whose spec is `spec` but for the weight.
        """
        ...
