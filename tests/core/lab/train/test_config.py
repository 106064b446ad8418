"""Settings of a training: what is refused and how, and how rate and temperature fall."""

from __future__ import annotations

from typing import Any

import pytest

from core.base.config import MAX_SEED
from core.base.errors import BadRequest
from core.lab.reader.training import ReaderConfig
from core.lab.train.config import TrainConfig
from core.lab.train.evidence_sets import SetTrainConfig
from core.lab.train.reranking import RerankConfig
from core.lab.tune.pairs import TuneConfig
from core.lab.tune.set_tasks import SetTuneConfig


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"validate_every": 0}, "validate every 0 is below 1; choose 1 or more"),
        ({"warmup": -1}, "warmup -1 is below 0; choose 0 or more"),
        ({"learning_rate": float("nan")}, "learning rate nan must be a finite number above 0"),
        ({"weight_decay": -1.0}, "weight decay -1.0 must be a finite number, 0 or more"),
        ({"gamma": 1.01}, "gamma 1.01 must be between 0 and 1"),
        ({"clip": float("inf")}, "clip inf must be a finite number above 0"),
        ({"top_k_actions": 0}, "top-k actions 0 must be at least 1, or none for all chunks"),
        ({"objective": "dqn"}, "objective 'dqn' is unknown; choose one of pqn, supervised"),
        (
            {"position_kind": "absolute"},
            "position kind 'absolute' can't be trained; choose one of relative, none",
        ),
    ],
)
def test_a_value_out_of_range_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadRequest) as caught:
        TrainConfig(**changes)
    assert str(caught.value) == sentence


CONFIGS = [TrainConfig, RerankConfig, ReaderConfig, SetTrainConfig, SetTuneConfig, TuneConfig]


@pytest.mark.parametrize("config", CONFIGS)
def test_a_rate_of_0_trains_nothing(config: Any) -> None:
    with pytest.raises(BadRequest, match="learning rate 0 must be a finite number above 0"):
        config(learning_rate=0)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_seed_is_one_that_the_log_can_hold(config: Any) -> None:
    assert config(seed=MAX_SEED).seed == MAX_SEED
    with pytest.raises(BadRequest, match=f"seed {MAX_SEED + 1} is above {MAX_SEED}; choose a smaller one"):
        config(seed=MAX_SEED + 1)


def test_rate_and_temperature_fall_together_after_a_warm_up() -> None:
    """Q-RAG section 3.2: the temperature is annealed in proportion to the rate; the warm-up is the
    optimiser's alone.
    """
    config = TrainConfig(updates=100, warmup=10, learning_rate=2.0, alpha=0.4, final_share=0.05)
    assert [config.rate(update) for update in (0, 4, 9)] == pytest.approx(
        [2.0 * 0.1, 2.0 * 0.96 * 0.5, 2.0 * 0.91]
    )
    assert config.temperature(0) == 0.4
    assert [config.temperature(update) for update in (25, 50, 97, 99)] == pytest.approx(
        [0.3, 0.2, 0.4 * 0.05, 0.4 * 0.05]
    )
    for update in range(10, 100):
        assert config.rate(update) / 2.0 == pytest.approx(config.temperature(update) / 0.4)
    assert TrainConfig(warmup=0).rate(0) == TrainConfig().learning_rate
