"""The policy's training objective (RES-RAG eq. 17 to 21).

Every chunk is taken by an independent chance. Clip range and stabiliser are ours: the paper names none.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from core.methods.resrag.action import Action, action_of


def similarity_labels(similarities: np.ndarray, borders: np.ndarray, threshold: float) -> Action:
    """S~ (eq. 16): by document the numbers of the chunks above the threshold, most similar first, equals
    in document order.

    similarities: (N,), borders: (M + 1,).

    >>> similarity_labels(np.array([0.5, 0.2, 0.9, 0.4]), np.array([0, 3, 4]), 0.4)
    ((3, 1), ())
    """
    ranked = np.argsort(-similarities, kind="stable")
    return action_of(ranked[similarities[ranked] > threshold].tolist(), borders)


CLIP_RANGE = 0.2
"""epsilon of eq. 21, as the algorithm is usually run."""
STABILISER = 1e-4
"""epsilon_adv of eq. 19: far below any difference of rewards that matters, far above rounding."""


def group_advantages(rewards: np.ndarray, stabiliser: float = STABILISER) -> np.ndarray:
    """ADV (eq. 18, 19): rewards (T, W) of W actions for each of T questions -> (T, W), relative to their
    question's own mean and spread.

    >>> group_advantages(np.array([[0.0, 2.0], [1.0, 1.0]]), stabiliser=0.0 + 1e-12).round(6).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    advantages: np.ndarray = centred / (rewards.std(axis=1, keepdims=True) + stabiliser)
    return advantages


def set_log_probability(log_odds: torch.Tensor, taken: torch.Tensor) -> torch.Tensor:
    """log pi(S | q, X): log-odds (N,) of each chunk, sets (W, N) of zeros and ones -> (W,)."""
    return -functional.binary_cross_entropy_with_logits(
        log_odds.expand_as(taken), taken, reduction="none"
    ).sum(dim=-1)


def clipped_objective(
    log_probabilities: torch.Tensor,
    behaviour: torch.Tensor,
    advantages: torch.Tensor,
    clip_range: float = CLIP_RANGE,
) -> torch.Tensor:
    """The first expectation of eq. 21 before its mean, with the ratio of eq. 20: each (W,) -> (W,). To be
    made large.

    behaviour: log-probabilities under the policy that drew the sets, without gradient.
    """
    ratio = (log_probabilities - behaviour).exp()
    return torch.minimum(ratio * advantages, ratio.clamp(1 - clip_range, 1 + clip_range) * advantages)


def divergence(log_odds: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """KL(pi || pi_ref) of eq. 21 between policies over the same chunks: log-odds (N,), (N,) -> ()."""
    chance = torch.sigmoid(log_odds)
    taken = chance * (functional.logsigmoid(log_odds) - functional.logsigmoid(reference))
    left = (1 - chance) * (functional.logsigmoid(-log_odds) - functional.logsigmoid(-reference))
    return (taken + left).sum()
