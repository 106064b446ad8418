"""The rows of the quality-cost frontier.

Every question goes through every method, at every size of evidence. One search serves all sizes where a
smaller bound gives the beginning of a larger one. RES-RAG's policy sees its budget and so chooses for each. A
Q-RAG agent is cut where its best Q falls below each threshold, a run of SPARC at each depth, and its final
evidence counts, not its own answer. One reader or language model answers from every distinct set once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np

from core.answer.protocol import Reader
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import StepTaken, fold
from core.base.metrics import answer_em, answer_f1, fact_f1, fact_recall
from core.corpus.index import Corpus
from core.encode.encoder import DualEncoder, load_encoder
from core.ingest.tokenizer import Tokenizer
from core.lab.studies.documents import MANUALS, PAGES, kind_of
from core.lab.studies.frontier import FrontierRow
from core.lab.tasks.data import data_folder
from core.lab.tasks.documents import read_document_questions
from core.lab.train.set_questions import SetQuestion, document_questions, indexed, set_questions
from core.llm.protocol import Llm, NotAnswered, Sampling
from core.methods.hybrid import Hybrid
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import QRAG
from core.methods.resrag.card import policy_for, read_card
from core.methods.resrag.features import look
from core.methods.resrag.retriever import EvidenceSet
from core.methods.resrag.sets import most_probable_set
from core.methods.sparc.build import build_agents, build_retrievals
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.llm_agents import MAX_REPLY_TOKENS, GivenAnswer, answer_prompt
from core.methods.sparc.retriever import SPARC
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import fold_sparc
from core.methods.threshold import Threshold
from core.methods.topk import TopK

NATURAL = {"natural": PAGES, "natural-manuals": MANUALS}
"""Names of questions over the documents of one kind of `natural`, searched together."""
SIZES = (1, 2, 3, 4, 6, 8)
"""Most chunks of a set."""
THRESHOLDS = (0.7, 0.6, 0.55, 0.5, 0.45, 0.41)
"""Least cosines; the last is the encoder's own."""
N_FOR_THRESHOLDS = 32
"""Questions of the training part that an agent's thresholds of Q are spread over."""
WIDTHS, DEPTHS = (1, 2), (1, 2, 3, 4)
"""Of SPARC."""
BATCH = 4
"""Questions whose sets are read together."""


def frontier_questions(
    name: str,
    n: int,
    tokenizer: Tokenizer,
    data: Path | None = None,
    part: Literal["train", "test"] = "test",
) -> list[SetQuestion]:
    """The first n of a part; `name`: of `NATURAL`, whose test is its validation, or of a set. Raises
    BadRequest.
    """
    if name not in NATURAL:
        return set_questions(name, part, n, tokenizer, data)
    file = "train" if part == "train" else "validation"
    path = data_folder(data) / "natural" / f"{file}.jsonl.gz"
    names = dict.fromkeys(question.document for question in read_document_questions(path))
    group = [document for document in names if kind_of(document) == NATURAL[name]]
    questions = [
        replace(question, task=name) for question in document_questions(path, [group], tokenizer, data)
    ]
    Random("order of natural").shuffle(questions)
    return questions[:n]


def policy_of_set(name: str) -> Path:
    """The policy that ships for a set's kind of text: *general*'s for whole documents, else *multi-hop*'s."""
    return policy_for("general" if name in NATURAL else "multi-hop")


class Asked:
    """A question over its chunks, under the vectors of every encoder in question."""

    def __init__(self, query: str, corpora: Mapping[DualEncoder, Corpus]) -> None:
        self.query, self.corpora = query, corpora
        self.seen = cache(lambda encoder: look(query, corpora[encoder], encoder))
        """Policies over one encoder share a look."""


@dataclass(frozen=True, eq=False)
class Sized:
    """A method at several sizes of its evidence."""

    name: str
    policy: str
    settings: tuple[float, ...]
    encoders: tuple[DualEncoder, ...]
    sets: Callable[[Asked], list[tuple[int, ...]]]
    """What it takes at each setting, best first."""


def other_methods(
    agent: DualEncoder, thresholds: tuple[float, ...], plain: DualEncoder, reader: Reader
) -> list[Sized]:
    """All but RES-RAG. `plain`: untrained."""
    own = agent_method(agent, thresholds)
    return [*plain_methods(plain), own, *sparc_methods(agent, plain, reader)]


def plain_methods(encoder: DualEncoder) -> list[Sized]:
    """Top-k, hybrid and threshold."""
    return [_ranking(TopK(encoder)), _ranking(Hybrid(encoder)), _above(Threshold(encoder))]


def _ranking(method: TopK | Hybrid) -> Sized:
    def sets(asked: Asked) -> list[tuple[int, ...]]:
        corpus = asked.corpora[method.encoder]
        config = EpisodeConfig(step_budget=min(max(SIZES), len(corpus)))
        most = fold(method.retrieve(asked.query, corpus, config)).picks
        return [most[:size] for size in SIZES]

    return Sized(method.name, "", SIZES, (method.encoder,), sets)


def _above(method: Threshold) -> Sized:
    def sets(asked: Asked) -> list[tuple[int, ...]]:
        config = EpisodeConfig(step_budget=1, stop_threshold=min(THRESHOLDS))
        trace = fold(method.retrieve(asked.query, asked.corpora[method.encoder], config))
        return [tuple(step.chunk_id for step in trace.steps if step.q_value >= least) for least in THRESHOLDS]

    return Sized(method.name, "", THRESHOLDS, (method.encoder,), sets)


def set_methods(policies: Sequence[Path], device: str | None = None) -> list[Sized]:
    """RES-RAG under each policy, over its training's vectors. Raises BadCheckpoint where one is missing."""
    from core.methods.resrag.policy import load_policy  # with torch, which tables of rows do without

    cards = {folder: read_card(folder) for folder in policies}
    return [
        set_method(card.name, EvidenceSet(load_encoder(card.encoder, device), load_policy(folder)))
        for folder, card in cards.items()
    ]


def set_method(name: str, method: EvidenceSet) -> Sized:
    """RES-RAG under one policy."""
    policy = method.policy

    def sets(asked: Asked) -> list[tuple[int, ...]]:
        seen = asked.seen(method.encoder)
        budgets = [min(size, len(asked.corpora[method.encoder])) for size in SIZES]
        return [
            tuple(most_probable_set(policy.chances(seen.with_budget(n)), n, policy.least_chance))
            for n in budgets
        ]

    return Sized(method.name, name, SIZES, (method.encoder,), sets)


def agent_method(encoder: DualEncoder, thresholds: tuple[float, ...]) -> Sized:
    """Q-RAG, stopped where its best Q is below each threshold; what it took is not reviewed."""
    agent = Agent(encoder)

    def sets(asked: Asked) -> list[tuple[int, ...]]:
        steps = _steps(agent, asked.query, asked.corpora[encoder])
        below = [
            next((n for n, step in enumerate(steps) if step.q_value < least), len(steps))
            for least in thresholds
        ]
        return [tuple(step.chunk_id for step in steps[:n]) for n in below]

    return Sized(QRAG.name, encoder.spec.name, thresholds, (encoder,), sets)


def stop_thresholds(encoder: DualEncoder, questions: Sequence[SetQuestion]) -> tuple[float, ...]:
    """A threshold of Q for each of `SIZES`: the one that so many choices of an episode reach on average, when
    nothing stops it. Raises BadRequest without questions.
    """
    if not questions:
        raise BadRequest("a training part has no question to choose stop thresholds on; name other sets")
    agent = Agent(encoder)
    values = [
        step.q_value
        for question, corpus in indexed(questions, encoder)
        for step in _steps(agent, question.question, corpus)
    ]
    return tuple(round(float(np.quantile(values, 1 - size / max(SIZES))), 3) for size in SIZES)


def _steps(agent: Agent, query: str, corpus: Corpus) -> tuple[StepTaken, ...]:
    """What the agent chooses up to the largest size when nothing stops it."""
    return fold(agent.run(query, corpus, EpisodeConfig(step_budget=min(max(SIZES), len(corpus))))).steps


def sparc_methods(encoder: DualEncoder, plain: DualEncoder, reader: Reader) -> list[Sized]:
    """SPARC by rules and the reader at each width, cut at each depth. `plain`: untrained."""
    return [_sparc(width, encoder, plain, reader) for width in WIDTHS]


def _sparc(width: int, encoder: DualEncoder, plain: DualEncoder, reader: Reader) -> Sized:
    config = SparcConfig(width=width, depth=max(DEPTHS))
    agents = build_agents(None, reader, config)

    def sets(asked: Asked) -> list[tuple[int, ...]]:
        retrievals = build_retrievals(config, encoder, plain, asked.corpora.__getitem__)
        trace = fold_sparc(run_sparc(asked.query, asked.corpora[encoder], agents, retrievals, config))
        ends = [trace.at_depth(depth).stopped for depth in DEPTHS]
        return [end.evidence[: config.k] if end else () for end in ends]

    return Sized(SPARC, f"W{width}", tuple(map(float, DEPTHS)), (encoder, plain), sets)


@dataclass(frozen=True)
class Answering:
    """Who answers from a set."""

    name: str
    texts: Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]
    """Of questions and the passages of each; empty for no answer."""


def answering_reader(reader: Reader) -> Answering:
    """The reader that ships, or another one."""
    return Answering(
        reader.name,
        lambda questions, passages: [answer.text for answer in reader.read_many(questions, passages)],
    )


def answering_model(llm: Llm) -> Answering:
    """A language model in its place, at temperature 0, asked as SPARC asks it. Its `texts` raise LlmError."""

    def text(question: str, passages: Sequence[str]) -> str:
        if not passages:
            return ""
        sampling = Sampling(temperature=0.0, max_tokens=llm.reply_tokens or MAX_REPLY_TOKENS)
        try:
            reply = llm.chat(answer_prompt(question, "\n\n".join(passages)), sampling, schema=GivenAnswer)
        except NotAnswered:  # a row like any other, without an answer
            return ""
        assert isinstance(reply.value, GivenAnswer)  # a schema was asked for
        return reply.value.answer.strip()

    return Answering(llm.name, lambda questions, passages: list(map(text, questions, passages)))


def frontier_rows(
    questions: Sequence[SetQuestion],
    answering: Answering,
    methods: Sequence[Sized],
    on_progress: Callable[[int, int], None],
) -> Iterator[FrontierRow]:
    """Rows question by question, of every method at all of its settings; told after every `BATCH`."""
    encoders = dict.fromkeys(encoder for method in methods for encoder in method.encoders)
    corpora = {encoder: [corpus for _, corpus in indexed(questions, encoder)] for encoder in encoders}
    for first in range(0, len(questions), BATCH):
        part = questions[first : first + BATCH]
        chosen = []
        for i, question in enumerate(part, start=first):
            asked = Asked(question.question, {encoder: own[i] for encoder, own in corpora.items()})
            chosen.append([method.sets(asked) for method in methods])
        keys = ((i, tuple(sorted(ids))) for i, sets in enumerate(chosen) for own in sets for ids in own)
        wanted = list(dict.fromkeys(keys))
        passages = [[part[i].workspace[chunk_id].text for chunk_id in ids] for i, ids in wanted]
        answers = answering.texts([part[i].question for i, _ in wanted], passages)
        texts = dict(zip(wanted, answers, strict=True))
        for i, question in enumerate(part):
            for method, own in zip(methods, chosen[i], strict=True):
                said = [texts[i, tuple(sorted(ids))] for ids in own]
                yield FrontierRow(
                    task=question.task,
                    id=question.id,
                    method=method.name,
                    policy=method.policy,
                    reader=answering.name,
                    n_documents=len(question.workspace.tables),
                    n_chunks=len(question.workspace),
                    settings=tuple(map(float, method.settings)),
                    tokens=tuple(
                        sum(question.workspace[chunk_id].n_tokens for chunk_id in ids) for ids in own
                    ),
                    chunks=tuple(map(len, own)),
                    f1=tuple(round(answer_f1(text, question.answers), 4) for text in said),
                    em=tuple(answer_em(text, question.answers) for text in said),
                    recall=tuple(round(fact_recall(ids, question.support), 4) for ids in own),
                    support_f1=tuple(round(fact_f1(ids, question.support), 4) for ids in own),
                )
        on_progress(first + len(part), len(questions))
