"""The mixture of a person's own questions.

A file of them, split into training and validation.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from core.base.errors import BadRequest
from core.lab.tasks.example import Example
from core.lab.tasks.own_questions import read_own_questions

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
        examples = read_own_questions(file)
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
