"""Episodes and their loss: where gradients flow, where values come from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from core.lab.tasks.example import Example, Noise, Woven
from core.lab.train.config import TrainConfig
from core.lab.train.episodes import Played, Scorer, play
from core.lab.train.towers import TrainableTowers, formed
from tests.conftest import few
from tests.core.lab.train.conftest import TowersOf

CPU = torch.device("cpu")
NOISE = Noise(
    "made",
    tuple(f"The {what} was {how}." for what in ("night", "river", "hill") for how in ("cold", "long")),
    np.full(6, 5, np.int32),
)
QUESTION = "Where is the milk?"
FACTS = ("Mary got the milk.", "Mary went to the garden.")
WOVEN = Example("woven", "made", QUESTION, Woven(NOISE, 2, 6, FACTS, (1, 5)), (1, 5))
LISTED = Example("listed", "made", QUESTION, WOVEN.chunks[:], (1, 5))


class Watched(TrainableTowers):
    """Notes which chunks the online towers embed with a gradient, and the texts of all states."""

    warm: set[str]
    states: list[Sequence[str]]

    def embed_chunks(self, texts: Sequence[str], *, target: bool = False) -> torch.Tensor:
        if torch.is_grad_enabled() and not target:
            self.warm |= set(texts)
        return super().embed_chunks(texts, target=target)

    def embed_states(
        self, states: Sequence[tuple[str, Sequence[str]]], *, target: bool = False
    ) -> torch.Tensor:
        self.states += [texts for _, texts in states]
        return super().embed_states(states, target=target)


@pytest.fixture(scope="module")
def towers_of(towers_of: TowersOf) -> TowersOf:
    """Watched ones away from their start, the targets (where there are any) elsewhere; those of the same
    settings are made once.
    """

    @cache
    def shaken(**settings: Any) -> Watched:
        towers = towers_of(Watched, **settings)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in towers.parameters:
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
        towers.follow(0.5)
        return towers

    def build(**settings: Any) -> Watched:
        towers = shaken(**settings)
        towers.warm, towers.states = set(), []
        for parameter in towers.parameters:
            parameter.grad = None
        return towers

    return build


def played(
    towers: TrainableTowers, examples: Sequence[Example], alpha: float = 0.5, seed: int = 0, **settings: Any
) -> Played:
    """Plays, and runs the backward pass."""
    config = TrainConfig(**{"steps": 3, "ranking_weight": 0.0} | settings)
    with formed(towers.online.values()):
        out = play(towers, examples, config, alpha, torch.Generator().manual_seed(seed))
        out.loss.backward()  # type: ignore[no-untyped-call]
    return out


def gradients(towers: TrainableTowers) -> torch.Tensor:
    """All gradients of both towers in one vector; fails where there is none."""
    return torch.cat(
        [parameter.grad.flatten() for parameter in towers.parameters if parameter.grad is not None]
    )


@pytest.mark.parametrize("example", few([WOVEN, LISTED], 1), ids=lambda example: example.id)
@pytest.mark.parametrize("settings", few([{"ranking_weight": 0.1}, {"objective": "supervised"}, {}]), ids=str)
def test_both_towers_learn_and_nothing_else_does(
    towers_of: TowersOf, example: Example, settings: dict[str, Any]
) -> None:
    towers = towers_of()
    played(towers, [example] * 4, **settings)
    for tower in towers.online.values():
        for name, parameter in tower.named_parameters():
            if parameter.requires_grad:
                assert parameter.grad is not None, name
                assert parameter.grad.abs().max() > 0, name
            else:
                assert parameter.grad is None, name
    assert all(
        parameter.grad is None for tower in towers.targets.values() for parameter in tower.parameters()
    )


def test_noise_has_a_gradient_only_where_it_was_chosen(towers_of: TowersOf) -> None:
    """One own text and two steps: at least one chunk of noise is taken, at most two; the
    others stay without.
    """
    example = Example("e", "made", QUESTION, Woven(NOISE, 0, 6, FACTS[:1], (3,)), (3,))
    for settings in ({}, {"ranking_weight": 0.1}):
        towers = towers_of()
        played(towers, [example], steps=2, **settings)
        assert 1 <= len(towers.warm & set(NOISE.texts)) <= 2
        assert FACTS[0] in towers.warm or not settings
    towers = towers_of()
    played(towers, [example], steps=7)
    assert towers.warm == {*NOISE.texts, FACTS[0]}
    towers = towers_of()
    played(towers, [example] * 8, objective="supervised")
    assert towers.warm == {FACTS[0]}


def test_states_hold_the_chosen_chunks_in_document_order(towers_of: TowersOf) -> None:
    towers, order = towers_of(), {text: row for row, text in enumerate(LISTED.chunks)}
    out = played(towers, [WOVEN] * 8, steps=4)
    rows = [[order[text] for text in texts] for texts in towers.states]
    assert all(state == sorted(set(state)) for state in rows)
    # online, and the targets from the second on
    assert sorted(map(len, rows)) == sorted([0, 1, 2, 3] * 8 + [1, 2, 3] * 8)
    assert len({tuple(state) for state in rows if len(state) == 3}) > 1
    assert out.rollout.taken.all()


def test_values_come_from_the_targets_and_without_them_from_the_online_towers(towers_of: TowersOf) -> None:
    """A greedy agent takes the chunk of largest Q, which is the value of the state, so V(s after step t) is Q
    of step t + 1.
    """
    greedy = {"top_k_actions": 1, "soft_values": False, "steps": 4}
    online = played(towers_of(with_targets=False), [WOVEN, LISTED], target_towers=False, **greedy)
    torch.testing.assert_close(online.values[:-1], online.q_values[1:], rtol=1e-4, atol=1e-4)
    slow = played(towers_of(), [WOVEN, LISTED], **greedy)
    torch.testing.assert_close(slow.q_values, online.q_values, rtol=1e-4, atol=1e-4)
    assert (slow.values[:-1] - online.values[:-1]).abs().min() > 1e-3


def test_soft_values_lie_above_the_largest_q(towers_of: TowersOf) -> None:
    """Eq. 4 over k chunks: between the largest Q and alpha log k above it."""
    soft, hard = (
        played(towers_of(), [WOVEN] * 4, alpha=0.3, top_k_actions=3, soft_values=soft)
        for soft in (True, False)
    )
    above = (soft.values - hard.values)[:-1]
    assert above.min() > 0
    assert above.max() <= 0.3 * math.log(3) + 1e-5


def test_values_at_the_cap_only_with_bootstrapping(towers_of: TowersOf) -> None:
    plain = played(towers_of(), [WOVEN] * 4, steps=2)
    beyond = played(towers_of(), [WOVEN] * 4, steps=2, bootstrap_at_cap=True, gamma=0.5)
    assert plain.values[-1].tolist() == [0.0] * 4
    torch.testing.assert_close(plain.returns[-1], plain.rollout.rewards[-1])
    assert (beyond.values[-1].abs() > 1e-3).all()
    torch.testing.assert_close(beyond.returns[-1], beyond.rollout.rewards[-1] + 0.5 * beyond.values[-1])


def test_an_episode_ends_where_its_chunks_end(towers_of: TowersOf) -> None:
    """Entries beyond are 0, and a state without chunks is worth nothing, bootstrapping or not."""
    brief = Example("brief", "made", QUESTION, FACTS, (0, 1))
    out = played(towers_of(), [brief, WOVEN], steps=4, bootstrap_at_cap=True)
    assert out.rollout.taken.tolist() == [[True, True], [True, True], [False, True], [False, True]]
    assert out.rollout.completed[0]
    assert out.rollout.rewards[:, 0].tolist() == [0.0, 1.0, 0.0, 0.0]
    for values in (out.q_values, out.returns, out.rollout.entropy):
        assert values[2:, 0].tolist() == [0.0, 0.0]
    assert out.values[1:, 0].tolist() == [0.0, 0.0, 0.0]
    assert out.rollout.entropy[:, 1].min() > 0


def test_exploring_starts_begin_with_a_part_of_the_support(towers_of: TowersOf) -> None:
    towers = towers_of()
    out = played(towers, [WOVEN] * 24, steps=2, exploring_starts=1.0)
    begun = [tuple(texts) for texts in towers.states[:24]]
    assert set(begun) == {(), (FACTS[0],), (FACTS[1],)}  # never both
    assert out.rollout.taken[0].tolist() == [True] * 24
    assert out.rollout.taken[1].tolist() == [not texts for texts in begun]  # what is given counts as a step
    assert set(out.rollout.completed) == {True, False}
    for i, texts in enumerate(begun):
        if texts:
            # 0.5 + 0.5 * 2 / 2: the given chunk is paid with the last one
            assert out.rollout.rewards[0, i] == float(out.rollout.completed[i])
    alone = towers_of()
    played(alone, [WOVEN] * 8, steps=1, exploring_starts=1.0)
    assert alone.states[:8] == [[]] * 8, "the only step is the agent's own"


def test_exploring_starts_hold_a_mistake_in_half_of_the_episodes(towers_of: TowersOf) -> None:
    """The chunk that shares most words with the support: the two facts of another person's, not the noise."""
    facts = ("Mary got the milk.", "Mary went to the garden.", "John went to the garden.")
    example = Example("twin", "made", QUESTION, Woven(NOISE, 2, 6, facts, (1, 3, 5)), (1, 3))
    towers = towers_of()
    out = played(towers, [example] * 64, steps=3, exploring_starts=1.0)
    begun = [tuple(texts) for texts in towers.states[:64]]
    wrong = [facts[2] in texts for texts in begun]
    assert 20 <= sum(wrong) <= 44
    # as states have them, in document order
    assert set(begun) == {(), facts[:1], facts[1:2], facts[2:], (facts[0], facts[2]), facts[1:]}
    assert out.rollout.taken.sum(0).tolist() == [3 - len(texts) for texts in begun]
    paid = out.rollout.rewards.sum(0)
    # one chunk too many is paid for
    assert all(paid[i] <= 0.5 + 0.5 * 2 / 3 + 1e-6 for i in range(64) if wrong[i])
    assert any(paid[i] > 0.8 for i in range(64) if wrong[i])


def test_supervision_takes_support_and_nothing_else(towers_of: TowersOf) -> None:
    out = played(
        towers_of(),
        [WOVEN, LISTED, Example("one", "made", QUESTION, LISTED.chunks, (4,))] * 8,
        objective="supervised",
        steps=1,
    )
    assert out.rollout.taken.sum(0).tolist() == [2, 2, 1] * 8
    assert all(out.rollout.completed)
    assert float(out.loss.detach()) == pytest.approx(out.ranking_loss)
    assert out.td_loss == 0


@pytest.mark.parametrize("support", [(1,), (1, 5)])
def test_the_ranking_loss_is_the_policys_cross_entropy_on_support(
    towers_of: TowersOf, support: tuple[int, ...]
) -> None:
    towers, example = towers_of(), Example("e", "made", QUESTION, LISTED.chunks, support)
    out = played(towers, [example], steps=1, ranking_weight=0.5, ranking_temperature=0.7)
    scorer = Scorer(towers.spec, towers.dim, CPU)
    with torch.no_grad():
        phases = scorer.phases(scorer.positions([example], [[]], 8))
        q_values = scorer.scores(
            towers.embed_states([(QUESTION, [])]), towers.embed_chunks(example.chunks)[None], phases
        )[0]
    wanted = -float((q_values / 0.7).softmax(0)[list(support)].sum().log())
    assert out.ranking_loss == pytest.approx(wanted, rel=1e-3)
    assert float(out.loss.detach()) == pytest.approx(out.td_loss + 0.5 * wanted, rel=1e-3)


def test_words_are_a_part_of_q(towers_of: TowersOf) -> None:
    shares = (0.0, 1.0, 0.0, 0.25, 0.0, 0.5, 0.0, 0.0)
    example = Example("counted", "made", QUESTION, LISTED.chunks, (1, 5), word_shares=shares)
    plain, weighed = (played(towers_of(word_weight=weight), [example], steps=8) for weight in (0.0, 1e-4))
    # so small a weight changes no choice
    in_order_of_choice = (weighed.q_values - plain.q_values)[:, 0] / 1e-4
    assert sorted(in_order_of_choice.tolist()) == pytest.approx(sorted(shares), abs=2e-2)
    losses = [
        played(towers_of(word_weight=weight), [example], objective="supervised").ranking_loss
        for weight in (0.0, 0.1, 100.0)
    ]
    assert losses[0] > losses[1] > losses[2] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("objective", ["pqn", "supervised"])
def test_an_agent_that_reads_the_question_alone_is_trained_on_it_alone(
    towers_of: TowersOf, objective: str
) -> None:
    towers = towers_of(
        reads_choices=False, position_kind="none", position_resolution=None, with_targets=False
    )
    outcome = played(towers, [LISTED], objective=objective, target_towers=False, soft_values=False)
    assert len(outcome.rollout.taken) == (2 if objective == "supervised" else 3)
    assert towers.states == [[]], "one state, embedded once"


def test_exploration_keeps_to_the_best_chunks(towers_of: TowersOf) -> None:
    """At a temperature where all are equally likely, entropy tells among how many: eq. 3 over k of the chunks
    that are left.
    """
    some = played(towers_of(), [WOVEN] * 4, alpha=1e6, top_k_actions=3)
    assert some.rollout.entropy.numpy() == pytest.approx(np.full((3, 4), math.log(3)), abs=1e-4)
    every = played(towers_of(), [WOVEN] * 4, alpha=1e3, top_k_actions=None)
    assert every.rollout.entropy.numpy() == pytest.approx(np.log([[8] * 4, [7] * 4, [6] * 4]), abs=1e-4)
