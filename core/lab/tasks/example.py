"""One question over chunks whose support is known.

A haystack of ten million tokens serves hundreds of questions, so its chunks are not copied for each: `Woven`
looks up noise and a question's own texts by id, and says which row of the noise a chunk is, so that vectors
are shared too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import overload

import numpy as np


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Example:
    """A labelled question."""

    id: str
    task: str
    """Which task it belongs to, by the name `evaluate` knows it under."""
    question: str
    chunks: Sequence[str]
    """In document order; a tuple, or a `Woven` haystack."""
    support: tuple[int, ...]
    """Ids of the chunks that decide the answer, ascending, none twice."""
    answers: tuple[str, ...] = ()
    """Accepted answers, the main one first."""
    kind: str = ""
    """What the data set calls its type: bridge, comparison, 3hop1, ..."""
    word_shares: tuple[float, ...] = ()
    """For training an agent that counts words: BM25 of the question over each chunk, divided by its largest
    over the whole document. Empty: 0 for all.
    """

    @property
    def own_texts(self) -> Sequence[str]:
        """The chunks that are no noise shared with other questions, in document order."""
        return self.chunks.own if isinstance(self.chunks, Woven) else self.chunks

    @property
    def own_ids(self) -> Sequence[int]:
        """Their ids."""
        return self.chunks.places if isinstance(self.chunks, Woven) else range(len(self.chunks))


@dataclass(frozen=True, eq=False)
class Noise:
    """Chunks that decide nothing, in the order of the books they come from."""

    name: str
    texts: tuple[str, ...] = field(repr=False)
    n_tokens: np.ndarray = field(repr=False)
    """(len(texts),) int32, special tokens not counted."""

    @cached_property
    def _ends(self) -> np.ndarray:
        """(len(texts),) int64: tokens up to and with each chunk."""
        return np.cumsum(self.n_tokens, dtype=np.int64)

    def n_fitting(self, start: int, token_budget: int) -> int:
        """How many chunks from row `start` on fit in a budget, the noise beginning again after its end."""
        total, before = int(self._ends[-1]), int(self._ends[start] - self.n_tokens[start])
        rounds, end = divmod(before + max(0, token_budget), total)
        return rounds * len(self.texts) + int(np.searchsorted(self._ends, end, side="right")) - start


@dataclass(frozen=True, eq=False)
class Woven(Sequence[str]):
    """A question's own texts among noise, which is read from row `start` on and begins again at its end."""

    noise: Noise
    start: int
    n_noise: int
    own: tuple[str, ...]
    places: tuple[int, ...]
    """Ids that the own texts take in the whole, ascending."""

    def __len__(self) -> int:
        return self.n_noise + len(self.own)

    @property
    def noise_rows(self) -> np.ndarray:
        """(N,) int64 row of the noise that each chunk is, -1 for own texts. Made anew each time: kept for
        hundreds of haystacks it would fill memory.
        """
        rows = np.full(len(self), -1, dtype=np.int64)
        is_noise = np.ones(len(self), dtype=bool)
        is_noise[list(self.places)] = False
        rows[is_noise] = (self.start + np.arange(self.n_noise)) % max(1, len(self.noise.texts))
        return rows

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        chunk_id = range(len(self))[index]
        n_before = bisect_left(self.places, chunk_id)
        if n_before < len(self.places) and self.places[n_before] == chunk_id:
            return self.own[n_before]
        return self.noise.texts[(self.start + chunk_id - n_before) % len(self.noise.texts)]


def weave(own: Sequence[str], noise: Noise, n_noise: int, rng: Random, start: int | None = None) -> Woven:
    """Own texts, in order, at random places among `n_noise` chunks from row `start` on, random if None."""
    places = sorted(rng.sample(range(len(own) + n_noise), len(own)))
    first = rng.randrange(len(noise.texts)) if start is None else start
    return Woven(noise, first, n_noise, tuple(own), tuple(places))


def weave_to_length(
    own: Sequence[str], n_own_tokens: int, noise: Noise, token_budget: int, rng: Random
) -> Woven | None:
    """Own texts among noise up to a token budget, from a random row on; None when they alone exceed it."""
    if n_own_tokens > token_budget:
        return None
    start = rng.randrange(len(noise.texts))
    return weave(own, noise, noise.n_fitting(start, token_budget - n_own_tokens), rng, start)
