"""What a reranker learns from, one question after the other.

Of an agent of one search, its first look at each question about a whole document gives the candidates, which
are computed once and kept in the folder of the training: a chunk that holds a quote competes with some of the
best others. A validation reranks the candidates of held-out documents: the share of quotes among the first
four. An agent that reads its choices is asked in the middle of an episode of its mixture: some of the support
was chosen already, now and then a wrong chunk, and one chunk of what remains competes with those that share
most words with the question. A validation lets the agent search, as people get it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.metrics import fact_f1
from core.base.rows import EpisodeRow
from core.corpus.bm25 import WordIndex
from core.corpus.words import words_of
from core.encode.cache import VectorStore
from core.encode.checkpoint import CheckpointSpec, write_spec
from core.encode.encoder import DualEncoder, fast_dtype, find_device
from core.encode.reranker import Reranker
from core.lab.evaluate.outcomes import oracle_steps
from core.lab.evaluate.run import Setting, evaluate
from core.lab.tasks.data import data_folder
from core.lab.tasks.documents import DocumentFolder, DocumentQuestion, each_document, read_document_questions
from core.lab.tasks.example import Example
from core.lab.tasks.natural import holding_chunks, training_questions
from core.lab.train.mixtures import Mixture
from core.methods.qrag.agent import Agent
from core.methods.qrag.reranked import rerank_parts
from core.methods.qrag.retriever import AgentRetriever


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


COMPETE = 20
"""The likeliest other chunks of a question, of which those that compete are drawn."""


@dataclass(frozen=True, slots=True)
class Contest:
    """A question with texts of which the first belongs to the evidence, the others to none."""

    question: str
    texts: tuple[str, ...]
    chosen: tuple[str, ...] = ()
    """What is read before each text."""


class Contests(Protocol):
    """Where the contests of an update come from, and what an agent is worth that has the reranker."""

    n_questions: int
    """To learn from."""

    def draw(self, rng: Random, n: int) -> list[Contest]:
        """n of them, or as many as there are, each with equally many texts."""
        ...

    def scores(self, agent: Path, spec: CheckpointSpec, device: str) -> Mapping[float, np.ndarray]:
        """By weight of the reranker in Q, 0 first, the score of each validation question. `agent`: the folder
        of one with the reranker, whose spec is `spec` but for the weight.
        """
        ...


WEIGHTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Of the reranker's log-odds in Q, tried by each validation."""
K = 4
"""Chunks of the evidence in a validation, as people get them."""
NEAREST = 32
"""Candidates of a question: the best chunks by the agent's Q."""
FARTHEST = 60
"""A chunk of the support ranked below that is not learned: no reranker would ever read it."""
_FILES = {"train": "train-candidates.jsonl.gz", "validation": "validation-candidates.jsonl.gz"}


@dataclass(frozen=True, slots=True)
class Candidates:
    """A question and what the agent's first look puts first, with the chunks that hold its quotes."""

    question: str
    texts: tuple[str, ...]
    """Q falling."""
    q_values: tuple[float, ...]
    quotes: tuple[tuple[int, ...], ...]
    """Of each quote the candidates that hold it together; -1 stands for one that is none."""

    @property
    def support(self) -> list[int]:
        """Candidates that hold a quote."""
        return sorted({i for quote in self.quotes for i in quote if i >= 0})


def candidates_of(
    encoder: DualEncoder, questions: Iterable[DocumentQuestion], documents: DocumentFolder
) -> Iterator[Candidates]:
    """Each document's questions whose quotes are found. Chunks with part of a quote are no candidates."""
    answerable = [question for question in questions if question.quotes]
    for workspace, placed in each_document(answerable, documents, encoder.tokenizer):
        texts = workspace.texts()
        vectors, words = encoder.encode_chunks(texts), WordIndex(texts)
        for question, places in placed:
            (state,) = encoder.encode_states([encoder.state_tokens(question.question, [])])
            q_values = vectors @ state + encoder.spec.word_weight * words.shares(words_of(question.question))
            holding = [holding_chunks(workspace.tables[0], [place]) for place in places]
            support = {chunk_id for quote in holding for chunk_id in quote}
            touched = {i for place in places for i in workspace.overlapping(0, *place)} - support
            ranked = [i for i in np.argsort(-q_values, kind="stable").tolist() if i not in touched]
            kept = [i for rank, i in enumerate(ranked[:FARTHEST]) if rank < NEAREST or i in support]
            quotes = tuple(tuple(kept.index(i) if i in kept else -1 for i in quote) for quote in holding)
            yield Candidates(
                question.question,
                tuple(texts[i] for i in kept),
                tuple(float(q_values[i]) for i in kept),
                quotes,
            )


def recall_by_weight(
    candidates: Sequence[Candidates], log_odds: Sequence[np.ndarray], pool: int
) -> np.ndarray:
    """(WEIGHTS, questions): share of the quotes of each question whose chunks are all among the first K."""
    recall = np.zeros((len(WEIGHTS), len(candidates)))
    for column, (asked, odds) in enumerate(zip(candidates, log_odds, strict=True)):
        for row, weight in enumerate(WEIGHTS):
            q_values = np.array(asked.q_values)
            q_values[:pool] += rerank_parts(odds, weight)
            first = set(np.argsort(-q_values, kind="stable")[:K].tolist())
            recall[row, column] = np.mean([first.issuperset(quote) for quote in asked.quotes])
    return recall


class FirstLooks:
    """See the module; a `Contests`."""

    def __init__(
        self, encoder: DualEncoder, folder: Path, data: Path | None, *, others: int, n_validation: int
    ) -> None:
        """`encoder`: the agent's. `folder`: keeps the candidates. Raises BadRequest without a question."""
        self._encoder, self._folder, self._data, self._others = encoder, folder, data, others
        self._train = [
            asked
            for asked in self._candidates("train")
            if asked.support and len(asked.texts) - len(asked.support) >= others
        ]
        self._validation = self._candidates("validation")
        Random("order of validation").shuffle(self._validation)
        self._validation = self._validation[:n_validation]
        if not self._train or not self._validation:
            raise BadRequest(
                "there is no question to train on, or none to validate with; name the folder of the data sets"
            )
        self.n_questions = len(self._train)

    def draw(self, rng: Random, n: int) -> list[Contest]:
        """See `Contests`."""
        return [self._contest(asked, rng) for asked in rng.sample(self._train, min(n, len(self._train)))]

    def scores(self, agent: Path, spec: CheckpointSpec, device: str) -> Mapping[float, np.ndarray]:
        """See `Contests`: passage recall among K."""
        on = find_device(device)
        reranker = Reranker(agent, spec, self._encoder.tokenizer, on, fast_dtype(on))
        pool = spec.rerank_pool
        log_odds = [reranker.log_odds(asked.question, asked.texts[:pool]) for asked in self._validation]
        return dict(zip(WEIGHTS, recall_by_weight(self._validation, log_odds, pool), strict=True))

    def _contest(self, asked: Candidates, rng: Random) -> Contest:
        support = set(asked.support)
        others = [i for i in range(len(asked.texts)) if i not in support][:COMPETE]
        competing = [rng.choice(asked.support), *rng.sample(others, self._others)]
        return Contest(asked.question, tuple(asked.texts[i] for i in competing))

    def _candidates(self, part: str) -> list[Candidates]:
        """Those of the folder, or made and kept there: embedding the documents takes many minutes."""
        path = self._folder / _FILES[part]
        if not path.exists():
            questions, documents = training_questions(self._data)
            if part == "validation":
                questions = read_document_questions(
                    data_folder(self._data) / "natural" / "validation.jsonl.gz"
                )
            temporary = path.with_suffix(".tmp")
            with gzip.open(temporary, "wt", encoding="utf-8") as file:
                file.writelines(
                    json.dumps(asdict(asked)) + "\n"
                    for asked in candidates_of(self._encoder, questions, documents)
                )
            temporary.replace(path)
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [_candidates_from(json.loads(line)) for line in file]


def _candidates_from(record: dict[str, Any]) -> Candidates:
    quotes = tuple(tuple(quote) for quote in record["quotes"])
    return Candidates(record["question"], tuple(record["texts"]), tuple(record["q_values"]), quotes)


EPISODE_WEIGHTS = (0.0, 0.1, 0.2, 0.5)
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
            for weight in EPISODE_WEIGHTS:
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
