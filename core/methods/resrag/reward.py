"""The joint reward of RES-RAG (eq. 8 to 14).

Two choices are ours, since the paper leaves them open: the reward of an unusable answer, and what stands in
the segmented penalty's place where that is left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from core.base.errors import BadRequest
from core.methods.resrag.action import Action

PENALTY_ABOVE_ROOT = 0.5
"""Of a document of which more chunks are taken than the square root of their number (eq. 8)."""
PENALTY_ABOVE_ALL = 1.0
"""Of a document of which more are taken than there are, which only repeats can do (eq. 8)."""
PenaltyKind = Literal["segmented", "linear"]
"""segmented: eq. 8. linear: the share of its chunks that is taken, which section 4.3 compares with."""


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """What the terms weigh; the defaults are table 4's but for `bad_answer`."""

    answer_weight: float = 2.0
    """alpha_ans (eq. 10): of the answer's F1 in the reward."""
    consistency_weight: float = 1.0
    """alpha_ret (eq. 14): of the agreement with labels."""
    penalty_weight: float = 2.0
    """eta (eq. 9): of taking too much of a document."""
    bad_answer: float = -0.5
    """gamma_bad (eq. 10): reward of an empty answer. The paper gives none: a quarter of a right one's."""
    penalty: PenaltyKind = "segmented"
    """How taking too much counts."""
    least: float = -5.0
    """R_min (eq. 14)."""
    most: float = 5.0
    """R_max (eq. 14)."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        for name in ("answer_weight", "consistency_weight", "penalty_weight"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise BadRequest(f"{name.replace('_', ' ')} {value} must be a finite number, 0 or more")
        if not math.isfinite(self.bad_answer) or self.bad_answer > 0:
            raise BadRequest(f"bad answer {self.bad_answer} must be a finite number, 0 or less")
        if self.penalty not in get_args(PenaltyKind):
            raise BadRequest(
                f"penalty {self.penalty!r} is unknown; choose {' or '.join(get_args(PenaltyKind))}"
            )


@dataclass(frozen=True)
class Reward:
    """The terms of eq. 14, weighed."""

    answer: float
    """U_ans."""
    consistency: float
    """alpha_ret times F1_ret."""
    penalty: float
    """P_budget, which is taken off."""
    total: float
    """Clipped."""


def document_penalty(n_taken: int, n_chunks: int) -> float:
    """phi_m (eq. 8) of one document of which `n_taken` chunks are taken, repeats counted.

    >>> [document_penalty(n, 9) for n in (3, 4, 9, 10)]
    [0.0, 0.5, 0.5, 1.0]
    """
    if n_taken > n_chunks:
        return PENALTY_ABOVE_ALL
    return PENALTY_ABOVE_ROOT if n_taken * n_taken > n_chunks else 0.0


def linear_penalty(n_taken: int, n_chunks: int) -> float:
    """The share of a document that is taken, at most 1.

    >>> linear_penalty(3, 12)
    0.25
    """
    return min(1.0, n_taken / n_chunks) if n_chunks else float(n_taken > 0)


def budget_penalty(
    taken: Sequence[int], sizes: Sequence[int], eta: float, kind: PenaltyKind = "segmented"
) -> float:
    """P_budget (eq. 9). taken, sizes: (M,) chunks taken of each document, and of how many; M is at least 1.

    >>> budget_penalty([2, 0], [1, 5], eta=2.0), budget_penalty([2, 0], [3, 5], eta=2.0)
    (1.0, 0.5)
    """
    phi = document_penalty if kind == "segmented" else linear_penalty
    penalties = [phi(n_taken, n_chunks) for n_taken, n_chunks in zip(taken, sizes, strict=True)]
    return eta * sum(penalties) / len(sizes)


def answer_utility(f1: float | None, answer_weight: float, bad_answer: float) -> float:
    """U_ans (eq. 10); f1 is None for an empty answer.

    >>> answer_utility(0.25, 2.0, -0.5), answer_utility(None, 2.0, -0.5)
    (0.5, -0.5)
    """
    return bad_answer if f1 is None else answer_weight * f1


def document_f1(taken: Collection[int], labelled: Collection[int]) -> float:
    """F1_m (eq. 12) of one document's chunks, repeats dropped (eq. 11); 1 where both are empty, 0
    where one is.

    >>> document_f1([1, 1, 2], [2, 3]), document_f1([], []), document_f1([], [1])
    (0.5, 1.0, 0.0)
    """
    chosen, wanted = set(taken), set(labelled)
    return 2 * len(chosen & wanted) / (len(chosen) + len(wanted)) if chosen or wanted else 1.0


def retrieval_consistency(action: Action, labels: Action) -> float:
    """F1_ret (eq. 13), the mean over the documents.

    >>> retrieval_consistency(((1,), (2,)), ((1,), ()))
    0.5
    """
    scores = [document_f1(taken, labelled) for taken, labelled in zip(action, labels, strict=True)]
    return sum(scores) / len(action)


def joint_reward(
    action: Action, labels: Action, sizes: Sequence[int], f1: float | None, config: RewardConfig
) -> Reward:
    """R (eq. 14) of a valid action. sizes: (M,) chunks a document; f1: of the answer, None for none."""
    answer = answer_utility(f1, config.answer_weight, config.bad_answer)
    consistency = config.consistency_weight * retrieval_consistency(action, labels)
    penalty = budget_penalty(list(map(len, action)), sizes, config.penalty_weight, config.penalty)
    total = min(max(answer + consistency - penalty, config.least), config.most)
    return Reward(answer, consistency, penalty, total)
