"""Sequences, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar


class Sliced(Protocol):
    """What can be cut: a list, a text, bytes, an array."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Any: ...


S = TypeVar("S", bound=Sliced)


def batches(items: S, size: int) -> Iterator[S]:
    """Consecutive slices of `size` items; the last may be shorter.

    >>> list(batches("abcde", 2))
    ['ab', 'cd', 'e']
    """
    for first in range(0, len(items), size):
        part: S = items[first : first + size]
        yield part
