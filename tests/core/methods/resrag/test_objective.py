"""Advantages, clipped objective, divergence and labels against cases computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from core.methods.resrag.objective import (
    clipped_objective,
    divergence,
    group_advantages,
    set_log_probability,
    similarity_labels,
)


def test_advantages_are_relative_to_the_question() -> None:
    # mean 2, spread sqrt((1 + 0 + 0 + 1) / 4) = sqrt(0.5)
    advantages = group_advantages(np.array([[1.0, 2.0, 2.0, 3.0], [7.0, 7.0, 7.0, 7.0]]), stabiliser=0.5)
    expected = 1 / (math.sqrt(0.5) + 0.5)
    assert advantages[0] == pytest.approx([-expected, 0, 0, expected])
    assert advantages[1].tolist() == [0, 0, 0, 0], "where all sets are worth the same nothing is learned"


def test_probability_of_sets() -> None:
    log_odds = torch.tensor([0.0, math.log(3.0)])  # chances 1/2 and 3/4
    sets = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    probabilities = set_log_probability(log_odds, sets).exp()
    assert probabilities.tolist() == pytest.approx([1 / 8, 3 / 8, 1 / 8, 3 / 8])


def test_clipped_objective() -> None:
    for ratio, advantage, expected in (
        (1.0, 2.0, 2.0),
        (1.5, 2.0, 2.4),
        (0.5, 2.0, 1.0),
        (1.5, -2.0, -3.0),
        (0.5, -2.0, -1.6),
    ):
        log_ratio = torch.tensor([math.log(ratio)])
        gained = clipped_objective(log_ratio, torch.zeros(1), torch.tensor([advantage]), clip_range=0.2)
        assert gained.item() == pytest.approx(expected)


def test_a_clipped_ratio_teaches_nothing() -> None:
    """The chance is far above what it was when the set was drawn."""
    log_odds = torch.tensor([0.0], requires_grad=True)
    now = set_log_probability(log_odds, torch.ones(1, 1))
    clipped_objective(now, torch.tensor([-2.0]), torch.ones(1)).sum().backward()
    assert log_odds.grad.item() == 0


def test_divergence() -> None:
    # 3/4 log(3/4 / 1/2) + 1/4 log(1/4 / 1/2), once; equal chances add nothing
    policy, reference = torch.tensor([math.log(3.0), 1.0]), torch.tensor([0.0, 1.0])
    assert divergence(policy, reference).item() == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert divergence(torch.tensor([80.0]), torch.tensor([-80.0])).item() == pytest.approx(80.0), (
        "certain policies have a divergence, too"
    )


def test_similarity_labels() -> None:
    similarities = np.array([0.41, 0.3, 0.9, 0.9, 0.5])
    assert similarity_labels(similarities, np.array([0, 2, 2, 5]), 0.41) == ((), (), (1, 2, 3)), (
        "above the threshold, best first, equals in order"
    )
