"""What a language model learns evidence sets from.

A task is a question as the policy `resrag-llm` puts it to a local model, with the action that the labels ask
for. A reply that is anything but an action gets the lowest reward. A set larger than the budget is cut as it
would be served.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from core.answer.protocol import Reader
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.metrics import fact_f1, fact_recall
from core.base.statistics import mean
from core.corpus.index import Corpus
from core.encode.encoder import DualEncoder
from core.lab.train.evidence_sets import AnswerScores, SetLearning
from core.lab.train.set_questions import SetQuestion
from core.llm.client import with_words
from core.llm.protocol import Message
from core.methods.protocol import query_cosines
from core.methods.resrag.action import Action, action_of, document_key
from core.methods.resrag.llm.policy import first_of, set_prompt, taken_by
from core.methods.resrag.reward import Reward
from core.methods.resrag.sets import token_counts


@dataclass(frozen=True, kw_only=True)
class SetTuneConfig(SetLearning):
    """One tuning of a language model on evidence sets. Table 4's values, but for the context, which a CPU
    could not bear, and for what the paper doesn't name. The warm-up learns as many labelled actions as GRPO
    draws sets.
    """

    updates: int = 200
    warmup_updates: int = 100
    questions: int = 1
    budget: int = 8
    """Most chunks of a set."""
    context_tokens: int = 2048
    """Of prompt and reply together, four bytes each; the paper's 8,192 takes a GPU."""
    warmup_learning_rate: float = 2e-4
    """At the first update of the warm-up; falls linearly to 0."""
    learning_rate: float = 1e-5
    """At the first update of GRPO; falls linearly to 0."""
    temperature: float = 1.0
    """At which sets are drawn."""
    nucleus: float = 0.8
    """Tokens are drawn from the likeliest that have this chance together."""
    rank: int = 16
    """Of the LoRA changes."""
    lora_alpha: float = 32.0
    """The changes are scaled by lora_alpha / rank."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        self.check(budget=1, rank=1)
        if not (0 < self.nucleus <= 1 and self.temperature > 0):
            raise BadRequest(
                f"nucleus {self.nucleus} and temperature {self.temperature} must be above 0, and nucleus 1 at"
                " most"
            )


@dataclass(frozen=True, eq=False)
class SetTask:
    """A question as the model reads it."""

    question: SetQuestion
    prompt: tuple[Message, ...]
    schema: type[BaseModel]
    """Of the action."""
    room: int
    """Tokens kept for the reply."""
    labels: Action
    """Over all chunks, also those that the model isn't shown."""
    target: str
    """The reply that the warm-up imitates."""


def set_tasks(
    questions: Iterable[tuple[SetQuestion, Corpus]], encoder: DualEncoder, config: SetTuneConfig
) -> list[SetTask]:
    """A task a question. encoder: ranks the chunks where not all fit, as when the model is served."""
    episode = EpisodeConfig(step_budget=config.budget)
    tasks = []
    for question, corpus in questions:
        put = set_prompt(question.question, corpus, episode, encoder, config.context_tokens)
        borders = question.workspace.borders
        labels = config.labelled(question, partial(query_cosines, encoder, question.question, corpus))
        labelled = first_of(labels, borders, config.budget)
        action = action_of([chunk_id for chunk_id in labelled if chunk_id in put.read], borders)
        target = {
            document_key(document): list(action[document])
            for document, shown in enumerate(action_of(put.read, borders))
            if shown
        }
        prompt = tuple(with_words(put.messages, put.schema))
        tasks.append(SetTask(question, prompt, put.schema, put.room, labels, json.dumps(target)))
    return tasks


class SetJudge:
    """What replies are worth; the answer from every distinct set is read once."""

    def __init__(self, reader: Reader, config: SetTuneConfig) -> None:
        self._scores, self._config = AnswerScores(reader), config

    def rewards(self, tasks: Sequence[SetTask], replies: Sequence[str]) -> list[Reward | None]:
        """The joint reward (eq. 14) of each reply; None for one that is no action."""
        sets = [self.chosen(task, reply) for task, reply in zip(tasks, replies, strict=True)]
        valid = [
            (task.question, task.labels, ids)
            for task, ids in zip(tasks, sets, strict=True)
            if ids is not None
        ]
        rewards = iter(self._scores.rewards(valid, self._config.reward))
        return [None if ids is None else next(rewards) for ids in sets]

    def measured(self, tasks: Sequence[SetTask], replies: Sequence[str]) -> dict[str, Any]:
        """Means over all tasks, a reply that is no action counting as nothing found; chunks and tokens over
        the valid ones, None where there are none.
        """
        sets = [(task.question, self.chosen(task, reply)) for task, reply in zip(tasks, replies, strict=True)]
        kept = [(asked, ids) for asked, ids in sets if ids is not None]
        answers = [(asked, ids or []) for asked, ids in sets]
        f1 = self._scores.of(kept)
        figures = {
            "valid": len(kept) / len(tasks),
            "reward": mean(self.total(reward) for reward in self.rewards(tasks, replies)),
            "answer_f1": sum(value or 0.0 for value in f1) / len(tasks),
            "support_f1": mean(fact_f1(ids, asked.support) for asked, ids in answers),
            "support_recall": mean(fact_recall(ids, asked.support) for asked, ids in answers),
            "chunks": mean(len(ids) for _, ids in kept),
            "tokens": mean(float(token_counts(asked.workspace)[ids].sum()) for asked, ids in kept),
        }
        return {name: None if value is None else round(value, 4) for name, value in figures.items()}

    def total(self, reward: Reward | None) -> float:
        """What the model is paid."""
        return self._config.reward.least if reward is None else reward.total

    def chosen(self, task: SetTask, reply: str) -> list[int] | None:
        """Chunk ids; None where the reply is no action."""
        try:
            value = task.schema.model_validate_json(reply.strip())
        except ValidationError:
            return None
        return taken_by(value, task.question.workspace.borders, self._config.budget)
