"""What a reranker learns from, one question after the other.

A question is asked in the middle of an episode of a mixture: some of the support was chosen already, now and
then a wrong chunk, and one chunk of what remains competes with those that share most words with the question.
An agent whose reranker reads no choices has chosen nothing before. A validation lets the agent search, as
people get it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.metrics import fact_f1
from core.base.rows import EpisodeRow
from core.corpus.bm25 import WordIndex
from core.corpus.words import words_of
from core.encode.cache import VectorStore
from core.encode.checkpoint import CheckpointSpec, write_spec
from core.encode.encoder import DualEncoder
from core.lab.evaluate.outcomes import oracle_steps
from core.lab.evaluate.run import Setting, evaluate
from core.lab.tasks.example import Example
from core.lab.train.mixtures import Mixture
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import AgentRetriever

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5)
"""Of the reranker's log-odds in Q, tried by each validation; every one reads all of it anew."""
WRONG = 0.15
"""Share of the questions in whose state a chunk stands that is no support."""
COMPETE = 20
"""The likeliest other chunks of a question, of which those that compete are drawn; more where more do."""


def validation_rows(
    examples: Sequence[Example], encoder: DualEncoder, config: EpisodeConfig, scratch: Path
) -> list[EpisodeRow]:
    """A row an example. `scratch`: keeps the vectors of chunks, for another call with the same towers."""
    store = VectorStore(scratch / "vectors", encoder.dim, np.dtype(encoder.spec.vectors))
    agent = AgentRetriever(Agent(encoder))
    return list(evaluate(examples, Setting(split="validation"), agent, encoder, config, store=store))


def oracle_f1(rows: Sequence[EpisodeRow]) -> list[float]:
    """Fact F1 of each episode, were it stopped when it has all support."""
    return [fact_f1(row.chosen[: oracle_steps(row)], row.support) for row in rows]


@dataclass(frozen=True, slots=True)
class Contest:
    """A question with texts of which the first belongs to the evidence, the others to none."""

    question: str
    texts: tuple[str, ...]
    chosen: tuple[str, ...] = ()
    """What is read before each text."""


class Contests:
    """Where the contests of an update come from, and what an agent is worth that has the reranker."""

    def __init__(self, mixture: Mixture, spec: CheckpointSpec, *, others: int, n_validation: int) -> None:
        """`spec`: the agent's. Raises BadRequest where no question can be learned or validated with."""
        self._mixture, self._spec, self._others = mixture, spec, others
        self._validation = mixture.validation(n_validation)
        if not self._validation or not any(map(self._is_usable, mixture.draw(Random("fewest"), 16))):
            raise BadRequest(
                f"of 16 questions of {mixture.name} none has {others} chunks beside its support, or none"
                " validates; lower the number of others, or name other questions"
            )
        n_questions = mixture.describe()["questions"]
        self.n_questions = sum(n_questions.values()) if isinstance(n_questions, dict) else n_questions

    def draw(self, rng: Random, n: int) -> list[Contest]:
        """n of them, each with equally many texts."""
        drawn: list[Contest] = []
        while len(drawn) < n:
            usable = filter(self._is_usable, self._mixture.draw(rng, n - len(drawn)))
            drawn += [self._contest(example, rng) for example in usable]
        return drawn

    def scores(self, agent: Path, device: str) -> Mapping[float, np.ndarray]:
        """By weight of the reranker in Q, 0 first, Fact F1 of each validation question where an oracle stops.
        `agent`: the folder of one with the reranker, whose spec is written into it.
        """
        by_weight = {}
        config = self._spec.episode_config(stop_threshold=None, review_threshold=None, temperature=0.0)
        with TemporaryDirectory() as scratch:
            for weight in WEIGHTS:
                write_spec(agent, self._spec.model_copy(update={"rerank_weight": weight}))
                rows = validation_rows(self._validation, DualEncoder(agent, device), config, Path(scratch))
                by_weight[weight] = np.array(oracle_f1(rows))
        return by_weight

    def _is_usable(self, example: Example) -> bool:
        return len(example.chunks) - len(example.support) > self._others

    def _contest(self, example: Example, rng: Random) -> Contest:
        left = list(example.support)
        rng.shuffle(left)
        right, chosen = left[0], left[1 : 1 + rng.randrange(len(left))]
        shares = WordIndex(example.chunks).shares(words_of(example.question))
        ranked = np.argsort(-shares, kind="stable").tolist()
        others = [row for row in ranked if row not in example.support]
        if rng.random() < WRONG:
            chosen.append(others.pop(rng.randrange(len(others))))
        competing = [right, *rng.sample(others[: max(COMPETE, self._others)], self._others)]
        if not self._spec.reads_choices and not self._spec.rerank_again:
            chosen = []
        elif self._spec.state_order == "document":
            chosen.sort()
        texts, read = (tuple(example.chunks[row] for row in rows) for rows in (competing, chosen))
        return Contest(example.question, texts, read)
