"""Examples over a shared noise, small enough for the tiny checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

from core.lab.tasks.example import Example, Noise, Woven

NOISE = Noise(
    "noise",
    (
        "the river was cold .",
        "the captain looked upon the city .",
        "night fell .",
        "the river was long .",
        "a cold city .",
    ),
    np.full(5, 5, np.int32),
)


def woven_example(number: int, start: int, n_noise: int = 7) -> Example:
    """Two facts among noise that wraps around; both are support."""
    own = ("john got the milk there .", f"john went to the {('kitchen', 'office', 'garden')[number % 3]} .")
    return Example(
        f"w{number}",
        "milk",
        "where is the milk ?",
        Woven(NOISE, start, n_noise, own, (number % 3, 3)),
        (number % 3, 3),
    )


def listed_example(number: int) -> Example:
    """A context of its own, one chunk twice."""
    chunks = (
        "mary went to the hall .",
        f"daniel took the apple {number} .",
        "night fell .",
        "mary went to the hall .",
    )
    return Example(f"l{number}", "apple", "where is the apple ?", chunks, (1,))


@pytest.fixture
def examples() -> list[Example]:
    return [
        woven_example(0, 0),
        listed_example(0),
        woven_example(1, 3),
        woven_example(2, 4, 2),
        listed_example(1),
    ]
