"""Towers under training: what moves, what follows, and that they serve what they learned."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from core.encode.adapter import adaptable_layers
from core.encode.checkpoint import write_spec
from core.encode.encoder import DualEncoder
from core.lab.tasks.example import Example
from core.lab.train.descent import Descent
from core.lab.train.episodes import Scorer
from core.lab.train.towers import TOWERS, TrainableTowers, formed
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from tests.conftest import few
from tests.core.conftest import CorpusOf
from tests.core.lab.train.conftest import TowersOf

TEXTS = [
    "Mary went to the garden.",
    "John got the milk.",
    "The rain was cold.",
    "Daniel went back to the office.",
]
CPU = torch.device("cpu")


@torch.no_grad()
def shake(towers: TrainableTowers, seed: int = 0) -> None:
    """Moves the online towers as training would, to values that half precision holds."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in towers.parameters:
        parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator)).copy_(parameter.bfloat16())


def test_only_the_changes_of_linear_layers_can_move(towers_of: TowersOf) -> None:
    towers = towers_of()
    for name in TOWERS:
        movable = [
            key for key, parameter in towers.online[name].named_parameters() if parameter.requires_grad
        ]
        assert len(movable) == 2 * len(adaptable_layers(towers.online[name])) == 24
        assert all(".parametrizations.weight.0." in key for key in movable)
        assert not any(parameter.requires_grad for parameter in towers.targets[name].parameters())
    assert len(towers.parameters) == 48


def test_targets_move_by_tau_of_the_way(towers_of: TowersOf) -> None:
    towers = towers_of()
    before = {name: copy.deepcopy(dict(tower.named_parameters())) for name, tower in towers.targets.items()}
    shake(towers)
    towers.follow(0.25)
    for name, tower in towers.targets.items():
        online = dict(towers.online[name].named_parameters())
        for key, now in tower.named_parameters():
            way = 0.25 * (online[key] - before[name][key]) if online[key].requires_grad else 0.0
            torch.testing.assert_close(now, before[name][key] + way, rtol=1e-6, atol=1e-7)
            assert now.grad is None
    towers.follow(1.0)
    for name, tower in towers.targets.items():
        for now, fast in zip(tower.parameters(), towers.online[name].parameters(), strict=True):
            torch.testing.assert_close(now, fast.detach(), rtol=1e-6, atol=1e-7)


def test_a_pass_without_gradients_takes_none_from_those_after_it(towers_of: TowersOf) -> None:
    """Weights are formed once: noise, embedded first and without gradients, must not leave weights without a
    graph to the rest.
    """
    towers = towers_of()
    with formed(towers.online.values()):
        with torch.no_grad():
            towers.embed_chunks(TEXTS[:2])
            towers.embed_states([(TEXTS[0], [])])
        loss = (
            towers.embed_chunks(TEXTS[2:]).square().sum()
            + (towers.embed_states([(TEXTS[3], TEXTS[:1])]) ** 3).sum()
        )
        loss.backward()  # type: ignore[no-untyped-call]
    for tower in towers.online.values():
        gradients = [parameter.grad for key, parameter in tower.named_parameters() if key.endswith(".b")]
        assert all(gradient is not None and gradient.abs().max() > 0 for gradient in gradients)


@torch.no_grad()
def test_only_the_towers_under_training_drop_activations(
    towers_of: TowersOf, base: Path, tmp_path: Path
) -> None:
    towers = towers_of(dropout=0.3)
    for embed in (
        towers.embed_chunks,
        lambda texts, target=False: towers.embed_states([(text, TEXTS[:1]) for text in texts], target=target),
    ):
        torch.manual_seed(5)
        first, second = embed(TEXTS), embed(TEXTS)
        assert not torch.allclose(first, second, atol=1e-3)
        torch.manual_seed(5)
        # so that a training goes on as it would have
        torch.testing.assert_close(embed(TEXTS), first, rtol=0, atol=0)
        torch.testing.assert_close(embed(TEXTS, target=True), embed(TEXTS, target=True), rtol=0, atol=0)
    shutil.copytree(base, tmp_path / "base")
    towers.save(tmp_path)
    write_spec(tmp_path, towers.spec)
    np.testing.assert_allclose(
        DualEncoder(tmp_path, "cpu").encode_chunks(TEXTS),
        towers.embed_chunks(TEXTS, target=True).numpy(),
        atol=1e-5,
    )


@pytest.mark.parametrize("with_targets", [True, False])
def test_towers_and_moments_survive_a_file(towers_of: TowersOf, with_targets: bool) -> None:
    towers, other = (towers_of(with_targets=with_targets, seed=seed) for seed in (0, 1))
    descent, fresh = (Descent(each.parameters, 0.01, each.online.values()) for each in (towers, other))
    for _ in range(2):
        descent.step(0.01, 1.0, [TEXTS], lambda part: towers.embed_chunks(part).sum())
        towers.follow(0.5)
    for name, tensor in other.state_dict().items():
        tensor.copy_(towers.state_dict()[name])
    fresh.load_state_dict(descent.state_dict())
    assert {key: value.tolist() for key, value in other.state_dict().items()} == {
        key: value.tolist() for key, value in towers.state_dict().items()
    }
    assert {key: value.tolist() for key, value in fresh.state_dict().items()} == {
        key: value.tolist() for key, value in descent.state_dict().items()
    }
    assert fresh.state_dict()
    addresses = [value.data_ptr() for value in towers.state_dict().values()]
    assert len(set(addresses)) == len(addresses)  # safetensors refuses tensors that share memory


@pytest.mark.parametrize(
    ("vectors", "kind", "tolerance"),
    few([("float32", "none", 1e-4), ("float32", "relative", 1e-4), ("float16", "relative", 0.06)]),
)
def test_q_is_served_as_it_was_formed(
    towers_of: TowersOf,
    base: Path,
    corpus_of: CorpusOf,
    tmp_path: Path,
    vectors: str,
    kind: str,
    tolerance: float,
) -> None:
    """Through the whole of both ways: towers, positions, rotations; half precision costs what it costs."""
    towers = towers_of(vectors=vectors, position_kind=kind)
    shake(towers)
    texts = tuple(f"{text} {word}" for word in ("night", "river", "hill") for text in TEXTS)
    example = Example("e", "made", "Where is the milk?", texts, (1,))
    scorer = Scorer(towers.spec, towers.dim, CPU)
    shutil.copytree(base, tmp_path / "base")
    towers.save(tmp_path)
    write_spec(tmp_path, towers.spec)
    agent = Agent(DualEncoder(tmp_path, "cpu"))
    corpus = corpus_of(agent.encoder, example.chunks)
    for chosen in ([], [4], [9, 2]):
        with torch.no_grad():
            state = towers.embed_states([(example.question, [example.chunks[row] for row in sorted(chosen)])])
            chunks = towers.embed_chunks(example.chunks)[None]
            positions = scorer.positions([example], [chosen], 12)
            formed = scorer.scores(state, chunks, scorer.phases(positions))[0].numpy()
        (look,) = agent.look([(Episode(example.question, corpus, towers.spec.episode_config()), chosen)])
        np.testing.assert_allclose(look.scores.q_values, formed, atol=tolerance)
        unturned = (chunks[0] @ state[0]).numpy()
        assert (np.abs(formed - unturned).max() > 0.05) == (kind == "relative")
