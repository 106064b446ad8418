"""Rewards of choices, and lambda-returns over them (Q-RAG section 3.2, algorithm 1)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch


def rewards(chosen: Sequence[int], support: Collection[int], *, penalize_extra_steps: bool) -> list[float]:
    """Reward of each choice, in order: paid once, when the last support chunk is taken; 0 before and after.

    >>> rewards([7, 3, 5, 4], {3, 5}, penalize_extra_steps=False)
    [0.0, 0.0, 1.0, 0.0]
    """
    missing, out = set(support), []
    for step, chunk_id in enumerate(chosen, start=1):
        completes = missing == {chunk_id}
        missing.discard(chunk_id)
        value = 0.5 + 0.5 * len(support) / step if penalize_extra_steps else 1.0
        out.append(value if completes else 0.0)
    return out


def lambda_returns(
    rewards: torch.Tensor,
    values: torch.Tensor,
    *,
    gamma: float,
    trace_lambda: float,
    ends: torch.Tensor,
    bootstrap_at_cap: bool = False,
) -> torch.Tensor:
    """G_t for every step, backwards: G_t = r_t + gamma * ((1 - lambda) V(s_{t+1}) + lambda G_{t+1}).

    rewards (T, B); values (T + 1, B): V(s_0) ... V(s_T), where s_t is the state before step t; ends (B,) int:
    steps of each episode, at most T. Beyond an episode's last step nothing follows, unless
    `bootstrap_at_cap`: then V of the state after it (algorithm 1, line 9). Entries of steps that an episode
    doesn't have are 0. Returns (T, B).
    """
    returns = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[0])
    for t in range(len(rewards) - 1, -1, -1):
        last = ends == t + 1
        at_cap = values[t + 1] if bootstrap_at_cap else torch.zeros_like(following)
        continued = (1 - trace_lambda) * values[t + 1] + trace_lambda * following
        following = rewards[t] + gamma * torch.where(last, at_cap, continued)
        following = torch.where(ends > t, following, 0.0)
        returns[t] = following
    return returns
