"""Training of an agent's reranker.

Question and chunk read together, a chunk of the evidence against what the agent itself puts near the top.
Questions about whole documents (`core.answer.natural.training_questions`); the agent's first look at each
gives its candidates, which are computed once and kept in the folder. Of a question one chunk that holds a
quote competes with some of the best others, in one softmax. LoRA on the agent's base encoder or on a larger
one: the agent's own reranker goes on, else training begins with a reader on the same base, which has learned
to find answers, where one ships. A
validation reranks the candidates of held-back documents for each of some weights: the share of quotes among
the first four decides which reranker and which weight are kept.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from core.answer.checkpoint import ADAPTER_FOLDER, HEADS_FILE, LARGE, SMALL, read_reader_spec
from core.answer.natural import holding_chunks, training_questions
from core.answer.network import NONE
from core.batches import batches
from core.bm25 import WordIndex, words_of
from core.config import check_numbers
from core.encode.adapter import load_adapter, save_adapter
from core.encode.checkpoint import (
    SPEC_FILE,
    CheckpointSpec,
    RerankedDefaults,
    find_base,
    load_head,
    read_spec,
    sha256_of,
    write_spec,
)
from core.encode.encoder import DualEncoder, fast_dtype, find_device
from core.encode.forward import SERVED_WIDTH_STEP, padded_width, reads_segments
from core.encode.reranker import (
    HEAD_FILE,
    RERANKER_FOLDER,
    Reranker,
    RerankerNetwork,
    hash_of,
    padded_pairs,
    pair,
    save_head,
)
from core.encode.tokens import FastTokenizer
from core.errors import BadRequest
from core.qrag.reranked import rerank_parts
from core.tasks.data import data_folder
from core.tasks.documents import DocumentFolder, DocumentQuestion, each_document, read_document_questions
from core.train.descent import LEAST, HeadedDescent, LowRankConfig, low_rank_encoder
from core.train.sitting import CONFIG_FILE, Sitting, TrainEvent
from core.train.towers import low_rank_changes

WEIGHTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
"""Of the reranker's log-odds in Q, tried by each validation."""
K = 4
"""Chunks of the evidence in a validation, as people get them."""
NEAREST = 32
"""Candidates of a question: the best chunks by the agent's Q."""
FARTHEST = 60
"""A chunk of the support ranked below that is not learned: no reranker would ever read it."""
_COMPETE = 20
"""The best candidates, of which those that compete are drawn."""
_TOGETHER = 2
"""Questions whose gradients are computed at once on a CPU."""
_FILES = {"train": "train-candidates.jsonl.gz", "validation": "validation-candidates.jsonl.gz"}


@dataclass(frozen=True, kw_only=True)
class RerankConfig(LowRankConfig):
    """One training of a reranker."""

    base: str | None = None
    """Base encoder; None: that of the agent's reranker, else the agent's own."""
    learning_rate: float = 6e-4
    n_validation: int = 426
    questions: int = 16
    """Questions of one gradient step."""
    others: int = 4
    """Candidates that a chunk of the evidence competes with."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        check_numbers(self, LEAST | {"questions": 1, "others": 1})


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
    for column, (one, odds) in enumerate(zip(candidates, log_odds, strict=True)):
        for row, weight in enumerate(WEIGHTS):
            q_values = np.array(one.q_values)
            q_values[:pool] += rerank_parts(odds, weight)
            first = set(np.argsort(-q_values, kind="stable")[:K].tolist())
            recall[row, column] = np.mean([first.issuperset(quote) for quote in one.quotes])
    return recall


class RerankTrainer:
    """One training; `run` generates its events, and closing it stops between two updates. A `Learner`."""

    def __init__(
        self,
        config: RerankConfig,
        agent: Path,
        folder: Path,
        *,
        data: Path | None = None,
        device: str | None = None,
    ) -> None:
        """`agent` stays as it is; `folder` becomes one like it with a reranker. Raises BadCheckpoint, and
        BadRequest when `folder` holds another training.
        """
        self.config, self.agent, self.device = config, agent, find_device(device)
        spec = read_spec(agent)
        if spec.reads_choices or spec.position_kind != "none":
            raise BadRequest(
                f"Q of {spec.name} changes with each choice; a reranker is for agents with reads_choices"
                " false and position_kind none"
            )
        own = hash_of(agent, spec)
        self._goes_on = bool(own)
        self.spec: CheckpointSpec = spec.model_copy(update={"rerank_weight": 0.0})
        self._data = data
        named = config.base or spec.rerank_base
        self._base = find_base(named or spec.base, agent)
        if named is not None:
            weights = {
                "rerank_base": named,
                "rerank_base_sha256": sha256_of(self._base / "model.safetensors"),
            }
            self.spec = self.spec.model_copy(update=weights)
        self.network = self._new_network()
        self.descent = HeadedDescent(self.network.encoder, {"head": self.network.head}, config)
        about = {
            "config": asdict(config),
            "agent": self.spec.model_dump(mode="json", exclude={"scores"}),
            "reranker": own,
        }
        self.sitting = Sitting(folder, about)
        self.sitting.resume(self.descent.load_state_dict)

    def run(self) -> Generator[TrainEvent]:
        """Trains to the end, or until closed; yields each event after it was written."""
        self._encoder = DualEncoder(self.agent, str(self.device))
        self.tokenizer = FastTokenizer(self._base)
        self._train = [
            one
            for one in self._candidates("train")
            if one.support and len(one.texts) - len(one.support) >= self.config.others
        ]
        self._validation = self._candidates("validation")
        Random("order of validation").shuffle(self._validation)
        self._validation = self._validation[: self.config.n_validation]
        if not self._train or not self._validation:
            raise BadRequest(
                "there is no question to train on, or none to validate with; name the folder of the data sets"
            )
        started = {
            "config": asdict(self.config),
            "questions": len(self._train),
            "n_parameters": self.descent.n_parameters,
            "device": str(self.device),
        }
        yield from self.sitting.run(self, self.config.updates, self.config.validate_every, **started)

    def step(self, update: int) -> TrainEvent:
        rng = Random(f"reranker {self.config.seed} {update}")
        drawn = [
            self._drawn(one, rng)
            for one in rng.sample(self._train, min(self.config.questions, len(self._train)))
        ]
        together = _TOGETHER if self.device.type == "cpu" else len(drawn)
        parts = [drawn[i : i + together] for i in range(0, len(drawn), together)]
        n_right = 0

        def loss_of(part: Sequence[list[tuple[str, str]]]) -> torch.Tensor:
            nonlocal n_right
            texts = [one for of_question in part for one in of_question]
            logits = self._logits(texts).view(len(part), -1)
            is_right = logits.argmax(1) == 0
            n_right += int(is_right.sum())
            right = torch.zeros(len(part), dtype=torch.long, device=logits.device)
            share = len(part) / len(drawn)
            return nn.functional.cross_entropy(logits, right) * share

        rate = self.config.rate(update)
        total, _ = self.descent.step(rate, 1.0, parts, loss_of)
        return {
            "rate": rate,
            "loss": round(total, 4),
            "right": round(n_right / len(drawn), 3),
        }

    def validate(self, *, is_last: bool) -> TrainEvent:
        candidate = self.sitting.new_candidate()
        shutil.copytree(
            self.agent,
            candidate,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns(CONFIG_FILE, RERANKER_FOLDER, "*.jsonl", "resume.safetensors"),
        )
        (candidate / RERANKER_FOLDER).mkdir()
        base = self.spec.rerank_base or self.spec.base
        save_adapter(candidate / RERANKER_FOLDER, low_rank_changes(self.network.encoder), base)
        save_head(self.network, candidate / RERANKER_FOLDER)
        reranker = Reranker(candidate, self.spec, self.tokenizer, self.device, fast_dtype(self.device))
        pool = self.spec.rerank_pool
        recall = recall_by_weight(
            self._validation,
            [reranker.log_odds(one.question, one.texts[:pool]) for one in self._validation],
            pool,
        )
        best = max(range(1, len(WEIGHTS)), key=lambda row: recall[row].mean())
        settings = {"config": asdict(self.config), "questions": len(self._train)}
        record = self.sitting.record | settings
        served = {"rerank_weight": WEIGHTS[best], "reranked": RerankedDefaults(training=record)}
        write_spec(candidate, self.spec.model_copy(update=served))
        gain = recall[best] - recall[0]
        error = float(gain.std() / np.sqrt(len(gain)))
        score = float(gain.mean())
        by_weight = {
            str(weight): round(float(row.mean()), 5) for weight, row in zip(WEIGHTS, recall, strict=True)
        }
        scores = {"score": round(score, 5), "weight": WEIGHTS[best], "recall": by_weight}
        return scores | self.sitting.offer(candidate, score, error, is_last=is_last, last_file=SPEC_FILE)

    def tensors(self) -> dict[str, torch.Tensor]:
        return self.descent.state_dict()

    def _drawn(self, one: Candidates, rng: Random) -> list[tuple[str, str]]:
        """(question, text): a chunk of the evidence, then the others."""
        support = set(one.support)
        others = [i for i in range(len(one.texts)) if i not in support][:_COMPETE]
        chosen = [rng.choice(one.support), *rng.sample(others, self.config.others)]
        return [(one.question, one.texts[i]) for i in chosen]

    def _logits(self, texts: Sequence[tuple[str, str]]) -> torch.Tensor:
        tokenizer, encoder = self.tokenizer, self.network.encoder
        ids = tokenizer.ids([text for one in texts for text in one])
        pairs = [pair(tokenizer, question, chunk) for question, chunk in batches(ids, 2)]
        longest = max(len(tokens) for tokens, _ in pairs)
        width = padded_width(longest, encoder, SERVED_WIDTH_STEP)
        segments = reads_segments(encoder)
        inputs = padded_pairs(pairs, width, tokenizer.pad_id, segments=segments)
        on_device = [torch.from_numpy(one).to(self.device) for one in inputs]
        logits: torch.Tensor = self.network(*on_device)
        return logits

    def _candidates(self, part: str) -> list[Candidates]:
        """Those of the folder, or made and kept there: embedding the documents takes many minutes."""
        path = self.sitting.folder / _FILES[part]
        if not path.exists():
            questions, documents = training_questions(self._data)
            if part == "validation":
                questions = read_document_questions(
                    data_folder(self._data) / "natural" / "validation.jsonl.gz"
                )
            temporary = path.with_suffix(".tmp")
            with gzip.open(temporary, "wt", encoding="utf-8") as file:
                file.writelines(
                    json.dumps(asdict(one)) + "\n"
                    for one in candidates_of(self._encoder, questions, documents)
                )
            temporary.replace(path)
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return [_candidates_from(json.loads(line)) for line in file]

    def _new_network(self) -> RerankerNetwork:
        encoder = low_rank_encoder(self._base, self.config, self.device)
        network = RerankerNetwork(encoder)
        base = self.spec.rerank_base or self.spec.base
        if self._goes_on:
            own, what = self.agent / RERANKER_FOLDER, f"the reranker of {self.spec.name}"
            load_adapter(own, low_rank_changes(encoder), what)
            load_head(network.head, own / HEAD_FILE, what)
            return network.to(self.device)
        for folder in (SMALL, LARGE):
            reader = read_reader_spec(folder)
            if reader.base == base and reader.base_sha256 == sha256_of(self._base / "model.safetensors"):
                load_adapter(folder / ADAPTER_FOLDER, low_rank_changes(encoder), reader.name)
                heads = load_file(folder / HEADS_FILE)
                network.head.load_state_dict(  # what speaks against "no answer"
                    {key: -heads[f"classes.{key}"][NONE : NONE + 1] for key in ("weight", "bias")}
                )
        return network.to(self.device)


def _candidates_from(record: dict[str, Any]) -> Candidates:
    quotes = tuple(tuple(quote) for quote in record["quotes"])
    return Candidates(record["question"], tuple(record["texts"]), tuple(record["q_values"]), quotes)
