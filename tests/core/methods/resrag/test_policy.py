"""The policy as a file and as a choice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadCheckpoint
from core.methods.resrag.card import (
    CARD_FILE,
    USUAL,
    WEIGHTS_FILE,
    PolicyCard,
    policy_for,
    read_card,
    shipped_policies,
)
from core.methods.resrag.features import NAMES
from core.methods.resrag.policy import EvidencePolicy, load_policy, save_policy
from core.methods.resrag.sets import most_probable_set


@given(st.lists(st.floats(0, 1, width=32), max_size=30), st.integers(1, 40), st.sets(st.integers(0, 29)))
def test_most_probable_set(chances: list[float], budget: int, forbidden: set[int]) -> None:
    chosen = most_probable_set(np.array(chances, np.float32), budget, forbidden=forbidden)
    allowed = [i for i in range(len(chances)) if i not in forbidden and chances[i] > 0.5]
    assert len(chosen) == min(budget, len(allowed))
    assert set(chosen) <= set(allowed)
    order = [(-chances[i], i) for i in chosen]
    assert order == sorted(order), "the likeliest first, equals in document order"
    assert all(chances[i] <= chances[chosen[-1]] for i in set(allowed) - set(chosen))


def test_a_policy_is_served_as_it_was_saved(tmp_path: Path) -> None:
    torch.manual_seed(1)
    policy = EvidencePolicy(5)
    policy.spread.fill_(2.0)
    save_policy(tmp_path, policy, PolicyCard(name="five", hidden=5, encoder="base", least_chance=0.2))
    features = np.random.default_rng(0).normal(size=(7, len(NAMES))).astype(np.float32)
    assert (load_policy(tmp_path).chances(features) == policy.chances(features)).all()
    assert read_card(tmp_path).name == "five"
    assert policy.chances(features[:0]).shape == (0,)
    assert load_policy(tmp_path).least_chance == 0.2


def test_damaged_policies(tmp_path: Path) -> None:
    card, weights = tmp_path / CARD_FILE, tmp_path / WEIGHTS_FILE
    save_policy(tmp_path, EvidencePolicy(5), PolicyCard(name="five", hidden=5, encoder="base"))
    values = json.loads(card.read_text())
    for damage, said in (
        (lambda: card.write_text(json.dumps(values | {"features": ["cosine"]})), "other features"),
        (
            lambda: card.write_text(json.dumps(values | {"hidden": 6})),
            r"head\.safetensors of policy .* does not fit",
        ),
        (lambda: card.write_text("{}"), r"resrag\.json of .*: name: Field required"),
        (card.unlink, r"holds no readable resrag\.json"),
        (
            lambda: card.write_text(json.dumps(values)) and weights.write_bytes(b"no"),
            "no readable safetensors file",
        ),
    ):
        damage()
        with pytest.raises(BadCheckpoint, match=said):
            load_policy(tmp_path)


def test_the_policies_that_ship() -> None:
    assert [*shipped_policies()] == ["general", "multi-hop"]
    for checkpoint, folder in shipped_policies().items():
        card = read_card(folder)
        assert (card.encoder, policy_for(checkpoint)) == (checkpoint, folder)
        assert card.training
        assert card.scores
        load_policy(folder)
    assert {read_card(policy_for(agent)).encoder for agent in ("base", "narrative", "../general")} == {USUAL}
