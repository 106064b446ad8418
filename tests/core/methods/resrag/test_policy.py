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


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / CARD_FILE).unlink(), r"holds no readable resrag\.json"),
        (lambda folder: (folder / CARD_FILE).write_text("{}"), r"resrag\.json of .*: name Field required"),
        (lambda folder: _change(folder, features=["cosine"]), "other features"),
        (lambda folder: _change(folder, hidden=6), r"head\.safetensors of policy .* does not fit"),
        (
            lambda folder: (folder / WEIGHTS_FILE).write_bytes(b"no tensors"),
            "is no readable safetensors file",
        ),
    ],
)
def test_damaged_policies(tmp_path: Path, damage: object, said: str) -> None:
    save_policy(tmp_path, EvidencePolicy(5), PolicyCard(name="five", hidden=5, encoder="base"))
    damage(tmp_path)  # type: ignore[operator]
    with pytest.raises(BadCheckpoint, match=said):
        load_policy(tmp_path)


def _change(folder: Path, **values: object) -> None:
    card = json.loads((folder / CARD_FILE).read_text())
    (folder / CARD_FILE).write_text(json.dumps(card | values))


def test_the_policies_that_ship() -> None:
    assert [*shipped_policies()] == ["general", "multi-hop"]
    for checkpoint, folder in shipped_policies().items():
        card = read_card(folder)
        assert (card.encoder, policy_for(checkpoint)) == (checkpoint, folder)
        assert card.training is not None
        assert card.scores is not None
        load_policy(folder)


@pytest.mark.parametrize("checkpoint", ["base", "narrative", "mine", "../general"])
def test_an_agent_without_a_policy_has_the_usual_one(checkpoint: str) -> None:
    assert read_card(policy_for(checkpoint)).encoder == USUAL
