"""Training of the light RES-RAG policy.

Warm-up on labels, then GRPO on the joint reward (RES-RAG section 3.4). The encoder is frozen, so what the
policy sees of a question is computed once; an update is then a small network and the reader, whose F1 of
every distinct set is kept. The policy takes chunks independently; a sampled set larger than the question's
budget, which is drawn anew each time, is cut to its likeliest chunks, as it would be served.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Literal, get_args

import numpy as np
import torch
from torch.nn import functional

from core.answer.protocol import Reader
from core.base.config import check_numbers
from core.base.errors import BadRequest
from core.base.metrics import answer_f1, fact_recall
from core.encode.encoder import DualEncoder
from core.lab.train.descent import Descent
from core.lab.train.set_questions import SetQuestion, indexed
from core.lab.train.sitting import Sitting, TrainEvent, Validation
from core.methods.resrag.action import Action, action_of, chunk_ids_of
from core.methods.resrag.card import CARD_FILE, PolicyCard
from core.methods.resrag.features import QuestionFeatures, look
from core.methods.resrag.objective import (
    CLIP_RANGE,
    STABILISER,
    clipped_objective,
    divergence,
    group_advantages,
    set_log_probability,
    similarity_labels,
)
from core.methods.resrag.policy import EvidencePolicy, save_policy
from core.methods.resrag.reward import Reward, RewardConfig, joint_reward
from core.methods.resrag.sets import most_probable_set

BUDGETS = (1, 2, 3, 4, 6, 8)
"""Drawn from in training."""
VALIDATION_BUDGET = 8
Labels = Literal["support", "similarity"]
"""What the warm-up imitates and eq. 13 compares with: known support, or the chunks of eq. 16."""


@dataclass(frozen=True, kw_only=True)
class SetLearning:
    """What trainings on evidence sets have in common: a warm-up on labels, then GRPO (RES-RAG table 4)."""

    updates: int
    """Gradient steps, the warm-up's included."""
    warmup_updates: int
    """Of these, the first that imitate the labels."""
    questions: int
    """Questions of one update."""
    group: int = 4
    """W, sets drawn for each question."""
    passes: int = 2
    """Gradient steps on the same sets, whose ratio is clipped."""
    beta: float = 0.05
    """Weight of the divergence from the model after the warm-up."""
    clip_range: float = CLIP_RANGE
    """Of the ratio (eq. 20)."""
    threshold: float = 0.41
    """Cosine above which a chunk has a similarity label; the paper's 0.4 in this encoder's scale."""
    labels: Labels = "support"
    """What the warm-up imitates and the consistency compares with."""
    reward: RewardConfig = field(default_factory=RewardConfig)
    seed: int = 0
    """Of everything random."""

    def check(self, **least: int) -> None:
        """Raises BadRequest on a value out of range; `least`: smallest value of further whole numbers."""
        whole = {"updates": 1, "warmup_updates": 0, "questions": 1, "group": 2, "passes": 1}
        check_numbers(self, whole | least, ("learning_rate", "warmup_learning_rate"))
        if self.warmup_updates > self.updates:
            raise BadRequest(
                f"warmup updates {self.warmup_updates} are more than all {self.updates} updates; choose fewer"
            )
        if self.labels not in get_args(Labels):
            raise BadRequest(f"labels {self.labels!r} are unknown; choose {' or '.join(get_args(Labels))}")

    def labelled(self, question: SetQuestion, cosines: Callable[[], np.ndarray]) -> Action:
        """The action that the labels ask for. `cosines`: of the question and each chunk."""
        borders = question.workspace.borders
        if self.labels == "support":
            return action_of(question.support, borders)
        return similarity_labels(cosines(), borders, self.threshold)


@dataclass(frozen=True, kw_only=True)
class SetTrainConfig(SetLearning):
    """One training of a policy."""

    updates: int = 340
    warmup_updates: int = 300
    questions: int = 12
    hidden: int = 48
    """Width of the policy's layers."""
    learning_rate: float = 2e-3
    """Of Adam; the paper's 1e-5 is a language model's."""
    stabiliser: float = STABILISER
    """Of the advantages (eq. 18)."""
    validate_every: int = 340
    """Updates between validations."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        self.check(hidden=1, validate_every=1)


@dataclass(frozen=True, eq=False)
class SeenQuestion:
    """A question with all that its rewards and gradients need."""

    asked: SetQuestion
    look: QuestionFeatures


Drawn = tuple[SeenQuestion, int]
"""A question with its budget."""


def see(questions: Sequence[SetQuestion], encoder: DualEncoder) -> list[SeenQuestion]:
    """What the policy sees of each question."""
    return [
        SeenQuestion(question, look(question.question, corpus, encoder))
        for question, corpus in indexed(questions, encoder)
    ]


@dataclass(frozen=True, kw_only=True)
class SetsRecord:
    """What the card says beside the configuration."""

    name: str
    encoder: str
    """Checkpoint whose vectors the policy reads."""
    reader: str
    questions: dict[str, int]
    """To train on, by set."""


class AnswerScores:
    """F1 of the reader's answer from a set of chunks; every distinct set is read once."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._f1_of: dict[tuple[str, tuple[int, ...]], float | None] = {}

    def of(self, pairs: Sequence[tuple[SetQuestion, Sequence[int]]]) -> list[float | None]:
        """None where the answer is empty."""
        keys = [(question.id, tuple(sorted(ids))) for question, ids in pairs]
        new = {
            key: question for key, (question, _) in zip(keys, pairs, strict=True) if key not in self._f1_of
        }
        passages = [[asked.workspace[chunk_id].text for chunk_id in ids] for (_, ids), asked in new.items()]
        answers = self._reader.read_many([question.question for question in new.values()], passages)
        for (key, question), answer in zip(new.items(), answers, strict=True):
            self._f1_of[key] = answer_f1(answer.text, question.answers) if answer.text else None
        return [self._f1_of[key] for key in keys]

    def rewards(
        self, sets: Sequence[tuple[SetQuestion, Action, Sequence[int]]], config: RewardConfig
    ) -> list[Reward]:
        """Joint rewards (eq. 14) of (question, labels, chunks)."""
        f1 = self.of([(question, ids) for question, _, ids in sets])
        return [
            joint_reward(
                action_of(ids, question.workspace.borders),
                labels,
                [len(table) for table in question.workspace.tables],
                value,
                config,
            )
            for (question, labels, ids), value in zip(sets, f1, strict=True)
        ]


class SetTrainer(Sitting):
    """One training."""

    kind, last_file = "evidence sets", CARD_FILE

    def __init__(
        self,
        config: SetTrainConfig,
        questions: Sequence[SeenQuestion],
        held_out: Sequence[SeenQuestion],
        reader: Reader,
        folder: Path,
        about: SetsRecord,
    ) -> None:
        """Raises BadRequest for no questions, and when `folder` holds another training."""
        if not questions or not held_out:
            raise BadRequest(
                f"{len(questions)} questions to train on and {len(held_out)} to validate with are too few;"
                " give at least one of each"
            )
        self.config, self.questions, self.held_out = config, questions, held_out
        self.about, self.scores = about, AnswerScores(reader)
        torch.manual_seed(config.seed)
        self.policy, self.reference = EvidencePolicy(config.hidden), EvidencePolicy(config.hidden)
        ends = (BUDGETS[0], BUDGETS[-1])
        rows = np.concatenate([seen.look.with_budget(budget) for seen in questions for budget in ends])
        self.policy.mean.copy_(torch.from_numpy(rows.mean(axis=0)))
        self.policy.spread.copy_(torch.from_numpy(rows.std(axis=0) + 1e-3))
        self.reference.load_state_dict(self.policy.state_dict())
        self.descent = Descent(self.policy.parameters(), betas=(0.9, 0.999), eps=1e-8)
        super().__init__(folder, {"config": asdict(config), **asdict(about)})

    def begin(self) -> TrainEvent:
        return asdict(self.about)

    def step(self, update: int, rng: Random) -> TrainEvent:
        asked = rng.sample(self.questions, min(self.config.questions, len(self.questions)))
        drawn = [(question, rng.choice(BUDGETS)) for question in asked]
        if update < self.config.warmup_updates:
            return {"phase": "warm-up"} | self._imitate(drawn)
        if update == self.config.warmup_updates:
            self.reference.load_state_dict(self.policy.state_dict())
        return {"phase": "grpo"} | self._reinforce(drawn, rng)

    def _imitate(self, drawn: Sequence[Drawn]) -> dict[str, float]:
        """The likelihood of the labelled sets."""

        def loss_of(drawn: Sequence[Drawn]) -> torch.Tensor:
            losses = []
            for question, budget in drawn:
                odds = self._log_odds(question, budget)
                labelled = torch.zeros_like(odds)
                labelled[list(chunk_ids_of(self._labels(question), question.asked.workspace.borders))] = 1.0
                losses.append(functional.binary_cross_entropy_with_logits(odds, labelled, reduction="sum"))
            return torch.stack(losses).mean()

        return {"loss": round(self._descend(drawn, loss_of), 4)}

    def _reinforce(self, drawn: Sequence[Drawn], rng: Random) -> dict[str, float]:
        """Eq. 17 to 21 on one draw of sets."""
        generator = torch.Generator().manual_seed(rng.getrandbits(62))
        with torch.no_grad():
            before = [self._log_odds(question, budget) for question, budget in drawn]
            sets = [
                torch.bernoulli(torch.sigmoid(odds).expand(self.config.group, -1), generator=generator)
                for odds in before
            ]
            behaviour = [set_log_probability(odds, taken) for odds, taken in zip(before, sets, strict=True)]
            reference = [self._log_odds(question, budget, self.reference) for question, budget in drawn]
        served = [
            # at most `budget` of the sampled chunks, the likeliest
            [
                most_probable_set(odds.where(taken > 0, -math.inf).numpy(), budget, -math.inf)
                for taken in group
            ]
            for group, odds, (_, budget) in zip(sets, before, drawn, strict=True)
        ]
        asked = zip(drawn, served, strict=True)
        rewards = self._rewards([(question, chosen) for (question, _), group in asked for chosen in group])
        totals = np.array([reward.total for reward in rewards]).reshape(len(drawn), self.config.group)
        advantages = torch.from_numpy(group_advantages(totals, self.config.stabiliser)).float()
        divergences: list[float] = []

        def loss_of(drawn: Sequence[Drawn]) -> torch.Tensor:
            terms = []
            for i, (question, budget) in enumerate(drawn):
                odds = self._log_odds(question, budget)
                now, apart = set_log_probability(odds, sets[i]), divergence(odds, reference[i])
                gained = clipped_objective(now, behaviour[i], advantages[i], self.config.clip_range)
                divergences.append(float(apart.detach()))
                terms.append(gained.mean() - self.config.beta * apart)
            return -torch.stack(terms).mean()

        for _ in range(self.config.passes):
            self._descend(drawn, loss_of)
        measured = {"reward": totals, "spread": totals.std(axis=1), "divergence": divergences}
        for name in ("answer", "consistency", "penalty"):
            measured[name] = [getattr(reward, name) for reward in rewards]
        measured["chunks"] = [len(chosen) for group in served for chosen in group]
        return {name: round(float(np.mean(values)), 4) for name, values in measured.items()}

    def validate(self, candidate: Path, record: TrainEvent) -> Validation:
        """The score is the mean reward of the most probable sets."""
        budget = VALIDATION_BUDGET
        chances = (self.policy.chances(seen.look.with_budget(budget)) for seen in self.held_out)
        chosen = [most_probable_set(each, budget) for each in chances]
        rewards = self._rewards(list(zip(self.held_out, chosen, strict=True)))
        totals = [reward.total for reward in rewards]
        sets = [(seen.asked, ids) for seen, ids in zip(self.held_out, chosen, strict=True)]
        measured = {
            "reward": totals,
            "answer_f1": [value or 0.0 for value in self.scores.of(sets)],
            "recall": [fact_recall(ids, asked.support) for asked, ids in sets],
        }
        scores = {name: round(float(np.mean(values)), 4) for name, values in measured.items()}
        scores["chunks"] = round(float(np.mean([len(ids) for ids in chosen])), 3)
        training = record | {"questions": self.about.questions, "config": asdict(self.config)}
        card = PolicyCard(
            name=self.about.name,
            hidden=self.config.hidden,
            encoder=self.about.encoder,
            training=training,
            scores={"validation": scores | {"n": len(self.held_out), "budget": budget}},
        )
        save_policy(candidate, self.policy, card)
        only_warm = record["updates"] <= self.config.warmup_updates < self.config.updates
        best = -math.inf if only_warm else scores["reward"]
        told = {"score": scores["reward"], "scores": scores}
        return Validation(told, best, float(np.std(totals) / math.sqrt(len(totals))))

    def state(self) -> dict[str, torch.Tensor]:
        policies = {"policy": self.policy, "reference": self.reference}
        states = {kind: policy.state_dict() for kind, policy in policies.items()}
        return {f"{kind}.{name}": value for kind, state in states.items() for name, value in state.items()}

    def _log_odds(
        self, question: SeenQuestion, budget: int, policy: EvidencePolicy | None = None
    ) -> torch.Tensor:
        odds: torch.Tensor = (policy or self.policy)(torch.from_numpy(question.look.with_budget(budget)))
        return odds

    def _descend(self, drawn: Sequence[Drawn], loss_of: Callable[[Sequence[Drawn]], torch.Tensor]) -> float:
        loss, _ = self.descent.step(self.config.learning_rate, 1.0, [drawn], loss_of)
        return loss

    def _labels(self, seen: SeenQuestion) -> Action:
        return self.config.labelled(seen.asked, lambda: seen.look.cosines)

    def _rewards(self, chosen: Sequence[tuple[SeenQuestion, Sequence[int]]]) -> list[Reward]:
        sets = [(seen.asked, self._labels(seen), ids) for seen, ids in chosen]
        return self.scores.rewards(sets, self.config.reward)
