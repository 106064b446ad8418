"""The rows of the quality-cost frontier.

Questions over several documents through methods of one look, at every size of evidence. What top-k, hybrid
and threshold choose under a smaller bound is the beginning of what they choose under a larger one; the policy
of RES-RAG sees its budget, but looks once, too. Every distinct set of a question is read once. Decides the
settings and the questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

from core.answer.protocol import Reader
from core.config import EpisodeConfig
from core.encode.encoder import DualEncoder, load_encoder
from core.evaluate.frontier import FrontierRow
from core.events import fold
from core.index import Corpus
from core.ingest.tokenizer import Tokenizer
from core.methods.hybrid import Hybrid
from core.methods.protocol import Retriever
from core.methods.threshold import Threshold
from core.methods.topk import TopK
from core.metrics import answer_em, answer_f1, fact_f1, fact_recall
from core.resrag.card import policy_for, read_card
from core.resrag.features import QuestionFeatures, look
from core.resrag.policy import load_policy
from core.resrag.retriever import EvidenceSet
from core.resrag.sets import most_probable_set
from core.studies.documents import MANUALS, PAGES, kind_of
from core.tasks.data import data_folder
from core.tasks.documents import read_document_questions
from core.train.set_questions import SetQuestion, document_questions, indexed, set_questions

NATURAL = {"natural": PAGES, "natural-manuals": MANUALS}
"""Names of questions over the documents of one kind of `natural`'s validation part, searched together."""
SIZES = (1, 2, 3, 4, 6, 8)
"""Most chunks of a set."""
THRESHOLDS = (0.7, 0.6, 0.55, 0.5, 0.45, 0.41)
"""Least cosines; the last is the encoder's own."""
BATCH = 16
"""Questions whose sets are read together."""


def frontier_questions(
    name: str, n: int, tokenizer: Tokenizer, data: Path | None = None
) -> list[SetQuestion]:
    """The first n questions of a test part; `name`: of `NATURAL` or of a set. Raises BadRequest."""
    if name not in NATURAL:
        return set_questions(name, "test", n, tokenizer, data)
    path = data_folder(data) / "natural" / "validation.jsonl.gz"
    names = dict.fromkeys(question.document for question in read_document_questions(path))
    group = [one for one in names if kind_of(one) == NATURAL[name]]
    questions = [replace(one, task=name) for one in document_questions(path, [group], tokenizer, data)]
    Random("order of natural").shuffle(questions)
    return questions[:n]


def policy_of_set(name: str) -> Path:
    """The policy that ships for a set's kind of text: *general*'s for whole documents, else *multi-hop*'s."""
    return policy_for("general" if name in NATURAL else "multi-hop")


OneLook = TopK | Hybrid | Threshold | EvidenceSet
"""Methods of one look, each with the encoder whose vectors it searches."""
Methods = Sequence[tuple[str, OneLook]]
"""Each with the name of its policy, empty for other methods than RES-RAG."""


def plain_methods(encoder: DualEncoder) -> Methods:
    """Top-k, hybrid and threshold."""
    return [("", TopK(encoder)), ("", Hybrid(encoder)), ("", Threshold(encoder))]


def set_methods(policies: Sequence[Path], device: str | None = None) -> Methods:
    """RES-RAG under each policy, over its training's vectors. Raises BadCheckpoint where one is missing."""
    cards = {folder: read_card(folder) for folder in policies}
    return [
        (card.name, EvidenceSet(load_encoder(card.encoder, device), load_policy(folder)))
        for folder, card in cards.items()
    ]


def frontier_rows(
    questions: Sequence[SetQuestion],
    reader: Reader,
    methods: Methods,
    on_progress: Callable[[int, int], None],
) -> Iterator[FrontierRow]:
    """Rows question by question, of every method at all of its settings."""
    corpora = {
        encoder: [corpus for _, corpus in indexed(questions, encoder)]
        for encoder in dict.fromkeys(method.encoder for _, method in methods)
    }
    for first in range(0, len(questions), BATCH):
        part = questions[first : first + BATCH]
        chosen = [
            _chosen(methods, question.question, {encoder: own[first + i] for encoder, own in corpora.items()})
            for i, question in enumerate(part)
        ]
        wanted = {
            (i, tuple(sorted(ids))): None for i, sets in enumerate(chosen) for own in sets for ids in own
        }
        passages = [[part[i].workspace[chunk_id].text for chunk_id in ids] for i, ids in wanted]
        answers = reader.read_many([part[i].question for i, _ in wanted], passages)
        texts = {key: answer.text for key, answer in zip(wanted, answers, strict=True)}
        for i, question in enumerate(part):
            for (policy, method), own in zip(methods, chosen[i], strict=True):
                said = [texts[i, tuple(sorted(ids))] for ids in own]
                yield FrontierRow(
                    task=question.task,
                    id=question.id,
                    method=method.name,
                    policy=policy,
                    reader=reader.name,
                    n_documents=len(question.workspace.tables),
                    n_chunks=len(question.workspace),
                    settings=tuple(map(float, _settings(method))),
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


def _settings(method: Retriever) -> tuple[float, ...]:
    return THRESHOLDS if isinstance(method, Threshold) else SIZES


def _chosen(
    methods: Methods, query: str, corpora: Mapping[DualEncoder, Corpus]
) -> list[list[tuple[int, ...]]]:
    """What each method takes at each of its settings, best first. Policies over one encoder share a look."""
    seen = cache(lambda encoder: look(query, corpora[encoder], encoder))
    return [_sets(method, query, corpora[method.encoder], seen) for _, method in methods]


def _sets(
    method: OneLook, query: str, corpus: Corpus, seen: Callable[[DualEncoder], QuestionFeatures]
) -> list[tuple[int, ...]]:
    if isinstance(method, EvidenceSet):
        features, budgets = seen(method.encoder), [min(size, len(corpus)) for size in SIZES]
        policy = method.policy
        return [
            tuple(most_probable_set(policy.chances(features.with_budget(n)), n, policy.least_chance))
            for n in budgets
        ]
    if isinstance(method, Threshold):
        trace = fold(
            method.retrieve(query, corpus, EpisodeConfig(step_budget=1, stop_threshold=min(THRESHOLDS)))
        )
        return [tuple(step.chunk_id for step in trace.steps if step.q_value >= least) for least in THRESHOLDS]
    config = EpisodeConfig(step_budget=min(max(SIZES), len(corpus)))
    most = fold(method.retrieve(query, corpus, config)).picks
    return [most[:size] for size in SIZES]
