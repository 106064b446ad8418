"""A set of evidence beside what else could have been taken.

It is compared with as many chunks by top-k as hold the same support, or as many chunks where no support is
known; with every chunk above the cosine threshold; and with everything.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from core.base.types import Workspace
from core.methods.resrag.action import action_of
from core.methods.resrag.reward import (
    Reward,
    RewardConfig,
    document_penalty,
    joint_reward,
    retrieval_consistency,
)

LEAST_CHANCE = 0.5
"""From which a chunk belongs to the most probable set, unless a policy has its own."""


def most_probable_set(
    chances: np.ndarray, budget: int, least: float = LEAST_CHANCE, forbidden: Collection[int] = ()
) -> list[int]:
    """Chunk ids with a chance above `least`, likeliest first, equals in document order, at most `budget`.
    chances: (N,).

    >>> most_probable_set(np.array([0.2, 0.9, 0.6, 0.7]), budget=2)
    [1, 3]
    """
    ids = np.flatnonzero(chances > least)
    ranked = ids[np.argsort(-chances[ids], kind="stable")].tolist()
    barred = set(forbidden)
    return [chunk_id for chunk_id in ranked if chunk_id not in barred][:budget]


@dataclass(frozen=True)
class DocumentSet:
    """What is taken of one document."""

    document: int
    n_chunks: int
    taken: tuple[int, ...]
    """Chunk ids, the likeliest first."""
    n_tokens: int
    """Of what is taken."""

    @property
    def root(self) -> float:
        """Chunks that cost nothing (eq. 8)."""
        return math.sqrt(self.n_chunks)

    @property
    def is_beyond(self) -> bool:
        """Whether so much is taken that it costs."""
        return document_penalty(len(self.taken), self.n_chunks) > 0


@dataclass(frozen=True)
class Rival:
    """Another way to take evidence for the same question."""

    name: str
    n_chunks: int
    n_tokens: int


@dataclass(frozen=True)
class RewardTerms:
    """A reward and what its terms are made of."""

    reward: Reward
    config: RewardConfig
    f1: float | None
    """Of the answer; None for an empty one."""
    consistency: float
    """F1_ret (eq. 13), not weighed."""
    mean_penalty: float
    """Mean of phi over the documents (eq. 9), not weighed."""
    n_beyond: int
    """Documents of which more is taken than is free."""


def token_counts(workspace: Workspace) -> np.ndarray:
    """(N,) tokens of every chunk."""
    tables = [table.n_tokens for table in workspace.tables]
    return np.concatenate(tables) if tables else np.zeros(0, np.int32)


def document_sets(taken: Sequence[int], borders: np.ndarray, n_tokens: np.ndarray) -> list[DocumentSet]:
    """By document what a set takes of it. borders: (M + 1,), n_tokens: (N,).

    >>> [one.taken for one in document_sets([4, 0, 3], np.array([0, 3, 5]), np.ones(5, int))]
    [(0,), (4, 3)]
    """
    sets = []
    for document, numbers in enumerate(action_of(taken, borders)):
        first, end = int(borders[document]), int(borders[document + 1])
        ids = tuple(first + number - 1 for number in numbers)
        sets.append(DocumentSet(document, end - first, ids, int(n_tokens[list(ids)].sum()) if ids else 0))
    return sets


def rivals(
    taken: Sequence[int],
    gold: Collection[int],
    similarities: np.ndarray,
    cosines: np.ndarray,
    threshold: float,
    n_tokens: np.ndarray,
) -> list[Rival]:
    """Top-k, the threshold rule, everything. similarities: (N,) what top-k sorts by; cosines, n_tokens: (N,).

    >>> values = np.array([0.9, 0.5, 0.3])
    >>> [(one.name, one.n_chunks) for one in rivals([1], {1}, values, values, 0.41, np.ones(3, int))]
    [('top-k, same support', 2), ('threshold 0.41', 2), ('everything', 3)]
    """
    n_found = len({*taken} & {*gold})
    ranked = np.argsort(-similarities, kind="stable")
    if n_found:
        name, k = "top-k, same support", 1 + int(np.flatnonzero(np.isin(ranked, [*gold]))[n_found - 1])
    else:
        name, k = "top-k, same size", len(taken)
    above = cosines >= threshold
    return [
        Rival(name, k, int(n_tokens[ranked[:k]].sum())),
        Rival(f"threshold {threshold:.2f}", int(above.sum()), int(n_tokens[above].sum())),
        Rival("everything", len(n_tokens), int(n_tokens.sum())),
    ]


def reward_terms(
    taken: Sequence[int], gold: Sequence[int], borders: np.ndarray, f1: float | None
) -> RewardTerms:
    """The joint reward (eq. 14) of a set and its terms. f1: see `joint_reward`. borders: (M + 1,), of at
    least one document.
    """
    config = RewardConfig()
    action, labels, sizes = action_of(taken, borders), action_of(gold, borders), np.diff(borders).tolist()
    penalties = [document_penalty(len(own), size) for own, size in zip(action, sizes, strict=True)]
    return RewardTerms(
        joint_reward(action, labels, sizes, f1, config),
        config,
        f1,
        retrieval_consistency(action, labels),
        sum(penalties) / len(penalties),
        sum(penalty > 0 for penalty in penalties),
    )
