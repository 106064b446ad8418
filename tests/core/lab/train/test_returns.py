"""Rewards and lambda-returns against their definitions."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.lab.train.config import TrainConfig
from core.lab.train.episodes import lambda_returns, rewards

UNIT = st.floats(0.0, 1.0)


def forward_return(
    rewards: list[float], values: list[float], t: int, gamma: float, trace_lambda: float
) -> float:
    """The lambda-return as a weighted mean of n-step returns (Q-RAG section 3.2), summed forwards; the
    episode ends with its last reward.

    values[k] is V of the state before step k.
    """
    n_left = len(rewards) - t

    def n_step(n: int) -> float:
        total = sum(gamma**k * rewards[t + k] for k in range(n))
        return total + (gamma**n * values[t + n] if n < n_left else 0.0)

    return (1 - trace_lambda) * sum(
        trace_lambda ** (n - 1) * n_step(n) for n in range(1, n_left)
    ) + trace_lambda ** (n_left - 1) * n_step(n_left)


@given(st.lists(st.tuples(UNIT, UNIT), min_size=1, max_size=7), UNIT, UNIT)
def test_backward_returns_equal_the_forward_sum(
    steps: list[tuple[float, float]], gamma: float, trace_lambda: float
) -> None:
    reward, value = [r for r, _ in steps], [v for _, v in steps]
    got = lambda_returns(
        torch.tensor(reward, dtype=torch.float64)[:, None],
        torch.tensor([*value, 0.7], dtype=torch.float64)[:, None],
        torch.tensor([len(steps)]),
        TrainConfig(gamma=gamma, trace_lambda=trace_lambda),
    )[:, 0]
    wanted = [forward_return(reward, value, t, gamma, trace_lambda) for t in range(len(steps))]
    assert got.tolist() == pytest.approx(wanted, abs=1e-9)


def test_bootstrapping_at_the_cap_continues_with_the_state_beyond() -> None:
    reward, values = torch.tensor([[0.0], [0.5]]), torch.tensor([[9.0], [0.4], [0.8]])
    config = TrainConfig(gamma=0.5, trace_lambda=0.25, bootstrap_at_cap=True)
    got = lambda_returns(reward, values, torch.tensor([2]), config)
    last = 0.5 + 0.5 * 0.8
    assert got[:, 0].tolist() == pytest.approx([0.5 * (0.75 * 0.4 + 0.25 * last), last])


def test_short_episodes_end_where_they_end_and_long_ones_beside_them_go_on() -> None:
    reward, values = torch.tensor([[1.0, 0.0], [0.3, 0.0], [0.3, 1.0]]), torch.full((4, 2), 0.6)
    config = TrainConfig(gamma=1.0, trace_lambda=1.0)
    got = lambda_returns(reward, values, torch.tensor([1, 3]), config)
    assert got[:, 0].tolist() == [1.0, 0.0, 0.0]
    assert got[:, 1].tolist() == [1.0, 1.0, 1.0]


@given(st.permutations(range(8)), st.sets(st.integers(0, 7), min_size=1, max_size=8), st.integers(1, 8))
def test_reward_is_paid_once_when_the_last_support_is_taken(
    order: list[int], support: set[int], n_taken: int
) -> None:
    chosen = order[:n_taken]
    plain, penalised = (rewards(chosen, support, penalize_extra_steps=penalty) for penalty in (False, True))
    if not support <= set(chosen):
        assert plain == penalised == [0.0] * n_taken
        return
    step = max(chosen.index(chunk_id) for chunk_id in support)
    assert plain == [float(i == step) for i in range(n_taken)]
    assert penalised[step] == pytest.approx(0.5 + 0.5 * len(support) / (step + 1))
    assert sum(penalised) == penalised[step]
