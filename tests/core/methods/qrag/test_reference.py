"""Golden test: checkpoints of the authors' format give the tokens, positions and Q of the reference."""

import json

import numpy as np
import pytest

from core.base.config import EpisodeConfig
from core.base.events import fold
from core.encode.rope import on_grid, turn
from core.methods.qrag.agent import Agent
from core.methods.qrag.policy import candidates, state_value
from core.methods.qrag.positions import chunk_positions
from tests.conftest import ROOT
from tests.core.conftest import CorpusOf

EPISODES = json.loads((ROOT / "tests/data/reference/episodes.json").read_text())


@pytest.mark.parametrize("golden", EPISODES, ids=lambda episode: episode["id"])
def test_episode_equals_the_reference(golden: dict, agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    agent = agents[golden["checkpoint"]]
    corpus = corpus_of(agent.encoder, golden["chunks"])
    config = EpisodeConfig(step_budget=golden["max_steps"])
    steps = fold(agent.run(golden["question"], corpus, config)).steps
    assert [step.chunk_id for step in steps] == [step["action"] for step in golden["steps"]]
    chosen: list[int] = []
    for step, expected in zip(steps, golden["steps"], strict=True):
        np.testing.assert_allclose(step.scores.q_values, expected["q_values"], rtol=0, atol=1e-5)
        assert step.q_value == pytest.approx(expected["q_value"], abs=1e-5)
        if step.scores.positions is not None:
            np.testing.assert_allclose(step.scores.positions, expected["positions"], rtol=0, atol=1e-5)
        order = sorted(chosen) if agent.spec.state_order == "document" else chosen
        tokens = agent.encoder.state_tokens(golden["question"], [golden["chunks"][i] for i in order])
        assert tokens.ids == expected["state_token_ids"]
        chosen.append(step.chunk_id)


@pytest.mark.parametrize("golden", EPISODES[:8], ids=lambda episode: episode["id"])
def test_soft_value_of_the_double_critic(golden: dict, agents: dict[str, Agent]) -> None:
    """Eq. 4 on each half, over its five best chunks less the chosen ones, halves added: the reference's
    training value.
    """
    agent = agents[golden["checkpoint"]]
    spec, vectors = agent.spec, agent.encoder.encode_chunks(golden["chunks"])
    chosen: list[int] = []
    for expected in golden["steps"]:
        order = sorted(chosen) if spec.state_order == "document" else chosen
        tokens = agent.encoder.state_tokens(golden["question"], [golden["chunks"][i] for i in order])
        state = agent.encoder.encode_states([tokens])[0]
        positions = chunk_positions(spec, np.array([0, len(vectors)]), chosen)
        positions = on_grid(positions, spec.position_resolution)
        products = turn(vectors, positions, halves=spec.halves, theta=spec.rope_theta) * state
        halves = products.reshape(len(vectors), 2, -1).sum(-1)
        # The reference takes the five best of ALL chunks and drops the chosen ones among them afterwards;
        # ours drops them first. Where that leaves a half with none, its number is an underflow guard and not
        # a value.
        everything, available = np.ones(len(halves), bool), np.array(expected["available"])
        masks = [
            np.isin(np.arange(len(halves)), candidates(half, everything, 5)) & available for half in halves.T
        ]
        if all(mask.any() for mask in masks):
            value = sum(state_value(half, mask, 0.01) for half, mask in zip(halves.T, masks, strict=True))
            assert value == pytest.approx(expected["soft_value_top5"], abs=1e-5)
        chosen.append(expected["action"])
