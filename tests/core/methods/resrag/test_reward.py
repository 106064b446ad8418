"""The joint reward against cases that were computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadRequest
from core.methods.resrag.reward import (
    RewardConfig,
    answer_utility,
    budget_penalty,
    document_f1,
    document_penalty,
    joint_reward,
    retrieval_consistency,
)


def test_penalty_of_a_document() -> None:
    """(taken, chunks) below the root of the chunks, above it, and more than there are."""
    assert {document_penalty(*counts) for counts in ((0, 0), (0, 5), (1, 1), (1, 2), (2, 4))} == {0}
    assert {document_penalty(*counts) for counts in ((2, 2), (3, 8), (8, 8))} == {0.5}
    assert {document_penalty(*counts) for counts in ((1, 0), (2, 1), (9, 8))} == {1}


def test_penalty_over_documents() -> None:
    # phi = 0 (2 of 4), 0.5 (3 of 4), 1 (3 of 2); their mean 0.5, times 2
    assert budget_penalty([2, 3, 3], [4, 4, 2], eta=2.0) == 1.0
    # linear: 2/4, 3/4, at most 1; their mean 0.75, times 2
    assert budget_penalty([2, 3, 3], [4, 4, 2], eta=2.0, kind="linear") == 1.5


def test_answer_and_consistency() -> None:
    assert answer_utility(0.75, 2.0, -0.5) == 1.5
    assert answer_utility(0.0, 2.0, -0.5) == 0.0, "wrong is not the same as none"
    assert document_f1([1, 2, 3], [3, 4]) == pytest.approx(2 / 5)
    # 2/5, both empty 1, one empty 0
    assert retrieval_consistency(((1, 2, 3), (), (1,)), ((3, 4), (), ())) == pytest.approx((0.4 + 1 + 0) / 3)


def test_joint_reward() -> None:
    # answer 2 * 0.5 = 1; consistency (2*1/(2+1) + 1) / 2 = 5/6; penalty 2 * (0.5 + 0) / 2 = 0.5
    reward = joint_reward(((2, 1), ()), ((1,), ()), [3, 7], 0.5, RewardConfig())
    assert (reward.answer, reward.penalty) == (1.0, 0.5)
    assert reward.consistency == pytest.approx(5 / 6)
    assert reward.total == pytest.approx(1 + 5 / 6 - 0.5)
    nothing = joint_reward(((), ()), ((1,), ()), [3, 7], None, RewardConfig())
    assert nothing.total == pytest.approx(-0.5 + 0.5)


def test_reward_is_clipped() -> None:
    action, labels = ((1,),), ((1,),)
    assert joint_reward(action, labels, [1], 1.0, RewardConfig(answer_weight=9.0)).total == 5.0
    assert joint_reward(action, labels, [0], 0.0, RewardConfig(penalty_weight=9.0)).total == -5.0
    assert joint_reward(action, labels, [1], None, RewardConfig(bad_answer=-1.0)).total == 0.0


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.data())
def test_a_chunk_more_is_never_penalised_less(sizes: list[int], data: st.DataObject) -> None:
    taken = [data.draw(st.integers(0, 12)) for _ in sizes]
    more = list(taken)
    more[data.draw(st.integers(0, len(sizes) - 1))] += 1
    for kind in ("segmented", "linear"):
        assert budget_penalty(taken, sizes, 2.0, kind) <= budget_penalty(more, sizes, 2.0, kind) <= 2.0


def test_weights_out_of_range() -> None:
    for wrong in (
        {"answer_weight": -1.0},
        {"penalty_weight": math.nan},
        {"bad_answer": 0.1},
        {"penalty": "square"},
    ):
        with pytest.raises(BadRequest):
            RewardConfig(**wrong)
