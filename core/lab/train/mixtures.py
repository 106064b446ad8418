"""What an agent is trained on, and a person's own questions.

A mixture says where each update's examples come from, and the fixed ones that validate it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar

from core.base.errors import BadRequest
from core.lab.tasks.example import Example
from core.lab.tasks.qa_sets import read_own_questions

T_co = TypeVar("T_co", covariant=True)


class TrainingData(Protocol[T_co]):
    """What a training draws from."""

    name: str
    """As the checkpoint and every evaluation row name the training set."""

    def draw(self, rng: Random, n: int) -> Sequence[T_co]:
        """n of them to learn from; everything random comes from `rng`."""
        ...

    def validation(self, n: int) -> Sequence[T_co]:
        """About n that `draw` never gives, the same at every call."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the source consists of, for the checkpoint's record: plain JSON values."""
        ...


Mixture = TrainingData[Example]

VALIDATION_SHARE = 0.15
FEWEST = 8
"""Questions needed: some train, at least two validate."""


class OwnMixture:
    """See the module; a `Mixture`."""

    name = "own"

    def __init__(self, file: Path | None) -> None:
        """Raises BadRequest when the file can't be used."""
        if file is None:
            raise BadRequest("training on your own questions needs their file; name it with --questions")
        self._file = file.name
        # one that stands twice would validate what it trains
        once = {(example.question, example.chunks): example for example in read_own_questions(file)}
        examples = list(once.values())
        if len(examples) < FEWEST:
            raise BadRequest(f"{file.name} has {len(examples)} questions, below {FEWEST}; add more")
        Random("split of own questions").shuffle(examples)
        n_held_out = max(2, round(VALIDATION_SHARE * len(examples)))
        self._validation, self._train = examples[:n_held_out], examples[n_held_out:]

    def draw(self, rng: Random, n: int) -> list[Example]:
        return [rng.choice(self._train) for _ in range(n)]

    def validation(self, n: int) -> list[Example]:
        return self._validation[:n]

    def describe(self) -> dict[str, Any]:
        return {"file": self._file, "questions": len(self._train), "validation": len(self._validation)}
