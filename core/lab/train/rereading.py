"""Questions for a reranker from the mixtures that agents are trained on.

An agent that reads its choices is asked in the middle of an episode: some of the support was chosen already,
now and then a wrong chunk. One chunk of the remaining support competes with the chunks that share most words
with the question. A validation lets the agent search with each of some weights, as people get it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from core.base.errors import BadRequest
from core.corpus.bm25 import WordIndex
from core.corpus.words import words_of
from core.encode.checkpoint import CheckpointSpec, write_spec
from core.encode.encoder import DualEncoder
from core.lab.tasks.example import Example
from core.lab.train.contests import COMPETE, Contest
from core.lab.train.mixtures import Mixture
from core.lab.train.validation import oracle_f1, validation_rows

WEIGHTS = (0.0, 0.1, 0.2, 0.5)
"""Of the reranker's log-odds in Q, tried by each validation; every one reads all of it anew."""
WRONG = 0.15
"""Share of the questions in whose state a chunk stands that is no support."""


class EpisodeQuestions:
    """See the module; a `Contests`."""

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
        """See `Contests`."""
        drawn: list[Contest] = []
        while len(drawn) < n:
            usable = filter(self._is_usable, self._mixture.draw(rng, n - len(drawn)))
            drawn += [self._contest(example, rng) for example in usable]
        return drawn

    def scores(self, agent: Path, spec: CheckpointSpec, device: str) -> Mapping[float, np.ndarray]:
        """See `Contests`: Fact F1, where an oracle stops."""
        by_weight = {}
        config = spec.episode_config(stop_threshold=None, review_threshold=None, temperature=0.0)
        with TemporaryDirectory() as scratch:
            for weight in WEIGHTS:
                write_spec(agent, spec.model_copy(update={"rerank_weight": weight}))
                encoder = DualEncoder(agent, device)
                rows = validation_rows(self._validation, encoder, config, Path(scratch))
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
        competing = [right, *rng.sample(others[:COMPETE], self._others)]
        if not self._spec.reads_choices:
            chosen = []
        elif self._spec.state_order == "document":
            chosen.sort()
        return Contest(
            example.question,
            tuple(example.chunks[row] for row in competing),
            tuple(example.chunks[row] for row in chosen),
        )
